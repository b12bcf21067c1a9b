#!/usr/bin/python3
"""Measures what samples with stacks cost: `nettrace record --cpu` samples all CPUs while a thread for each CPU spins below
many frames. The floor is `perf record --call-graph fp` of the same load, at the same rate and for the same time. Then
compares `--stacks=dwarf`, which unwinds the stacks, with `perf record --call-graph dwarf`, which only stores the copies.

  bench_stacks.py --nettrace PATH [--seconds N] [--json]
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
from support import script

RATE = 997
DEPTH = 30
LOAD = r"""
__attribute__((noinline)) int recurse(int n) {
  if (n == 0) for (volatile int i = 0;; ++i) {
  }
  int below = recurse(n - 1);
  __asm__ volatile("" : "+r"(below));
  return below;
}
int main(void) { return recurse(DEPTH); }
"""


def run(command, file):
    """Runs a command that writes `file`. Returns its CPU time in s, the bytes of the file, and what it printed."""
    with tempfile.TemporaryFile("w+") as messages:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=messages, stderr=messages) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        messages.seek(0)
        printed = messages.read()
    if process.returncode != 0:
        sys.exit(f"bench_stacks: {' '.join(map(str, command))}: exit status {process.returncode}\n{printed}")
    return usage.ru_utime + usage.ru_stime, file.stat().st_size, printed


def measure(folder, args, name, options, call_graph):
    """Records with nettrace and with perf, and prints the rows of one kind of stacks."""
    trace, data = folder / "trace.nettrace", folder / "perf.data"
    record = [args.nettrace, "record", "-o", trace, f"--cpu={RATE}Hz", *options, "--no-symbols", "--duration",
              f"{args.seconds}s"]
    seconds, size, printed = run(record, trace)
    samples = int(re.search(r"(\d+) events", printed)[1])
    perf = ["perf", "record", "-a", "--call-graph", call_graph, "-F", str(RATE), "--no-buildid", "-o", data, "--", "sleep",
            str(args.seconds)]
    perf_seconds, perf_size, _ = run(perf, data)
    stats = subprocess.run(["perf", "report", "--stats", "-i", data], stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, check=True).stdout
    perf_samples = int(re.search(r"SAMPLE events: *(\d+)", stats)[1])
    machine = args.seconds * os.cpu_count()
    floor = f"floor: perf record --call-graph {call_graph}"
    bench_report.row("stacks", args.json, f"{name}CPU time of a sample, {floor}", "us", seconds / samples * 1e6,
                     perf_seconds / perf_samples * 1e6)
    bench_report.row("stacks", args.json, f"{name}bytes of a sample, {floor}", "B", size / samples, perf_size / perf_samples)
    bench_report.row("stacks", args.json, f"{name}CPU time of the machine, floor: 1 %", "permille", seconds / machine * 1e3, 10)
    bench_report.row("stacks", args.json, f"{name}samples of a second, floor: those of perf", "samples",
                     samples / args.seconds, perf_samples / args.seconds)
    skipped = commands.info(args.nettrace, trace)["stacksSkipped"]
    bench_report.row("stacks", args.json, f"{name}stacks that were not skipped", "%", 100 * (1 - skipped / samples), 100)


def main():
    parser = script.parser(__doc__, "nettrace")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if not shutil.which("perf"):
        sys.exit("bench_stacks: perf is not installed; install linux-perf")
    bench_report.head(args.json, f"{RATE} samples a second of {os.cpu_count()} CPUs, {DEPTH} frames")
    with tempfile.TemporaryDirectory(prefix="bench-stacks-") as name:
        folder = pathlib.Path(name)
        load = folder / "load"
        subprocess.run(["cc", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", f"-DDEPTH={DEPTH}", "-x", "c",
                        "-o", load, "-"], input=LOAD.encode(), check=True)
        programs = [subprocess.Popen(load) for _ in range(os.cpu_count())]
        try:
            time.sleep(1)  # the programs start
            measure(folder, args, "", [], "fp")
            measure(folder, args, "dwarf: ", ["--stacks=dwarf"], "dwarf")
        finally:
            for program in programs:
                program.kill()
                program.wait()


if __name__ == "__main__":
    main()
