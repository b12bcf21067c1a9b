#!/usr/bin/python3
"""Tests that if recording is not possible, `nettrace record` and `eventheader` name the reason and the remedy in one
line, and a service runs normally. Needs root and a kernel with user_events (./run vm)."""

import contextlib
import ctypes
import fcntl
import json
import os
import pathlib
import select
import struct
import subprocess
import tempfile
import time
import unittest

from support import failures
from support import script

ARGS = script.options(__doc__, "nettrace", "eventheader", "service")


@contextlib.contextmanager
def tracefs_for_group(group):
    """Lets group `group` read and write all of tracefs."""
    def remount(options):
        subprocess.run(["mount", "-o", f"remount,{options}", "/sys/kernel/tracing"], check=True)
    remount(f"mode=770,gid={group}")
    try:
        yield
    finally:
        remount("mode=700,gid=0")


@contextlib.contextmanager
def registered(name):
    """Registers a tracepoint with this name, which is bytes and need not be an EventHeader name, with user_events."""
    request = 0xC0082A00  # DIAG_IOCSREG
    enabled = ctypes.c_uint32()
    name_args = ctypes.create_string_buffer(name)
    registration = bytearray(struct.pack("=IBBHQQI", 28, 31, 4, 0, ctypes.addressof(enabled),
                                         ctypes.addressof(name_args), 0))
    data = os.open("/sys/kernel/tracing/user_events_data", os.O_RDWR)
    try:
        fcntl.ioctl(data, request, registration)
        yield
    finally:
        os.close(data)


class RecordFailuresTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="record-failures-")
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o777)
        self.file = pathlib.Path(folder.name) / "trace.nettrace"

    def record(self, *command, output=None, selector="Load_L4K1"):
        """Returns the command line that records for a moment or, if there is a `command`, for as long as that runs."""
        until = ["--", *command] if command else ["--duration", "300ms"]
        return [ARGS.nettrace, "record", "-o", output or self.file, "-e", selector, *until]

    def check_start_failure(self, command, pattern, status=1):
        failures.check_failure(self, command, pattern, status)
        self.assertFalse(self.file.exists(), "nettrace record left an output file behind")

    def test_without_failures_it_works(self):
        done = subprocess.run(self.record(), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(self.file.exists())

    def test_no_tracefs(self):
        self.check_start_failure([*failures.WITHOUT_TRACEFS, *self.record(selector="sched:sched_switch")],
                                 "tracefs is not mounted.*mount -t tracefs")

    def test_without_tracefs_services_use_rings(self):
        for selector in ("Load", "Load_L4K1"):
            done = subprocess.run([*failures.WITHOUT_TRACEFS, *self.record(selector=selector)], stderr=subprocess.PIPE,
                                  text=True, check=False)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertRegex(done.stderr, "tracefs is not mounted: services use shared memory, and connect to /run/.*\n"
                                          ".*tracefs is not mounted; mount it with 'mount -t tracefs.*\n")

    def test_no_permission_for_tracefs(self):
        self.check_start_failure([*failures.AS_NOBODY, *self.record()], "tracefs.*root")

    def test_no_permission_for_perf_events(self):
        with tracefs_for_group(failures.NOBODY):
            self.check_start_failure([*failures.AS_NOBODY, *self.record()], "perf.*root.*CAP_PERFMON")

    def test_selector_out_of_form(self):
        for selector in ("", ":4", "Pro vider", "Provider:0", "Provider:256", "Provider:loud!", "Provider:4:mask",
                         "a:4:1:1:1", "sched:", ":sched_switch", "../sched:sched_switch", "sched:../sched_switch"):
            with self.subTest(selector):
                self.check_start_failure(self.record(selector=selector), "selector.*use Provider", status=2)

    def test_unknown_tracepoint(self):
        self.check_start_failure(self.record(selector="sched:no_such_event"),
                                 "sched:no_such_event does not exist.*available_events")
        self.check_start_failure(self.record(selector="user_events:not_an_eventheader_name"),
                                 "user_events:not_an_eventheader_name does not exist")

    def test_output_cannot_be_created(self):
        for output, what in (("/no/such/folder/trace.nettrace", "No such file"), ("/", "[Dd]irectory"),
                             ("/proc/trace.nettrace", "No such file")):
            with self.subTest(output):
                failures.check_failure(self, self.record(output=output), f"{output}: .*{what}")

    def test_output_is_full(self):
        failures.check_failure(self, self.record(output="/dev/full"), "/dev/full.*No space left")

    def test_output_is_a_closed_pipe(self):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer) as pipe:
            failures.check_failure(self, self.record(output="-"), "standard output.*[Bb]roken pipe", stdout=pipe)

    def test_standard_output_has_only_the_trace(self):
        done = subprocess.run(self.record("echo", "not the trace", output="-"), capture_output=True, check=False)
        self.assertIn(b"not the trace", done.stderr)
        verified = subprocess.run([ARGS.nettrace, "verify", "--strict", "-"], input=done.stdout,
                                  capture_output=True, check=False)
        self.assertEqual(verified.returncode, 0, verified.stdout)
        failures.check_failure(self, [*self.record(output="-"), "--json"], "--json.*-o FILE", 2)

    def test_ring_size_out_of_range(self):
        for size in ("9G", "9E", "-1", "99999999999999999999"):
            with self.subTest(size):
                done = subprocess.run([*self.record(), "--ring-size", size], capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertRegex(done.stderr, "^--ring-size: .*size")

    def test_a_signal_ends_the_wait_for_a_pipes_reader(self):
        os.mkfifo(self.file)
        with subprocess.Popen(self.record(), stderr=subprocess.PIPE) as recorder:
            time.sleep(1)
            recorder.terminate()
            try:
                self.assertNotEqual(recorder.wait(timeout=60), 0)
            finally:
                recorder.kill()

    def test_a_signal_ends_the_wait_for_a_reader_that_takes_nothing(self):
        reader, writer = os.pipe()
        os.mkfifo(self.file)
        named_reader = os.open(self.file, os.O_RDONLY | os.O_NONBLOCK)
        for output, read_end in (("-", reader), (self.file, named_reader)):
            with self.subTest(output):
                self.check_stop_despite_reader(output, read_end, writer)
        for pipe in (reader, writer, named_reader):
            os.close(pipe)

    def check_stop_despite_reader(self, output, read_end, stdout):
        fcntl.fcntl(read_end, fcntl.F_SETPIPE_SZ, 4096)
        load = "while :; do :; done"  # The loop never ends, and timer interrupts cause switches.
        command = self.record("sh", "-c", load, output=output, selector="sched:sched_switch")
        with subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, text=True) as recorder:
            self.assertTrue(select.select([read_end], [], [], 60)[0], "the recorder wrote nothing within 60 s")
            time.sleep(3)
            recorder.terminate()
            try:
                _, said = recorder.communicate(timeout=60)
            finally:
                recorder.kill()
        self.assertEqual(recorder.returncode, 1, said)
        self.assertRegex(said, "reader has stopped reading.*events are in the file")

    def test_command_cannot_be_started(self):
        done = subprocess.run(self.record("/no/such/command"), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 127, done.stderr)
        self.assertRegex(done.stderr, "/no/such/command.*No such file")

    def test_exit_status_is_the_commands(self):
        done = subprocess.run(self.record("sh", "-c", "exit 42"), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 42, done.stderr)

    def test_eventheader_tool(self):
        for command in (["register", "Load_L4K1"], ["list"]):
            command = [ARGS.eventheader, *command]
            failures.check_failure(self, [*failures.WITHOUT_TRACEFS, *command], "tracefs.*mount")
            failures.check_failure(self, [*failures.AS_NOBODY, *command], "root")
        failures.check_failure(self, [ARGS.eventheader, "register", "NotAName"], "NotAName.*_L.*K", status=2)

    def test_hostile_names_do_not_reach_a_terminal(self):
        hostile = b"Evil\x1b[2J\xc2\x9b31m\xe2\x80\xae\xff_L1K1"
        with registered(hostile + b" u8 x"):
            commands = [[ARGS.eventheader, "list"], [ARGS.eventheader, "list", "--json"],
                        self.record(selector="Evil*"),
                        [ARGS.nettrace, "record", "-o", self.file, "-e", b"user_events:" + hostile, "--duration", "1s"],
                        [ARGS.nettrace, "record", "-o", b"/no/" + hostile, "-e", "Load", "--duration", "1s"],
                        [ARGS.nettrace, "info", self.file], [ARGS.nettrace, "dump", self.file]]
            shown = b""
            for command in commands:
                ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
                shown += ran.stdout + ran.stderr
                with self.subTest(command):
                    for c in (ran.stdout + ran.stderr).decode():
                        self.assertFalse(ord(c) < 0x20 and c != "\n" or 0x7f <= ord(c) < 0xa0 or ord(c) == 0x202e, ran)
        self.assertGreaterEqual(shown.count(b"Evil\\u001b[2J\\u009b31m\\u202e"), 2)

    def test_hostile_fields_affect_only_their_tracepoint(self):
        fields = (b"u8 x[", b"u8 x]", b'u8 x"', b"u8 x\\", b"u8 x\n\tprint\tfmt:", b"__data_loc u8[ x",
                  b"struct print fmt: 8", b"struct a x 2000000000; struct a y 2000000000", b"struct a x 70000")
        with contextlib.ExitStack() as stack:
            for number, field in enumerate(fields):
                stack.enter_context(registered(b"Evil%d_L1K1 " % number + field))
            stack.enter_context(registered(b"Evil_good_L1K1 u32 x; char[20] text; __rel_loc char[] more; struct a b 8"))
            done = subprocess.run([*self.record(selector="Evil*"), "--json"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("warning: tracepoint user_events:Evil_good_L1K1: another program has registered the name with the "
                      "fields 'u32 x; ", done.stderr)
        summary = json.loads(done.stdout)
        self.assertEqual(sorted(summary["leftOut"]), [f"user_events:Evil{number}_L1K1" for number in range(len(fields))])
        self.assertEqual(summary["tracepoints"], 1)

    def check_service(self, prefix):
        done = subprocess.run([*prefix, ARGS.service, "--events", "1000"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        service = json.loads(done.stdout)
        self.assertEqual(sum(thread["written"] for thread in service["threads"]), 0)

    def test_service_runs_unharmed(self):
        self.check_service(failures.WITHOUT_TRACEFS)
        self.check_service(failures.AS_NOBODY)
        self.check_service([])  # With tracefs and permission, but without a recorder.


if __name__ == "__main__":
    script.run_cases()
