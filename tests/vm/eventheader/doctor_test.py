#!/usr/bin/python3
"""Tests that `eventheader doctor` finds each of its causes when the test creates it. Needs root and a kernel with
user_events (./run vm)."""

import contextlib
import json
import os
import pathlib
import subprocess
import unittest

from support import failures
from support import script

ARGS = script.options(__doc__, "eventheader")
TRACEFS = pathlib.Path("/sys/kernel/tracing")
# The name of the check whether a daemon runs. No daemon runs in these tests, so the last finding of doctor is about it.
DAEMON = "daemon"
READ_ONLY = ["unshare", "--mount", "sh", "-c", "mount -o remount,bind,ro /sys/kernel/tracing && exec \"$@\"", "sh"]
# Prints a line when it runs, and ends when its standard input ends.
WAITER = ["python3", "-c", "import sys; print('ready', flush=True); sys.stdin.read()"]
OPENS_ALL = ["python3", "-c", """
import os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
try:
    while True: os.dup(0)
except OSError:
    os.write(1, b"ready\\n")
os.read(0, 1)
"""]


def doctor(*arguments, prefix=()):
    """Returns the exit code, and the checks that have found something."""
    done = subprocess.run([*prefix, ARGS.eventheader, "doctor", "--json", *map(str, arguments)], stdout=subprocess.PIPE,
                          text=True, check=False, timeout=120)
    return done.returncode, [json.loads(line)["check"] for line in done.stdout.splitlines()]


@contextlib.contextmanager
def process(command):
    """Starts a process that waits; yields its pid."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout.readline() == "ready\n"
        yield running.pid
        running.stdin.close()


class DoctorTest(unittest.TestCase):
    def check(self, expected, *arguments, prefix=()):
        self.assertEqual(doctor(*arguments, prefix=prefix), (6, expected))

    def test_without_other_causes_it_finds_the_daemon_alone(self):
        self.check([DAEMON])
        text = subprocess.run([ARGS.eventheader, "doctor"], stdout=subprocess.PIPE, text=True, check=False).stdout
        self.assertRegex(text, r"^1\. daemon: nettraced is not running.*\n   .*\.\n$")

    def test_tracefs_that_is_not_mounted(self):
        self.check(["tracefs", DAEMON], prefix=failures.WITHOUT_TRACEFS)
        with process([*failures.WITHOUT_TRACEFS, *WAITER]) as pid:
            self.check(["sandbox", "registered", DAEMON], "--for", pid)

    def test_tracefs_that_is_read_only_for_a_process(self):
        with process([*READ_ONLY, *WAITER]) as pid:
            self.check(["sandbox", "registered", DAEMON], "--for", pid)

    def test_a_process_that_may_not_write(self):
        with process([*failures.AS_NOBODY, *WAITER]) as pid:
            self.check(["permission", "registered", DAEMON], "--for", pid)
        self.check(["permission", DAEMON], "--for", "nobody")
        self.check([DAEMON], "--for", "root")

    def test_a_user_namespace(self):
        with process([*failures.AS_NOBODY, "unshare", "--user", "--map-root-user", *WAITER]) as pid:
            self.check(["permission", "user-namespace", "registered", DAEMON], "--for", pid)

    def test_a_process_that_has_registered_has_no_finding(self):
        with subprocess.Popen([ARGS.eventheader, "register", "--hold", "A_L1K1"]) as holder:
            try:
                while not os.path.exists(TRACEFS / "events/user_events/A_L1K1"):
                    self.assertIsNone(holder.poll())
                self.check([DAEMON], "--for", holder.pid)
            finally:
                holder.terminate()

    def test_no_descriptor_left(self):
        with process(OPENS_ALL) as pid:
            self.check(["limits", "registered", DAEMON], "--for", pid)

    def test_a_limit_of_tracepoints(self):
        limit = pathlib.Path("/proc/sys/kernel/user_events_max")
        before = limit.read_text()
        subprocess.run([ARGS.eventheader, "register", "A_L1K1", "A_L1K2"], check=True)
        try:
            limit.write_text("2")
            self.check(["limits", DAEMON])
        finally:
            limit.write_text(before)
            subprocess.run([ARGS.eventheader, "unregister", "A_*"], check=True)

    def test_a_name_of_another_tracepoint(self):
        (TRACEFS / "dynamic_events").write_text("u:A_L4K1 u32 a\n")
        self.check(["name", DAEMON])
        subprocess.run([ARGS.eventheader, "unregister", "A_L4K1"], check=True)

    def test_unknown_user_is_wrong_usage(self):
        for name in ("no-such-user", "99999999", "none.service"):
            self.assertEqual(doctor("--for", name), (2, []))


if __name__ == "__main__":
    script.run_cases()
