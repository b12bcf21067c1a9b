#!/usr/bin/python3
"""Compares the programs that show events: `nettrace dump` with `perf script` and babeltrace2, the exports with `nettrace
dump`, and `nettrace report` with `nettrace info`, which reads the file once and formats nothing.

One program switches between two of its processes, and `nettrace record` and `perf record` record the same switches
(sched:sched_switch). babeltrace2 reads the CTF export of the recording. All read a file in turns, several times, and write
to a file in memory or to /dev/null; each row is the median of the CPU time of an event, beside that of the other program.
The floor for peak memory is that of a file with a tenth of the events, because memory must not grow with the file. Needs
root, tracefs, perf and babeltrace2.

  bench_dump.py --nettrace PATH [--events N] [--runs N] [--json]
"""

import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

from support import bench_report
from support import commands
from support import script

TRACEPOINT = "sched:sched_switch"
EXPORTS = ("csv", "json", "fxt")
# Two processes on one CPU that wake each other.
SWITCHES = """
import os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
(a, b), (c, d) = os.pipe(), os.pipe()
count = int(sys.argv[1]) // 2
child = os.fork()
for _ in range(count):
    if child:
        os.write(b, b"x"), os.read(c, 1)
    else:
        os.read(a, 1), os.write(d, b"x")
if child:
    os.wait()
"""


class BenchError(Exception):
    """The benchmark cannot run on this machine."""


def cpu_time(command, events):
    """Runs the command and returns its CPU time for each event in ns."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise BenchError(f"{' '.join(map(str, command))}: exit status {process.returncode}")
    return (usage.ru_utime + usage.ru_stime) * 1e9 / events


def record(nettrace, folder, events):
    """Records the events with both recorders. Returns the two files, and the numbers of events in them."""
    trace, perf_data = folder / f"{events}.nettrace", folder / f"{events}.perf"
    perf = ["perf", "record", "--quiet", "--all-cpus", "--clockid", "mono", "--raw-samples", "--no-buildid", "--mmap-pages",
            "16M", "--output", perf_data, "-e", TRACEPOINT]
    done = subprocess.run([nettrace, "record", "-o", trace, "--ring-size", "16M", "-e", TRACEPOINT, "--", *perf, "--",
                           sys.executable, "-c", SWITCHES, str(events)], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"cannot record {TRACEPOINT}: {done.stderr.strip()}")
    with subprocess.Popen(["perf", "script", "-i", perf_data], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as script_:
        lines = sum(1 for _ in script_.stdout)
    if script_.returncode != 0 or lines == 0:
        raise BenchError(f"perf script cannot read what perf record has written: exit status {script_.returncode}")
    return trace, perf_data, commands.info(nettrace, trace)["events"], lines


def command_of_cases(nettrace, folder, trace):
    """Returns the command of each case, by its name."""
    return {"info": [nettrace, "info", trace], "dump": [nettrace, "dump", trace],
            "dump --json": [nettrace, "dump", "--json", trace],
            "report": [nettrace, "report", trace, "-o", folder / "report"]} | {
        export: [nettrace, "export", "--to", export, trace, "-o", folder / export] for export in EXPORTS}


def measure(args, folder):
    few, *_ = record(args.nettrace, folder, args.events // 10)
    trace, perf_data, events, perf_events = record(args.nettrace, folder, args.events)
    ctf = folder / "ctf"
    subprocess.run([args.nettrace, "export", "--to", "ctf", trace, "-o", ctf], check=True, stderr=subprocess.DEVNULL)
    cases = command_of_cases(args.nettrace, folder, trace)
    times = {name: [] for name in (*cases, "perf script", "babeltrace2")}
    for _ in range(args.runs):
        for name, command in cases.items():
            times[name].append(cpu_time(command, events))
            (folder / name).unlink(missing_ok=True)
        times["perf script"].append(cpu_time(["perf", "script", "-i", perf_data], perf_events))
        times["babeltrace2"].append(cpu_time(["babeltrace2", ctf], events))
    medians = {name: statistics.median(all_of_them) for name, all_of_them in times.items()}
    bench_report.head(args.json, f"{events} events, {perf_events} of perf record")
    for peer in ("perf script", "babeltrace2"):
        for name in ("dump", "dump --json"):
            bench_report.row("dump", args.json, f"{name}, floor: {peer}", "ns", medians[name], medians[peer])
    for name in EXPORTS:
        bench_report.row("dump", args.json, f"{name}, floor: dump", "ns", medians[name], medians["dump"])
    bench_report.row("dump", args.json, "report, floor: info", "ns", medians["report"], medians["info"])
    for name, command in cases.items():
        memory = []
        for one in (command, command_of_cases(args.nettrace, folder, few)[name]):
            memory.append(commands.peak_memory("/bin/sh", "-c", 'exec "$@" > /dev/null', "sh", *one) / 1024)
            (folder / name).unlink(missing_ok=True)
        bench_report.row("dump", args.json, f"{name}: memory, floor: a tenth of the events", "MiB", *memory)


def main():
    parser = script.parser(__doc__, "nettrace")
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    missing = [program for program in ("perf", "babeltrace2") if shutil.which(program) is None]
    if missing:
        sys.exit(f"bench_dump: {' and '.join(missing)}: not installed")
    in_memory = pathlib.Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="bench-dump-", dir=in_memory if in_memory.is_dir() else None) as folder:
        try:
            measure(args, pathlib.Path(folder))
        except BenchError as error:
            sys.exit(f"bench_dump: {error}")


if __name__ == "__main__":
    main()
