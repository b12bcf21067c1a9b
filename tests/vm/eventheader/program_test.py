#!/usr/bin/python3
"""Tests `eventheader` with the kernel: what it registers, holds, lists and unregisters. Needs root and a kernel with
user_events (./run vm)."""

import contextlib
import json
import pathlib
import signal
import subprocess
import time
import unittest

from support import failures
from support import script

ARGS = script.options(__doc__, "eventheader", "nettrace")
TRACEFS = pathlib.Path("/sys/kernel/tracing")
EVENT_HEADER = "u8 eventheader_flags; u8 version; u16 id; u16 tag; u8 opcode; u8 level"


def run(*arguments, prefix=(), stdin=""):
    return subprocess.run([*prefix, ARGS.eventheader, *arguments], input=stdin, capture_output=True, text=True,
                          check=False, timeout=120)


def names():
    """Returns the names in the kernel's own list."""
    lines = (TRACEFS / "user_events_status").read_text().splitlines()
    return {line.split(" ")[0] for line in lines[:lines.index("")]}


def definitions():
    return (TRACEFS / "dynamic_events").read_text().splitlines()


def until(condition):
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError("the condition was not met within 60 s")
        time.sleep(0.05)


@contextlib.contextmanager
def user_events_for_nobody():
    """Lets the user of failures.AS_NOBODY register tracepoints, and do nothing else in tracefs."""
    data = TRACEFS / "user_events_data"
    subprocess.run(["mount", "-o", "remount,mode=711", TRACEFS], check=True)
    subprocess.run(["chown", f"root:{failures.NOBODY}", data], check=True)
    data.chmod(0o660)
    try:
        yield
    finally:
        subprocess.run(["mount", "-o", "remount,mode=700", TRACEFS], check=True)
        subprocess.run(["chown", "root:root", data], check=True)
        data.chmod(0o640)


