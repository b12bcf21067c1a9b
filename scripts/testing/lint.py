"""Checks of the sources: clang-format, clang-tidy, shellcheck, pyflakes, mandoc, ELF files, and the words of texts.

clang-tidy takes about 4 s for a source, most of it for the headers. A file that includes eight sources of a program
takes only 7 s, so clang-tidy reads sources in groups. It reads only sources whose code changed in the work tree or in
the commits of the last hours. Changes of comments, texts, includes, names of namespaces and paths do not count. The
checks that take more than half of the time are left out. If `full` is set, clang-tidy reads each source by itself, with
all checks.

The compiler reads sources of the product by themselves, because packages are built so. The builds of the other suites
compile several sources as one, which hides a missing #include. The compiler reads a source if the work tree or the same
commits changed more than comments in it or in a header that it includes. If `full` is set, it reads all sources.
"""

import contextlib
import dataclasses
import fnmatch
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

from testing import case
from testing import configuration
from testing import processes
from testing import prose

REPOSITORY = configuration.REPOSITORY
WORKERS = os.cpu_count()
# Commits that are this much older than the newest one, and all commits before them, count as checked.
RECENT_HOURS = 12
# Comments, words and numbers, strings and characters.
TOKENS = re.compile(rb"""//[^\n]*|/\*.*?\*/|(?P<text>R"(?P<end>[^()\\\s]*)\(.*?\)(?P=end)"|"(?:[^"\\\n]|\\.)*")"""
                    rb"""|(?!R")[A-Za-z_]\w*|\d(?:'?[\w.])*|'(?:[^'\\\n]|\\.)+'""", re.DOTALL)
NAMES_OF_TESTS = re.compile(rb"\bTEST(_F|_P)? ?\([^()]*\)")
INCLUDES = re.compile(rb"^ *# *include\b.*$", re.MULTILINE)
# Include guards, which change if a header moves.
GUARDS = re.compile(rb"^(# *(?:ifndef|define)) \w+_H_$", re.MULTILINE)
NAMESPACES = re.compile(rb"^(?:inline )?namespace ([a-z_:]+) \{", re.MULTILINE)
# Braces at the end of a source, which close its namespaces.
LAST_BRACES = re.compile(rb"[}\s]*\Z")
full = False
# Checks of clang-tidy that run only if `full` is set.
SLOW_CHECKS = "clang-analyzer-*", "performance-unnecessary-value-param", "bugprone-reserved-identifier"
# A check that is off for groups: the file of a group includes .cc files.
NOT_FOR_GROUPS = "bugprone-suspicious-include"
GROUP_SIZE = 8
SUFFIXES = (".cc", ".c", ".h")
PRODUCT = ("libeventheader/", "libnettrace-writer/", "tools/")
OVERRIDES = "debian/source/lintian-overrides"
CLANG_FORMAT, CLANG_TIDY = "clang-format-14", "clang-tidy-14"


def run(prefix):
    cases = [*_format(prefix), *_shellcheck(prefix), *_pyflakes(prefix), *_manuals(prefix), *_prose(prefix),
             _compiled_files(prefix)]
    commands = _compile_commands()
    return cases + _alone(prefix, commands) + _tidy(prefix, commands)


def _tracked(*patterns):
    """Returns the project's files that match a pattern, including new files that are not committed yet."""
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


def _compiled_files(prefix):
    """Finds ELF files that lintian refuses in the source package, because it takes them for programs without source."""
    text = (REPOSITORY / OVERRIDES).read_text()
    allowed = re.findall(r"^source-is-missing \[(.*)\]$", text, re.MULTILINE)
    refused = [name for name in _tracked() if not any(fnmatch.fnmatch(name, pattern) for pattern in allowed)
               and (REPOSITORY / name).read_bytes()[:4] == b"\x7fELF"]
    name = f"{prefix}/compiled files"
    return case.failed(name, f"name these files in {OVERRIDES}: {' '.join(refused)}") if refused else case.passed(name)


def _alone(prefix, commands):
    """Compiles sources of the product by themselves, without optimization."""
    folder = configuration.LINT.folder / "alone"
    folder.mkdir(exist_ok=True)
    chosen = {source for source in commands if source.startswith(PRODUCT)}
    if not full:
        chosen &= _touched()

    def compile_source(source):
        entry = commands[source]
        words = shlex.split(entry["command"])
        words[words.index("-o") + 1] = str(folder / f"{source.replace('/', '.')}.o")
        done = processes.run([*words, "-O0", "-g0"], cwd=entry["directory"], env={**os.environ, **configuration.CACHE})
        name = f"{prefix}/compile alone {source}"
        return case.failed(name, done.stdout) if done.returncode != 0 else case.passed(name)

    return processes.in_parallel(compile_source, sorted(chosen), WORKERS)


