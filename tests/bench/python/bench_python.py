#!/usr/bin/python3
"""Measures what an event from Python costs, with three fields: an integer, a text and a float. `nettrace record` records
the events through rings.

  disabled   the call of an event that nothing records; the floor is the call of an empty method with the same arguments
  enabled    `event.enabled` of this event; the floor is reading an attribute
  written    the call of an event that is recorded; the floor is a call of eh_write by ctypes with the bytes of the event
  log line   a line of the module logging that is recorded; the floor is the same line with a handler that does nothing

  bench_python.py --nettrace PATH [--json]

The result is the least CPU time of several runs, which take turns: other processes can only add time.
"""

import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from support import bench_report
from support import script

ON, OFF = "Bench_Python", "Bench_PythonOff"
RUNS, CALLS = 40, 500
TIMEOUT = 60  # for the connection to the collector, in s


class Empty:
    def __init__(self):
        self.enabled = False

    def __call__(self, /, **fields):
        pass


class NoHandler(logging.Handler):
    def handle(self, record):
        return False


def calls(event):
    def run():
        for _ in range(CALLS):
            event(number=5, text="/index.html", seconds=0.25)
    return run


def reads(event):
    def run():
        for _ in range(CALLS):
            event.enabled  # pylint: disable=pointless-statement
    return run


def lines(handler):
    logger = logging.Logger("shop")
    logger.addHandler(handler)

    def run():
        for _ in range(CALLS):
            logger.info("line %d", 5)
    return run


def writes(eventheader, event):
    """Calls eh_write with the bytes of the event, as the module does, and with nothing else."""
    fields = {"number": 5, "text": "/index.html", "seconds": 0.25}
    prepared, data = event._write.__self__.encode(fields)
    write, handle = eventheader._write, event._set.handle

    def run():
        for _ in range(CALLS):
            write(handle, prepared.pointer, None, data, len(data))
    return run


def measure():
    """Runs in a service that `nettrace record` starts. Prints the results as JSON: ns of a case and of its floor."""
    import eventheader
    provider = eventheader.Provider(ON)
    event, disabled = provider.event("Done"), eventheader.Provider(OFF).event("Done")
    end = time.monotonic() + TIMEOUT
    while disabled.enabled or not event.enabled:
        if time.monotonic() > end:
            sys.exit(f"bench_python: the collector did not enable the event within {TIMEOUT} s")
        time.sleep(0.01)
    empty = Empty()
    cases = {
        "disabled": (calls(disabled), calls(empty)),
        "enabled": (reads(disabled), reads(empty)),
        "written": (calls(event), writes(eventheader, event)),
        "log line": (lines(eventheader.Handler(provider)), lines(NoHandler())),
    }
    least = {}
    for _ in range(RUNS):
        for name, pair in cases.items():
            for part, run in enumerate(pair):
                began = time.thread_time_ns()
                run()
                took = (time.thread_time_ns() - began) / CALLS
                least[name, part] = min(took, least.get((name, part), took))
            time.sleep(0.005)  # time in which the collector empties the rings
    counters = provider.counters
    if counters.failed:
        sys.exit(f"bench_python: {counters.failed} events were not written; the last errno is {counters.last_error}")
    print(json.dumps({name: (least[name, 0], least[name, 1]) for name in cases}))


def main():
    if sys.argv[1:] == ["--measure"]:
        measure()
        return
    as_json = "--json" in sys.argv
    if as_json:
        sys.argv.remove("--json")
    nettrace = script.options(__doc__, "nettrace").nettrace
    with tempfile.TemporaryDirectory(prefix="bench-python-") as folder:
        environment = {**os.environ, "EVENTHEADER_TRANSPORT": "ring", "EVENTHEADER_SOCKET": f"{folder}/events"}
        done = subprocess.run([nettrace, "record", "-o", f"{folder}/trace.nettrace", "-e", f"{ON}_L4K1", "--", sys.executable,
                               pathlib.Path(__file__), "--measure"], env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"bench_python: cannot record: {done.stdout}{done.stderr}")
    bench_report.head(as_json, "an event from Python")
    for name, (value, floor) in json.loads(done.stdout).items():
        bench_report.row("python", as_json, name, "ns", value, floor)


if __name__ == "__main__":
    main()
