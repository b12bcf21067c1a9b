#!/usr/bin/python3
"""Tests the command lines of the programs: --help, --version, and shell completion."""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from support import script

ARGS = script.options(__doc__, "eventheader", "nettrace", "nettraced")

PROGRAMS = {"eventheader": ARGS.eventheader, "nettrace": ARGS.nettrace, "nettraced": ARGS.nettraced}
# Calls a completion function of bash-completion on the words that follow its name; the last word is completed.
COMPLETE = """
eval "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_"$1"
printf '%s\\n' "${COMPREPLY[@]}"
"""
# The formats of nettrace export.
FORMATS = ("ctf", "ctf2", "fxt", "json", "csv", "parquet", "otlp", "otlp-json", "otlp-spans", "otlp-spans-json", "folded",
           "speedscope", "pprof")


def scripts_of(shell):
    return {name: subprocess.run([program, "completion", shell], stdout=subprocess.PIPE, text=True, check=True).stdout
            for name, program in PROGRAMS.items()}


def help_of(name, *words):
    """Returns the subcommands and the options that --help of a command lists."""
    text = subprocess.run([PROGRAMS[name], *words, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    commands = re.search(r"^Subcommands:\n((?:  .*\n)*)", text, re.MULTILINE)
    options = re.search(r"^Options:\n((?: +.*\n)*)", text, re.MULTILINE)
    return (set(re.findall(r"^  (\w+)", commands[1] if commands else "", re.MULTILINE)),
            set(re.findall(r"(?:^  |,)(--?[\w-]+)", options[1] if options else "", re.MULTILINE)))


def tree(name, *words):
    """Yields the words, the subcommands and the options of this command and of each command below it."""
    commands, options = help_of(name, *words)
    yield words, commands, options
    for command in commands:
        yield from tree(name, *words, command)


class HelpTest(unittest.TestCase):
    def test_no_line_of_help_has_more_than_80_columns(self):
        for name, program in PROGRAMS.items():
            for words, _, _ in tree(name):
                text = subprocess.run([program, *words, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
                for line in text.splitlines():
                    self.assertLessEqual(len(line), 80, f"{name} {words}: {line}")

    def test_every_program_prints_its_version(self):
        for name, program in PROGRAMS.items():
            printed = subprocess.run([program, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
            self.assertRegex(printed, rf"^{name} \d+\.\d+\.\d+\n$")


class BashTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scripts = scripts_of("bash")

    def complete(self, *words, env=None):
        done = subprocess.run(["bash", "-euc", COMPLETE, "bash", self.scripts[words[0]], *words], stdout=subprocess.PIPE,
                              text=True, check=True, env=env)
        return set(done.stdout.split())

    def test_every_command_and_option_is_completed_in_its_place(self):
        for name in PROGRAMS:
            for words, commands, options in tree(name):
                with self.subTest(name=name, words=words):
                    self.assertEqual(self.complete(name, *words, ""), commands)
                    self.assertLessEqual(options, self.complete(name, *words, "-"))

    def test_the_beginning_of_a_word_is_completed(self):
        self.assertEqual(self.complete("eventheader", "reg"), {"register"})
        self.assertEqual(self.complete("eventheader", "register", "--ho"), {"--hold"})
        self.assertEqual(self.complete("nettrace", "ctl", "sta"), {"start", "status"})
        self.assertEqual(self.complete("eventheader", "name", "parse", "--j"), {"--json"})

    def test_values_of_a_list_are_completed(self):
        self.assertEqual(self.complete("nettrace", "export", "--to", ""), set(FORMATS))
        self.assertEqual(self.complete("nettrace", "import", "--from", "f"), {"fxt"})
        self.assertEqual(self.complete("nettrace", "ctl", "wait", "--state", "s"), {"suspended", "stopped"})

    def with_programs(self, words, **programs):
        """Completes the words while shell scripts with these texts replace the programs of these names."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in programs.items():
                path = pathlib.Path(folder) / name
                path.write_text("#!/bin/sh\n" + text)
                path.chmod(0o755)
            return self.complete(*words, env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"})

    def test_sessions_are_completed(self):
        listed = "test \"$*\" = 'ctl list --json' || exit 1\n" + "".join(
            f"echo '{{\"name\":\"{name}\",\"kind\":\"files\"}}'\n" for name in ("web", "box", "$(touch /tmp/x)"))
        for words in (["ctl", "stop", ""], ["ctl", "status", ""], ["top", "--session", ""]):
            with self.subTest(words):
                self.assertEqual(self.with_programs(["nettrace", *words], nettrace=listed), {"web", "box"})
        self.assertEqual(self.with_programs(["nettrace", "ctl", "stop", "w"], nettrace=listed), {"web"})

    def test_tracepoints_are_completed(self):
        # The completion reads the kernel's list of tracepoints with sed. This script replaces sed, and reads a list of
        # the test.
        real = shutil.which("sed")
        lines = "sched:sched_switch\nsched:sched_wakeup\nuser_events:Shop_L4K1\nuser_events:$(touch\n"
        sed = f"printf '{lines}' | {real} -n \"$2\"\n"
        complete = functools.partial(self.with_programs, sed=sed)
        self.assertEqual(complete(["nettrace", "record", "-e", ""]), {"sched:sched_switch", "sched:sched_wakeup", "Shop_L4K1"})
        self.assertEqual(complete(["nettrace", "record", "-e", "sched:sched_s"]), {"sched:sched_switch"})
        # bash splits words at colons, and replaces only the text after the last colon.
        self.assertEqual(complete(["nettrace", "record", "-e", "sched", ":", "sched_s"]), {"sched_switch"})
        self.assertEqual(complete(["nettrace", "record", "--event", "sched", ":"]), {"sched_switch", "sched_wakeup"})
        self.assertEqual(complete(["eventheader", "unregister", "S"]), {"Shop_L4K1"})

    def test_nothing_is_completed_if_tracepoints_cannot_be_read(self):
        # complete() runs bash with -e, so the test fails if the failure of sed ends the shell.
        for words in (["nettrace", "record", "-e", ""], ["eventheader", "unregister", ""]):
            self.assertEqual(self.with_programs(words, sed="exit 4\n"), set())

    def test_values_are_left_to_files(self):
        self.assertEqual(self.complete("eventheader", "register", "--input", "re"), set())
        self.assertEqual(self.complete("nettrace", "verify", "some"), set())

    def test_completion_option_is_hidden(self):
        for name in PROGRAMS:
            self.assertNotIn("completion", help_of(name)[0])
            self.assertNotIn("completion", self.complete(name, ""))

    def test_scripts_are_clean(self):
        if shutil.which("shellcheck") is None:
            self.skipTest("needs shellcheck")
        for text in self.scripts.values():
            done = subprocess.run(["shellcheck", "--shell=bash", "-"], input=text, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout)


class OtherShellsTest(unittest.TestCase):
    def test_completions_have_every_command_and_option(self):
        for shell, place in (("zsh", "'{}'"), ("fish", '"{}"')):
            for name, text in scripts_of(shell).items():
                for words, commands, options in tree(name):
                    with self.subTest(shell=shell, name=name, words=words):
                        self.assertIn(place.format(" ".join((name, *words))), text)
                        for word in (*commands, *options):
                            self.assertIn(word.lstrip("-"), text)

    def check_syntax(self, shell):
        if shutil.which(shell) is None:
            self.skipTest(f"needs {shell}")
        for text in scripts_of(shell).values():
            subprocess.run([shell, "-n", "/dev/stdin"], input=text, text=True, check=True)

    def test_zsh_accepts_the_script(self):
        self.check_syntax("zsh")

    def test_fish_accepts_the_script(self):
        self.check_syntax("fish")

    def test_values_are_completed(self):
        formats = " ".join(FORMATS)
        for shell, values in (("zsh", f"( {formats} )"), ("fish", f"-f -a '{formats}'")):
            text = scripts_of(shell)["nettrace"]
            self.assertIn(values, text)
            self.assertIn("nettrace ctl list --json", text)
            self.assertIn("available_events", text)

    def test_each_line_of_fish_is_a_whole_command(self):
        for text in scripts_of("fish").values():
            for line in text.splitlines():
                if line.startswith("complete"):
                    self.assertEqual(re.sub(r"\\.", "", line).count("'") % 2, 0, line)

    def complete_in_fish(self, line):
        if shutil.which("fish") is None:
            self.skipTest("needs fish")
        done = subprocess.run(["fish", "--no-config", "-c", 'source -; complete -C $argv[1]', line],
                              input=scripts_of("fish")["nettrace"], stdout=subprocess.PIPE, text=True, check=True)
        return {found.split("\t")[0] for found in done.stdout.splitlines()}

    def test_fish_completes_values(self):
        self.assertEqual(self.complete_in_fish("nettrace export --to c"), {"ctf", "ctf2", "csv"})
        self.assertEqual(self.complete_in_fish("nettrace ctl wait --state s"), {"suspended", "stopped"})

    def test_another_shell_is_usage(self):
        done = subprocess.run([ARGS.eventheader, "completion", "csh"], capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, b""))


if __name__ == "__main__":
    script.run_cases()
