"""Checks of the sources: clang-format, clang-tidy, shellcheck, pyflakes, mandoc."""

import concurrent.futures
import contextlib
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess

from testing import case
from testing import configuration

REPOSITORY = configuration.REPOSITORY
WORKERS = 2
CLANG_FORMAT, CLANG_TIDY = "clang-format-14", "clang-tidy-14"


def run(prefix):
    cases = [*_format(prefix), *_shellcheck(prefix), *_pyflakes(prefix), *_manuals(prefix)]
    return cases + _tidy(prefix)


def _tracked(*patterns):
    """Our files of a kind, also the ones that are new and not committed yet."""
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    return sorted(name for name in set(listed.split("\0")) if name and (REPOSITORY / name).is_file())


def _check(name, command):
    done = subprocess.run(
        command, cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", check=False)
    return case.failed(name, done.stdout) if done.returncode != 0 else case.passed(name)


def _format(prefix):
    cases = []
    for source in _tracked("*.cc", "*.h", "*.c"):
        result = _check(f"{prefix}/clang-format {source}", [CLANG_FORMAT, "--dry-run", "--Werror", source])
        if result.outcome == case.FAILED:
            result.detail = f"put right by: {CLANG_FORMAT} -i {source}"
        cases.append(result)
    return cases


def _shellcheck(prefix):
    scripts = [name for name in _tracked("run", ".ci/*", "scripts", "tests", "debian", "tools")
               if (REPOSITORY / name).read_bytes()[:40].split(b"\n")[0] in (b"#!/bin/bash", b"#!/bin/sh")]
    return [_check(f"{prefix}/shellcheck", ["shellcheck", "--external-sources", *scripts])]


def _pyflakes(prefix):
    return [_check(f"{prefix}/pyflakes", ["pyflakes3", *_tracked("*.py")])]


def _manuals(prefix):
    pages = _tracked("*.1", "*.3", "*.5", "*.7", "*.8")
    return [_check(f"{prefix}/mandoc {page}", ["mandoc", "-T", "lint", "-W", "warning", page]) for page in pages]


def _tidy(prefix):
    commands = _compile_commands()
    # clang-tidy would go through a file once for every program that it is compiled into.
    folder = configuration.ASAN.folder / "tidy"
    folder.mkdir(exist_ok=True)
    (folder / "compile_commands.json").write_text(json.dumps(list(commands.values())))
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(lambda source: _tidy_file(prefix, source, commands[source], folder), sorted(commands)))


def _compile_commands():
    """How each of our sources is compiled, where all of them are: fuzzers, too."""
    configuration.ASAN.configure()
    ours = set(_tracked("*.cc", "*.c"))
    commands = {}
    for entry in json.loads((configuration.ASAN.folder / "compile_commands.json").read_text()):
        source = os.path.relpath(os.path.join(entry["directory"], entry["file"]), REPOSITORY)
        if source in ours:
            commands.setdefault(source, entry)
    return commands


def _tidy_file(prefix, source, entry, commands_folder):
    name = f"{prefix}/clang-tidy {source}"
    clean = _clean_mark(source, entry)
    if clean.exists():
        return case.passed(name)
    result = _check(name, [CLANG_TIDY, "--quiet", "-p", commands_folder, source])
    if result.outcome == case.PASSED:
        with contextlib.suppress(OSError):
            clean.parent.mkdir(parents=True, exist_ok=True)
            clean.touch()
    # How many warnings the system's headers have given is of no use to anybody.
    result.detail = re.sub(r"^\d+ warnings? generated\.\n", "", result.detail, flags=re.MULTILINE)
    return result


def _clean_mark(source, entry):
    """A file that exists where clang-tidy has had nothing to say about exactly this translation unit."""
    preprocess = [arg for arg in shlex.split(entry["command"]) if arg != "-c"]
    if preprocess[0] == "ccache":
        del preprocess[0]
    if "-o" in preprocess:
        preprocess[preprocess.index("-o") + 1] = "-"
    # -C: a NOLINT comment counts.
    text = subprocess.run(
        [*preprocess, "-E", "-C", "-MF", "/dev/null"], cwd=entry["directory"], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    key = hashlib.sha256(text)
    key.update(entry["command"].encode())
    for folder in (REPOSITORY / source).parents:
        if folder.is_relative_to(REPOSITORY) and (folder / ".clang-tidy").exists():
            key.update((folder / ".clang-tidy").read_bytes())
    key.update(_tidy_version())
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(base) / "nettraced/clang-tidy" / key.hexdigest()


def _tidy_version():
    return subprocess.run([CLANG_TIDY, "--version"], capture_output=True, check=True).stdout
