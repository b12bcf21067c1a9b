#!/usr/bin/python3
"""Tests the command lines of the programs: --help, --version, and shell completion."""

import re
import shutil
import subprocess
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


def scripts_of(shell):
    return {name: subprocess.run([program, "completion", shell], stdout=subprocess.PIPE, text=True, check=True).stdout
            for name, program in PROGRAMS.items()}


def help_of(name, *words):
    """Returns the commands and the options that the help shows."""
    text = subprocess.run([PROGRAMS[name], *words, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    commands = re.search(r"^Subcommands:\n((?:  .*\n)*)", text, re.MULTILINE)
    options = re.search(r"^Options:\n((?: +.*\n)*)", text, re.MULTILINE)
    return (set(re.findall(r"^  (\w+)", commands[1] if commands else "", re.MULTILINE)),
            set(re.findall(r"(?:^  |,)(--?[\w-]+)", options[1] if options else "", re.MULTILINE)))


def tree(name, *words):
    """Yields (words, commands, options) of each command."""
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

    def complete(self, *words):
        done = subprocess.run(["bash", "-euc", COMPLETE, "bash", self.scripts[words[0]], *words], stdout=subprocess.PIPE,
                              text=True, check=True)
        return set(done.stdout.split())

    def test_every_command_and_option_is_completed_in_its_place(self):
        for name in PROGRAMS:
            for words, commands, options in tree(name):
                with self.subTest(name=name, words=words):
                    self.assertEqual(self.complete(name, *words, ""), commands)
                    self.assertLessEqual(options, self.complete(name, *words, "-"))

    def test_a_beginning_is_completed(self):
        self.assertEqual(self.complete("eventheader", "reg"), {"register"})
        self.assertEqual(self.complete("eventheader", "register", "--ho"), {"--hold"})
        self.assertEqual(self.complete("nettrace", "ctl", "sta"), {"start", "status"})
        self.assertEqual(self.complete("eventheader", "name", "parse", "--j"), {"--json"})

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

    def test_zsh_takes_it(self):
        self.check_syntax("zsh")

    def test_fish_takes_it(self):
        self.check_syntax("fish")

    def test_another_shell_is_usage(self):
        done = subprocess.run([ARGS.eventheader, "completion", "csh"], capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, b""))


if __name__ == "__main__":
    script.run_cases()
