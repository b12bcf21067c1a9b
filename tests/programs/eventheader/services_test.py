#!/usr/bin/python3
"""Tests that `eventheader list` and `watch` show the tracepoints of services that pass their events through shared memory, as a
control socket reports them. The kernel may have user_events, or no tracefs."""

import json
import signal
import subprocess
import unittest

from support import control
from support import script

ARGS = script.options(__doc__, "eventheader", "server")


def run(*arguments):
    return subprocess.run([ARGS.eventheader, *arguments], capture_output=True, text=True, check=False, timeout=60)


class ServicesTest(unittest.TestCase):
    def setUp(self):
        manager = control.serving(ARGS.server)
        self.socket = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)

    def test_list_has_the_tracepoints_of_services(self):
        done = run("list", "--json", "--socket", self.socket, "Shop_*")
        self.assertEqual(done.returncode, 0, done)
        listed = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([(each["name"], each["transport"], each["services"], each["usedBy"], each["persistent"], each["level"])
                          for each in listed],
                         [("Shop_L4K1", "memfd", 2, "nettraced:box nettraced:web", False, 4),
                          ("Shop_L5K1", "memfd", 1, "", False, 5)])
        text = run("list", "--socket", self.socket, "Shop_L4*").stdout.splitlines()
        self.assertEqual(text[1].split(), ["Shop_L4K1", "4", "0x1", "-", "no", "-", "nettraced:box", "nettraced:web"])

    def test_services_that_cannot_share_memory(self):
        done = run("list", "--json", "--socket", self.socket, "Cart_*")
        listed = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([(each["name"], each["transport"], each["services"]) for each in listed], [("Cart_L4K1", "inline", 1)])
        done = run("doctor", "--socket", self.socket)
        self.assertIn("process 4343 (cart) sends its events over the socket, because the service cannot share memory: ",
                      done.stdout + done.stderr)
        self.assertNotIn("process 4242", done.stdout + done.stderr)

    def test_no_tracepoint_matches(self):
        done = run("list", "--socket", self.socket, "None_*")
        self.assertEqual((done.returncode, done.stdout), (3, ""))

    def test_without_a_daemon_the_reason_is_reported(self):
        done = run("list", "-v", "--socket", "/none/control", "None_*")
        self.assertIn(done.returncode, (1, 3))
        self.assertIn("shared memory", done.stderr)
        self.assertIn("/none/control", done.stderr)

    def test_watch_begins(self):
        with subprocess.Popen([ARGS.eventheader, "watch", "--socket", self.socket, "Shop_*"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as watch:
            while (line := watch.stderr.readline()) != "eventheader: watching\n":
                self.assertIn("user_events", line)
            watch.send_signal(signal.SIGINT)
            self.assertEqual((watch.stdout.read(), watch.wait(60)), ("", 0))


if __name__ == "__main__":
    script.run_cases()
