#!/usr/bin/python3
"""Tests that `eventheader watch` prints the tracepoints that are registered and deleted. Needs root and a kernel with
user_events (./run vm)."""

import contextlib
import json
import signal
import subprocess
import unittest

from support import failures
from support import script

ARGS = script.options(__doc__, "eventheader")


def run(*arguments):
    subprocess.run([ARGS.eventheader, *arguments], check=True, timeout=60)


class WatchTest(unittest.TestCase):
    def setUp(self):
        self.addCleanup(lambda: subprocess.run([ARGS.eventheader, "unregister", "--quiet", "*"], check=False))

    @contextlib.contextmanager
    def watching(self, *arguments, prefix=()):
        """Runs `eventheader watch`. Yields, once it watches, a function that returns its next line."""
        with subprocess.Popen([*prefix, ARGS.eventheader, "watch", *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as watch:
            try:
                self.assertEqual(watch.stderr.readline(), "eventheader: watching\n")
                yield lambda: watch.stdout.readline().rstrip("\n")
                watch.send_signal(signal.SIGTERM)
                self.assertEqual((watch.stdout.read(), watch.wait(60)), ("", 0))
            finally:
                watch.kill()

    def check_what_it_tells(self, prefix=()):
        run("register", "Before_L1K1")
        with self.watching("A*", "Before*", prefix=prefix) as line:
            run("register", "A_L1K1", "B_L1K1")
            self.assertEqual(line(), "+ A_L1K1")
            run("register", "A_L1K2")
            self.assertEqual(line(), "+ A_L1K2")
            run("unregister", "A_L1K1", "B_L1K1")
            self.assertEqual(line(), "- A_L1K1")
            run("unregister", "Before_L1K1")
            self.assertEqual(line(), "- Before_L1K1")

    def test_reports_registered_and_deleted_tracepoints(self):
        self.check_what_it_tells()

    def test_without_probes(self):
        """Tests `watch` without kprobes, as for users without CAP_PERFMON and CAP_SYS_ADMIN: it must search the list of
        tracepoints itself."""
        self.check_what_it_tells(["setpriv", "--bounding-set=-perfmon,-sys_admin"])

    def test_json_and_deletion_at_the_end_of_a_process(self):
        with self.watching("--json") as line:
            with subprocess.Popen([ARGS.eventheader, "register", "--hold", "Held u32 a"]) as holder:
                come = json.loads(line())
                holder.send_signal(signal.SIGINT)
            gone = json.loads(line())
        self.assertEqual([(entry["change"], entry["name"], entry["fields"], entry["eventHeader"]) for entry in (come, gone)],
                         [("registered", "Held", "u32 a", False), ("gone", "Held", "u32 a", False)])
        self.assertLess(come["time"], gone["time"])

    def test_where_it_cannot_watch(self):
        failures.check_failure(self, [*failures.WITHOUT_TRACEFS, ARGS.eventheader, "watch"], "tracefs.*mount")
        failures.check_failure(self, [*failures.AS_NOBODY, ARGS.eventheader, "watch"], "root")


if __name__ == "__main__":
    script.run_cases()
