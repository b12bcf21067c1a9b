#!/usr/bin/python3
"""On a kernel without user_events: `nettrace record` and `eventheader` say so in one line, and a service
runs as if nothing were there. Needs root and tracefs; skipped where the kernel has user_events."""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import failures

EXIT_SKIPPED = 77
ARGS = None  # --nettrace, --eventheader, --service


class NoUserEventsTest(unittest.TestCase):
    def test_record_says_so(self):
        with tempfile.TemporaryDirectory(prefix="no-user-events-") as folder:
            file = pathlib.Path(folder) / "trace.nettrace"
            for selector in ("FirstLight", "FirstLight:4:0x1", "FirstLight_L4K1", "user_events:FirstLight_L4K1"):
                command = [ARGS.nettrace, "record", "-o", file, "-e", selector, "--duration", "300ms"]
                failures.check_failure(self, command, f"{selector}.*user_events.*CONFIG_USER_EVENTS")
                self.assertFalse(file.exists())

    def test_eventheader_tool_says_so(self):
        for command in (["register", "FirstLight_L4K1"], ["list"]):
            failures.check_failure(self, [ARGS.eventheader, *command], "user_events.*CONFIG_USER_EVENTS")

    def test_service_runs_unharmed_and_makes_no_write_for_its_events(self):
        self.assertEqual(self.write_calls_of_service(0), self.write_calls_of_service(100_000))

    def write_calls_of_service(self, events):
        """How often it called write(2) and its like in all."""
        with subprocess.Popen([ARGS.service, "--events", str(events)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as service:
            stdout, stderr = service.stdout.read(), service.stderr.read()
            # Ended, and still in /proc with its accounts.
            os.waitid(os.P_PID, service.pid, os.WEXITED | os.WNOWAIT)
            accounts = pathlib.Path(f"/proc/{service.pid}/io").read_text(encoding="ascii")
        self.assertEqual((service.returncode, stderr), (0, ""))
        self.assertEqual(sum(thread["written"] for thread in json.loads(stdout)["threads"]), 0)
        return int(re.search(r"^syscw: (\d+)$", accounts, re.MULTILINE).group(1))


def main():
    global ARGS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nettrace", required=True, type=pathlib.Path)
    parser.add_argument("--eventheader", required=True, type=pathlib.Path)
    parser.add_argument("--service", required=True, type=pathlib.Path)
    ARGS = parser.parse_args()
    if os.geteuid() != 0 or not os.path.exists("/sys/kernel/tracing/events"):
        print("needs root and tracefs at /sys/kernel/tracing")
        return EXIT_SKIPPED
    if failures.has_user_events():
        print("this kernel has user_events")
        return EXIT_SKIPPED
    unittest.main(argv=sys.argv[:1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
