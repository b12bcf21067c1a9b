#!/usr/bin/python3
"""Tests what `eventheader` does without a kernel: names, and checks of definitions to register."""

import json
import pathlib
import subprocess
import tempfile
import unittest

from support import script

ARGS = script.options(__doc__, "eventheader")


def run(*arguments, stdin=""):
    return subprocess.run([ARGS.eventheader, *arguments], input=stdin, capture_output=True, text=True, check=False,
                          timeout=60)


class NameTest(unittest.TestCase):
    def test_parse_prints_words_for_scripts(self):
        done = run("name", "parse", "A_L4K1", "My_P_LffKabGgroup")
        self.assertEqual((done.returncode, done.stdout), (0, "A 4 0x1 -\nMy_P 255 0xab Ggroup\n"))

    def test_parse_continues_after_a_wrong_name(self):
        done = run("name", "parse", "A", "A_L4K1")
        self.assertEqual((done.returncode, done.stdout), (1, "A 4 0x1 -\n"))
        self.assertIn("'A'", done.stderr)

    def test_parse_json(self):
        done = run("name", "parse", "--json", "A_L4KffGgroup")
        self.assertEqual(json.loads(done.stdout), {"name": "A_L4KffGgroup", "provider": "A", "level": 4, "keyword": "0xff",
                                                   "group": "group", "options": "Ggroup"})

    def test_format_is_the_opposite_of_parse(self):
        for words, name in ((("A", "4", "0x1"), "A_L4K1"), (("A", "255", "171", "--group", "g"), "A_LffKabGg"),
                            (("A", "1", "0", "--options", "AxBy"), "A_L1K0AxBy")):
            done = run("name", "format", *words)
            self.assertEqual((done.returncode, done.stdout), (0, name + "\n"))
        for words in (("A", "0", "1"), ("A", "256", "1"), ("A-", "1", "1"), ("A", "1", "x"), ("A", "1", "1", "--group", "G"),
                      ("A" * 260, "1", "1")):
            done = run("name", "format", *words)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), words)

    def test_check_reports_the_reason(self):
        self.assertEqual(run("name", "check", "A_L4K1", "B_L1K0").returncode, 0)
        done = run("name", "check", "A_L4K1", "A_L4KAB", "\x1b[2J")
        self.assertEqual(done.returncode, 1)
        self.assertIn("'A_L4Kab'", done.stderr)
        self.assertIn("\\u001b[2J", done.stderr)

    def test_quiet(self):
        for arguments in (("--quiet", "name", "check", "A"), ("name", "check", "-q", "A")):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (1, "", ""))


class RegisterTest(unittest.TestCase):
    """Tests errors that `register` reports before it looks for tracefs. These cases therefore need no tracefs."""

    def test_wrong_words_are_usage(self):
        for words in (["A"], ["A_L4K1", "X u33 a"], ["A", "--levels", "0", "--keywords", "1"], ["A", "--levels", "1"], [],
                      ["--hold", "--persist", "A_L4K1"]):
            done = run("register", *words)
            self.assertEqual(done.returncode, 2, done)
            self.assertNotEqual(done.stderr, "")

    def test_every_wrong_line_is_named(self):
        with tempfile.TemporaryDirectory(prefix="eventheader-") as folder:
            folder = pathlib.Path(folder)
            (folder / "20-b.conf").write_text("Bad\n")
            (folder / "10-a.conf").write_text("# comment\nA_L4K1\nP --levels 1-4\nX u32\n")
            (folder / "not-read.txt").write_text("Bad\n")
            done = run("register", "-i", str(folder), "-i", "-", stdin="\nWrong\n")
        self.assertEqual(done.returncode, 78, done)
        self.assertEqual([line.split(": ")[1] for line in done.stderr.splitlines()],
                         [f"{folder}/10-a.conf:3", f"{folder}/10-a.conf:4", f"{folder}/20-b.conf:1", "standard input:2"])

    def test_a_missing_file_is_named(self):
        done = run("register", "-i", "/no/such/file")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/no/such/file: No such file", done.stderr)

    def test_no_file_in_a_folder_is_nothing_to_do(self):
        with tempfile.TemporaryDirectory(prefix="eventheader-") as folder:
            self.assertEqual(run("register", "-i", folder).returncode, 0)

    def test_large_input_is_refused(self):
        done = run("register", "-i", "-", stdin="# " + "x" * (5 << 20))
        self.assertEqual(done.returncode, 78)
        self.assertIn("standard input: the text has more than 4194304 bytes", done.stderr)


class UsageTest(unittest.TestCase):
    def test_unknown_options_and_commands_are_named(self):
        for words, message in ((["list", "--bogus"], "eventheader list: unknown option '--bogus'; 'eventheader list --help' lists the options\n"),
                               (["list", "A_*", "B_*", "--bogus"],
                                "eventheader list: unknown option '--bogus'; 'eventheader list --help' lists the options\n"),
                               (["bogus"], "eventheader: unknown command 'bogus'; 'eventheader --help' lists the commands\n"),
                               (["--bogus"], "eventheader: unknown option '--bogus'; 'eventheader --help' lists the options\n")):
            done = run(*words)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", message))

    def test_every_command_has_help_with_examples_and_exit_codes(self):
        for words in (["register"], ["unregister"], ["list"], ["watch"], ["doctor"], ["name", "parse"],
                      ["name", "format"], ["name", "check"]):
            done = run(*words, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, r"(?s)Exit code: .*Examples?:\n  eventheader")
        for words in ([], ["none"], ["list", "--none"]):
            done = run(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)


if __name__ == "__main__":
    script.run_cases()
