#!/usr/bin/python3
"""Tests samples of CPU time under settings of the whole machine that limit them. Needs root, and runs in the VM
(./run vm), because the settings affect all programs."""

import contextlib
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


KPTR_RESTRICT = pathlib.Path("/proc/sys/kernel/kptr_restrict")


@contextlib.contextmanager
def kptr_restrict(value):
    before = KPTR_RESTRICT.read_text(encoding="ascii")
    KPTR_RESTRICT.write_text(value, encoding="ascii")
    try:
        yield
    finally:
        KPTR_RESTRICT.write_text(before, encoding="ascii")


class SamplingLimitsTest(unittest.TestCase):
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
        # The kernel throttles a CPU until the next tick of its clock, and has at least 100 ticks in a second.
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

    def test_a_kernel_that_hides_its_addresses_has_no_names(self):
        for value, has_names in (("2", False), ("1", True)):
            with tempfile.TemporaryDirectory(prefix="hidden-") as folder, kptr_restrict(value):
                file = pathlib.Path(folder) / "trace.nettrace"
                errors = subprocess.run([ARGS.nettrace, "record", "-o", file, "--cpu=997", "--no-symbols", "--", "/usr/bin/python3",
                                         "-c", "import os\nfor i in range(20000): os.stat('/')"],
                                        stderr=subprocess.PIPE, text=True, check=True).stderr
                frames = [frame for event in commands.dump(ARGS.nettrace, file, "--stacks")
                          for address, frame in zip(event.get("stack", []), event.get("frames", [])) if int(address, 16) >> 63]
            self.assertGreater(len(frames), 20)
            self.assertEqual("the kernel's functions in stacks have no names, because /proc/kallsyms cannot be read or hides" in
                             errors, not has_names, errors)
            named = [frame for frame in frames if frame.startswith("vmlinux!")]
            self.assertEqual(len(named) > 0.9 * len(frames), has_names, frames[:20])
            self.assertEqual(bool(named), has_names, named[:5])


if __name__ == "__main__":
    script.run_cases()
