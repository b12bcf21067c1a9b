"""Checks of the sources: clang-format, clang-tidy, shellcheck, pyflakes, mandoc, and the words of texts.

clang-tidy takes 5 to 15 s for a source, so it reads only the sources whose code changed in the work tree and in the
commits of the last hours; changes of comments and texts do not count. It leaves out the checks that take more than half
of the time. If `full` is set, it reads all sources with all checks. It compiles each source by itself, so it also finds
a missing #include that a unity build hides.
"""

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
from testing import processes
from testing import prose

REPOSITORY = configuration.REPOSITORY
WORKERS = os.cpu_count()
# Commits that are this much older than the newest one, and all commits before them, count as checked.
RECENT_HOURS = 12
STRINGS = re.compile(rb'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')
NAMES_OF_TESTS = re.compile(rb"\bTEST(_F|_P)? ?\([^()]*\)")
full = False
# Only with `full`.
SLOW_CHECKS = "clang-analyzer-*", "performance-unnecessary-value-param", "bugprone-reserved-identifier"
CLANG_FORMAT, CLANG_TIDY = "clang-format-14", "clang-tidy-14"


def run(prefix):
    cases = [*_format(prefix), *_shellcheck(prefix), *_pyflakes(prefix), *_manuals(prefix), *_prose(prefix)]
    return cases + _tidy(prefix)


def _tracked(*patterns):
    """Returns the project's files of a kind, including files that are new and not committed yet."""
    listed = _git("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns)
    return sorted(name for name in set(listed.split("\0")) if name and (REPOSITORY / name).is_file())


def _git(*arguments):
    return subprocess.run(["git", "-c", "safe.directory=*", *arguments], cwd=REPOSITORY, capture_output=True, text=True,
                          check=True).stdout


def _check(name, command):
    done = processes.run(command, cwd=REPOSITORY)
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


def _prose(prefix):
    report = prose.check_tree()
    cases = [case.failed(f"{prefix}/prose {path}", "\n".join(map(str, matches))) if matches
             else case.passed(f"{prefix}/prose {path}") for path, matches in report.matches.items()]
    name = f"{prefix}/prose {prose.ALLOWED}"
    return cases + [case.failed(name, "\n".join(report.errors)) if report.errors else case.passed(name)]


def _tidy(prefix):
    commands = _compile_commands()
    # Without this, clang-tidy would check a file once for every program that it is compiled into.
    folder = configuration.LINT.folder / "tidy"
    folder.mkdir(exist_ok=True)
    (folder / "compile_commands.json").write_text(json.dumps(list(commands.values())))
    chosen = sorted(commands) if full else sorted(commands.keys() & _changed())
    print(f"   clang-tidy reads {len(chosen)} of {len(commands)} sources", flush=True)
    return processes.in_parallel(lambda source: _tidy_file(prefix, source, commands[source], folder), chosen, WORKERS)


def _changed():
    """Returns the files whose code recent commits or the work tree have changed; all files if no commit is older."""
    newest = int(_git("log", "-1", "--format=%ct"))
    base = _git("rev-list", "-1", f"--before={newest - RECENT_HOURS * 3600}", "HEAD").strip()
    if not base:
        return set(_tracked())
    changed = filter(None, _git("diff", "--name-only", "--no-renames", "-z", base).split("\0"))
    differ = processes.in_parallel(lambda name: name if _code_differs(base, name) else None, changed, WORKERS)
    new = _git("ls-files", "-z", "--others", "--exclude-standard").split("\0")
    return {*filter(None, differ), *filter(None, new)}


def _code_differs(base, name):
    """Returns whether the code of the file differs from that of the commit; comments do not count. False for files that
    are not C or C++ sources."""
    path = REPOSITORY / name
    if path.suffix not in (".cc", ".c") or not path.is_file():
        return False
    before = subprocess.run(["git", "-c", "safe.directory=*", "show", f"{base}:{name}"], cwd=REPOSITORY,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return before.returncode != 0 or _code(before.stdout) != _code(path.read_bytes())


def _code(source):
    """Returns the code of a source without comments, contents of strings and names of tests, and its NOLINT comments."""
    code = subprocess.run(["g++", "-fpreprocessed", "-dD", "-E", "-P", "-x", "c++", "-"], input=source,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    # Adjacent strings are one.
    code = STRINGS.sub(b'""', b" ".join(code.split()))
    return NAMES_OF_TESTS.sub(b"TEST()", code), re.findall(rb"//.*NOLINT.*", source)


def _compile_commands():
    """Returns the command that compiles each source of the project by itself, including fuzzers."""
    configuration.LINT.configure()
    # Sources include headers that are generated by the build.
    configuration.LINT.build_files(".h")
    ours = set(_tracked("*.cc", "*.c"))
    commands = {}
    for entry in json.loads((configuration.LINT.folder / "compile_commands.json").read_text()):
        source = os.path.relpath(os.path.join(entry["directory"], entry["file"]), REPOSITORY)
        if source in ours:
            commands.setdefault(source, entry)
    return commands


def _tidy_file(prefix, source, entry, commands_folder):
    name = f"{prefix}/clang-tidy {source}"
    checks = "" if full else ",".join(f"-{check}" for check in SLOW_CHECKS)
    clean = _clean_mark(source, entry, checks)
    if clean.exists():
        return case.passed(name)
    result = _check(name, [CLANG_TIDY, "--quiet", f"--checks={checks}", "-p", commands_folder, source])
    if result.outcome == case.PASSED:
        with contextlib.suppress(OSError):
            clean.parent.mkdir(parents=True, exist_ok=True)
            clean.touch()
    # The number of warnings in system headers is useless, so it is removed.
    result.detail = re.sub(r"^\d+ warnings? generated\.\n", "", result.detail, flags=re.MULTILINE)
    return result


def _clean_mark(source, entry, checks):
    """Returns the path of a file that exists if clang-tidy has found nothing in exactly this translation unit with these
    checks."""
    preprocess = [arg for arg in shlex.split(entry["command"]) if arg != "-c"]
    if preprocess[0] == "ccache":
        del preprocess[0]
    if "-o" in preprocess:
        preprocess[preprocess.index("-o") + 1] = "-"
    # -C keeps comments, because a NOLINT comment matters.
    text = subprocess.run(
        [*preprocess, "-E", "-C", "-MF", "/dev/null"], cwd=entry["directory"], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    key = hashlib.sha256(text)
    key.update(f"{entry['command']}\0{checks}".encode())
    for folder in (REPOSITORY / source).parents:
        if folder.is_relative_to(REPOSITORY) and (folder / ".clang-tidy").exists():
            key.update((folder / ".clang-tidy").read_bytes())
    key.update(_tidy_version())
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(base) / "nettraced/clang-tidy" / key.hexdigest()


def _tidy_version():
    return subprocess.run([CLANG_TIDY, "--version"], capture_output=True, check=True).stdout
