"""Builds correct and incorrect NetTrace V6 files by hand, from the specification. Each function returns bytes."""

import struct

# Kinds of blocks.
END, TRACE, EVENT, METADATA, SEQUENCE_POINT, STACK, THREAD, REMOVE_THREAD, LABEL_LIST = range(9)

# Type codes.
OBJECT, BOOLEAN32, UTF16, SBYTE, BYTE, INT16, UINT16, INT32, UINT32, INT64, UINT64, SINGLE, DOUBLE = 1, *range(3, 15)
DECIMAL, DATETIME, GUID, TEXT, ARRAY, VARINT, VARUINT, FIXED_ARRAY, UTF8, RELLOC, DATALOC, BOOLEAN8 = range(15, 27)

HEADER = b"Nettrace" + struct.pack("<III", 0, 6, 0)


def var(number, padded_to=1):
    """Returns a varuint of at least `padded_to` bytes. The bytes that the number does not need contain only zero
    bits."""
    groups = [number & 0x7F]
    while number := number >> 7:
        groups.append(number & 0x7F)
    groups += [0] * (padded_to - len(groups))
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


def text(value):
    raw = value if isinstance(value, bytes) else value.encode()
    return var(len(raw)) + raw


def u16(number):
    return struct.pack("<H", number)


def u32(number):
    return struct.pack("<I", number)


def u64(number):
    return struct.pack("<Q", number)


def block(kind, content=b""):
    return u32(len(content) | kind << 24) + content


def row(content):
    return u16(len(content)) + content


def trace_content(date=(2026, 11, 6, 21, 10, 0, 0, 500), ticks=1000, frequency=10**9, pointer_size=8, pairs=(), count=None):
    return (struct.pack("<8H", *date) + struct.pack("<qqi", ticks, frequency, pointer_size) +
            struct.pack("<i", len(pairs) if count is None else count) + b"".join(text(key) + text(value) for key, value in pairs))


def trace(**fields):
    return block(TRACE, trace_content(**fields))


def field(name, *type_bytes):
    """Returns a field. `type_bytes`: type codes, and the bytes that follow a code."""
    return row(text(name) + b"".join(bytes([part]) if isinstance(part, int) else part for part in type_bytes))


def metadata_row(id=1, provider="P", event_id=1, name="Event", fields=(), optional=b"", more=b""):
    id = var(id) if isinstance(id, int) else id
    event_id = var(event_id) if isinstance(event_id, int) else event_id
    return row(id + text(provider) + event_id + text(name) + u16(len(fields)) + b"".join(fields) + row(optional) + more)


def metadata(*rows, header=b""):
    return block(METADATA, row(header) + b"".join(rows))


def thread_row(index=1, name="worker", pid=42, tid=43, more=b""):
    content = var(index) if isinstance(index, int) else index
    content += b"" if name is None else b"\1" + text(name)
    content += b"" if pid is None else b"\2" + var(pid)
    content += b"" if tid is None else b"\3" + var(tid)
    return row(content + more)


def threads(*rows):
    return block(THREAD, b"".join(rows))


def remove_threads(*entries):
    return block(REMOVE_THREAD, b"".join(var(index) + var(number) for index, number in entries))


def labels(*lists, first=1, count=None):
    return block(LABEL_LIST, u32(first) + u32(len(lists) if count is None else count) + b"".join(lists))


def label_list(*items):
    """Returns a label list. `items`: the bytes of its labels; the function marks the last one as last."""
    return b"".join([*items[:-1], bytes([items[-1][0] | 0x80]) + items[-1][1:]])


def stacks(*lists, first=1, count=None):
    return block(STACK, u32(first) + u32(len(lists) if count is None else count) +
                 b"".join(u32(len(one)) + one for one in lists))


def event(number=1, time=2000, payload=b"", metadata_id=1, capture_thread=1, thread=1, cpu=0, stack=0, label=0, sorted=True):
    return locals()


def event_rows(*events):
    """Returns compressed rows in which every field is present."""
    content, last_number, last_time = b"", 0, 0
    for one in events:
        content += bytes([0x9F | (0x40 if one["sorted"] else 0)]) + var(one["metadata_id"])
        content += var((one["number"] - 1 - last_number) % 2**32) + var(one["capture_thread"]) + var(one["cpu"])
        content += var(one["thread"]) + var(one["stack"]) + var((one["time"] - last_time) % 2**64) + var(one["label"])
        content += var(len(one["payload"])) + one["payload"]
        last_number, last_time = one["number"], one["time"]
    return content


def event_block_of(rows, least, most, flags=1, header_size=20, more=b""):
    return block(EVENT, struct.pack("<HHQQ", header_size, flags, least, most) + more + rows)


def events(*all_events, **header):
    times = [one["time"] for one in all_events]
    return event_block_of(event_rows(*all_events), min(times), max(times), **header)


def sequence_point(time=3000, flags=0, listed=(), count=None):
    return block(SEQUENCE_POINT, u64(time) + u32(flags) + u32(len(listed) if count is None else count) +
                 b"".join(var(thread) + var(number) for thread, number in listed))


ENDING = block(END)
