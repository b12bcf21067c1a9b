#!/usr/bin/env python3
"""Tests that misuse does not compile, with a clear message: check.py SOURCE INCLUDE_FOLDER LANGUAGE COMPILER...

Compiles SOURCE unchanged, which must succeed. Then compiles it once for each `defined(NAME)` in it, with NAME defined.
This must fail, and the compiler's messages must contain TEXT of the next line, `// expect: TEXT`. If TEXT has several
parts with " | " between them, one of the parts is enough. If `// within N lines: TEXT` follows, the messages have at
most N lines, and contain this TEXT as well.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

CASE = re.compile(r"defined\((\w+)\)\n\s*// expect: (.+)(?:\n\s*// within (\d+) lines: (.+))?")
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused-const-variable"]


def main():
    source, include, language, *compiler = sys.argv[1:]
    if pathlib.Path(compiler[0]).name == "ccache":
        compiler = compiler[1:]
    text = pathlib.Path(source).read_text()
    cases = CASE.findall(text)
    if not cases or len(cases) != text.count("defined("):
        sys.exit(f"{source}: each defined(NAME) needs a next line `// expect: TEXT`")
    with tempfile.TemporaryDirectory() as folder:
        command = [*compiler, f"-std={language}", "-D_GNU_SOURCE", "-I", include, *WARNINGS]
        if source.endswith(".c"):
            # In C, some mistakes in names are found only when code is generated.
            command += ["-S", "-o", os.devnull, source]
        else:
            command += _precompiled(command, text, folder) + ["-fsyntax-only", source]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            failures = [failure for failure in pool.map(lambda case: _check(command, *case),
                                                        [("", "", "", ""), *cases]) if failure]
    for failure in failures:
        print(failure)
    print(f"{len(cases)} misuses, {len(failures)} failures")
    return 1 if failures else 0


def _precompiled(command, text, folder):
    """Compiles the source's headers once for all cases; returns the options to use them."""
    header = os.path.join(folder, "headers.h")
    pathlib.Path(header).write_text("".join(
        f"{line}\n" for line in text.splitlines() if line.startswith("#include")))
    done = _run([*command, "-x", "c++-header", header, "-o", header + ".gch"])
    if done.returncode != 0:
        sys.exit(f"the headers do not compile:\n{done.stderr}")
    return ["-include", header]


def _check(command, name, expected, lines, also_expected):
    """Returns a message about what is wrong with the case, or None."""
    done = _run(command if not name else [*command, f"-D{name}"])
    if not name:
        return None if done.returncode == 0 else f"the source does not compile without a misuse:\n{done.stderr}"
    if done.returncode == 0:
        return f"{name} compiles, but must fail"
    messages = done.stderr.replace("\\'", "'")  # g++ escapes these quotes in C.
    for texts in filter(None, (expected, also_expected)):
        if not any(text in messages for text in texts.split(" | ")):
            return f"{name}: \"{texts}\" is not in the messages of the compiler:\n{done.stderr}"
    if lines and len(messages.splitlines()) > int(lines):
        return f"{name}: the compiler prints more than {lines} lines:\n{done.stderr}"
    return None


def _run(command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, env={**os.environ, "LC_ALL": "C"}, check=False)


if __name__ == "__main__":
    sys.exit(main())
