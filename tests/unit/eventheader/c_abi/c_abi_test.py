#!/usr/bin/python3
"""Loads libeventheader-c.so like a binding for another language, checks its symbols, and writes events with it.
AnywhereTest runs everywhere; RecordedTest needs root and a kernel with user_events, or EVENTHEADER_TRANSPORT=ring and
the program nettrace as $NETTRACE."""

import ctypes
import errno
import os
import pathlib
import re
import subprocess
import unittest

from support import libraries
from support import script
from support import transport

ARGS = script.options(__doc__, "library", "headers")
TRACEPOINT = pathlib.Path("/sys/kernel/tracing/events/user_events/Python_Abi_L4K1")


class Library(unittest.TestCase):
    def setUp(self):
        self.library = ctypes.CDLL(str(ARGS.library))
        for name in ("provider_create", "event_set_create", "builder_create", "status_text"):
            getattr(self.library, "eh_" + name).restype = ctypes.c_void_p
        self.library.eh_event_set_enabled.restype = ctypes.c_bool
        self.provider = ctypes.c_void_p(self.library.eh_provider_create(b"Python_Abi", None))
        self.set = ctypes.c_void_p(self.library.eh_event_set_create(self.provider, 4, ctypes.c_uint64(1)))
        self.builder = ctypes.c_void_p(self.library.eh_builder_create())

    def tearDown(self):
        self.library.eh_builder_destroy(self.builder)
        self.library.eh_event_set_destroy(self.set)
        self.library.eh_provider_destroy(self.provider)

    def write(self):
        self.library.eh_builder_reset(self.builder, b"Called")
        self.library.eh_builder_add_string(self.builder, b"text", "größer".encode())
        self.library.eh_builder_add_int64(self.builder, b"below", ctypes.c_int64(-(1 << 40)))
        self.library.eh_builder_add_bool(self.builder, b"right", ctypes.c_bool(True))
        self.library.eh_builder_add_binary(self.builder, b"bytes", b"\0\xff", ctypes.c_size_t(2))
        return self.library.eh_builder_write(self.builder, self.set, None)

    def counters(self):
        counters = (ctypes.c_uint64 * 5)()
        self.library.eh_provider_counters(self.provider, ctypes.byref(counters))
        return list(counters)[:4]


class AnywhereTest(Library):
    def test_exports_the_functions_of_its_headers_and_nothing_else(self):
        symbols = subprocess.run(["nm", "--dynamic", "--defined-only", "--format=posix", ARGS.library], check=True,
                                 capture_output=True, text=True).stdout
        shown = {line.split(" ")[0].split("@")[0] for line in symbols.splitlines()} - {"EVENTHEADER_0"}
        declared = "".join((ARGS.headers / name).read_text() for name in ("eventheader_c.h", "internal/static_objects.h"))
        self.assertEqual(shown, set(re.findall(r"\b(eh_\w+)\(", declared)))

    def test_disabled_event_returns_ebadf_and_is_not_counted(self):
        self.assertFalse(self.library.eh_event_set_enabled(self.set))
        self.assertEqual(self.write(), errno.EBADF)
        self.assertEqual(self.counters(), [0, 0, 0, 0])

    def test_enable_word_can_be_read_without_a_call(self):
        self.library.eh_event_set_enable_word.restype = ctypes.c_void_p
        mask = ctypes.c_uint64(0)
        word = ctypes.c_uint64.from_address(self.library.eh_event_set_enable_word(self.set, ctypes.byref(mask)))
        self.assertEqual(word.value & mask.value != 0, self.library.eh_event_set_enabled(self.set))
        self.assertEqual(mask.value.bit_count(), 1 if self.library.eh_event_set_status(self.set) == 0 else 0)

    def test_provider_out_of_form_has_a_status_with_a_message(self):
        provider = ctypes.c_void_p(self.library.eh_provider_create(b"no name", b""))
        event_set = ctypes.c_void_p(self.library.eh_event_set_create(provider, 4, ctypes.c_uint64(1)))
        status = self.library.eh_event_set_status(event_set)
        self.assertEqual(status, errno.EINVAL)
        self.assertIn(b"not valid", ctypes.string_at(self.library.eh_status_text(status)))
        self.library.eh_event_set_destroy(event_set)
        self.library.eh_provider_destroy(provider)


class RecordedTest(Library):
    def setUp(self):
        transport.give_socket(self)
        super().setUp()

    def recorded_by_kernel(self, write):
        """Calls `write`. Returns the number of events that the kernel records during the call."""
        tracing = TRACEPOINT.parents[2]
        (tracing / "trace").write_text("")
        (TRACEPOINT / "enable").write_text("1")
        write()
        (TRACEPOINT / "enable").write_text("0")
        return len([line for line in (tracing / "trace").read_text().splitlines() if "Python_Abi_L4K1:" in line])

    def recorded_by_ring(self, write):
        recorder = transport.RingRecorder(self, os.environ["NETTRACE"], "Python_Abi_L4K1")
        recorder.start()
        transport.until(lambda: self.library.eh_event_set_enabled(self.set))
        write()
        events = recorder.take()
        for event in events:
            self.assertEqual((event["name"], event["payload"]),
                             ("Called", {"text": "größer", "below": -(1 << 40), "right": True, "bytes": "00ff"}))
        return len(events)

    def test_event_arrives(self):
        self.assertEqual(self.library.eh_provider_status(self.provider), 0)
        recorded = self.recorded_by_ring if transport.RINGS else self.recorded_by_kernel
        self.assertEqual(recorded(lambda: self.assertEqual(self.write(), 0)), 1)
        self.assertEqual(self.counters(), [1, 0, 0, 0])


if __name__ == "__main__":
    script.run_cases(lambda: libraries.need_own_architecture(ARGS.library))
