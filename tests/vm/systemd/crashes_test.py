#!/usr/bin/python3
"""Kills nettraced repeatedly (--kills) while a service writes; systemd restarts nettraced. Every file must be intact,
no file may lack more than the events of an interval, and no event may occur twice. Runs in the same VM as
service_test.py."""

import pathlib
import time
import unittest

import daemon
from support import script
from support.daemon import crashes

ARGS = script.options(__doc__, "numbers", kills=5)
# Events from this additional time before a kill, in ns, may be lost, because the daemon drains and writes on emulated
# CPUs, which other processes use, too.
EMULATION = 2 * crashes.SECOND
PROCESSES = pathlib.Path(f"/sys/fs/cgroup/system.slice/{daemon.UNIT}/cgroup.procs")


def pid():
    """Returns the daemon's pid; 0 if it does not run. Reads a file, because systemctl is slower."""
    try:
        return int(PROCESSES.read_text().split()[0])
    except (OSError, IndexError):
        return 0


class CrashesTest(unittest.TestCase):
    def test_crash_loses_at_most_the_interval(self):
        self.addCleanup(daemon.reset)
        daemon.start(*(daemon.session(name, more) for name, more in crashes.SESSIONS.items()))
        sessions = [crashes.Session(self, ARGS.numbers, daemon.STATE / name) for name in crashes.SESSIONS]
        load = daemon.Load("--events", "4000000000", "--pause", "50000", "--pin")
        self.addCleanup(load.end)
        daemon.until(sessions[0].has_events)
        crashes.kill_often(ARGS.kills, sessions, pid, restart=lambda: daemon.until(pid), until=daemon.until, start_takes=2)
        time.sleep(1)
        load.end()
        load.wait()
        self.assertEqual(daemon.restarts(), ARGS.kills)
        daemon.systemctl("stop", daemon.UNIT)
        for session in sessions:
            session.check(load.wait(), EMULATION)


if __name__ == "__main__":
    script.run_cases()
