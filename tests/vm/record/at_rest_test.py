#!/usr/bin/python3
"""Tests that `nettrace record` sleeps while nothing happens, that it nevertheless finds a new tracepoint at once, and
that an event is in the file soon. Needs root and a kernel with user_events and kprobes (./run vm)."""

import ctypes
import fcntl
import json
import os
import pathlib
import signal
import struct
import subprocess
import tempfile
import time
import unittest

from support import script

ARGS = script.options(__doc__, "nettrace")
REGISTER = 0xC0082A00  # DIAG_IOCSREG
FIELDS = "u8 eventheader_flags; u8 version; u16 id; u16 tag; u8 opcode; u8 level"
EVENT_HEADER = bytes([0x06, 0, 0, 0, 0, 0, 0, 4])  # 64-bit, little-endian, without metadata
TRACEPOINTS = 200
SECONDS = 5


class UserEvents:
    """Tracepoints that this process registers with user_events."""

    # The kernel keeps the addresses for the lifetime of the process, so they must not be reused.
    _words = []

    def __init__(self):
        self._data = os.open("/sys/kernel/tracing/user_events_data", os.O_RDWR | os.O_CLOEXEC)
        self._enabled = (ctypes.c_uint32 * 4096)()
        self._words.append(self._enabled)
        self._count = 0

    def close(self):
        os.close(self._data)

    def register(self, name):
        """Registers a tracepoint; returns its id and the index for writing."""
        text = ctypes.create_string_buffer(f"{name} {FIELDS}".encode())
        number = self._count
        request = bytearray(struct.pack("=IBBHQQI", 28, 0, 4, 0, ctypes.addressof(self._enabled) + 4 * number,
                                        ctypes.addressof(text), 0))
        fcntl.ioctl(self._data, REGISTER, request)
        self._count += 1
        return number, struct.unpack_from("=I", request, 24)[0]

    def is_enabled(self, number):
        return self._enabled[number] & 1 != 0

    def write(self, index):
        os.write(self._data, struct.pack("=I", index) + EVENT_HEADER)


def wake_ups(pid):
    """Returns how often each thread of a process has slept, by thread id."""
    counts = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        for line in (task / "status").read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches:"):
                counts[task.name] = int(line.split()[1])
    return counts


def wait_for(condition, what):
    deadline = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"after 60 s: {what}")
        time.sleep(0.01)


class AtRestTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="at-rest-")
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "trace.nettrace"
        self.events = UserEvents()
        self.addCleanup(self.events.close)
        # Each test has a separate provider, because the tracepoints exist until this process ends.
        self.provider = "Rest" + self._testMethodName.replace("_", "")

    def record(self, *arguments, before=()):
        """Starts a recorder with `before` in front of its command line, and waits until it has attached the existing
        tracepoints."""
        number, _ = self.events.register(f"{self.provider}_L1K1")
        command = [*before, ARGS.nettrace, "record", "--json", "-o", self.file, "-e", self.provider, *arguments]
        recorder = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(recorder.communicate)
        self.addCleanup(recorder.kill)
        wait_for(lambda: self.events.is_enabled(number), "the recorder has not attached the existing tracepoint")
        return recorder

    def finish(self, recorder):
        recorder.send_signal(signal.SIGINT)
        stdout, stderr = recorder.communicate()
        self.assertEqual(recorder.returncode, 0, stderr)
        return json.loads(stdout)

    def check_sleep(self, recorder):
        time.sleep(2)  # The recorder may still attach tracepoints.
        before = wake_ups(recorder.pid)
        began = time.monotonic()
        time.sleep(SECONDS)
        after = wake_ups(recorder.pid)
        seconds = time.monotonic() - began
        woken = {thread: count - before[thread] for thread, count in after.items()}
        print(f"wake-ups in {SECONDS} s, by thread: {woken}", flush=True)
        self.assertLessEqual(woken[str(recorder.pid)], seconds + 2)
        for thread, count in woken.items():
            if thread != str(recorder.pid):
                # A few wake-ups are normal, because the start or end of a kernel thread causes a write. A thread that searched
                # every second would wake up once a second.
                self.assertLessEqual(count, 2, f"thread {thread}: {count} wake-ups in {SECONDS} s; at most 2 are normal")

    @script.more
    def test_200_tracepoints_and_a_pattern(self):
        for i in range(1, TRACEPOINTS):
            self.events.register(f"{self.provider}_L4K{i:x}")
        recorder = self.record()
        self.check_sleep(recorder)
        summary = self.finish(recorder)
        self.assertEqual(summary["tracepoints"], TRACEPOINTS)
        self.assertEqual(summary["watchesRegistrations"], "kprobe")

    def test_compressed(self):
        recorder = self.record("--compress")
        self.check_sleep(recorder)
        self.finish(recorder)

    def test_pattern_of_kernel_tracepoints(self):
        recorder = self.record("-e", "power:*")
        self.check_sleep(recorder)
        self.finish(recorder)

    def test_registration_is_found_at_once(self):
        recorder = self.record()
        took = []
        for i in range(20):
            time.sleep(0.1)
            begin = time.monotonic()
            number, _ = self.events.register(f"{self.provider}_L4K{i + 1:x}")
            while not self.events.is_enabled(number):
                if time.monotonic() > begin + 30:
                    self.fail("the recorder did not find a registered tracepoint within 30 s")
            took.append(time.monotonic() - begin)
        # A busy machine delays many searches, so the fastest quarter decides. Without a notification, none would take
        # less than about 0.8 s: the recorder searches 0.9 s after its last search, and the test sleeps for the first
        # 0.1 s.
        fast = sorted(took)[len(took) // 4]
        print(f"a quarter found within {fast * 1000:.1f} ms", flush=True)
        self.assertLess(fast, 0.6)
        summary = self.finish(recorder)
        self.assertEqual(summary["tracepoints"], 21)
        self.assertEqual(summary["watchesRegistrations"], "kprobe")

    def test_kernel_without_kprobes(self):
        """Tests that the recorder searches regularly, and so also finds a tracepoint that is registered later."""
        hide = 'mount -t tmpfs tmpfs /sys/devices/kprobe && exec "$0" "$@"'
        recorder = self.record(before=("unshare", "--mount", "sh", "-c", hide))
        number, _ = self.events.register(f"{self.provider}_L4K1")
        wait_for(lambda: self.events.is_enabled(number), "the recorder has not found the registered tracepoint")
        self.assertEqual(self.finish(recorder)["watchesRegistrations"], "polling")

    def test_many_registrations_cause_few_wake_ups(self):
        recorder = self.record()
        before = wake_ups(recorder.pid)[str(recorder.pid)]
        end = time.monotonic() + 3
        registered = 0
        while time.monotonic() < end:
            self.events.register(f"Other_L4K{registered % 7 + 1:x}")
            registered += 1
            if registered % 4000 == 0:
                self.events.close()
                self.events = UserEvents()
        woken = wake_ups(recorder.pid)[str(recorder.pid)] - before
        print(f"{registered} registrations in 3 s, {woken} wake-ups", flush=True)
        # A search has about two wake-ups: one by the kernel's notification, and one when the search is due. Each CPU
        # on which tracepoints are registered sends a notification. Searches are at least 5 ms apart.
        self.assertLess(woken, 3 * 200 * 3)
        self.finish(recorder)

    def test_few_events_are_in_the_file_soon(self):
        recorder = self.record()
        _, index = self.events.register(f"{self.provider}_L1K1")
        time.sleep(2.3)
        for _ in range(3):
            before = self.file.stat().st_size
            begin = time.monotonic()
            self.events.write(index)
            wait_for(lambda size=before: self.file.stat().st_size > size, "the event is not in the file")
            took = time.monotonic() - begin
            print(f"in the file after {took:.2f} s", flush=True)
            self.assertLess(took, 3)
            time.sleep(1.3)
        self.assertEqual(self.finish(recorder)["events"], 3)


if __name__ == "__main__":
    script.run_cases()
