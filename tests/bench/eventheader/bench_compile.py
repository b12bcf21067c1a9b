#!/usr/bin/python3
"""Measures the time that a compiler needs for events: a source file with 100 events of 8 fields, 3 of them strings,
compiled with -O2 for each front end. The floor is a file that prints the same fields with fprintf.

  bench_compile.py --include FOLDER [--json]

The result is the least CPU time of several runs, which take turns: other processes can only add time.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from support import bench_report

EVENTS = 100
RUNS = 3
INTS = ["number", "status", "port", "bytes", "count"]
TEXTS = ["path", "host", "agent"]
CXX_REQUEST = "struct Request { std::int32_t " + ", ".join(INTS) + "; std::string " + ", ".join(TEXTS) + "; };"
C_REQUEST = "struct Request { int32_t " + ", ".join(INTS) + "; const char *" + ", *".join(TEXTS) + "; };"


def static_events():
    yield "#include <eventheader/event.h>\n#include <string>"
    yield CXX_REQUEST
    yield 'inline constinit eh::Provider provider("Bench_Compile");'
    for n in range(EVENTS):
        fields = ", ".join([f'eh::Field<"{name}{n}", std::int32_t>' for name in INTS] +
                           [f'eh::Field<"{name}{n}", std::string_view>' for name in TEXTS])
        yield f'constexpr eh::Event<provider, "Event{n}", eh::Traits{{.keyword = 1}}, {fields}> event{n};'
        yield f"void Site{n}(const Request& r) {{ event{n}.Write({', '.join('r.' + name for name in INTS + TEXTS)}); }}"


def macros(header, request, parameter, member):
    def lines():
        yield header
        yield request
        yield 'EVENTHEADER_DEFINE_PROVIDER(provider, "Bench_Compile");'
        for n in range(EVENTS):
            fields = ", ".join(f'EVENTHEADER_FIELD("{name}{n}", r{member}{name})' for name in INTS + TEXTS)
            yield f'void Site{n}({parameter} r) {{ EVENTHEADER_EVENT(provider, "Event{n}", 4, 1, {fields}); }}'
    return lines


def printed(header, request, parameter, member, c_str):
    def lines():
        yield f"#include <stdint.h>\n#include <stdio.h>\n{header}\nextern FILE* file;\nextern int enabled;"
        yield request
        for n in range(EVENTS):
            text = " ".join([f"{name}{n}=%d" for name in INTS] + [f"{name}{n}=%s" for name in TEXTS])
            values = ", ".join([f"r{member}{name}" for name in INTS] + [f"r{member}{name}{c_str}" for name in TEXTS])
            yield (f"void Site{n}({parameter} r) {{ if (enabled) "
                   f'fprintf(file, "Event{n} {text}\\n", {values}); }}')
    return lines


CXX = ("const Request&", ".")
C = ("const struct Request*", "->")
CXX_FLOOR = ("c++17", printed("#include <string>", CXX_REQUEST, *CXX, ".c_str()"))
C_FLOOR = ("c11", printed("", C_REQUEST, *C, ""))
# For each front end: the language, the function that makes its source, and its floor.
FRONT_ENDS = {
    "static events": ("c++20", static_events, CXX_FLOOR),
    "macros of C++17": ("c++17", macros("#include <eventheader/macros.h>\n#include <string>", CXX_REQUEST, *CXX), CXX_FLOOR),
    "macros of C": ("c11", macros("#include <eventheader/macros_c.h>", C_REQUEST, *C), C_FLOOR),
}


class Compiled:
    """A source file, and the least time that compiling it took."""

    def __init__(self, folder, name, compiler, language, lines, include):
        suffix = ".c" if language == "c11" else ".cc"
        source = folder / (re.sub(r"\W", "_", name) + suffix)
        source.write_text("".join(line + "\n" for line in lines()))
        self.object = source.with_suffix(".o")
        self.command = [compiler, f"-std={language}", "-O2", "-I", include, "-c", source,
                        "-o", self.object]
        self.seconds = float("inf")
        self.kilobytes = float("inf")

    def run(self):
        with subprocess.Popen(self.command, stdin=subprocess.DEVNULL) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"bench_compile: {' '.join(map(str, self.command))}: exit status {process.returncode}")
        self.seconds = min(self.seconds, usage.ru_utime + usage.ru_stime)
        self.kilobytes = min(self.kilobytes, usage.ru_maxrss)

    def code(self):
        """Returns the bytes of code for each event."""
        sections = subprocess.run(["size", "-A", self.object], check=True, capture_output=True, text=True).stdout
        return sum(int(size) for size in re.findall(r"^\.text\S*\s+(\d+)", sections, re.MULTILINE)) / EVENTS


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--include", required=True, help="the folder of the library's headers")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    bench_report.head(args.json, f"{EVENTS} events of 8 fields, -O2")
    for c_compiler, cxx_compiler in (("gcc", "g++"), ("clang-14", "clang++-14")):
        if not (shutil.which(c_compiler) and shutil.which(cxx_compiler)):
            continue
        with tempfile.TemporaryDirectory(prefix="bench-compile-") as folder:
            measure(pathlib.Path(folder), c_compiler, cxx_compiler, args)


def measure(folder, c_compiler, cxx_compiler, args):
    def compiled(name, language, lines):
        compiler = c_compiler if language == "c11" else cxx_compiler
        return Compiled(folder, name, compiler, language, lines, args.include)

    floors = {floor[0]: compiled("fprintf", *floor) for floor in (CXX_FLOOR, C_FLOOR)}
    cases = {name: (compiled(name, language, lines), floors[floor[0]])
             for name, (language, lines, floor) in FRONT_ENDS.items()}
    for _ in range(RUNS):
        for each in [*floors.values(), *(case for case, _ in cases.values())]:
            each.run()
    for name, (case, floor) in cases.items():
        label = f"{name}, {pathlib.Path(case.command[0]).name}"
        bench_report.row("compile", args.json, f"{label}: CPU time", "ms", 1e3 * case.seconds, 1e3 * floor.seconds)
        bench_report.row("compile", args.json, f"{label}: memory", "MB", case.kilobytes / 1024, floor.kilobytes / 1024)
        bench_report.row("compile", args.json, f"{label}: code of an event", "bytes", case.code(), floor.code())


if __name__ == "__main__":
    sys.exit(main())
