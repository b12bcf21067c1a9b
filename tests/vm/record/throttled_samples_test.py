#!/usr/bin/python3
"""Tests that a recording accounts for the samples of CPU time that the kernel stops because there are too many. The test
lowers the limit of the whole machine for a second, so it needs a machine of its own (./run vm) and root."""

import json
import pathlib
import subprocess
import tempfile
import unittest

from support import commands
from support import script

ARGS = script.options(__doc__, "nettrace")

# Uses a CPU for three times 0.5 s, the second time with the limit sys.argv[1] if it is given. Prints the times of the
# second part in ns since 1970.
LOAD = """
import sys, time
LIMIT = "/proc/sys/kernel/perf_event_max_sample_rate"
def work():
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        pass
def set_limit(limit):
    with open(LIMIT, "w") as file:
        file.write(limit)
with open(LIMIT) as file:
    limit = file.read()
work()
began = time.time_ns()
try:
    if len(sys.argv) > 1:
        set_limit(sys.argv[1])
    work()
finally:
    set_limit(limit)
print(began, time.time_ns())
work()
"""


class ThrottledSamplesTest(unittest.TestCase):
    def record(self, *limit):
        """Records the load. Returns the summary of `record`, that of `info`, the events of the account, and the begin and
        the end of the load's second part."""
        with tempfile.TemporaryDirectory(prefix="throttled-") as folder:
            file = pathlib.Path(folder) / "trace.nettrace"
            recorded = subprocess.run(
                [ARGS.nettrace, "record", "-o", file, "--json", "--cpu=997", "--no-symbols", "--",
                 "/usr/bin/python3", "-c", LOAD, *limit], stdout=subprocess.PIPE, text=True, check=True).stdout
            times, summary = recorded.split("\n", 1)
            account = [event for event in commands.dump(ARGS.nettrace, file, "--account") if event["name"] == "SamplesThrottled"]
            lines = subprocess.run([ARGS.nettrace, "info", file], stdout=subprocess.PIPE, text=True, check=True).stdout
            self.assertEqual("the kernel stopped the samples of a CPU" in lines, bool(limit), lines)
            return json.loads(summary), commands.info(ARGS.nettrace, file), account, [int(each) for each in times.split()]

    def test_throttled_samples_are_in_the_account(self):
        summary, info, account, (began, ended) = self.record("100")
        # One sample for each tick is left. The kernel has at least 100 ticks in a second.
        self.assertGreater(summary["throttled"], 20)
        self.assertEqual(info["throttled"], summary["throttled"])
        self.assertEqual(sum(event["payload"]["Count"] for event in account), summary["throttled"])
        self.assertEqual(summary["collectorEvents"], len(account))
        for event in account:
            first, last = int(event["payload"]["From"]), int(event["payload"]["Until"])
            self.assertTrue(began <= first <= last <= ended, (event, began, ended))
        self.assertEqual(summary["lost"], 0)

    def test_nothing_is_reported_without_a_limit(self):
        summary, info, account, _ = self.record()
        self.assertEqual((summary["throttled"], info["throttled"], account), (0, 0, []))


if __name__ == "__main__":
    script.run_cases()
