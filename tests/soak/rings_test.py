#!/usr/bin/python3
"""Tests that a recording of events from rings in user space is exact: at full speed, and when services are killed. The
events of each thread are numbered. Those in the file and those counted as lost must be all that the thread wrote, and
each gap between the numbers must be a loss that the file reports at this place (ring_checker.cc). --events is the
number of events of each thread, --kills the number of services that are killed."""

import collections
import contextlib
import json
import mmap
import os
import pathlib
import random
import select
import signal
import struct
import subprocess
import tempfile
import time
import unittest
from concurrent import futures

from support import script

ARGS = script.options(__doc__, "nettrace", "writer", "checker", events=50_000, kills=60)
# "ring", or "ring-inline": the services send their events over the socket.
TRANSPORT = os.environ.get("EVENTHEADER_TRANSPORT", "ring")
# A library that the recorder and the services load before all others; "": none.
PRELOADED = os.environ.get("RINGS_PRELOADED", "")
DEADLINE = 60
SERVICES = 4
THREADS = 4
MAX_EVENT = 112  # bytes of an event in a ring
AT_ONCE = 4  # services that run at the same time, to be killed
# Maximum time from the first event of a service to its kill, in s. For every fourth service, the time counts from its
# start.
LIFE = 0.1
PAUSE = 1000  # µs after every 32 events
# The progress of a thread, as in ring_writer.cc.
PROGRESS = struct.Struct("=4Q")
ThreadProgress = collections.namedtuple("ThreadProgress", "tid calls written disabled")


class Progress:
    """The file in which the threads of services store their progress."""

    def __init__(self, path, services):
        path.write_bytes(bytes(PROGRESS.size * services * THREADS))
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        self.path = path

    def of(self, service, thread):
        return ThreadProgress(*PROGRESS.unpack_from(self._map, PROGRESS.size * (service * THREADS + thread)))


class RingsTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="rings-")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.file = self.folder / "trace.nettrace"
        self.env = dict(os.environ, EVENTHEADER_TRANSPORT=TRANSPORT, EVENTHEADER_SOCKET=str(self.folder / "events"),
                        LD_PRELOAD=PRELOADED)

    @contextlib.contextmanager
    def record(self, ring):
        """Records until the end of the block. Yields a dictionary that then contains the summary."""
        self.env["EVENTHEADER_RING_SIZE"] = ring
        summary = {}
        with subprocess.Popen([ARGS.nettrace, "record", "-o", self.file, "--json", "--ring-size", ring, "-e", "Ring_Load"],
                              env=self.env, stdout=subprocess.PIPE, text=True) as recorder:
            try:
                end = time.monotonic() + DEADLINE
                while not pathlib.Path(self.env["EVENTHEADER_SOCKET"]).exists():
                    self.assertIsNone(recorder.poll())
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.01)
                self.assertIn(PRELOADED, pathlib.Path(f"/proc/{recorder.pid}/maps").read_text())
                yield summary
                recorder.send_signal(signal.SIGINT)
                summary |= json.loads(recorder.communicate(timeout=DEADLINE)[0])
                self.assertEqual(recorder.returncode, 0)
            finally:
                recorder.kill()

    def service(self, progress, number, events=0, pause=0):
        pipe = subprocess.PIPE if events else subprocess.DEVNULL
        service = subprocess.Popen([ARGS.writer, progress.path, str(number), str(THREADS), str(events), str(pause)],
                                   env=self.env, stdin=pipe, stdout=pipe, text=True)
        self.addCleanup(service.kill)
        return service

    def check_file(self, summary):
        """Checks the file. Returns (shown, lost, next number) of each thread. The key is (service, thread), or
        ("ids", pid, tid) if all events of the thread are lost."""
        verified = subprocess.run([ARGS.nettrace, "verify", "--strict", self.file], stdout=subprocess.PIPE, text=True,
                                  check=False)
        self.assertEqual(verified.returncode, 0, verified.stdout)
        checked = json.loads(subprocess.run([ARGS.checker, self.file], stdout=subprocess.PIPE, text=True, check=True).stdout)
        self.assertEqual(checked["findings"], [], "\n".join(checked["findings"]))
        self.assertTrue(checked["complete"])
        self.assertEqual((checked["events"], checked["lost"]), (summary["events"], summary["lost"]))
        self.assertEqual(summary["undecoded"], 0)
        threads = {}
        for pid, tid, service, thread, *counts in checked["threads"]:
            key = ("ids", pid, tid) if service is None else (service, thread)
            self.assertNotIn(key, threads)
            threads[key] = counts
        return threads

    def run_at_full_speed(self, ring, events=ARGS.events):
        """Runs services whose threads write this number of events each. Returns the summary of the recording, and the
        number of events that were not lost when they were written."""
        progress = Progress(self.folder / "progress", SERVICES)
        began = time.monotonic()
        with self.record(ring) as summary:
            services = [self.service(progress, number, events) for number in range(SERVICES)]
            for service in services:
                self.assertTrue(select.select([service.stdout], [], [], DEADLINE)[0],
                                f"the service printed nothing within {DEADLINE} s")
                self.assertEqual(service.stdout.readline(), "ready\n")
            for service in services:
                service.stdin.close()
            for service in services:
                self.assertEqual(service.wait(DEADLINE), 0)
                service.stdout.close()
        recorded = time.monotonic()
        threads = self.check_file(summary)
        all_written = 0
        for number, service in enumerate(services):
            for thread in range(THREADS):
                with self.subTest(service=number, thread=thread):
                    tid, calls, written, disabled = progress.of(number, thread)
                    self.assertEqual((calls, disabled), (events, 0))
                    shown, lost, following = threads.pop((number, thread), None) or threads.pop(("ids", service.pid, tid))
                    self.assertEqual((shown + lost, following), (events, events))
                    # An inline service that ends waits for a collector that takes no data, but only for 1 s. The rest of
                    # its events is then lost. On a busy machine, this may happen.
                    if TRANSPORT == "ring":
                        self.assertEqual(shown, written)
                    else:
                        self.assertLessEqual(shown, written)
                    all_written += written
        self.assertEqual(threads, {})
        print(f"rings of {ring}: {all_written} events written, {summary['events']} recorded, {summary['late']} late, "
              f"{summary['lost']} lost, {recorded - began:.1f} s, "
              f"checked in {time.monotonic() - recorded:.1f} s", flush=True)
        self.assertGreater(summary["events"], 0)
        return summary, all_written

    def test_full_speed_into_small_rings(self):
        summary, _ = self.run_at_full_speed("256K")
        self.assertGreater(summary["lost"], 0)

    def test_full_speed_into_large_rings(self):
        self.run_at_full_speed("16M")

    def test_full_speed_into_rings_that_hold_all_events(self):
        # The collector permits 512 MiB for the rings of all services of a user, so the number of events is limited.
        events = min(ARGS.events, 250_000)
        mebibytes = (events * THREADS * MAX_EVENT >> 20) + 16
        summary, written = self.run_at_full_speed(f"{mebibytes}M", events)
        self.assertEqual(written, events * SERVICES * THREADS)
        if TRANSPORT == "ring":
            self.assertEqual(summary["lost"], 0)
            # An interval ends when all services have been read up to its end. Only events that a thread was writing at
            # this time may come late. Over the socket, events may arrive long after their time.
            self.assertLess(summary["late"], summary["events"] // 50)

    def run_and_kill(self, progress, number, life):
        """Runs a service and kills it. Returns its pid. Every second service writes at full speed and loses most events."""
        service = self.service(progress, number, pause=0 if number % 2 == 0 else PAUSE)
        if number % 4 != 0:
            end = time.monotonic() + DEADLINE
            while not any(progress.of(number, thread).calls for thread in range(THREADS)):
                self.assertIsNone(service.poll())
                self.assertLess(time.monotonic(), end)
                time.sleep(0.001)
        time.sleep(life)
        service.kill()
        self.assertEqual(service.wait(DEADLINE), -signal.SIGKILL)
        return service.pid

    def check_unknown(self, summary, pids, missing):
        """Checks that the account states that the losses of the services of `missing` are unknown."""
        named = {each["tracepoint"] for each in summary["unknownServices"]}
        if TRANSPORT == "ring":
            self.assertEqual(named, set())
            return
        self.assertLessEqual({f"ring:{pid}" for pid in missing}, named)
        self.assertLessEqual(named, {f"ring:{pid}" for pid in pids})
        self.assertNotEqual(named, set())

    def test_services_that_are_killed(self):
        progress = Progress(self.folder / "progress", ARGS.kills)
        seed = random.randrange(1 << 32)
        lives = random.Random(seed)
        began = time.monotonic()
        with self.record("1M") as summary, futures.ThreadPoolExecutor(AT_ONCE) as killers:
            running = [killers.submit(self.run_and_kill, progress, number, lives.uniform(0, LIFE))
                       for number in range(ARGS.kills)]
            pids = [each.result() for each in running]
        recorded = time.monotonic()
        threads = self.check_file(summary)
        all_calls = unreturned = writing = lossless = 0
        missing = set()  # pids of services that have not sent all events
        for number, pid in enumerate(pids):
            for thread in range(THREADS):
                with self.subTest(service=number, thread=thread, seed=seed):
                    tid, calls, written, disabled = progress.of(number, thread)
                    self.assertEqual(disabled, 0)
                    shown, lost, following = threads.pop((number, thread), None) or threads.pop(("ids", pid, tid), [0, 0, 0])
                    # The thread counts a call when it returns, so one more event may be in the file or counted as lost.
                    self.assertEqual(shown + lost, following)
                    self.assertLessEqual(following - calls, 1)
                    self.assertLessEqual(shown - written, 1)
                    # With "ring-inline", events that the service has not yet sent over the socket may be missing.
                    if TRANSPORT == "ring":
                        self.assertGreaterEqual(following, calls)
                        self.assertGreaterEqual(shown, written)
                    elif following < calls:
                        missing.add(pid)
                    all_calls += calls
                    unreturned += max(0, following - calls)
                    writing += calls != 0
                    lossless += shown != 0 and lost == 0
        self.assertEqual(threads, {})
        self.check_unknown(summary, pids, missing)
        print(f"{ARGS.kills} services killed: {all_calls} calls returned in {writing} threads, {unreturned} more are in the "
              f"file, {lossless} threads lost nothing, {summary['events']} events, {summary['lost']} lost, "
              f"{recorded - began:.1f} s, checked in {time.monotonic() - recorded:.1f} s, seed {seed}", flush=True)
        self.assertGreater(lossless, 0)


if __name__ == "__main__":
    script.run_cases()
