#!/usr/bin/python3
"""Tests which processes the recorded events belong to, and what a recording says about processes: names, beginnings and
ends. Needs root and tracefs."""

import collections
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from support import commands
from support import script
from support.kernel import tracepoints

PROVIDER = "Universal.System"
LOAD = "load"
ARGS = None if sys.argv[1:2] == [LOAD] else script.options(__doc__, "nettrace")
# Bits of prev_state: EXIT_DEAD and EXIT_ZOMBIE.
DEAD = 0x30


class Recording:
    """The file that `nettrace record` writes while `command` runs, recorded with `selectors`."""

    def __init__(self, command, selectors, options=()):
        with tempfile.TemporaryDirectory(prefix="processes-") as folder:
            file = pathlib.Path(folder) / "trace.nettrace"
            self.printed = commands.record(ARGS.nettrace, file, selectors, command, options)
            self.info = commands.info(ARGS.nettrace, file)
            subprocess.run([ARGS.nettrace, "verify", "--strict", file], stdout=subprocess.DEVNULL, check=True)
            self.events = list(commands.dump(ARGS.nettrace, file))
            self.process_events = list(commands.dump(ARGS.nettrace, file, "--provider", PROVIDER))

    def of(self, pid):
        """Returns what the file says about the process: (event, name), in order."""
        return [(event["name"], event["payload"].get("Name"))
                for event in self.process_events if event["pid"] == pid]

    def life(self, pid):
        """Returns the names of the first and the last event of the process, and between them the last name of the
        process. Which event has that name depends on whether exec and the creation of the process are in one
        interval."""
        events = self.of(pid)
        return [events[0][0], [name for _, name in events if name][-1], events[-1][0]]


def sh(text):
    return Recording(["sh", "-c", text], ["sched:sched_process_exec"])


class ProcessesTest(unittest.TestCase):
    def test_processes_that_are_there(self):
        recording = sh("true")
        own = recording.of(os.getpid())
        self.assertEqual(own, [("ExistingProcess", os.path.realpath(sys.executable))])
        # Kernel threads have no executable.
        self.assertEqual(recording.of(2), [("ExistingProcess", "kthreadd")])
        self.assertEqual(recording.of(0), [("ExistingProcess", "swapper")])
        existing = [event["pid"] for event in recording.process_events if event["name"] == "ExistingProcess"]
        self.assertEqual(max(collections.Counter(existing).values()), 1)

    def test_processes_that_come_and_go(self):
        recording = sh("echo $$; /bin/sleep 0.01 & echo $!; wait; (:; echo $(exec /bin/sh -c 'echo $$'))")
        shell, sleep, inner = map(int, recording.printed.split())
        dash = os.path.realpath("/bin/sh")
        self.assertEqual(recording.life(shell), ["ProcessCreate", dash, "ProcessExit"])
        self.assertEqual(recording.life(sleep), ["ProcessCreate", os.path.realpath("/bin/sleep"), "ProcessExit"])
        self.assertEqual(recording.life(inner), ["ProcessCreate", dash, "ProcessExit"])

    def test_process_events_are_counted_apart(self):
        recording = sh("/bin/true; /bin/true")
        self.assertEqual(recording.info["events"], len(recording.events))
        self.assertEqual(recording.info["processEvents"], len(recording.process_events))
        self.assertEqual(recording.info["lost"], 0)
        self.assertEqual([event for event in recording.events if event["provider"] == PROVIDER], [])
        times = [event["timestamp"] for event in recording.process_events]
        self.assertEqual(times, sorted(times))

    def test_exec_ends_a_process_and_begins_another(self):
        recording = sh("echo $$; sleep 1.5; exec /bin/sleep 0.01")
        self.assertEqual(recording.of(int(recording.printed))[-4:], [
            ("ProcessCreate", os.path.realpath("/bin/sh")), ("ProcessExit", None),
            ("ProcessCreate", os.path.realpath("/bin/sleep")), ("ProcessExit", None)])

    def test_a_process_whose_main_thread_ends_first(self):
        began = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        recording = Recording([sys.executable, __file__, LOAD, "main_thread_first"], ["sched:sched_process_exec"])
        done = json.loads(recording.printed)
        self.assertEqual([name for name, _ in recording.of(done["pid"])].count("ProcessExit"), 1)
        self.assertEqual(recording.life(done["pid"])[::2], ["ProcessCreate", "ProcessExit"])
        ended = [event["timestamp"] for event in recording.process_events
                 if event["pid"] == done["pid"] and event["name"] == "ProcessExit"]
        self.assertGreater(ended[0], began + 300_000_000)

    def test_a_program_that_another_thread_runs(self):
        recording = Recording([sys.executable, __file__, LOAD, "exec_in_thread"], ["sched:sched_process_exec"])
        pid = json.loads(recording.printed)["pid"]
        self.assertEqual(recording.life(pid), ["ProcessCreate", os.path.realpath("/bin/sleep"), "ProcessExit"])


class ExitingThreadsTest(unittest.TestCase):
    def test_switches_of_dying_threads_are_attributed_to_them(self):
        recording = Recording([sys.executable, __file__, LOAD, "short_lives"], ["sched:sched_switch"],
                              ["--ring-size", "8M"])
        done = json.loads(recording.printed)
        owners = {tid: done["pid"] for tid in done["tids"]} | {pid: pid for pid in done["pids"]}
        died = set()
        for event in recording.events:
            if int(str(event["payload"]["prev_state"]), 0) & DEAD == 0:
                continue
            tid = event["payload"]["prev_pid"]
            self.assertEqual(event["tid"], tid, event)
            self.assertEqual(event["pid"], owners.get(tid, event["pid"]), event)
            self.assertNotEqual(event["pid"], 0, event)
            died.add(tid)
        self.assertEqual(set(owners) - died, set())


def short_lives():
    """Starts and ends threads and processes."""
    tids, pids = [], []
    for _ in range(300):
        thread = threading.Thread(target=lambda: tids.append(threading.get_native_id()))
        thread.start()
        thread.join()
    for _ in range(30):
        with subprocess.Popen(["/bin/true"]) as process:
            pids.append(process.pid)
    print(json.dumps({"pid": os.getpid(), "tids": tids, "pids": pids}))


def main_thread_first():
    threading.Thread(target=time.sleep, args=(0.4,)).start()
    print(json.dumps({"pid": os.getpid()}), flush=True)
    ctypes.CDLL(None).pthread_exit(None)


def exec_in_thread():
    print(json.dumps({"pid": os.getpid()}), flush=True)
    threading.Thread(target=os.execv, args=("/bin/sleep", ["sleep", "0.01"])).start()
    time.sleep(60)


if __name__ == "__main__":
    if ARGS is None:
        globals()[sys.argv[2]]()
    else:
        script.run_cases(lambda: tracepoints.require("sched:sched_switch"))
