#!/usr/bin/python3
"""Tests that every code block of the documents and every example of manual pages is tested in a way that
support/documents.py knows. Blocks that are compiled, parsed or compared are tested here; shells_test.py tests blocks
that are run."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import unittest

from support import document_shell
from support import documents
from support import script

ARGS = script.options(__doc__, "source", "build", "cc", "cxx", "nettraced", "example-nettrace-write")

HERE = pathlib.Path(__file__).parent
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
# Maximum number of blocks that are not tested. A comment in the document gives the reason of each. Before raising the
# number, try to test the block.
MOST_EXEMPTIONS = 10
# Settings files of nettraced in the repository. Their contents must be valid, too.
SETTINGS = ("debian/nettraced.toml", "tools/nettraced/settings/nettraced.toml")


def every_block():
    return [block for blocks in (documents.of_tree(ARGS.source) | documents.of_pages(ARGS.source)).values() for block in blocks]


def with_way(way):
    return [block for block in every_block() if block.way == way]


def call(*command, **options):
    """Runs a command that must succeed. Returns its stdout and stderr as one text."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{shlex.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def within(frame, block):
    """Returns the source in `frame`, a file of frames/, with the block in place of the line "// The block.". Compiler
    messages then have the line numbers of the document."""
    before, found, after = (HERE / "frames" / frame).read_text(encoding="utf-8").partition("// The block.\n")
    if not found:
        raise AssertionError(f"{frame}: there is no line \"// The block.\"")
    return f'{before}#line {block.line} "{block.document}"\n{block.text}#line 1 "after the block"\n{after}'


class EveryBlockTest(unittest.TestCase):
    def test_is_tested_in_a_known_way(self):
        wanting = [f"{block.name}: nothing is known of how a block {block.language!r} is tested; support/documents.py says "
                   "what a comment before it may say" for block in every_block() if block.way is None]
        self.assertEqual(wanting, [])

    def test_exemptions_are_few(self):
        exempt = [f"{block.name}: {block.marker['none']}" for block in with_way("none")]
        self.assertLessEqual(len(exempt), MOST_EXEMPTIONS, "\n".join(exempt))

    def test_tests_that_blocks_name_use_them(self):
        for block in with_way("by"):
            with self.subTest(block.name):
                [test] = (ARGS.source / "tests").rglob(block.marker["by"])
                self.assertTrue("documents.taken_by(__file__" in test.read_text(encoding="utf-8"),
                                f"{test.name} does not read this block by taken_by()")

    def test_lines_are_in_the_file_that_is_named(self):
        for block in with_way("in"):
            text = " ".join((ARGS.source / block.marker["in"]).read_text(encoding="utf-8").split())
            for line in block.text.splitlines():
                with self.subTest(block.name):
                    self.assertIn(" ".join(line.split()), text)

    def test_frames_are_used(self):
        self.assertEqual({block.marker.get("within") for block in with_way("compile")} - {None},
                         {file.name for file in (HERE / "frames").iterdir()})

    def test_manual_pages_have_examples(self):
        for name, blocks in documents.of_pages(ARGS.source).items():
            with self.subTest(name):
                self.assertEqual(bool(blocks), ".Sh EXAMPLES" in (ARGS.source / name).read_text(encoding="utf-8"))


class CodeTest(unittest.TestCase):
    def build(self, block, folder):
        """Compiles a block. Returns the program, or None for a block without main()."""
        in_c = block.language == "c"
        text = within(block.marker["within"], block) if "within" in block.marker else block.text
        source, program = folder / ("block.c" if in_c else "block.cc"), folder / "program"
        source.write_text(text, encoding="utf-8")
        standard = block.marker.get("std", "c11" if in_c else "c++20")
        has_main = bool(re.search(r"\bmain\(", text))
        libraries = ["eventheader"] + (["nettrace"] if "nettrace/" in text else [])
        call(*shlex.split(str(ARGS.cc if in_c else ARGS.cxx)), f"-std={standard}", *WARNINGS, source,
             *(["-o", program] if has_main else ["-c", "-o", folder / "block.o"]),
             *call("pkg-config", "--cflags", *(["--libs"] if has_main else []), *libraries,
                   env={**os.environ, "PKG_CONFIG_PATH": str(ARGS.build / "meson-uninstalled")}).split())
        return program if has_main else None

    def test_compiles_and_runs(self):
        self.assertTrue(with_way("compile"))
        with tempfile.TemporaryDirectory(prefix="blocks-") as name:
            folder = pathlib.Path(name)
            call(ARGS.example_nettrace_write, folder / "trace.nettrace")
            for block in with_way("compile"):
                with self.subTest(block.name):
                    program = self.build(block, folder)
                    if program:
                        call(program, cwd=folder,
                             env={**os.environ, "LD_LIBRARY_PATH": str(ARGS.build / "libnettrace-writer")})


