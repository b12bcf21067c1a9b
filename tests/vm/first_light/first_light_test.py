#!/usr/bin/python3
"""From a service's events through the kernel into a file that shows every one of them: runs load_service
and `nettrace record` together. Needs root and a kernel with user_events (./run vm)."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

import load

EVENTS = 100_000
ARGS = None  # --nettrace, --service, --keep


def run(command):
    """(exit status, stdout, stderr)"""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False)
    return done.returncode, done.stdout, done.stderr


class FirstLightTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="first-light-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "trace.nettrace"

    def record(self, selectors, options, command):
        """Records while `command` runs; returns what that printed."""
        select = [word for selector in selectors for word in ("-e", selector)]
        status, stdout, stderr = run(
            [ARGS.nettrace, "record", "-o", self.file, *select, *options, "--", *command])
        self.assertEqual(status, 0, stderr)
        print(stderr.strip(), file=sys.stderr)
        return stdout

    def check_all_written(self, service):
        self.assertEqual(sum(thread["written"] for thread in service["threads"]), EVENTS)
        for thread in service["threads"]:
            self.assertEqual(thread["notWritten"], 0, thread)

    def check_nothing_lost(self, service):
        self.check_all_written(service)
        recording = load.Recording(ARGS.nettrace, self.file)
        texts, right = load.differences(recording, service)
        self.assertEqual(texts, [])
        self.assertEqual(right, EVENTS)
        self.assertEqual(recording.info["events"], EVENTS)
        self.assertEqual(recording.info["lost"], 0)
        self.assertIs(recording.info["complete"], True)

    def keep(self, name):
        """For those who look at the file with other programs afterwards."""
        if ARGS.keep:
            (ARGS.keep / name).write_bytes(self.file.read_bytes())

    def test_recorder_first_every_event_is_there_once_and_right(self):
        printed = self.record(load.TRACEPOINTS, ["--ring-size", "8M"], [ARGS.service, "--events", str(EVENTS)])
        self.keep("recorder-first.nettrace")
        self.check_nothing_lost(json.loads(printed))

    def test_service_first_every_event_is_there_once_and_right(self):
        with open(self.folder / "service.json", "w+", encoding="utf-8") as output:
            service = subprocess.Popen([ARGS.service, "--events", str(EVENTS), "--wait"], stdout=output)
            self.addCleanup(service.kill)
            # It stops itself once it is registered and its threads are there.
            _, state = os.waitpid(service.pid, os.WUNTRACED)
            self.assertTrue(os.WIFSTOPPED(state), f"the service ended early: {state}")
            go = f"kill -CONT {service.pid} && exec tail --pid={service.pid} -s 0.1 -f /dev/null"
            # Until somebody has waited for it, an ended process is still there for tail.
            reaper = threading.Thread(target=service.wait)
            reaper.start()
            self.addCleanup(reaper.join)
            self.record([load.PROVIDER], ["--ring-size", "8M"], ["sh", "-c", go])
            output.seek(0)
            printed = output.read()
        self.keep("service-first.nettrace")
        self.check_nothing_lost(json.loads(printed))

    def test_rings_too_small_shown_and_lost_are_all_that_was_written(self):
        printed = self.record(load.TRACEPOINTS, ["--ring-size", "4K"], [ARGS.service, "--events", str(EVENTS)])
        self.keep("small-rings.nettrace")
        service = json.loads(printed)
        self.check_all_written(service)
        recording = load.Recording(ARGS.nettrace, self.file)
        texts, right = load.differences(recording, service)
        self.assertEqual(texts, [])
        self.assertEqual(recording.info["events"], right)
        self.assertGreater(recording.info["lost"], 0, "rings of a page held everything: this test tests nothing")
        self.assertEqual(right + recording.info["lost"], EVENTS)
        self.assertIs(recording.info["complete"], True)


def main():
    global ARGS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nettrace", required=True, type=pathlib.Path)
    parser.add_argument("--service", required=True, type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="leaves the recorded files there")
    parser.add_argument("tests", nargs="*", metavar="TEST")
    ARGS = parser.parse_args()
    unittest.main(argv=[sys.argv[0], *ARGS.tests])


if __name__ == "__main__":
    main()