def _tidy(prefix, commands):
    # The compile_commands.json of this folder has each source once. That of Meson has a source once for every program
    # that it is compiled into, and clang-tidy would read it as often.
    folder = configuration.LINT.folder / "tidy"
    shutil.rmtree(folder, ignore_errors=True)
    # clang-tidy uses the settings in the nearest folder above a file. A group is in the same folder below `folder` as its
    # sources below the repository.
    for settings in _settings():
        (folder / settings).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / settings, folder / settings)
    if full:
        groups = [Group([source], commands[source]) for source in sorted(commands)]
        print(f"   clang-tidy reads all {len(commands)} sources", flush=True)
    else:
        changed = _changed()
        chosen = commands.keys() & changed
        groups = _groups(sorted(chosen), commands, folder)
        print(f"   clang-tidy reads {len(chosen)} of {len(commands)} sources, in {len(groups)} groups. In the "
              f"{RECENT_HOURS} hours before the last commit, only includes, namespaces, comments and texts of the others "
              "have changed (--full reads all)", flush=True)
    entries = [*commands.values(), *(group.entry for group in groups if len(group.sources) > 1)]
    (folder / "compile_commands.json").write_text(json.dumps(entries))
    return [result for results in processes.in_parallel(
        lambda group: _tidy_group(prefix, group, commands, folder), groups, WORKERS) for result in results]


@dataclasses.dataclass
class Group:
    """Sources that clang-tidy reads as one source, and the entry of that source in compile_commands.json."""
    sources: list
    entry: dict


@functools.lru_cache(maxsize=None)
def _settings():
    return _tracked(".clang-tidy", "*/.clang-tidy")


def _groups(sources, commands, folder):
    """Returns the sources in groups of the same program or library, folder and language. For a group of several
    sources, writes a file that includes them. Sources of different folders are not in one group, because names that
    they define clash more often."""
    by_program = {}
    for source in sources:
        # Meson has a folder for the objects of each program, so the folder of the object identifies the program.
        words = shlex.split(commands[source]["command"])
        program = os.path.dirname(words[words.index("-o") + 1])
        by_program.setdefault((program, os.path.dirname(source), pathlib.Path(source).suffix), []).append(source)
    groups = []
    for members in by_program.values():
        for i in range(0, len(members), GROUP_SIZE):
            part = members[i:i + GROUP_SIZE]
            groups.append(Group(part, commands[part[0]] if len(part) == 1 else _unity_entry(part, commands, folder)))
    return groups


def _unity_entry(sources, commands, folder):
    first = commands[sources[0]]
    ending = pathlib.Path(sources[0]).suffix
    name = hashlib.sha256("\0".join(sources).encode()).hexdigest()[:16]
    unity = folder / os.path.dirname(sources[0]) / f"{name}{ending}"
    unity.parent.mkdir(parents=True, exist_ok=True)
    # Relative paths, so that the preprocessed text is the same in each checkout.
    unity.write_text("".join(f'#include "{os.path.relpath(REPOSITORY / source, unity.parent)}"\n' for source in sources))
    file = os.path.relpath(unity, first["directory"])
    return {**first, "file": file, "command": first["command"].replace(f" -c {first['file']}", f" -c {file}")}


def _base():
    """Returns the newest commit that counts as checked; "" if there is none."""
    newest = int(_git("log", "-1", "--format=%ct"))
    return _git("rev-list", "-1", f"--before={newest - RECENT_HOURS * 3600}", "HEAD").strip()