class FilesTest(unittest.TestCase):
    def check_settings(self, text):
        with tempfile.TemporaryDirectory(prefix="blocks-") as folder:
            (pathlib.Path(folder) / "block.toml").write_text(text, encoding="utf-8")
            call(ARGS.nettraced, "--check-config", "--config", folder)

    def test_settings(self):
        self.assertTrue(with_way("settings"))
        for block in with_way("settings"):
            with self.subTest(block.name):
                self.check_settings(block.text)
        for name in SETTINGS:
            with self.subTest(name):
                self.check_settings((ARGS.source / name).read_text(encoding="utf-8"))

    def check_unit(self, text):
        """Checks the text of a unit or of a drop-in. The unit runs /bin/true, because the program that the text names is not
        installed here."""
        with tempfile.TemporaryDirectory(prefix="blocks-") as name:
            folder = pathlib.Path(name)
            unit = folder / "block.service"
            if "ExecStart=" in text:
                unit.write_text(re.sub(r"(?<=^ExecStart=)\S+", "/bin/true", text, flags=re.MULTILINE), encoding="utf-8")
            else:
                unit.write_text("[Service]\nExecStart=/bin/true\n", encoding="utf-8")
                (folder / "block.service.d").mkdir()
                (folder / "block.service.d/block.conf").write_text(text, encoding="utf-8")
            return call("systemd-analyze", "verify", "--man=no", unit, env={**os.environ, "SYSTEMD_UNIT_PATH": f"{folder}:"})

    def test_units(self):
        self.assertTrue(with_way("unit"))
        for block in with_way("unit"):
            with self.subTest(block.name):
                self.assertEqual(self.check_unit(block.text), "")

    def test_a_wrong_unit_is_found(self):
        self.assertIn("Unknown", self.check_unit("[Service]\nReedWritePaths=/srv\n"))
        self.assertIn("Assignment outside", self.check_unit("ReadWritePaths=/srv\n"))

    def test_json(self):
        for block in with_way("json"):
            with self.subTest(block.name):
                json.loads(block.text)


class GrammarTest(unittest.TestCase):
    """Tests blocks that are a grammar: each type is defined, and the count of each repetition is the name of a field in the
    same rule."""

    RULE = re.compile(r"^([a-z][a-z-]*) += ", re.MULTILINE)

    def check(self, text, defined):
        text = re.sub(r";.*", "", re.sub(r'"[^"]*"', "", text))
        parts = self.RULE.split(text)[1:]
        wrong = []
        for rule, body in zip(parts[::2], parts[1::2]):
            named = re.findall(r"([\w-]+):", body)
            wrong += [f"{rule}: {kind}" for kind in re.findall(r":([a-z]+)", body) if kind not in ("i", "u", *defined)]
            wrong += [f"{rule}: {count}*" for count in re.findall(r"([a-z][\w-]*)\*", body) if count not in named]
        return wrong

    def test_types_and_counts_are_defined(self):
        found = 0
        for name, blocks in documents.of_tree(ARGS.source).items():
            grammars = [block for block in blocks if block.way == "grammar"]
            defined = {rule for block in grammars for rule in self.RULE.findall(block.text)}
            for block in grammars:
                found += 1
                with self.subTest(block.name):
                    self.assertTrue(self.RULE.match(block.text))
                    self.assertEqual(self.check(block.text, defined), [], name)
        self.assertGreater(found, 0)

    def test_finds_undefined_names(self):
        self.assertEqual(self.check("a = n:u8 b:other m*byte n*(c:u16)\n", {"a"}), ["a: other", "a: m*"])


class CheckoutTest(unittest.TestCase):
    """Tests command lines of ./run: the command, its options and suites must exist."""

    def help_of(self, command):
        text = (ARGS.source / "run").read_text(encoding="utf-8")
        found = re.search(rf"^  {command}\)$.*?exec \"\$scripts/([\w.]+)\"", text, re.MULTILINE | re.DOTALL)
        self.assertTrue(found, f"./run has no command {command}")
        return call(ARGS.source / "scripts" / found[1], "--help")

    def check(self, line):
        words = shlex.split(line.replace("[", "").replace("]", ""), comments=True)
        words = words[words.index("./run") + 1:]
        if not words or words == ["--help"]:
            return
        own = words[1:words.index("--")] if "--" in words else words[1:]
        shown = self.help_of(words[0])
        for word in own:
            if word.startswith("-"):
                self.assertRegex(shown, rf"(?<![\w-]){re.escape(word)}\b")
            elif words[0] == "test":
                self.assertRegex(shown, rf"(?m)^  {word}(-\w+)? ")

    def test_lines_are_known(self):
        lines = {line: block.name for block in with_way("checkout") for line in block.text.splitlines()}
        for command in ("", *re.findall(r"^  (\w+)\)$", (ARGS.source / "run").read_text(encoding="utf-8"), flags=re.MULTILINE)):
            shown = self.help_of(command) if command else call(ARGS.source / "run", "--help")
            lines |= dict.fromkeys(re.findall(r"^  (\./run .*)", shown, flags=re.MULTILINE), f"./run {command} --help")
        self.assertGreater(len(lines), 10)
        for line, name in lines.items():
            with self.subTest(name, line=line):
                self.check(line)

    def test_finds_unknown_words(self):
        for line in ("./run none", "./run test none", "./run bench --none", "./run vm --none 2 -- true"):
            with self.subTest(line), self.assertRaises(AssertionError):
                self.check(line)


