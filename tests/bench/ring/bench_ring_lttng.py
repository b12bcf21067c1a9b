#!/usr/bin/python3
"""Compares events through rings, recorded by `nettrace record`, with events of LTTng-UST, recorded by its consumer daemon.

Both write the same 8 fields, 3 of them strings, by 1, 2 and 8 threads, in turns, many times, with the default sizes of
their rings. The programs write bursts that the rings hold, with pauses. A run in which an event is lost is repeated,
because a lost event costs less; five such runs fail the benchmark. The time of an event is the writer's CPU time. The
time of a collector is the CPU time from when the writer is ready until the file is complete. Each row is the median of
the runs with rings, that of LTTng as its floor, and their ratio.

  bench_ring_lttng.py --nettrace PATH --ring-writer PATH --lttng-writer PATH [--runs N] [--json]
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from support import lttng

THREADS = (1, 2, 8)
BURSTS = 50
EVENTS = 4000  # of all threads in a burst
ATTEMPTS = 5
SECONDS = 60
SELECTOR = "Bench_Ring_Lttng"


class BenchError(Exception):
    """The benchmark cannot run on this machine, or its programs do not do what they should."""


class Lost(Exception):
    """Events were lost in a run."""


class Run:
    """Costs of an event: the writer's and the collector's CPU time in ns, and the bytes in the file."""

    def __init__(self, writer, collector, file_size):
        self.writer = writer
        self.collector = collector * 1e9 / (BURSTS * EVENTS)
        self.bytes = file_size / (BURSTS * EVENTS)


def cpu_seconds(processes):
    return sum(time.clock_gettime(~pid << 3 | 2) for pid in processes)  # as clock_getcpuclockid()


def writer_command(program, threads):
    return [program, str(threads), str(BURSTS), str(EVENTS // threads)]


@contextlib.contextmanager
def writer(process):
    """Waits until the writer is ready. At the end of the block, closes its input and requires that it succeeds."""
    try:
        if process.stdout.readline() != b"ready\n":
            raise BenchError("the writer has ended before a collector recorded its event")
        yield process
        process.stdin.close()
        if process.wait(SECONDS) != 0:
            raise BenchError(f"the writer ended with exit status {process.returncode}")
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def write(process):
    """Lets the writer write all its events. Returns its CPU time for each event, in ns."""
    process.stdin.write(b"\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def by_rings(args, threads, home):
    socket, file = home / "events", home / "trace.nettrace"
    environment = {**os.environ, "EVENTHEADER_TRANSPORT": "ring", "EVENTHEADER_SOCKET": str(socket)}
    collector = subprocess.Popen([args.nettrace, "record", "--json", "-o", file, "-e", SELECTOR], env=environment,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        process = subprocess.Popen(writer_command(args.ring_writer, threads), env=environment, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        with writer(process):
            before = cpu_seconds([collector.pid])
            cost = write(process)
            collector.terminate()
            # The clock of an ended process can be read until the process is waited for.
            os.waitid(os.P_PID, collector.pid, os.WEXITED | os.WNOWAIT)
            cpu = cpu_seconds([collector.pid]) - before
        out, errors = collector.communicate(timeout=SECONDS)
        if collector.returncode != 0:
            raise BenchError(f"nettrace record ended with exit status {collector.returncode}: {errors.decode()}")
    finally:
        collector.kill()
        collector.communicate()
    summary = json.loads(out)
    if summary["events"] + summary["lost"] != BURSTS * EVENTS:
        raise BenchError(f"rings: {summary['events']} events recorded and {summary['lost']} lost; {BURSTS * EVENTS} written")
    size = file.stat().st_size
    file.unlink()
    if summary["lost"] != 0:
        raise Lost(f"rings: {summary['lost']} events lost")
    return Run(cost, cpu, size)


def by_lttng(daemon, program, threads):
    folder = daemon.home / "trace"
    daemon.lttng("create", "bench", "--output", str(folder))
    daemon.lttng("enable-channel", "--userspace", "--session", "bench", "channel")
    daemon.lttng("enable-event", "--userspace", "--session", "bench", "--channel", "channel", "bench:bench8")
    daemon.lttng("start", "bench")
    process = daemon.start(writer_command(program, threads), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with writer(process):
        consumers = daemon.consumers()
        before = cpu_seconds(consumers)
        cost = write(process)
        daemon.lttng("stop", "bench")
        cpu = cpu_seconds(consumers) - before
    status = daemon.lttng("list", "bench").stdout
    discarded = [line.split()[-1] for line in status.splitlines() if "Discarded events" in line]
    daemon.lttng("destroy", "bench")
    size = sum(path.stat().st_size for path in folder.rglob("channel_*"))
    shutil.rmtree(folder)
    if len(discarded) != 1:
        raise BenchError(f"lttng list must show one number of discarded events: {status}")
    if discarded != ["0"]:
        raise Lost(f"LTTng: {discarded[0]} events lost")
    # The fields of an event take 51 bytes, so a smaller file cannot have all events.
    if size < 51 * BURSTS * EVENTS:
        raise BenchError(f"LTTng: {size} bytes recorded; {BURSTS * EVENTS} events need {51 * BURSTS * EVENTS} or more")
    return Run(cost, cpu, size)


def without_losses(run):
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return run()
        except Lost as lost:
            if attempt == ATTEMPTS:
                raise BenchError(f"events are lost in each of {ATTEMPTS} runs: {lost}") from None
            print(f"bench ring-lttng: repeats a run with lost events: {lost}", file=sys.stderr)
    return None


class Report:
    def __init__(self, as_json):
        self._as_json = as_json

    def add(self, case, unit, value, floor):
        row = {"bench": "ring-lttng", "case": case, "unit": unit, "value": round(value, 3), "floor": round(floor, 3),
               "ratio": round(value / floor, 3) if floor else 0}
        if self._as_json:
            print(json.dumps(row), flush=True)
        else:
            print(f"{case:52} {unit:6} {value:9.2f}  LTTng {floor:9.2f}  ratio {row['ratio']:6.2f}", flush=True)


def measure(args):
    report = Report(args.json)
    with contextlib.ExitStack() as stack:
        home = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-ring-")))
        lttng_home = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-lttng-")))
        program = lttng_home / "writer"
        shutil.copy(args.lttng_writer, program)  # The user may have no access to the build folder.
        daemon = lttng.Daemon(lttng_home, stack)
        for threads in THREADS:
            rings, others = [], []
            for _ in range(args.runs):
                rings.append(without_losses(lambda threads=threads: by_rings(args, threads, home)))
                others.append(without_losses(lambda threads=threads: by_lttng(daemon, program, threads)))
            for case, unit, value in (("written", "ns", lambda run: run.writer), ("collected", "ns", lambda run: run.collector),
                                      ("in the file", "bytes", lambda run: run.bytes)):
                report.add(f"an event of {threads} threads, {case}", unit, statistics.median(map(value, rings)),
                           statistics.median(map(value, others)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("nettrace", "ring-writer", "lttng-writer"):
        parser.add_argument(f"--{name}", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.lttng_writer is None or not shutil.which("lttng-sessiond"):
        print("bench ring-lttng: LTTng is missing: install the packages lttng-tools and liblttng-ust-dev, and delete the "
              "build folder", file=sys.stderr)
        return 1
    try:
        measure(args)
    except (BenchError, RuntimeError) as error:
        print(f"bench ring-lttng: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
