#!/usr/bin/python3
"""Tests many services that start during a recording, which finds them by a pattern. All numbered events of each service
must be in the file or be counted as lost, with large rings and with rings of one page. Needs root and a kernel with
user_events (./run vm)."""

import collections
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from support import commands
from support import script
from support.load import watched

ARGS = script.options(__doc__, "nettrace", "fleet", runs=1, services=40, events=200)
PATTERN = "Fleet_*"
LARGE, PAGE = "2M", "4K"


def perf_events(pid):
    """Returns the number of perf event descriptors of the process."""
    count = 0
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            count += "perf_event" in os.readlink(entry)
        except FileNotFoundError:
            pass
    return count


class FleetTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fleet-")
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "trace.nettrace"

    def test_each_services_events_are_there_or_counted(self):
        for run in range(ARGS.runs):
            for ring in (LARGE, PAGE):
                with self.subTest(run=run, ring=ring):
                    services, summary, said = self.record(ring)
                    self.check(services, summary, said, lossy=ring == PAGE)

    def record(self, ring):
        """Returns the pids of the services, and the recorder's output, as JSON and as messages."""
        with subprocess.Popen([ARGS.nettrace, "record", "-o", self.file, "--json", "-e", PATTERN, "--ring-size", ring],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recorder:
            # The recorder looks for new tracepoints after it has written the beginning of the file.
            watched.until(lambda: self.file.exists() and self.file.stat().st_size > 0)
            own = perf_events(recorder.pid)
            with subprocess.Popen([ARGS.fleet, str(ARGS.services), str(ARGS.events)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True) as fleet:
                self.assertEqual(fleet.stdout.readline(), "enabled\n")
                # A service is enabled when the event of the first CPU is opened, and recorded when the events of all
                # CPUs are.
                watched.until(lambda: perf_events(recorder.pid) - own >= ARGS.services * os.cpu_count())
                time.sleep(1)
                printed, _ = fleet.communicate("go\n")
            recorder.send_signal(signal.SIGINT)
            out, said = recorder.communicate(timeout=300)
        self.assertEqual((fleet.returncode, recorder.returncode), (0, 0), said)
        return [tuple(map(int, line.split())) for line in printed.splitlines()], json.loads(out), said

    def check(self, services, summary, said, lossy):
        print(f"{len(services)} services, {summary['events']} events, {summary['lost']} lost", flush=True)
        subprocess.run([ARGS.nettrace, "verify", "--strict", self.file], stdout=subprocess.DEVNULL, check=True)
        self.assertNotIn(watched.KERNEL_DIFFERS, said)
        self.assertEqual([(number, ARGS.events) for number in range(ARGS.services)],
                         [(number, written) for number, _, written in services])
        self.assertEqual((summary["tracepoints"], summary["leftOut"]), (ARGS.services, []))
        pids = {number: pid for number, pid, _ in services}
        seen = collections.Counter()
        for event in commands.dump(ARGS.nettrace, self.file):
            service, number = event["payload"]["service"], event["payload"]["number"]
            self.assertEqual((event["provider"], event["name"], event["pid"], event["thread"]),
                             (f"Fleet_{service}", "Numbered", pids[service], f"Fleet_{service}"))
            self.assertIn(number, range(ARGS.events))
            seen[service, number] += 1
        self.assertEqual(set(seen.values()), {1})
        self.assertEqual(len(seen), summary["events"])
        self.assertEqual(len(seen) + summary["lost"], ARGS.services * ARGS.events)
        if lossy:
            self.assertGreater(summary["lost"], 0)


if __name__ == "__main__":
    script.run_cases()
