#!/usr/bin/python3
"""Kills nettraced repeatedly (--kills) while a load writes, and starts it again. Every file must be intact, no file may
lack more than the events of an interval, and no event may occur twice. Needs root and the tracepoints of system calls.
tests/vm/systemd/crashes_test.py does the same with systemd in the VM."""

import json
import subprocess
import time
import unittest

from support import script
from support.daemon import crashes
from support.daemon import nettraced
from support.kernel import tracepoints
from support.load import load

ARGS = script.options(__doc__, "nettrace", "nettraced", "load", "numbers", kills=10)
# Events from this additional time before a kill, in ns, may be lost, because a busy machine may delay the daemon.
MARGIN = crashes.SECOND


def until(condition):
    nettraced.until(condition, 60, lambda: condition)


class CrashesTest(unittest.TestCase):
    def test_crash_loses_at_most_the_interval(self):
        daemon = nettraced.Daemon(ARGS.nettraced, ARGS.nettrace, {
            name: f'[session.{name}]\nselect = ["{load.CALL_TRACEPOINT}"]\n{more}' for name, more in crashes.SESSIONS.items()})
        self.addCleanup(daemon.close)
        daemon.start()
        sessions = [crashes.Session(self, ARGS.numbers, daemon.path / "state" / name) for name in crashes.SESSIONS]
        with subprocess.Popen([ARGS.load, "--calls", "--events", str(4 << load.NUMBER_BITS), "--pause", "20000", "--pin"],
                              stdout=subprocess.PIPE) as service:
            self.addCleanup(service.kill)
            until(sessions[0].has_events)

            def restart():
                daemon.process.wait()
                daemon.start(ready=False)

            crashes.kill_often(ARGS.kills, sessions, lambda: daemon.process.pid, restart, until, start_takes=0.2)
            time.sleep(1)
            service.terminate()
            said = json.loads(service.communicate()[0])
        self.assertEqual(daemon.stop(), 0)
        for session in sessions:
            session.check(said, MARGIN)


if __name__ == "__main__":
    script.run_cases(lambda: tracepoints.require(load.CALL_TRACEPOINT))
