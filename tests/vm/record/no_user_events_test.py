#!/usr/bin/python3
"""Tests that on a kernel without user_events, `nettrace record` and `eventheader` report this, and a service without a
recorder runs normally. Needs root and tracefs; skipped if the kernel has user_events."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from support import failures
from support import script

ARGS = script.options(__doc__, "nettrace", "eventheader", "service")


class NoUserEventsTest(unittest.TestCase):
    def test_record_names_the_other_way_of_events(self):
        with tempfile.TemporaryDirectory(prefix="no-user-events-") as folder:
            environment = {**os.environ, "EVENTHEADER_SOCKET": f"{folder}/events"}
            for selector in ("Load", "Load:4:0x1", "Load_L4K1", "user_events:Load_L4K1"):
                command = [ARGS.nettrace, "record", "-o", f"{folder}/trace.nettrace", "-e", selector, "--duration", "300ms"]
                done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
                self.assertEqual(done.returncode, 3, done.stderr)
                first, _, missing = done.stderr.splitlines()
                self.assertEqual(first, "nettrace record: the kernel has no user_events: services use shared memory, "
                                        f"and connect to {folder}/events")
                self.assertIn(f"selector '{selector}' matched no tracepoint", missing)

    def test_eventheader_tool_reports_it(self):
        for command in (["register", "Load_L4K1"], ["list"]):
            failures.check_failure(self, [ARGS.eventheader, *command], "user_events.*CONFIG_USER_EVENTS")

    def test_doctor_names_the_kernel_first(self):
        done = subprocess.run([ARGS.eventheader, "doctor", "--json"], stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 6)
        self.assertEqual(json.loads(done.stdout.splitlines()[0])["check"], "kernel")

    def test_service_runs_unharmed_and_makes_no_write_for_its_events(self):
        self.assertEqual(self.write_calls_of_service(0), self.write_calls_of_service(100_000))

    def write_calls_of_service(self, events):
        """Returns how often the service called write(2), writev(2) and similar calls."""
        with subprocess.Popen([ARGS.service, "--events", str(events)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as service:
            stdout, stderr = service.stdout.read(), service.stderr.read()
            # waitid() leaves the ended process unreaped, so that /proc still has its counts.
            os.waitid(os.P_PID, service.pid, os.WEXITED | os.WNOWAIT)
            counts = pathlib.Path(f"/proc/{service.pid}/io").read_text(encoding="ascii")
        self.assertEqual((service.returncode, stderr), (0, ""))
        self.assertEqual(sum(thread["written"] for thread in json.loads(stdout)["threads"]), 0)
        return int(re.search(r"^syscw: (\d+)$", counts, re.MULTILINE).group(1))


def require():
    if os.geteuid() != 0 or not os.path.exists("/sys/kernel/tracing/events"):
        raise script.Skipped("needs root and tracefs at /sys/kernel/tracing")
    if failures.has_user_events():
        raise script.Skipped("needs a kernel without user_events")


if __name__ == "__main__":
    script.run_cases(require)
