#!/usr/bin/python3
"""Tests that TraceEvent can look up functions of a recording by itself: in a folder of debug information that only the
build id of the program leads to. The program has no symbols, so `nettrace symbolize` finds none."""

import json
import pathlib
import subprocess
import tempfile

from support import script
from support.kernel import tracepoints

import reader

CALL = "syscalls:sys_enter_getppid"
PROJECT = pathlib.Path(__file__).resolve().parent / "elf_symbols" / "elf_symbols.csproj"
PROGRAM = r"""
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((noinline)) int recurse(int n) {
  int below = n == 0 ? (int)syscall(SYS_getppid) : recurse(n - 1);
  __asm__ volatile("" : "+r"(below));
  return below;
}
int main(void) { return recurse(20) == 0; }
"""


def compile_program(folder):
    """Compiles the program without symbols. Returns its path, and the folder that has the symbols."""
    program, symbols = folder / "recursion", folder / "symbols"
    subprocess.run(["cc", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-Wl,--build-id", "-x", "c",
                    "-o", program, "-"], input=PROGRAM.encode(), check=True)
    notes = subprocess.run(["readelf", "-n", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    build_id = notes.split("Build ID: ")[1].split()[0]
    place = symbols / "_.debug" / f"elf-buildid-sym-{build_id}" / "_.debug"
    place.parent.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, place], check=True)
    subprocess.run(["strip", program], check=True)
    return program, symbols


def check(args, folder, command):
    program, symbols = compile_program(folder)
    file = folder / "trace.nettrace"
    subprocess.run([args.nettrace, "record", "--no-symbols", "-o", file, "-e", CALL, "--stacks", "--", program],
                   check=True)

    def functions():
        found = subprocess.run([*command, symbols, file], stdout=subprocess.PIPE, text=True, check=True).stdout
        return {line for line in found.splitlines() if line.startswith("recursion!")}

    texts = []
    if functions():
        texts.append(f"TraceEvent finds {functions()} before nettrace symbolize has added the addresses of the program")
    symbolized = subprocess.run([args.nettrace, "symbolize", "--json", file], stdout=subprocess.PIPE, check=True)
    summary = json.loads(symbolized.stdout)
    named = [module["named"] for module in summary["modules"] if module["path"] == str(program)]
    if named != [0]:
        texts.append(f"nettrace symbolize names functions of a program without symbols: {summary}")
    subprocess.run([args.nettrace, "verify", "--strict", file], check=True, stdout=subprocess.DEVNULL)
    program.unlink()  # so that TraceEvent can use only the folder of symbols
    if functions() != {"recursion!recurse", "recursion!main"}:
        texts.append(f"TraceEvent finds {functions()} instead of recursion!recurse and recursion!main")
    return texts


def main():
    args = script.parser(__doc__, "nettrace", "reader").parse_args()
    tracepoints.require(CALL)
    command = reader.build_project(args.reader, PROJECT)
    with tempfile.TemporaryDirectory(prefix="elf-symbols-") as folder:
        texts = check(args, pathlib.Path(folder), command)
    print("\n".join(texts), end="\n" if texts else "")
    return not texts


if __name__ == "__main__":
    script.main(main)