def _differing(base, code):
    """Returns the sources that are not committed yet, and those for which the result of the function `code` differs
    from its result for the same source in the commit `base`."""
    def differs(pair):
        former, name = pair
        before = subprocess.run(["git", "-c", "safe.directory=*", "show", f"{base}:{former}"], cwd=REPOSITORY,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        return before.returncode != 0 or code(before.stdout) != code((REPOSITORY / name).read_bytes())

    pairs = _former_names(base)
    found = processes.in_parallel(differs, pairs, WORKERS)
    new = [name for name in _git("ls-files", "-z", "--others", "--exclude-standard").split("\0")
           if pathlib.Path(name).suffix in SUFFIXES]
    return {*(name for (_, name), is_other in zip(pairs, found) if is_other), *new}


def _touched():
    """Returns the sources and headers in which recent commits or the work tree have changed more than comments, and the
    sources that include such a header. Returns all files if all commits are recent (RECENT_HOURS)."""
    base = _base()
    if not base:
        return set(_tracked())
    touched = _differing(base, _without_comments)
    included = {name.removeprefix("include/") for name in touched if name.endswith(".h")} | touched
    return touched | {source for source, names in _includes().items() if names & included}


def _changed():
    """Returns the sources whose code recent commits or the work tree have changed, and for a changed header one source
    that includes it. Returns all files if all commits are recent (RECENT_HOURS)."""
    base = _base()
    if not base:
        return set(_tracked())
    namespaces = _namespaces(base)
    changed = _differing(base, lambda source: _code(source, namespaces))
    return changed | _readers_of({name for name in changed if name.endswith(".h")}, changed)


def _former_names(base):
    """Returns (name in `base`, name now) of each source that differs from `base` or has moved since."""
    words = _git("diff", "--name-status", "--find-renames", "-l0", "-z", base).split("\0")
    pairs = []
    while len(words) > 1:
        status, name = words.pop(0), words.pop(0)
        now = words.pop(0) if status.startswith("R") else name
        if status != "D" and pathlib.Path(now).suffix in SUFFIXES:
            pairs.append((name, now))
    return pairs


def _namespaces(base):
    """Returns a pattern of the qualifiers that name the project's namespaces, in the work tree or in the commit `base`."""
    names = set()
    for place in ([base], []):
        listed = subprocess.run(["git", "-c", "safe.directory=*", "grep", "-h", "-E", "^(inline )?namespace [a-z_:]+ ", *place,
                                 "--", "*.h", "*.cc"], cwd=REPOSITORY, stdout=subprocess.PIPE, check=False).stdout
        for name in NAMESPACES.findall(listed):
            names.update(name.split(b"::"))
    return re.compile(rb"\b(?:" + b"|".join(sorted(names)) + rb") ?:: ?") if names else None


def _includes():
    """Returns the names of the headers that each source includes directly."""
    return {source: set(re.findall(r'^ *# *include "([^"]+)"', (REPOSITORY / source).read_text(), re.MULTILINE))
            for source in _tracked("*.cc", "*.c")}


def _readers_of(headers, chosen):
    """Returns a source for each header, through which clang-tidy reads the header: the source of the same name, else one
    of `chosen` that includes it, else any other source that does. Leaves out headers that no source includes directly."""
    includes = _includes()
    readers = set()
    for header in sorted(headers):
        names = {header, header.removeprefix("include/")}
        found = [source for source in includes if includes[source] & names]
        readers.update(sorted(found, key=lambda source: (os.path.splitext(source)[0] != os.path.splitext(header)[0],
                                                         source not in chosen, source))[:1])
    return readers


def _without_comments(source):
    return TOKENS.sub(lambda token: b" " if token[0].startswith((b"//", b"/*")) else token[0], source).split()


def _code(source, namespaces):
    """Returns the code of a source, without comments (except NOLINT), contents of strings, names of tests, includes and
    the project's namespaces."""
    code = TOKENS.sub(lambda token: b" " if token[0].startswith((b"//", b"/*")) else b'""' if token["text"] else token[0],
                      GUARDS.sub(rb"\1 H_", INCLUDES.sub(b"", source)))
    code = b" ".join(LAST_BRACES.sub(b"", NAMESPACES.sub(b"", code)).split())
    # Adjacent string literals count as one literal.
    code = re.sub(rb'""(?: "")+', b'""', code)
    if namespaces:
        code = namespaces.sub(b"", code)
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


def _tidy_group(prefix, group, commands, folder):
    """Returns a case for each source of the group. If clang-tidy finds anything in the group, it reads each source by
    itself, because names of one source may cause findings in another."""
    if len(group.sources) > 1 and _run_tidy(group.entry, folder, without=NOT_FOR_GROUPS) is None:
        return [case.passed(f"{prefix}/clang-tidy {source}") for source in group.sources]
    return [_tidy_source(prefix, source, commands[source], folder) for source in group.sources]


def _tidy_source(prefix, source, entry, folder):
    name = f"{prefix}/clang-tidy {source}"
    found = _run_tidy(entry, folder)
    return case.passed(name) if found is None else case.failed(name, found)


def _run_tidy(entry, folder, without=""):
    """Returns what clang-tidy finds in the translation unit; None if it finds nothing."""
    left_out = filter(None, [*(() if full else SLOW_CHECKS), without])
    checks = ",".join(f"-{check}" for check in left_out)
    clean = _clean_mark(entry, checks)
    if clean.exists():
        return None
    file = os.path.join(entry["directory"], entry["file"])
    done = processes.run([CLANG_TIDY, "--quiet", f"--checks={checks}", "-p", folder, file], cwd=REPOSITORY)
    if done.returncode == 0:
        with contextlib.suppress(OSError):
            clean.parent.mkdir(parents=True, exist_ok=True)
            clean.touch()
        return None
    # Removes the line with the number of warnings, because that includes warnings in system headers, which are not shown.
    return re.sub(r"^\d+ warnings? generated\.\n", "", done.stdout, flags=re.MULTILINE)


def _clean_mark(entry, checks):
    """Returns the path of a file that exists if clang-tidy has found nothing in exactly this translation unit with these
    checks. The path is the same in each checkout."""
    preprocess = [arg for arg in shlex.split(entry["command"]) if arg != "-c"]
    if preprocess[0] == "ccache":
        del preprocess[0]
    if "-o" in preprocess:
        preprocess[preprocess.index("-o") + 1] = "-"
    # -C keeps comments, because a NOLINT comment matters.
    text = subprocess.run(
        [*preprocess, "-E", "-C", "-MF", "/dev/null"], cwd=entry["directory"], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    repository = str(REPOSITORY).encode()
    key = hashlib.sha256(text.replace(repository, b""))
    key.update(f"{entry['command']}\0{checks}".encode().replace(repository, b""))
    for settings in _settings():
        key.update((REPOSITORY / settings).read_bytes())
    key.update(_tidy_version())
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(base) / "nettraced/clang-tidy" / key.hexdigest()


@functools.lru_cache(maxsize=None)
def _tidy_version():
    return subprocess.run([CLANG_TIDY, "--version"], capture_output=True, check=True).stdout
