"""Parts of V6 traces as bytes, for tests that need very large traces, or traces that no writer
writes."""

import struct

TRACE, EVENT, METADATA, SEQUENCE_POINT, THREAD, END = 1, 2, 3, 4, 6, 0


def block(kind, content):
    return struct.pack("<I", len(content) | kind << 24) + content


def row(content):
    return struct.pack("<H", len(content)) + content


def varint(number):
    result = b""
    while number > 0x7F:
        result += bytes([number & 0x7F | 0x80])
        number >>= 7
    return result + bytes([number])


def begin(fields=(), threads=(1,)):
    """Returns the beginning of a trace that starts at 2026-11-21T10:00:00Z and counts nanoseconds. It describes these
    threads, and the event E of the provider P. `fields` are the bytes of field descriptions, without their sizes."""
    trace = struct.pack("<8HqqII", 2026, 11, 6, 21, 10, 0, 0, 0, 0, 10**9, 8, 0)
    metadata = b"\x01\x01P\x07\x01E" + struct.pack("<H", len(fields)) + b"".join(map(row, fields)) + row(b"")
    return b"Nettrace" + struct.pack("<III", 0, 6, 0) + block(TRACE, trace) + block(METADATA, b"\0\0" + row(metadata)) + \
        block(THREAD, b"".join(row(bytes([thread, 3, thread])) for thread in threads))


def write_long(path, intervals, fields, payload, events=50_000):
    """Writes a trace of one thread, with `events` events in each interval. All events have this payload, and each event
    is 1 ns later than the one before."""
    with open(path, "wb") as file:
        file.write(begin(fields))
        for interval in range(intervals):
            start = 1 + interval * events
            end = start + events - 1
            # The first row has metadata id, the number of the event before, capture thread, processor, thread, no
            # stack, no labels, a time and the payload's size. Each other row is one tick later.
            first = struct.pack("<B", 0x9F) + b"\x01" + varint(start - 1) + b"\x01\0" + b"\x01\0" + varint(start) + \
                b"\0" + varint(len(payload)) + payload
            rows = first + (b"\0\x01" + payload) * (events - 1)
            file.write(block(EVENT, struct.pack("<HHQQ", 20, 1, start, end) + rows))
            file.write(block(SEQUENCE_POINT, struct.pack("<QII", end, 0, 1) + b"\x01" + varint(end)))
        file.write(block(END, b""))
