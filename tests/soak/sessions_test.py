#!/usr/bin/python3
"""Tests ten sessions of nettraced at once, under a load on all CPUs for --seconds. Their selectors overlap, and their
files are rotated every second; some sessions keep few files. Every file must verify, and TraceEvent must read --sample
files of each session (0: all). The events and losses in the files of a session must be what the load wrote, without
duplicates. The disk must never hold more than the settings allow, and memory must not grow. Needs root and the
tracepoints of system calls."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time
import unittest

from conformance import reader
from support import commands
from support import script
from support.daemon import crashes
from support.daemon import nettraced
from support.kernel import tracepoints
from support.load import load

ARGS = script.options(__doc__, "nettrace", "nettraced", "load", "numbers", "reader", seconds=15, sample=1)
CPUS = len(os.sched_getaffinity(0))
BOUND = 2 << 20
RING, QUEUE = 512 << 10, 256 << 10
SETTINGS = f'interval = "200ms"\nring_size = {RING}\nqueue_bytes = {QUEUE}\nfiles.rotate_every = "1s"\nfiles.rotate_bytes = "off"\n'

RETURN_TRACEPOINT = load.CALL_TRACEPOINT.replace("enter", "exit")
ENTRIES = json.dumps([load.CALL_TRACEPOINT])
BOTH = json.dumps([RETURN_TRACEPOINT, load.CALL_TRACEPOINT])


def filtered(tracepoint, expression):
    return f'[{{ tracepoint = "{tracepoint}", filter = "{expression}" }}]'


# For each session: its selectors, the number of events for each call, the threads of the load that it records (None:
# all), and its other settings.
SESSIONS = {
    "entries": (ENTRIES, 1, None, ""),
    "both": (BOTH, 2, None, ""),
    "pattern": (json.dumps([load.CALL_TRACEPOINT.replace("enter", "*")]), 2, None, ""),
    "compressed": (BOTH, 2, None, "compression = true"),
    "raw": (filtered("raw_syscalls:sys_enter", f"id == {load.CALL_NUMBER}"), 1, None, ""),
    "filtered": (filtered(load.CALL_TRACEPOINT, f"pid < {2 << load.NUMBER_BITS}"), 1, 0, ""),
    "named": (BOTH, 2, 1, 'target.command = "load-1"'),
    "few": (BOTH, 2, None, f"files.keep_bytes = {BOUND}"),
    "fewest": (ENTRIES, 1, None, f"compression = 1\nfiles.keep_bytes = {BOUND // 8}\nfiles.keep_files = 3"),
    "disk": (ENTRIES, 1, None, f"files.keep_bytes = {BOUND}\nfiles.keep_free_bytes = 'off'"),
}
# Sessions whose oldest files are deleted, with the limit of their space. The files of "disk" are on a file system of
# this size, so they cannot exceed it even for a moment.
BOUNDS = {"few": BOUND, "fewest": BOUND // 8, "disk": BOUND}
# Limit for the growth of memory, in bytes: the data that waits for a slow disk in each session's queue, plus what the rings
# deliver before the queue is known to be full (docs/guides/operating-nettraced.md, Sizes). In the five minutes of the
# long form, a leak of a byte for each event is several times this limit, and so is a leak of 10 KiB for each file.
MAX_GROWTH = len(SESSIONS) * (QUEUE + CPUS * RING)


def settings(name):
    select, _, _, more = SESSIONS[name]
    bound = "" if name in BOUNDS else 'files.keep_bytes = "64G"'
    return f"[session.{name}]\nselect = {select}\n{SETTINGS}{more}\n{bound}\n"


class Watch:
    """Samples repeatedly, until it is ended, how much space the files of the sessions with bounds take, and how much
    memory the daemon uses. Links some of their files into a folder, so that they are kept.

    A sample of a session's folder counts the file that is being written first, and then the complete files, which do
    not grow. All counted data existed when the sample began, so the sum is never too large. It misses a file that is
    removed during the sample."""

    def __init__(self, pid, folders, kept):
        self._pid, self._folders, self._kept = pid, folders, kept
        self._block = {name: os.statvfs(folder).f_frsize for name, folder in folders.items()}
        self.largest = {name: 0 for name in folders}
        self.memory = []  # (CLOCK_MONOTONIC in s, bytes)
        self.looks = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def end(self):
        self._ended.set()
        self._thread.join()

    def _run(self):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), -20)  # the load uses all CPUs, and would delay samples
        while not self._ended.wait(0.002):
            for name in self._folders:
                self.look(name)
            self.looks += 1
            if not self.memory or time.monotonic() - self.memory[-1][0] > 0.25:
                self.memory.append((time.monotonic(), self._memory()))

    def _memory(self):
        """Returns the private resident memory, without the rings, which have a constant size."""
        status = pathlib.Path(f"/proc/{self._pid}/status").read_text(encoding="utf-8")
        [kib] = [int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon:")]
        return kib << 10

    def look(self, name):
        sizes = {}
        folder = self._folders[name]
        names = sorted(os.listdir(folder), key=lambda file: (not file.endswith(".partial"), file))
        for file in names:
            try:
                facts = os.stat(folder / file)
                if name in self._kept and not file.endswith(".partial") and not (self._kept[name] / file).exists():
                    os.link(folder / file, self._kept[name] / file)
            except FileNotFoundError:
                if file.endswith(".partial"):
                    return  # The file has its final name now; the next sample counts it.
                continue
            sizes[facts.st_ino] = -(-facts.st_size // self._block[name]) * self._block[name]
        self.largest[name] = max(self.largest[name], sum(sizes.values()))


class SessionsTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        """Runs the daemon and the load; the tests check the results."""
        cls.daemon = nettraced.Daemon(ARGS.nettraced, ARGS.nettrace, {name: settings(name) for name in SESSIONS})
        cls.addClassCleanup(cls.daemon.close)
        state = cls.daemon.path / "state"
        folders = {name: state / name for name in BOUNDS}
        kept = {name: state / f"{name}-kept" for name in BOUNDS if name != "disk"}
        for folder in [*folders.values(), *kept.values()]:
            folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={BOUND}", "tmpfs", folders["disk"]], check=True)
        cls.addClassCleanup(subprocess.run, ["umount", "-l", folders["disk"]], check=False)
        cls.daemon.start()
        watch = cls.watch = Watch(cls.daemon.process.pid, folders, kept)
        try:
            cls.calls = cls.load()
            # The watch ends before the daemon is stopped, because a stop changes the memory.
            cls.status = {name: cls.daemon.status(name) for name in SESSIONS}
        finally:
            watch.end()
        if cls.daemon.stop() != 0:
            raise AssertionError(cls.daemon.log())
        for name in kept:
            watch.look(name)
        cls.paths = {name: sorted(kept.get(name, state / name).iterdir()) for name in SESSIONS}
        cls.files = {name: crashes.numbers(ARGS.numbers, *paths) for name, paths in cls.paths.items()}

    @classmethod
    def load(cls):
        """Runs one load after the other: loads that pause between events, and loads that overrun the rings. On a slow
        machine, there are enough loads that the oldest files must be deleted. Returns the calls of each process's
        threads."""
        calls = {}
        end = time.monotonic() + ARGS.seconds
        with contextlib.ExitStack() as processes:
            while time.monotonic() < end or len(calls) < 6:
                for options in (["--events", str(16_000 * CPUS), "--pause", "8000"], ["--events", str(30_000 * CPUS)]):
                    # The daemon is stopped during the second load, which then certainly overruns the rings.
                    overruns = len(calls) == 1
                    if overruns:
                        os.kill(cls.daemon.process.pid, signal.SIGSTOP)
                    # The process is not reaped until the end, so that no other process gets its pid.
                    process = processes.enter_context(subprocess.Popen(
                        [ARGS.load, "--calls", "--threads", str(2 * CPUS), "--pin", *options], stdout=subprocess.PIPE))
                    service = json.loads(process.stdout.read())
                    if overruns:
                        os.kill(cls.daemon.process.pid, signal.SIGCONT)
                    calls[service["pid"]] = [thread["written"] for thread in service["threads"]]
        return calls

    def produced(self, name):
        _, events, thread, _ = SESSIONS[name]
        return events * sum(sum(calls) if thread is None else calls[thread] for calls in self.calls.values())

    def setUp(self):
        others = {pid for files in self.files.values() for file in files for pid, *_ in file["numbers"]} - set(self.calls)
        self.assertEqual(others, set(), "other processes made the test's calls; the test needs the machine for itself")

    def test_every_file_is_clean(self):
        for name, files in self.files.items():
            self.assertGreater(len(files), 1, name)
            for file in files:
                self.assertEqual((file["complete"], file["findings"]), (True, 0), file["file"])

    def test_events_shown_and_lost_match_the_load(self):
        lossy = 0
        for name, files in self.files.items():
            with self.subTest(name):
                shown = sum(file["numbered"] + file["returns"] for file in files)
                lost = sum(file["lost"] for file in files)
                before = self.check_account(name)
                print(f"{name}: {len(files)} files, {shown} events, {lost} lost, {before} in files that are gone", flush=True)
                self.assertEqual(before + shown + lost, self.produced(name))
                self.assertEqual(before > 0, name == "disk")
                lossy += lost > 0
        self.assertGreater(lossy, 0, "no session lost events, although the load must overrun the rings")

    def check_account(self, name):
        """Checks that the account of each file matches its gaps, and that each file states the number of events and
        losses before it. Returns the number that the first file states, which is not 0 if earlier files were
        deleted."""
        before = None
        for path, file in zip(self.paths[name], self.files[name]):
            info = commands.info(ARGS.nettrace, path)
            self.assertEqual(sum(loss["count"] for loss in info["losses"]), file["lost"], path)
            continues = info["continues"] or {"eventsBefore": 0, "lostBefore": 0}
            said = continues["eventsBefore"] + continues["lostBefore"]
            before = (said, said) if before is None else before
            self.assertEqual(said, before[1], path)
            before = (before[0], said + file["numbered"] + file["returns"] + file["lost"])
        return before[0]

    def test_no_event_occurs_twice(self):
        for name, files in self.files.items():
            with self.subTest(name):
                ranges = sorted(each for file in files for each in file["numbers"])
                self.assertEqual([file["twice"] for file in files], [0] * len(files))
                for (*before, _, last), (*after, first, _) in zip(ranges, ranges[1:]):
                    self.assertTrue(before != after or last < first, (after, first))

    def test_the_disk_has_no_more_than_the_bound(self):
        for name, bound in BOUNDS.items():
            print(f"{name}: {self.watch.largest[name]} of {bound} bytes at most in {self.watch.looks} samples", flush=True)
            self.assertLessEqual(self.watch.largest[name], bound)
            # A session that stays far below the bound has deleted no files, so the test would prove nothing.
            self.assertGreater(self.watch.largest[name], bound // 4)
        # No session had an error, such as a full disk.
        self.assertEqual({status["error"] or None for status in self.status.values()}, {None})
        for name in ("few", "fewest"):
            self.assertGreater(len(self.paths[name]), len(self.daemon.files(name)))

    def test_memory_does_not_grow(self):
        memory = [used for _, used in self.watch.memory]
        third = len(memory) // 3
        first, last = max(memory[:third]), max(memory[-third:])
        tenths = [max(memory[part * len(memory) // 10:(part + 1) * len(memory) // 10]) >> 10 for part in range(10)]
        print(f"memory: {first >> 10} KiB at most in the first third, {last >> 10} KiB in the last; by tenths {tenths}", flush=True)
        self.assertLessEqual(last - first, MAX_GROWTH)

    def test_traceevent_reads_the_files(self):
        try:
            command = reader.build(ARGS.reader)
        except script.Skipped as reason:
            self.skipTest(str(reason))
        read = 0
        for name, paths in self.paths.items():
            chosen = list(zip(paths, self.files[name]))
            chosen = chosen[len(chosen) // 2:][:ARGS.sample] if ARGS.sample else chosen
            for totals, (path, file) in zip(reader.read_totals(command, self.plain([path for path, _ in chosen])), chosen):
                self.assertEqual((totals["exception"], totals["payloadFailures"]), (None, 0), path)
                self.assertEqual((totals["events"], totals["lost"]), (file["events"], file["lost"]), path)
            read += len(chosen)
        print(f"TraceEvent has read {read} files", flush=True)

    def plain(self, paths):
        """Returns the files, or decompressed copies of them."""
        folder = self.daemon.path / "plain"
        folder.mkdir(exist_ok=True)
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        copies = []
        for path in paths:
            if path.suffix == ".zst":
                copy = folder / path.stem
                subprocess.run(["zstd", "-q", "-f", "-d", path, "-o", copy], check=True)
                path = copy
            copies.append(path)
        return copies


if __name__ == "__main__":
    script.run_cases(lambda: tracepoints.require(load.CALL_TRACEPOINT))
