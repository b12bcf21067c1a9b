#!/usr/bin/python3
"""Writes the events of the table to the user_events tracepoint TRACEPOINT, with direct system calls."""

import ctypes
import fcntl
import os
import struct
import sys

import events

TRACEPOINT = "Conformance_Values_L4K1"
FIELDS = "u8 eventheader_flags; u8 version; u16 id; u16 tag; u8 opcode; u8 level"
DATA = "/sys/kernel/tracing/user_events_data"
REGISTER = 0xC0082A00  # DIAG_IOCSREG


def register(file):
    """Returns the index of the tracepoint for writes, and the memory in which the kernel sets a bit while it is
    enabled."""
    enabled = ctypes.c_uint32(0)
    name = ctypes.create_string_buffer(f"{TRACEPOINT} {FIELDS}".encode())
    # struct user_reg: size, enable_bit, enable_size, flags, enable_addr, name_args, write_index.
    registration = bytearray(
        struct.pack("=IBBHQQI", 28, 0, 4, 0, ctypes.addressof(enabled), ctypes.addressof(name), 0))
    fcntl.ioctl(file, REGISTER, registration)
    return struct.unpack_from("=I", registration, 24)[0], enabled


def main():
    file = os.open(DATA, os.O_RDWR)
    index, enabled = register(file)
    if enabled.value == 0:
        raise RuntimeError("no recorder has enabled the tracepoint")
    for _, data, _, _ in events.all_events():
        os.write(file, struct.pack("=I", index) + data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
