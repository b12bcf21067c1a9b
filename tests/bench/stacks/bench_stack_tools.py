#!/usr/bin/python3
"""Compares the stacks of CPU samples of several tools.

The tools are `nettrace record --cpu`, also with `--stacks=dwarf`, `perf record` with frame pointers and with copies of
the stack (dwarf), and `dotnet-trace collect-linux`. They record the same running programs in turn. Each program spins
below a recursion of a known depth. The programs differ in how they are compiled.

A stack is whole if the addresses of its first frames are exactly the calls of this recursion. Its functions are right if
the tool also shows the right name for each call. The right names are those of nm and readelf. The floor of bytes and CPU
time is `perf record -g`. The CPU time is that of the recorder; for dotnet-trace, it includes the search for functions,
which cannot be disabled.

Fails if less than 99 of 100 stacks of nettrace are whole with the right functions, for a program with frame pointers, or
for any program with `--stacks=dwarf`.

  bench_stack_tools.py --nettrace PATH --out DIR [--seconds N] [--json]
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from support import bench_report
from support import commands
from support import elf_functions
from support import script

RATE = 997
DEPTH = 20
PEER = ("dotnet-trace", "10.0.750501")
EXPECTED = ["spin", *["recurse"] * (DEPTH + 1), "main"]
KERNEL = 1 << 63

SPIN = r"""
__attribute__((noinline)) int spin(void) {
  for (volatile int i = 0; i < 2; i = 1) {
  }
  return 0;
}
"""
RECURSE = r"""
__attribute__((noinline)) int recurse(int n, int (*leaf)(void)) {
  int below = n == 0 ? leaf() : recurse(n - 1, leaf);
  __asm__ volatile("" : "+r"(below));
  return below;
}
"""
MAIN = "int main(void) { return recurse(DEPTH, spin); }\n"
LOADING_MAIN = r"""
#include <dlfcn.h>
int main(void) {
  void* library = dlopen("./plugin.so", RTLD_NOW);
  int (*recurse)(int, int (*)(void)) = (int (*)(int, int (*)(void)))dlsym(library, "recurse");
  return recurse(DEPTH, spin);
}
"""
FRAME_POINTERS = "-fno-omit-frame-pointer"
# The flags of the compiler for each kind of program.
PROGRAMS = {
    "PIE": [FRAME_POINTERS, "-fPIE", "-pie"],
    "no PIE": [FRAME_POINTERS, "-fno-PIE", "-no-pie"],
    "static": [FRAME_POINTERS, "-static"],
    "stripped": [FRAME_POINTERS],
    "plugin": [FRAME_POINTERS],
    "no frame pointers": ["-fomit-frame-pointer"],
}


def note(text):
    print(f"bench_stack_tools: {text}", file=sys.stderr)


def compile_source(path, source, *flags):
    subprocess.run(["cc", "-O1", "-fno-optimize-sibling-calls", "-Wl,--build-id", f"-DDEPTH={DEPTH}", *flags, "-x", "c",
                    "-o", path, "-", "-x", "none", "-ldl"], input=source.encode(), check=True)


def build(folder, kind):
    """Builds the program `kind`. Returns its path and, for each file that it maps, a file with the symbols of that file."""
    folder.mkdir()
    program, symbols = folder / "program", folder / "symbols"
    if kind == "plugin":
        compile_source(folder / "plugin.so", RECURSE, FRAME_POINTERS, "-shared", "-fPIC")
        compile_source(program, SPIN + LOADING_MAIN, *PROGRAMS[kind])
        return program, {str(path): path for path in (program, folder / "plugin.so")}
    compile_source(program, SPIN + RECURSE + MAIN, *PROGRAMS[kind])
    if kind != "stripped":
        return program, {str(program): program}
    debug = folder / ".debug" / "program.debug"
    debug.parent.mkdir()
    shutil.copy(program, symbols)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", program], check=True)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", program], check=True)
    return program, {str(program): symbols}


class Load:
    """A running program, and the functions at its addresses."""

    def __init__(self, folder, kind):
        self.kind = kind
        program, symbols = build(folder, kind)
        self.process = subprocess.Popen(program, cwd=folder)
        deadline = time.monotonic() + 60
        while len(mappings := self._mappings(symbols)) < len(symbols):
            if time.monotonic() > deadline or self.process.poll() is not None:
                sys.exit(f"bench_stack_tools: the program {kind!r} does not start")
            time.sleep(0.01)
        oracles = {path: elf_functions.Oracle(path) for path in symbols.values()}
        self._mapped = [(*mapping, oracles[symbols[mapping[-1]]]) for mapping in mappings]
        self._names = {}

    def _mappings(self, paths):
        found = []
        for line in pathlib.Path(f"/proc/{self.process.pid}/maps").read_text(encoding="utf-8").splitlines():
            words = line.split(maxsplit=5)
            if len(words) == 6 and "x" in words[1] and words[5] in paths:
                first, end = (int(number, 16) for number in words[0].split("-"))
                found.append((first, end, int(words[2], 16), words[5]))
        return found

    def names_at(self, address):
        if address not in self._names:
            self._names[address] = next((oracle.names_at(address - first + offset)
                                         for first, end, offset, _, oracle in self._mapped if first <= address < end), set())
        return self._names[address]

    def address_of(self, path, offset):
        """Returns the address of a byte of a file; 0 if it is not in a file of the program."""
        return next((first + offset - start for first, end, start, mapped, _ in self._mapped
                     if mapped == path and start <= offset < start + end - first), 0)

    def stop(self):
        self.process.kill()
        self.process.wait()


def judge(load, stacks):
    """Returns three numbers of samples: all samples in spin(), the samples with a whole stack, and the samples with a
    whole stack and the right functions. Each stack has pairs of an address and the name that the tool shows."""
    samples = whole = right = 0
    for stack in stacks:
        frames = [(address, shown) for address, shown in stack if address < KERNEL]
        if not frames or "spin" not in load.names_at(frames[0][0]):
            continue
        samples += 1
        frames = frames[:len(EXPECTED)]
        # A return address may already belong to the next function, so the byte before it counts.
        names = [load.names_at(address - (index > 0)) for index, (address, _) in enumerate(frames)]
        if len(frames) == len(EXPECTED) and all(name in of for name, of in zip(EXPECTED, names)):
            whole += 1
            right += all(shown in of for (_, shown), of in zip(frames, names))  # any alias of the function
    return samples, whole, right


def run(command, file):
    """Runs a command that writes `file`. Returns its CPU time in s, and the bytes of the file."""
    with tempfile.TemporaryFile("w+") as messages:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=messages, stderr=messages) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        messages.seek(0)
        if process.returncode != 0 or not file.exists():
            text = " ".join(map(str, command))
            sys.exit(f"bench_stack_tools: {text}: exit status {process.returncode}\n{messages.read()}")
    return usage.ru_utime + usage.ru_stime, file.stat().st_size


def function_of(frame):
    """Returns the function of a frame as `nettrace dump --stacks` shows it."""
    return frame.split("!", 1)[1].rsplit("+", 1)[0] if "!" in frame else None


def nettrace_stacks(nettrace, file, loads):
    """Returns the number of samples in a file, and the stacks of each process."""
    stacks = {load.process.pid: [] for load in loads}
    samples = 0
    for event in commands.dump(nettrace, file, "--stacks", "--event", "cpu"):
        samples += 1
        if event["pid"] in stacks and "frames" in event:
            addresses = [int(address, 16) for address in event["stack"]]
            stacks[event["pid"]].append(list(zip(addresses, map(function_of, event["frames"]))))
    return samples, stacks


def perf_stacks(file, loads):
    """Returns the number of samples in a file of perf, and the stacks of each process."""
    stats = subprocess.run(["perf", "report", "--stats", "-i", file], stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, check=True).stdout
    loads = {load.process.pid: load for load in loads}
    script_of = ["perf", "script", "-i", file, "--no-inline", "-F", "pid,ip,sym,dso", "--pid", ",".join(map(str, loads))]
    ran = subprocess.run(script_of, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                         check=False)
    if ran.returncode != 0:  # perf 6.1 sometimes aborts
        note(f"perf script ended with status {ran.returncode}; the stacks that it printed count")
    stacks = {pid: [] for pid in loads}
    for block in ran.stdout.split("\n\n"):
        lines = block.strip("\n").splitlines()
        if not lines:
            continue
        frames = []
        for line in lines[1:]:
            # For code of user space, perf prints the offset in the file instead of the address.
            found = re.fullmatch(r"\s*([0-9a-f]+) (.*) \((.*)\)", line)
            if not found:
                break  # perf aborted within this line
            number, name, path = found.groups()
            address = int(number, 16)
            frames.append((address if address >= KERNEL else loads[int(lines[0])].address_of(path, address), name))
        stacks[int(lines[0])].append(frames)
    return int(re.search(r"SAMPLE events: *(\d+)", stats)[1]), stacks


def find_peer(folder):
    """Returns the path of dotnet-trace, and installs it below `folder` if that is necessary; None if it cannot be
    installed."""
    name, version = PEER
    folder = folder / f"{name}-{version}"
    program = folder / name
    if not program.exists():
        if not shutil.which("dotnet"):
            note("left out dotnet-trace: there is no dotnet (the .NET SDK) on this machine")
            return None
        environment = {**os.environ, "DOTNET_CLI_TELEMETRY_OPTOUT": "1", "DOTNET_NOLOGO": "1"}
        ran = subprocess.run(["dotnet", "tool", "install", name, "--version", version, "--tool-path", folder],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, check=False)
        if ran.returncode != 0:
            note(f"left out dotnet-trace: it cannot be installed: {(ran.stderr or ran.stdout).strip()[:300]}")
            return None
    return program


class Tools:
    """Records with each tool. Each function returns the CPU time, the bytes, the number of samples, and the stacks of each
    process."""

    def __init__(self, args, folder, loads):
        self.nettrace, self.seconds, self.folder, self.loads = args.nettrace, str(args.seconds), folder, loads

    def record_nettrace(self, *options):
        file = self.folder / "trace.nettrace"
        measured = run([self.nettrace, "record", "-o", file, f"--cpu={RATE}Hz", *options, "--no-symbols", "--duration",
                        f"{self.seconds}s"], file)
        subprocess.run([self.nettrace, "symbolize", file], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        return *measured, *nettrace_stacks(self.nettrace, file, self.loads)

    def record_perf(self, how):
        file = self.folder / f"{how}.data"
        measured = run(["perf", "record", "-a", "--call-graph", how, "-F", str(RATE), "--no-buildid", "-o", file, "--",
                        "sleep", self.seconds], file)
        return *measured, *perf_stacks(file, self.loads)

    def record_peer(self, program):
        file = self.folder / "peer.nettrace"
        duration = time.strftime("%H:%M:%S", time.gmtime(int(self.seconds)))
        measured = run([program, "collect-linux", "--profile", "cpu-sampling", "--duration", duration, "-o", file], file)
        return *measured, *nettrace_stacks(self.nettrace, file, self.loads)


def report(args, name, measured, floor, loads, always=False):
    """Prints the rows of a tool. Returns the kinds of programs whose stacks are not right. Programs without frame
    pointers count only if `always`."""
    seconds, size, samples, stacks = measured
    bench_report.row("stack tools", args.json, f"{name}: CPU time of a sample", "us", seconds / samples * 1e6,
                     floor[0] / floor[2] * 1e6)
    bench_report.row("stack tools", args.json, f"{name}: bytes of a sample", "B", size / samples, floor[1] / floor[2])
    failed = []
    for load in loads:
        number, whole, right = judge(load, stacks[load.process.pid])
        if number < 20:
            note(f"{name}: only {number} samples of the program {load.kind!r}")
            continue
        bench_report.row("stack tools", args.json, f"{name}: whole stacks, {load.kind}", "%", 100 * whole / number, 100)
        bench_report.row("stack tools", args.json, f"{name}: right functions, {load.kind}", "%", 100 * right / number, 100)
        if right * 100 < number * 99 and (always or FRAME_POINTERS in PROGRAMS[load.kind]):
            failed.append(f"{name}, {load.kind}: {right} of {number}")
    return failed


def measure(args, folder, loads):
    tools = Tools(args, folder, loads)
    floor = tools.record_perf("fp")
    report(args, "perf record -g", floor, floor, loads)
    failed = report(args, "nettrace", tools.record_nettrace(), floor, loads)
    failed += report(args, "nettrace, dwarf", tools.record_nettrace("--stacks=dwarf", "--ring-size", "16M"), floor, loads, always=True)
    report(args, "perf, dwarf", tools.record_perf("dwarf"), floor, loads)
    peer = find_peer(args.out)
    if peer:
        report(args, "dotnet-trace", tools.record_peer(peer), floor, loads)
    if failed:
        sys.exit(f"bench_stack_tools: less than 99 % of the stacks of nettrace are whole and right: {', '.join(failed)}")


def main():
    parser = script.parser(__doc__, "nettrace", "out")
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if not shutil.which("perf"):
        sys.exit("bench_stack_tools: perf is not installed; install linux-perf")
    args.out.mkdir(parents=True, exist_ok=True)
    bench_report.head(args.json, f"{RATE} samples a second of {os.cpu_count()} CPUs, recursion of {DEPTH}")
    with tempfile.TemporaryDirectory(prefix="bench-stack-tools-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        loads = []
        try:
            for kind in PROGRAMS:
                loads.append(Load(folder / kind.replace(" ", "-"), kind))
            measure(args, folder, loads)
        finally:
            for load in loads:
                load.stop()


if __name__ == "__main__":
    main()