class ProgramTest(unittest.TestCase):
    def setUp(self):
        until(lambda: names() == set())  # The kernel deletes the tracepoints of the previous test a moment after its end.
        self.addCleanup(lambda: run("unregister", "*"))

    def succeeds(self, *arguments, **options):
        done = run(*arguments, **options)
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        return done.stdout

    def fails(self, code, pattern, *arguments, **options):
        """Runs the program, which must end with this code and a message that matches the pattern. Returns its output."""
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, code, done)
        self.assertRegex(done.stderr, pattern)
        return done.stdout

    def listed(self, *patterns):
        return {entry["name"]: entry for entry in map(json.loads, self.succeeds("list", "--json", *patterns).splitlines())}

    @contextlib.contextmanager
    def holding(self, *arguments, prefix=()):
        with subprocess.Popen([*prefix, ARGS.eventheader, "register", "--hold", *arguments], stderr=subprocess.PIPE,
                              text=True) as holder:
            try:
                yield holder
            finally:
                if holder.poll() is None:
                    holder.send_signal(signal.SIGTERM)

    # register

    def test_registered_tracepoints_persist(self):
        self.succeeds("register", "A_L4K1", "B", "--levels", "1-2", "--keywords", "0x1,0x20", "--group", "g",
                     "Plain u32 a; char b[8]; struct point p 16")
        self.assertEqual(names(), {"A_L4K1", "B_L1K1Gg", "B_L1K20Gg", "B_L2K1Gg", "B_L2K20Gg", "Plain"})
        self.assertIn(f"u:A_L4K1 {EVENT_HEADER}", definitions())
        self.assertIn("u:Plain u32 a; char[8] b; struct point p 16", definitions())

    def test_registering_again_succeeds(self):
        for _ in range(2):
            self.succeeds("register", "-i", "-", "A_L4K1", stdin="# twice\nPlain u32 a; char[8] b; __rel_loc char[] c\n")
        self.assertEqual(names(), {"A_L4K1", "Plain"})

    def test_registers_nothing_after_an_error(self):
        self.fails(78, "standard input:2: 'B'", "register", "-i", "-", stdin="A_L4K1\nB\n")
        self.succeeds("register", "Taken u32 a")
        self.fails(5, "Taken.*'u32 a'.*'u64 a'", "register", "First_L1K1", "Taken u64 a")
        self.assertEqual(names(), {"Taken"})

    def test_an_eventheader_name_of_another_tracepoint(self):
        (TRACEFS / "dynamic_events").write_text("u:A_L4K1 u32 a\n")
        self.fails(5, f"A_L4K1.*'u32 a'.*'{EVENT_HEADER}'", "register", "A_L4K1")
        entry = self.succeeds("list", "--json", "--quiet")
        self.assertEqual([json.loads(entry)[key] for key in ("eventHeader", "level", "fields")], [False, None, "u32 a"])
        self.assertRegex(run("list").stderr, "A_L4K1 has an EventHeader name")

    def test_without_permission_register_fails_and_hold_works(self):
        with user_events_for_nobody():
            self.fails(1, "CAP_PERFMON.*--hold", "register", "A_L4K1", prefix=failures.AS_NOBODY)
            self.assertEqual(names(), set())
            with self.holding("A_L4K1", "Plain u32 a", prefix=failures.AS_NOBODY) as holder:
                until(lambda: names() == {"A_L4K1", "Plain"})
            self.assertEqual(holder.returncode, 0)
            # The error for an existing tracepoint with other fields contains its name, also if the user may not read
            # its format.
            self.succeeds("register", "Taken u32 a")
            self.fails(5, "Taken", "register", "--hold", "Taken u8 a", prefix=failures.AS_NOBODY)
        until(lambda: names() == {"Taken"})

    # unregister

    def test_unregister_by_name_and_pattern(self):
        self.succeeds("register", "A_L4K1", "A_L4K2", "B_L1K1", "Plain u8 a")
        self.succeeds("unregister", "A_*", "Plain")
        self.assertEqual(names(), {"B_L1K1"})
        self.fails(3, "A_L4K1.*no such tracepoint", "unregister", "A_L4K1")
        self.fails(3, "C_", "unregister", "C_*", "B_L1K1")
        self.assertEqual(names(), set())

    def test_in_use_names_the_process(self):
        with self.holding("A_L4K1") as holder:
            until(lambda: "A_L4K1" in names())
            self.fails(4, rf"A_L4K1.*{holder.pid} \(eventheader\)", "unregister", "A_L4K1")
        until(lambda: names() == set())
        self.succeeds("register", "B_L1K1", "C_L1K1")
        enable = TRACEFS / "events/user_events/B_L1K1/enable"
        enable.write_text("1")
        self.fails(4, "B_L1K1.*enabled by ftrace", "unregister", "*")
        self.assertEqual(names(), {"B_L1K1"})
        enable.write_text("0")
        with subprocess.Popen([ARGS.nettrace, "record", "-o", "/dev/null", "-e", "B_L1K1"]) as recorder:
            until(lambda: self.listed()["B_L1K1"]["usedBy"] == "perf")
            self.fails(4, rf"enabled by perf.*{recorder.pid} \(nettrace\)", "unregister", "B_L1K1")
            recorder.send_signal(signal.SIGINT)
        self.succeeds("unregister", "B_L1K1")

    # list

    def test_list(self):
        self.succeeds("register", "A_L4KffGg", "Plain u8 a")
        self.assertEqual(self.listed("A*")["A_L4KffGg"], {
            "name": "A_L4KffGg", "eventHeader": True, "provider": "A", "level": 4, "keyword": "0xff", "group": "g",
            "options": "Gg", "fields": EVENT_HEADER, "usedBy": "", "hits": None, "persistent": True, "services": None,
            "transport": "user_events"})
        self.assertEqual(self.listed()["Plain"]["provider"], None)
        self.assertEqual(len(self.succeeds("list", "P*", "A*").splitlines()), 3)
        with self.holding("H_L1K1"):
            until(lambda: "H_L1K1" in names())
            self.assertIsNone(self.listed()["H_L1K1"]["persistent"])
        until(lambda: "H_L1K1" not in names())
        self.assertEqual(self.fails(3, "matches", "list", "Z*"), "")
        self.succeeds("unregister", "*")
        self.fails(3, "no tracepoint is registered", "list")


if __name__ == "__main__":
    script.run_cases()
