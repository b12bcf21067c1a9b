"""Tests that the help of ./run and its commands needs no package, and installs none."""

import pathlib
import re
import shutil
import subprocess

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
COMMANDS = re.findall(r"^  (\w+)\)$", (REPOSITORY / "run").read_text(), re.MULTILINE)
TEXTS = [[command, option] for command in COMMANDS for option in ("--help", "-h")] + [["test", "--list"]]


class Checkout:
    """A copy of the scripts that records what they would install."""

    def __init__(self, folder):
        self.folder = folder
        self.installed = folder / "installed"
        shutil.copy(REPOSITORY / "run", folder)
        shutil.copytree(REPOSITORY / "scripts", folder / "scripts")
        (folder / "scripts/packages.sh").write_text(f'#!/bin/sh\necho "$*" >>"{self.installed}"\nexit 1\n')

    def run(self, *arguments):
        return subprocess.run([self.folder / "run", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False)


@pytest.fixture(name="checkout")
def fixture_checkout(tmp_path):
    return Checkout(tmp_path)


@pytest.mark.parametrize("arguments", TEXTS, ids=" ".join)
def test_text_installs_nothing(checkout, arguments):
    done = checkout.run(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("by default:" if "--list" in arguments else f"usage: ./run {arguments[0].replace('soak', 'test')}") in done.stdout
    assert not checkout.installed.exists()


@pytest.mark.parametrize("arguments", TEXTS, ids=" ".join)
def test_text_without_python_is_the_usage_of_run(checkout, arguments):
    run = checkout.folder / "run"
    run.write_text(run.read_text().replace("python=/usr/bin/python3", "python=/no/python3"))
    done = checkout.run(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(rf"^  {arguments[0]} ", done.stdout, re.MULTILINE)
    assert "python3" in done.stdout
    assert not checkout.installed.exists()


@pytest.mark.parametrize("script", ["bench.py", "docs.py", "test.py", "vm.py"])
def test_help_needs_the_standard_library_alone(script):
    # With -S, Python does not find the modules of Debian's packages, which the help must not need.
    done = subprocess.run(["/usr/bin/python3", "-S", REPOSITORY / "scripts" / script, "--help"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_installs_what_it_needs(checkout, command):
    # A --help after "--" is an argument of the command in the VM, so the packages must be installed.
    done = checkout.run(command, *(["--", "true", "--help"] if command == "vm" else []))
    assert done.returncode == 1
    assert checkout.installed.exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_wrong_arguments_are_wrong_usage(checkout, command):
    (checkout.folder / "scripts/packages.sh").write_text("#!/bin/sh\n")
    done = checkout.run(command, "--none")
    assert done.returncode == 2
    assert f"usage: ./run {command.replace('soak', 'test')}" in done.stderr


def test_an_unknown_command_is_wrong_usage(checkout):
    done = checkout.run("none")
    assert done.returncode == 2
    assert 'unknown command "none"' in done.stderr


@pytest.mark.parametrize("arguments", [["--all", "unit"], ["none"]], ids=" ".join)
def test_wrong_suites_are_wrong_usage(checkout, arguments):
    (checkout.folder / "scripts/packages.sh").write_text("#!/bin/sh\n")
    assert checkout.run("test", *arguments).returncode == 2
