#!/usr/bin/python3
"""Kills nettraced --kills times while services write numbered events to rings in user space, and starts it again. Each
event that a service has committed must be in the files of each session exactly once, or counted there as lost. Sessions
write plain, compressed and quickly rotated files, and one is a flight recorder. Needs neither root nor tracefs."""

import json
import mmap
import os
import random
import signal
import struct
import subprocess
import time
import unittest

from support import script
from support.daemon import crashes
from support.daemon import nettraced

ARGS = script.options(__doc__, "nettrace", "nettraced", "writer", "counter", kills=8)
DEADLINE = 60
SERVICES = 2
THREADS = 3
PAUSE = 40_000  # µs after every 32 events
LONGEST_LIFE = 1.5  # maximum time, in s, from the first events after a start to the kill
START = 0.3  # maximum time, in s, from a start to the kill, for every fourth kill
# The progress of a thread, as in ring_writer.cc.
PROGRESS = struct.Struct("=4Q")
SESSIONS = {
    "plain": "",
    "compressed": "compression = true\n",
    "rotated": 'compression = true\nfiles.rotate_every = "1s"\n',
    "flight": 'flight.keep_bytes = "4M"\n',
}


class RingKillsTest(unittest.TestCase):
    def setUp(self):
        settings = {name: f'[session.{name}]\nselect = ["Ring_Load"]\n{more}' for name, more in SESSIONS.items()}
        self.daemon = nettraced.Daemon(ARGS.nettraced, ARGS.nettrace, settings)
        self.addCleanup(self.daemon.close)
        os.environ["EVENTHEADER_TRANSPORT"] = "ring"
        os.environ["EVENTHEADER_SOCKET"] = str(self.daemon.path / "events")

    def service(self, number):
        service = subprocess.Popen([ARGS.writer, self.progress, str(number), str(THREADS), "0", str(PAUSE)],
                                   stdin=subprocess.DEVNULL)
        self.addCleanup(service.kill)
        return service

    def written(self):
        """Returns the number of events that all threads have committed."""
        return sum(PROGRESS.unpack_from(self.map, PROGRESS.size * i)[2] for i in range(SERVICES * THREADS))

    def wait_for_events(self):
        before = self.written()
        nettraced.until(lambda: self.written() > before, DEADLINE,
                        lambda: f"services have committed no more events than {before}: {self.daemon.log()}")

    def test_collector_that_is_killed(self):
        self.progress = self.daemon.path / "progress"
        self.progress.write_bytes(bytes(PROGRESS.size * SERVICES * THREADS))
        with open(self.progress, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 0)
        seed = random.randrange(1 << 32)
        moments = random.Random(seed)
        self.daemon.start()
        services = [self.service(number) for number in range(SERVICES)]
        began = time.monotonic()
        for number in range(ARGS.kills):
            if number % 4 == 3:
                time.sleep(moments.uniform(0, START))
            else:
                self.wait_for_events()
                time.sleep(moments.uniform(0, LONGEST_LIFE))
            crashes.kill(self.daemon.process.pid)
            self.daemon.process.wait()
            self.daemon.start(ready=False)
        self.wait_for_events()
        for service in services:
            service.kill()
            self.assertEqual(service.wait(DEADLINE), -signal.SIGKILL)
        # Waits until the collector has noticed the ends of the connections.
        time.sleep(1)
        self.assertEqual(self.daemon.stop(), 0, self.daemon.log())
        ended = time.monotonic()
        for session in SESSIONS:
            if session != "flight":
                self.check(session, seed)
        print(f"{ARGS.kills} kills, {self.written()} events written, {ended - began:.1f} s, "
              f"checked in {time.monotonic() - ended:.1f} s, seed {seed}", flush=True)

    def check(self, session, seed):
        files = self.daemon.files(session)
        counted = subprocess.run([ARGS.counter, *files], stdout=subprocess.PIPE, text=True, check=True).stdout
        result = json.loads(counted)
        found = {(service, thread): counts for service, thread, *counts in result["threads"]}
        shown_of_all = twice_of_all = missing = unreturned = lost = 0
        for service in range(SERVICES):
            for thread in range(THREADS):
                _, calls, written, disabled = PROGRESS.unpack_from(self.map, PROGRESS.size * (service * THREADS + thread))
                shown, twice, _ = found.pop((service, thread))
                shown_of_all += shown
                twice_of_all += twice
                lost += calls - written - disabled
                missing += max(0, written - shown)
                # The thread counts an event when its call returns, so the event of the last call may not be counted.
                unreturned += max(0, shown - written)
        print(f"{session}: {len(files)} files, {shown_of_all} events, {missing} missing, {twice_of_all} twice, "
              f"{unreturned} more than returned, {result['lost']} lost", flush=True)
        with self.subTest(session=session, seed=seed):
            self.assertEqual(found, {})
            self.assertEqual((missing, twice_of_all), (0, 0))
            self.assertLessEqual(unreturned, SERVICES * THREADS)
            self.assertIn(result["lost"] - lost, range(SERVICES * THREADS + 1))


if __name__ == "__main__":
    script.run_cases()