class ShellTest(unittest.TestCase):
    """Tests the shell that runs commands of documents."""

    def run_block(self, text, language="sh", **marker):
        document_shell.run([documents.Block("page.md", 7, language, text, marker)], [])

    def test_successful_commands_pass(self):
        for text, language, marker in (("true\nfalse || true\n", "sh", {}), ("(exit 6)\n", "sh", {"exit": "6"}),
                                       ("$ echo 12 a\n3 a\n$ echo '{\"b\": [1, 2], \"a\": null}'\n{\"a\":null,\"b\":[7]}\n", "console", {}),
                                       ("$ echo a; echo \"  1 event arrived late; the original time is elsewhere\"\na\n", "console", {}),
                                       ("#!/bin/sh\ncase $0 in *sh) exit 1; esac\n", "sh", {})):
            with self.subTest(text):
                self.run_block(text, language, **marker)

    def test_names_failed_commands(self):
        for text, language, marker in (("false\ntrue\n", "sh", {}), ("false | true\n", "sh", {}), ("(exit 5)\n", "sh", {"exit": "6"}),
                                       ("$ echo 12 a\n3 b\n", "console", {}), ("$ true\na\n", "console", {}),
                                       ("$ echo '{\"a\": 1}'\n{\"a\":\"1\"}\n", "console", {}), ("#!/bin/sh\nexit 1\n", "sh", {})):
            with self.subTest(text), self.assertRaisesRegex(document_shell.ShellError, "page.md:7"):
                self.run_block(text, language, **marker)

    def test_stops_endless_commands(self):
        with tempfile.TemporaryDirectory(prefix="blocks-") as folder:
            program = pathlib.Path(folder) / "eventheader"
            # The program is in Perl: Python starts more slowly, so it could get SIGINT before it has installed its handler.
            program.write_text('#!/usr/bin/perl\n$SIG{INT} = sub { print "1\\n"; exit };\nsleep 100;\n', encoding="utf-8")
            program.chmod(0o755)
            document_shell.run([documents.Block("page.md", 7, "console", "$ eventheader watch\n1\n", {})], [program])


class DocumentsTest(unittest.TestCase):
    """Tests how support/documents.py finds blocks in Markdown, and how it reads the comments about their tests."""

    def ways(self, text):
        return [(block.line, block.language, block.way) for block in documents.of_markdown("page.md", text)]

    def test_blocks_are_found(self):
        self.assertEqual(self.ways("text\n\n    ls\n\n    ls -l\n\n```\na\n```\n- item\n\n    of it\n\ntext\n\n    ls\n"),
                         [(3, "sh", "run"), (8, "", None), (16, "sh", "run")])

    def test_comments_are_heeded(self):
        [vm, both, none] = documents.of_markdown("page.md", "<!-- test: vm, exit 6 -->\n\n    ls\n\n<!-- test: here, vm -->\n\n    ls\n\n"
                                                 "<!-- test: none: a, b -->\n```x\n```\n")
        self.assertEqual((vm.places, vm.marker["exit"]), (["vm"], "6"))
        self.assertEqual(both.places, ["here", "vm"])
        self.assertEqual((none.way, none.marker["none"]), ("none", "a, b"))

    def test_places_follow_from_commands(self):
        for text, place in (("ls", "here"), ("nettrace record -e A", "vm"), ("nettrace dump a", "here"), ("nettrace top a", "here"),
                            ("nettrace top --once -e A", "vm"),
                            ("eventheader list && systemctl status", "systemd")):
            [block] = documents.of_markdown("page.md", f"    {text}\n")
            self.assertEqual(block.places, [place])

    def test_comments_that_say_nothing_are_errors(self):
        for text in ("<!-- test: else -->\n\n    ls\n", "<!-- test: none: -->\n\n    ls\n", "<!-- test: vm -->\n\ntext\n"):
            with self.subTest(text), self.assertRaises(documents.MarkerError):
                self.ways(text)


if __name__ == "__main__":
    script.run_cases()
