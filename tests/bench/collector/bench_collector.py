#!/usr/bin/python3
"""Compares `nettrace record` with `perf record`, which copies the kernel's data without interpreting it.

Both record the whole machine, in turns, many times. They use the same tracepoint, the same kernel filter (the one of
nettrace, which excludes the recorder's own system calls), rings of the same size, and the same load in a separate
process. The CPU time of a recorder counts from when it waits for events to its end; the time to start does not count.

Needs root and perf. With --instructions, the benchmark runs in a VM in which one nanosecond is one instruction. It then
counts the instructions that an event of 8 fields costs the service and the recorder. Each row is nettrace's value,
perf's value as its floor, and their ratio. For two sessions of one process, the floor is one session.
"""

import argparse
import glob
import json
import mmap
import os
import pathlib
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time

LOST, SAMPLE, LOST_SAMPLES = 2, 9, 13  # types of records (perf_event.h, perf's event.h)
TRACEPOINTS = {"getppid": "syscalls:sys_enter_getppid", "raw_syscalls": "raw_syscalls:sys_enter",
               "events": "user_events:Bench_Collector_L4K1"}
# Maximum cost of Write() with two sessions, relative to one session.
MAX_SECOND_SESSION = 1.01


class BenchError(Exception):
    """The benchmark cannot run on this machine, or its programs do not do what they should."""


class Run:
    """The cost and the contents of one recording."""

    def __init__(self, cpu, peak, file_size, samples, lost, load_cpu, other):
        self.samples = samples
        self.lost = lost
        self.per_event = cpu * 1e9 / samples
        self.peak = peak
        self.bytes = file_size / samples
        self.load_cpu = load_cpu  # s
        self.other = other  # Share of the machine's time that other processes used.


def nettrace_command(args, tracepoint, ring, file):
    return [args.nettrace, "record", "--json", "-o", file, "-e", tracepoint, "--ring-size", ring]


def compressed_command(args, tracepoint, ring, file):
    return [*nettrace_command(args, tracepoint, ring, file), "--compress"]


def sessions_command(count):
    return lambda args, tracepoint, ring, file: [args.sessions, str(count), tracepoint, str(size_of(ring)), file]


def size_of(ring):
    return int(ring[:-1]) * {"K": 1 << 10, "M": 1 << 20}[ring[-1]]


def perf_command(args, tracepoint, ring, file):
    command = f'exec "$0" record -q -a -N -B -m {ring} -o "$1" -e {tracepoint}'
    if not tracepoint.startswith("user_events:"):
        command += ' --filter "common_pid != $$"'  # exec keeps the process id.
    return ["sh", "-c", command, args.perf, file]


def nettrace_counts(_, stdout):
    summary = json.loads(stdout)
    return summary["events"], summary["lost"]


