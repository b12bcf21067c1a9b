#!/usr/bin/python3
"""Tests that a recording's events and losses together are exactly what the kernel counted and what the load wrote,
whatever happens to the recorder. Each case runs --runs times, with large rings and with rings of one page. If the
kernel has no user_events, the load makes system calls instead of events. In some cases, the load does not run at full
speed: it sleeps for --pause microseconds after every 16 events. Needs root, tracefs and perf."""

import collections
import contextlib
import fcntl
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

from support import commands
from support import failures
from support import script
from support.kernel import tracepoints
from support.load import load
from support.load import watched

ARGS = script.options(__doc__, "nettrace", "eventheader", "service", runs=1, processes=3000, pause=1000)
CPUS = len(os.sched_getaffinity(0))
VERY_LARGE, LARGE, PAGE = "8M", "1M", "4K"
RINGS = (LARGE, PAGE)
RUNS = [(run, ring) for run in range(ARGS.runs) for ring in RINGS]
PIPE_SIZE = 4096
# Each thread of this load writes for at least 5 s.
PACED = ["--pause", str(ARGS.pause), "--pin", "--threads", str(CPUS)]
PACED_EVENTS = 5_000_000 // ARGS.pause * 16 * CPUS
# Limits of the recorder's memory, in KiB. The limit of growth is checked only from MANY_PROCESSES on. With this number,
# 100 bytes for each process would exceed the limit.
MAX_MEMORY = 64 << 10
MAX_GROWTH = 16 << 10
MANY_PROCESSES = 200_000


class ExactnessTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        watched.register(ARGS.eventheader)

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="exactness-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def record(self, ring, events, load_options, options=(), **others):
        return watched.Watched(ARGS, self.folder, ["--ring-size", ring, *options],
                               ["--events", str(events), *load_options], **others)

    def check(self, recording, events, **expected):
        problems = recording.problems(ARGS.nettrace, events, **expected)
        print(f"{self.id().split('.')[-1]}: {recording.summary['events']} events, {recording.summary['lost']} lost", flush=True)
        self.assertEqual(problems, [], "\n".join(problems))

    def test_load_on_all_cpus(self):
        events = 50_000 * CPUS
        for run, ring in RUNS:
            with self.subTest(run=run, ring=ring), self.record(ring, events, ["--threads", str(2 * CPUS), "--pin"]) as recording:
                recording.wait()
                self.check(recording, events, lossy=True if ring == PAGE else None)

    @script.more
    def test_recorder_that_is_stopped_for_three_seconds(self):
        for run, ring in RUNS:
            with self.subTest(run=run, ring=ring), self.record(ring, PACED_EVENTS, PACED) as recording:
                recording.wait_for_events(ARGS.nettrace)
                recording.signal(signal.SIGSTOP)
                time.sleep(3)
                recording.signal(signal.SIGCONT)
                recording.wait()
                self.check(recording, PACED_EVENTS, lossy=True if ring == PAGE else None)

    @script.more
    def test_pipe_with_a_slow_reader(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        for run, ring in RUNS:
            with self.subTest(run=run, ring=ring), self.record(ring, PACED_EVENTS, PACED, output=fifo) as recording:
                reader = SlowReader(fifo, recording.file)
                recording.wait_for_load()
                reader.hurry()
                recording.wait()
                reader.join()
                self.check(recording, PACED_EVENTS, lossy=True if ring == PAGE else None)

    @script.more
    def test_full_disk_that_has_space_again(self):
        for run, ring in RUNS:
            with self.subTest(run=run, ring=ring), nearly_full_disk(self.folder) as (disk, filler), \
                 self.record(ring, PACED_EVENTS, PACED, options=["--when-full", "wait"],
                             file=disk / "trace.nettrace") as recording:
                watched.until(lambda: "the disk is full: waiting" in recording.said())
                time.sleep(2)
                filler.unlink()
                recording.wait()
                self.assertIn("there is space again", recording.said())
                self.check(recording, PACED_EVENTS, lossy=True if ring == PAGE else None)

    def test_processes_that_live_for_a_moment(self):
        # The rings of thread records have a quarter of the size of the others. With VERY_LARGE, they
        # hold the records of one or two seconds.
        for run, ring in RUNS[:max(1, ARGS.runs // 10) * len(RINGS)]:
            ring = VERY_LARGE if ring == LARGE else ring
            with self.subTest(run=run, ring=ring), self.record(ring, ARGS.processes, ["--processes"]) as recording:
                peaks = Peaks(recording.recorder)
                recording.wait_for_load()
                peaks.end()
                recording.wait()
                print(f"memory, KiB: {[peaks.at(part / 8) for part in range(9)]}", flush=True)
                self.check(recording, ARGS.processes, names=ring == VERY_LARGE)
                if ring == VERY_LARGE:
                    self.check_processes(recording)
                self.assertLess(peaks.at(1), MAX_MEMORY)
                if ARGS.processes >= MANY_PROCESSES:
                    self.assertLess(peaks.at(1) - peaks.at(1 / 4), MAX_GROWTH)

    def check_processes(self, recording):
        """Checks that the file has the beginning, the name and the end of each of the load's processes."""
        path = os.path.realpath(ARGS.service)
        living, ended = {}, 0
        for event in commands.dump(ARGS.nettrace, recording.file, "--provider", "Universal.System"):
            pid = event["pid"]
            if event["name"] == "ProcessCreate":
                self.assertNotIn(pid, living)
                living[pid] = event["payload"]["Name"]
            elif event["name"] == "ExistingProcess" and pid in living:
                # The process has a new name, because it has executed a program since its creation.
                living[pid] = event["payload"]["Name"]
            elif event["name"] == "ProcessExit" and pid in living:
                ended += living.pop(pid) == path
        # One more than ARGS.processes, because load_service is a process, too.
        self.assertEqual(ended, ARGS.processes + 1)
        self.assertNotIn(path, living.values())

    @script.more
    def test_recorder_that_is_killed(self):
        for run in range(2 * ARGS.runs):
            with self.subTest(run=run), self.record(VERY_LARGE, PACED_EVENTS, PACED, perf=False) as recording:
                recording.wait_for_events(ARGS.nettrace)
                time.sleep(random.uniform(0, 1.5))
                recording.signal(signal.SIGKILL)
                recording.wait(status=-signal.SIGKILL)
                self.check_killed(recording)

    def check_killed(self, recording):
        """Checks that the file is intact up to its last block, and that all its gaps are counted as losses."""
        whole = self.folder / "whole.nettrace"
        subprocess.run([ARGS.nettrace, "repair", recording.file, "-o", whole], stderr=subprocess.DEVNULL, check=True)
        subprocess.run([ARGS.nettrace, "verify", "--strict", whole], stdout=subprocess.DEVNULL, check=True)
        info = commands.info(ARGS.nettrace, whole)
        texts, right = load.wrong_events(ARGS.nettrace, whole, recording.service)
        self.assertEqual(texts, [])
        self.assertEqual(right, info["events"])
        self.assertGreater(right, 0)
        numbers = collections.defaultdict(list)
        for event in commands.dump(ARGS.nettrace, whole):
            thread, number = load.key_of(event, recording.service)
            numbers[thread].append(number)
        holes = sum(max(each) + 1 - len(each) for each in numbers.values())
        print(f"killed: {right} events, {info['lost']} lost, {holes} missing before the last event of a thread", flush=True)
        self.assertLessEqual(holes, info["lost"])


@contextlib.contextmanager
def nearly_full_disk(folder):
    """Makes a disk with little space left, and a file on it that takes the rest."""
    size, space = 64 << 20, 150 << 10
    disk = pathlib.Path(tempfile.mkdtemp(prefix="disk-", dir=folder))
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], check=True)
    try:
        filler = disk / "filler"
        with open(filler, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, size - space)
        yield disk, filler
    finally:
        subprocess.run(["umount", disk], check=True)


class SlowReader:
    """Copies a pipe into a file slowly, with pauses of two seconds, until hurry() is called."""

    def __init__(self, fifo, file):
        self._hurry = threading.Event()
        self._thread = threading.Thread(target=self._copy, args=(fifo, file))
        self._thread.start()

    def hurry(self):
        self._hurry.set()

    def join(self):
        self._thread.join()

    def _copy(self, fifo, file):
        with open(fifo, "rb", buffering=0) as pipe, open(file, "wb") as copy:
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
            count = 0
            while data := pipe.read(PIPE_SIZE):
                copy.write(data)
                count += 1
                self._hurry.wait(2 if count % 20 == 0 else 0.05)


class Peaks:
    """Samples the peak memory of a process in KiB."""

    def __init__(self, pid):
        self._pid = pid
        self._kib = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def end(self):
        self._ended.set()
        self._thread.join()

    def at(self, part):
        return self._kib[int(part * (len(self._kib) - 1))]

    def _look(self):
        while not self._ended.wait(0.1):
            status = pathlib.Path(f"/proc/{self._pid}/status").read_text(encoding="utf-8")
            self._kib += [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")]


def require():
    tracepoints.require("sched:sched_switch" if failures.has_user_events() else load.CALL_TRACEPOINT)
    if shutil.which("perf") is None:
        raise script.Skipped("there is no perf (the package linux-perf)")


if __name__ == "__main__":
    script.run_cases(require)