def perf_counts(file, _):
    """Returns the number of samples in a perf.data file, and of lost samples."""
    with open(file, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        magic, _, _, _, _, begin, size = struct.unpack_from("<8s6Q", data)
        if magic != b"PERFILE2":
            raise BenchError(f"{file}: not a perf.data file")
        samples, in_rings, at_end = 0, 0, 0
        header, number = struct.Struct("<IHH").unpack_from, struct.Struct("<Q").unpack_from
        position, end = begin, begin + size
        while position < end:
            kind, _, length = header(data, position)
            if kind == SAMPLE:
                samples += 1
            elif kind == LOST:
                in_rings += number(data, position + 16)[0]
            elif kind == LOST_SAMPLES:
                at_end += number(data, position + 8)[0]
            position += length
    return samples, max(in_rings, at_end)  # Both count the same losses.


def cpu_seconds(pid):
    return time.clock_gettime(~pid << 3 | 2)  # clock_getcpuclockid()


def machine_seconds():
    """Returns the time that all CPUs have been busy since the machine started, in s."""
    fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, irq, softirq = map(int, fields[:7])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def peak_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    return 0


def cpu_when_idle(process, file):
    """Returns the CPU time of a recorder, in s, once it has started and only waits for events. Returns None if the
    recorder ends, or is not idle within 120 s."""
    deadline = time.monotonic() + 120  # s; a virtual machine on a busy host is slow.
    while time.monotonic() < deadline:
        before = cpu_seconds(process.pid)
        time.sleep(0.25)
        if process.poll() is not None:
            break
        now = cpu_seconds(process.pid)
        if os.path.exists(file) and os.path.getsize(file) > 0 and now - before < 0.025:
            return now
    return None


def record(command, counts, load_command, folder):
    """Records a load and returns the Run."""
    file = os.path.join(folder, "recording")
    with subprocess.Popen(load_command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as load, \
         open(os.path.join(folder, "stdout"), "w+", encoding="utf-8") as stdout, \
         open(os.path.join(folder, "stderr"), "w+", encoding="utf-8") as stderr:
        if load.stdout.readline() != "ready\n":
            raise BenchError(f"the load did not print \"ready\": {load_command}")
        recorder = subprocess.Popen(command(file), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr)
        try:
            if (cpu_before := cpu_when_idle(recorder, file)) is None:
                stderr.seek(0)
                raise BenchError(f"the recorder ended, or was not idle within 120 s: {recorder.args}\n{stderr.read()}")
            began, busy_before = time.monotonic(), machine_seconds()
            output, _ = load.communicate("go\n")
            if load.returncode != 0:
                raise BenchError(f"the load ended with exit status {load.returncode}: {load_command}")
            # Events that are still in the rings after the load are drained at the end. Their cost counts, too.
            peak = peak_kib(recorder.pid)
            recorder.send_signal(signal.SIGINT)
            _, _, usage = os.wait4(recorder.pid, 0)
            recorder.returncode = 0
            took, busy = time.monotonic() - began, machine_seconds() - busy_before
        finally:
            if recorder.returncode is None:
                recorder.kill()
                recorder.wait()
        cpu = usage.ru_utime + usage.ru_stime - cpu_before
        load_cpu = int(output) / 1e9
        stdout.seek(0)
        samples, lost = counts(file, stdout.read())
        if samples == 0:
            raise BenchError(f"the recorder has recorded no event: {recorder.args}")
        size = os.path.getsize(file)
        for part in glob.glob(f"{file}*"):
            os.unlink(part)
    other = max(0, busy - cpu - load_cpu) / (took * os.cpu_count())
    return Run(cpu, peak, size, samples, lost, load_cpu, other)


class Reporter:
    def __init__(self, bench, as_json):
        self._bench = bench
        self._json = as_json

    def report(self, case, unit, value, floor, ratio=None):
        if ratio is None:
            ratio = value / floor if floor > 0 else 0
        if self._json:
            print(json.dumps({"bench": self._bench, "case": case, "unit": unit, "value": round(value, 3),
                              "floor": round(floor, 3), "ratio": round(ratio, 3)}), flush=True)
        else:
            print(f"{self._bench}: {case:60} {unit:26} {value:12.2f}  floor {floor:12.2f}  ratio {ratio:6.3f}", flush=True)


class Pair:
    """The two recordings of a round."""

    def __init__(self, args, tracepoint, ring, load, folder):
        def run(command, counts):
            return record(lambda file: command(args, TRACEPOINTS[tracepoint], ring, file), counts, load, folder)

        self.nettrace = run(nettrace_command, nettrace_counts)
        self.perf = run(perf_command, perf_counts)
        self.ratio = self.nettrace.per_event / self.perf.per_event


def compare(args, reporter, tracepoint, threads, ring, events, folder):
    load = [args.load, "getppid", str(threads), str(events)]
    pairs = [Pair(args, tracepoint, ring, load, folder) for _ in range(args.rounds)]
    pairs.sort(key=lambda pair: pair.ratio)
    case = f"{tracepoint}, {threads} thread{'s' * (threads > 1)}, rings of {ring}, {events // 1_000_000} million"

    for what, pair in (("least", pairs[0]), ("median", pairs[len(pairs) // 2]), ("greatest", pairs[-1])):
        reporter.report(case, f"CPU ns/event, {what}", pair.nettrace.per_event, pair.perf.per_event)

    def median(what):
        return [statistics.median(getattr(run, what) for run in runs)
                for runs in ([pair.nettrace for pair in pairs], [pair.perf for pair in pairs])]

    reporter.report(case, "bytes/event", *median("bytes"))
    reporter.report(case, "events lost", *median("lost"))
    reporter.report(case, "peak memory, KiB", *median("peak"))
    nettrace, perf = median("other")
    reporter.report(case, "CPUs busy with others, %", 100 * nettrace, 100 * perf)


def count_instructions(args, reporter, folder):
    """Measures CPU time in instructions, including the kernel's work for the event."""
    load = [args.load, "events", "1", str(args.events)]

    def run(command):
        return record(lambda file: command(args, TRACEPOINTS["events"], "1M", file), nettrace_counts, load, folder)

    def write_of(run):
        return run.load_cpu * 1e9 / args.events

    pairs = [Pair(args, "events", "1M", load, folder) for _ in range(args.rounds)]
    compressed = run(compressed_command)
    # The count includes interrupts, so the run with the lower value counts.
    one, two = (min((run(sessions_command(count)) for _ in range(2)), key=write_of) for count in (1, 2))

    def medians(what):
        return [statistics.median(map(what, runs)) for runs in ([pair.nettrace for pair in pairs], [pair.perf for pair in pairs])]

    write = medians(write_of)
    recorder = medians(lambda run: run.per_event)
    size = medians(lambda run: run.bytes)
    case = "EventHeader event of 8 fields"
    reporter.report(f"{case}: Write()", "instructions/event", *write)
    reporter.report(f"{case}: recorder", "instructions/event", *recorder)
    reporter.report(f"{case}: both", "instructions/event", *map(sum, zip(write, recorder)))
    reporter.report(f"{case}: recorder that compresses", "instructions/event", compressed.per_event, recorder[1])
    reporter.report(case, "bytes/event", *size)
    reporter.report(f"{case}, compressed", "bytes/event", compressed.bytes, size[1])
    # The floor of these rows is the value for one session, not that of perf.
    reporter.report(f"{case}: Write(), two sessions", "instructions/event", write_of(two), write_of(one))
    reporter.report(f"{case}: recorder, two sessions", "instructions/event", two.per_event, one.per_event)
    reporter.report(case, "events lost", *medians(lambda run: run.lost))
    if write_of(two) > MAX_SECOND_SESSION * write_of(one):
        raise BenchError(f"Write() costs over {MAX_SECOND_SESSION} times as much with a second session")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nettrace", required=True, help="the program")
    parser.add_argument("--load", required=True, help="collector_load")
    parser.add_argument("--sessions", required=True, help="collector_sessions")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    args.perf = shutil.which("perf")
    if args.perf is None or os.geteuid() != 0:
        print("bench_collector: needs root and perf (Debian package linux-perf)", file=sys.stderr)
        return 77
    reporter = Reporter("collector instructions" if args.instructions else "collector", args.json)
    try:
        with tempfile.TemporaryDirectory(prefix="bench_collector-", dir=".") as folder:
            if args.instructions:
                count_instructions(args, reporter, folder)
                return 0
            for tracepoint in ("getppid", "raw_syscalls"):
                for threads in (1, 2):
                    for ring in ("8K", "1M"):
                        compare(args, reporter, tracepoint, threads, ring, args.events, folder)
    except BenchError as error:
        print(f"bench_collector: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
