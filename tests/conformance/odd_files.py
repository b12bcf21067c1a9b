"""Odd and hostile NetTrace V6 files, for each kind of block and each of its fields: cut, zero, largest, repeated, out of
order, of an unknown kind, and defined again with and without a flush.

cases() yields (name, rules, bytes): the rules of `nettrace verify` that the file breaks, or "unreadable" if it is no
NetTrace file. A file without rules is one that TraceEvent must show as `nettrace dump` does."""

import itertools
import struct

from stream import (
    ARRAY, BOOLEAN32, BOOLEAN8, BYTE, DATALOC, DATETIME, DECIMAL, DOUBLE, END, ENDING, EVENT, FIXED_ARRAY, GUID,
    HEADER, INT16, INT32, INT64, LABEL_LIST, METADATA, OBJECT, RELLOC, REMOVE_THREAD, SBYTE, SEQUENCE_POINT, SINGLE,
    STACK, TEXT, THREAD, TRACE, UINT16, UINT32, UINT64, UTF16, UTF8, VARINT, VARUINT, block, event, event_block_of,
    event_rows, events, field, label_list, labels, metadata, metadata_row, remove_threads, row, sequence_point,
    stacks, text, thread_row, threads, trace, trace_content, u16, u32, u64, var)

META = metadata(metadata_row(fields=[field("n", INT32)]))
THREADS = threads(thread_row())
EVENTS = events(event(1, 2000, u32(7)), event(2, 2010, u32(8)))
LATER = events(event(3, 3010, u32(9)))
UNREADABLE = "unreadable"
BIG_INDEX = 5_000_000  # above the thread ids of Linux
NOT_UTF8 = b"a\xFFb"
OVER_32_BITS = b"\xFF\xFF\xFF\xFF\x7F"
SIX_BYTES = b"\x80\x80\x80\x80\x80\x01"
ELEVEN_BYTES = b"\x80" * 10 + b"\x01"
FLUSH_THREADS, FLUSH_METADATA = 1, 2


def stream(*blocks, start=None):
    return HEADER + (trace() if start is None else start) + b"".join(blocks) + ENDING


def whole(*blocks):
    """Returns a file with the usual metadata, thread and events after `blocks`."""
    return stream(META, THREADS, *blocks, EVENTS)


def cases():
    for group in (file_cases, trace_cases, metadata_cases, known_cases, type_cases, payload_cases, thread_cases, removal_cases,
                  label_cases, stack_cases, event_cases, order_cases, sequence_point_cases):
        for name, rules, data in group():
            yield f"{group.__name__.removesuffix('_cases')}-{name}", set(rules.split()), data


def file_cases():
    good = whole()
    yield "good", "", good
    yield "empty", "truncated", b""
    yield "magic", UNREADABLE, b"nettrace" + good[8:]
    yield "header-cut", "truncated", HEADER[:19]
    yield "reserved", UNREADABLE, good[:8] + u32(1) + good[12:]
    yield "major-7", UNREADABLE, good[:12] + u32(7) + good[16:]
    yield "major-max", UNREADABLE, good[:12] + u32(2**32 - 1) + good[16:]
    yield "minor-1", "", good[:16] + u32(1) + good[20:]
    yield "header-only", "no-end-of-stream", HEADER
    yield "no-blocks", "trace-first", HEADER + ENDING
    yield "trace-only", "", stream()
    yield "no-end", "no-end-of-stream", good[:-4]
    yield "two-ends", "trailing-bytes", good + ENDING
    yield "end-with-content", "end-of-stream-content", good[:-4] + block(END, b"end")
    yield "bytes-after-end", "trailing-bytes", good + b"\0" * 100
    for kind in (9, 127, 255):
        yield f"block-of-kind-{kind}", "unknown-block", whole(block(kind, b"unknown"))
    yield "empty-block-of-kind-9", "unknown-block", whole(block(9))
    yield "block-of-kind-9-first", "trace-first unknown-block", HEADER + block(9, b"x") + trace() + META + THREADS + EVENTS + ENDING
    yield "block-of-largest-size", "truncated", HEADER + trace() + META + THREADS + u32(0x02FFFFFF) + EVENTS[4:]
    parts = {"trace": trace(), "metadata": META, "threads": THREADS, "labels": labels(label_list(b"\x0A\1")),
             "stacks": stacks(u64(1)), "events": EVENTS, "sequence-point": sequence_point(listed=[(1, 2)])}
    for name in parts:
        before = b"".join(itertools.takewhile(lambda part: part != parts[name], parts.values()))
        yield f"{name}-cut", "truncated", HEADER + before + parts[name][:len(parts[name]) * 2 // 3]
        yield f"{name}-size-cut", "truncated", HEADER + before + parts[name][:3]


def trace_cases():
    def started(**fields):
        return stream(META, THREADS, EVENTS, start=trace(**fields))

    yield "twice", "trace-once", whole(trace())
    yield "late", "trace-first", HEADER + META + THREADS + trace() + EVENTS + ENDING
    yield "missing", "trace-first", HEADER + META + THREADS + EVENTS + ENDING
    yield "empty", "trace-fields", stream(META, THREADS, EVENTS, start=block(TRACE))
    for name, date in {"month-0": (2026, 0, 6, 21, 10, 0, 0, 0), "month-13": (2026, 13, 6, 21, 10, 0, 0, 0),
                       "day-0": (2026, 1, 6, 0, 10, 0, 0, 0), "february-30": (2026, 2, 6, 30, 10, 0, 0, 0),
                       "hour-24": (2026, 1, 6, 1, 24, 0, 0, 0), "minute-60": (2026, 1, 6, 1, 1, 60, 0, 0),
                       "second-60": (2026, 1, 6, 1, 1, 1, 60, 0), "millisecond-1000": (2026, 1, 6, 1, 1, 1, 1, 1000),
                       "year-0": (0, 1, 6, 1, 1, 1, 1, 0), "zeros": (0,) * 8, "largest": (65535,) * 8}.items():
        yield f"date-{name}", "trace-fields", started(date=date)
    yield "year-1600", "trace-year", started(date=(1600, 1, 6, 1, 1, 1, 1, 0))
    yield "year-1600-end", "trace-year", started(date=(1600, 12, 0, 31, 23, 59, 59, 999))
    yield "year-1601", "", started(date=(1601, 1, 1, 1, 0, 0, 0, 0))
    yield "year-1601-before-its-ticks", "", started(date=(1601, 1, 1, 1, 0, 0, 0, 0), ticks=10**12)
    yield "year-1970", "", started(date=(1970, 1, 4, 1, 0, 0, 0, 0))
    yield "year-9999", "", started(date=(9999, 12, 5, 31, 23, 59, 59, 999))
    yield "other-weekday", "", started(date=(2026, 11, 0, 21, 10, 0, 0, 0))
    yield "ticks-0", "", started(ticks=0)
    yield "ticks-after-events", "", started(ticks=5000)
    yield "ticks-negative", "", started(ticks=-1)
    yield "ticks-largest", "", started(ticks=2**63 - 1)
    yield "frequency-0", "trace-fields", started(frequency=0)
    yield "frequency-negative", "trace-fields", started(frequency=-1)
    yield "frequency-1", "", started(frequency=1)
    yield "frequency-1000", "", started(frequency=1000)
    yield "frequency-largest", "", started(frequency=2**63 - 1)
    yield "pointer-size-4", "", started(pointer_size=4)
    for size in (0, 1, 16, -8):
        yield f"pointer-size-{size}", "trace-fields", started(pointer_size=size)
    yield "pairs-negative", "trace-fields", started(count=-1)
    yield "pairs-too-many", "trace-fields", started(count=2**31 - 1)
    yield "pairs-one-too-many", "trace-fields", started(pairs=[("a", "b")], count=2)
    yield "pairs-one-less", "", started(pairs=[("a", "b")], count=0)
    yield "pairs-of-one-key", "", started(pairs=[("a", "b"), ("a", "c")])
    yield "pairs-empty", "", started(pairs=[("", "")])
    yield "pairs-not-utf8", "string-utf8", started(pairs=[("a", NOT_UTF8)])
    yield "pairs-key-not-utf8", "string-utf8", started(pairs=[(NOT_UTF8, "a")])
    for key in ("ProcessId", "HardwareThreadCount", "ExpectedCPUSamplingRate"):
        for value in ("", "x", "-1", "99999999999", "0"):
            yield f"{key}-{value or 'empty'}", "", started(pairs=[(key, value)])
        yield f"{key}-twice", "", started(pairs=[(key, "1"), (key, "2")])
    yield "text-too-long", "trace-fields", stream(
        META, THREADS, EVENTS, start=block(TRACE, trace_content(count=1) + b"\x7F" + b"abc"))
    yield "text-of-over-32-bits", "trace-fields", stream(
        META, THREADS, EVENTS, start=block(TRACE, trace_content(count=1) + OVER_32_BITS + b"abc"))


def metadata_cases():
    def one(*, payload=b"", **fields):
        return stream(metadata(metadata_row(**fields)), THREADS, events(event(payload=payload)))

    def optional(data, rules=""):
        return rules, one(optional=data)

    yield "empty", "metadata-row", whole(block(METADATA))
    yield "without-rows", "", whole(metadata())
    yield "header-of-bytes", "", stream(metadata(metadata_row(), header=b"more"), THREADS, events(event()))
    yield "header-too-long", "metadata-row", whole(block(METADATA, u16(10) + b"abc"))
    yield "row-of-no-bytes", "metadata-row", whole(metadata(row(b"")))
    yield "row-too-long", "metadata-row", whole(block(METADATA, u16(0) + u16(1000) + metadata_row(id=2)[2:]))
    yield "row-longer-than-its-parts", "", one(more=b"unknown")
    yield "id-0", "", stream(metadata(metadata_row(id=0)), THREADS, events(event(metadata_id=0)))
    yield "id-largest", "", stream(metadata(metadata_row(id=2**32 - 1)), THREADS, events(event(metadata_id=2**32 - 1)))
    yield "id-padded", "", one(id=var(1, 4))
    yield "id-over-32-bits", "metadata-row", whole(metadata(metadata_row(id=OVER_32_BITS)))
    yield "id-of-six-bytes", "metadata-row", whole(metadata(metadata_row(id=SIX_BYTES)))
    yield "ids-out-of-order", "", stream(
        metadata(metadata_row(id=9, event_id=9, name="Nine"), metadata_row(id=1)), THREADS, events(event(), event(2, metadata_id=9)))
    yield "again", "metadata-redefined", whole(META)
    yield "again-in-one-block", "metadata-redefined", stream(
        metadata(metadata_row(), metadata_row()), THREADS, events(event()))
    yield "again-other-name", "metadata-redefined event-id-unique", stream(
        metadata(metadata_row(), metadata_row(name="Other")), THREADS, events(event()))
    yield "again-other-event-id", "metadata-redefined", stream(
        metadata(metadata_row(), metadata_row(event_id=2, name="Other")), THREADS, events(event()))
    yield "again-after-sequence-point", "metadata-redefined", whole()[:-4] + sequence_point() + META + ENDING
    for flags in (FLUSH_METADATA, FLUSH_METADATA | FLUSH_THREADS):
        again = THREADS if flags & FLUSH_THREADS else b""
        yield f"again-after-flush-{flags}", "", stream(
            META, THREADS, EVENTS, sequence_point(flags=flags), again, META, LATER)
        yield f"used-after-flush-{flags}", "metadata-defined", stream(
            META, THREADS, EVENTS, sequence_point(flags=flags), again, LATER)
        yield f"other-after-flush-{flags}", "", stream(
            META, THREADS, EVENTS, sequence_point(flags=flags), again,
            metadata(metadata_row(event_id=2, name="Other", fields=[field("n", INT32)])), LATER)
        yield f"other-name-after-flush-{flags}", "event-id-unique", stream(
            META, THREADS, EVENTS, sequence_point(flags=flags), again,
            metadata(metadata_row(name="Other", fields=[field("n", INT32)])), LATER)
    yield "kept-after-flush-of-threads", "", stream(
        META, THREADS, EVENTS, sequence_point(flags=FLUSH_THREADS), THREADS, LATER)
    for event_id in (0, 65534):
        yield f"event-id-{event_id}", "", one(event_id=event_id)
    for event_id in (65535, 65536, 65537, 2**32 - 1):
        yield f"event-id-{event_id}", "event-id-range", one(event_id=event_id)
    yield "event-id-over-32-bits", "metadata-row", whole(metadata(metadata_row(id=2, event_id=OVER_32_BITS)))
    yield "event-id-of-two-names", "event-id-unique", stream(
        metadata(metadata_row(), metadata_row(id=2, name="Other")), THREADS, events(event(), event(2, metadata_id=2)))
    yield "event-id-of-two-levels", "", stream(
        metadata(metadata_row(optional=b"\x08\2"), metadata_row(id=2, optional=b"\x08\5")), THREADS,
        events(event(), event(2, metadata_id=2)))
    yield "event-id-of-two-providers", "", stream(
        metadata(metadata_row(), metadata_row(id=2, provider="Q", name="Other")), THREADS, events(event(), event(2, metadata_id=2)))
    yield "event-id-of-two-fields", "event-id-unique", stream(
        metadata(metadata_row(), metadata_row(id=2, fields=[field("n", INT32)])), THREADS,
        events(event(), event(2, metadata_id=2, payload=u32(1))))
    yield "name-empty", "", one(name="")
    yield "provider-empty", "", one(provider="")
    yield "both-names-empty", "", one(name="", provider="")
    yield "name-long", "", one(name="N" * 60000)
    yield "provider-long", "", one(provider="P" * 60000)
    yield "name-of-other-letters", "", one(name="größer 事件 😀", provider="Ähre")
    yield "name-with-slash", "", one(name="A/B")
    yield "name-with-nul", "", one(name="A\0B")
    yield "provider-with-nul", "", one(provider="A\0B")
    yield "name-not-utf8", "string-utf8", one(name=NOT_UTF8)
    yield "provider-not-utf8", "string-utf8", one(provider=NOT_UTF8)
    yield "name-that-ends-in-start", "start-stop-opcode", one(name="WorkStart")
    yield "name-start", "start-stop-opcode", one(name="Start")
    yield "name-that-ends-in-start-with-opcode", "", one(name="WorkStart", optional=b"\1\1")
    yield "name-that-ends-in-stop-with-opcode-0", "", one(name="WorkStop", optional=b"\1\0")
    for name in ("EventID(1)", "ManifestData", "Task", "Opcode", " ", "a\nb", "%1"):
        yield f"name-{name.strip() or 'blank'}".replace("\n", "-"), "", one(name=name)
    for provider in ("Microsoft-DotNETCore-EventPipe", "Microsoft-Windows-DotNETRuntime", "System.Diagnostics.Eventing.FrameworkEventSource",
                     "Microsoft-DotNETCore-SampleProfiler", "Windows Kernel", "Universal.Other"):
        yield f"provider-{provider}", "", one(provider=provider, event_id=60000)
    yield "fields-too-many", "metadata-row", whole(metadata(row(var(2) + text("P") + var(2) + text("N") + u16(65535))))
    yield "fields-less-than-bytes", "metadata-row", whole(
        metadata(row(var(2) + text("P") + var(2) + text("N") + u16(0) + field("n", INT32) + row(b""))))
    yield "field-of-no-bytes", "metadata-row", whole(metadata(metadata_row(id=2, event_id=2, fields=[row(b"")])))
    yield "field-longer-than-its-parts", "", one(fields=[row(text("n") + bytes([INT32]) + b"more")], payload=u32(1))
    yield "field-without-type", "metadata-row", whole(metadata(metadata_row(id=2, event_id=2, fields=[row(text("n"))])))
    yield "field-name-empty", "", one(fields=[field("", INT32)], payload=u32(1))
    yield "field-names-empty", "", one(fields=[field("", INT32), field("", INT32)], payload=u32(1) + u32(2))
    yield "field-name-twice", "", one(fields=[field("n", INT32), field("n", INT32)], payload=u32(1) + u32(2))
    yield "field-name-long", "", one(fields=[field("n" * 60000, INT32)], payload=u32(1))
    yield "field-name-with-nul", "", one(fields=[field("a\0b", INT32)], payload=u32(1))
    yield "field-name-not-utf8", "string-utf8", one(fields=[field(NOT_UTF8, INT32)], payload=u32(1))
    yield "fields-300", "", one(
        fields=[field(f"n{i}", BYTE) for i in range(300)], payload=bytes(i % 256 for i in range(300)))
    yield "optional-too-long", "metadata-row", whole(
        metadata(row(var(2) + text("P") + var(2) + text("N") + u16(0) + u16(9) + b"\1\1")))
    yield "optional-missing", "metadata-row", whole(metadata(row(var(2) + text("P") + var(2) + text("N") + u16(0))))
    for kind in (0, 2, 10, 255):
        yield f"optional-kind-{kind}", "metadata-row metadata-defined", one(optional=bytes([kind, 1]))
    for kind, value in ((1, b""), (3, b"\1\2\3"), (4, b"\5ab"), (5, b"\5ab"), (6, b"\1a"), (7, b"\1" * 15), (8, b""), (9, b"")):
        yield f"optional-{kind}-cut", "metadata-row metadata-defined", one(optional=bytes([kind]) + value)
    for kind, value in ((1, b"\x0A"), (3, u64(5)), (4, text("a {n}")), (5, text("about")), (7, bytes(range(16))), (8, b"\2"), (9, b"\3")):
        yield f"optional-{kind}", "", one(optional=bytes([kind]) + value)
        yield f"optional-{kind}-zero", "", one(
            optional=bytes([kind]) + (text("") if kind in (4, 5) else bytes(len(value))))
        yield f"optional-{kind}-largest", "", one(
            optional=bytes([kind]) + (text("x" * 60000) if kind in (4, 5) else b"\xFF" * len(value)))
        yield f"optional-{kind}-twice", "", one(
            optional=bytes([kind]) + (text("") if kind in (4, 5) else b"\1" * len(value)) + bytes([kind]) + value)
    yield "optional-pairs", "", one(optional=b"\6" + text("a") + text("b") + b"\6" + text("a") + text("c"))
    yield "optional-pair-not-utf8", "string-utf8", one(optional=b"\6" + text("a") + text(NOT_UTF8))
    yield "optional-template-not-utf8", "string-utf8", one(optional=b"\4" + text(NOT_UTF8))


def nested(depth):
    data = bytes([INT32])
    for _ in range(depth):
        data = bytes([OBJECT]) + u16(1) + field("o", data)
    return data


# For each type: its code, and the bytes of two values.
VALUES = {
    "boolean32": (BOOLEAN32, u32(0), u32(1)), "utf16": (UTF16, b"a\0", b"\x01\x04"), "sbyte": (SBYTE, b"\x80", b"\x7F"),
    "byte": (BYTE, b"\0", b"\xFF"), "int16": (INT16, b"\0\x80", b"\xFF\x7F"), "uint16": (UINT16, b"\0\0", b"\xFF\xFF"),
    "int32": (INT32, b"\0\0\0\x80", b"\xFF\xFF\xFF\x7F"), "uint32": (UINT32, b"\0" * 4, b"\xFF" * 4),
    "int64": (INT64, b"\0" * 7 + b"\x80", b"\xFF" * 7 + b"\x7F"), "uint64": (UINT64, b"\0" * 8, b"\xFF" * 8),
    "single": (SINGLE, struct.pack("<f", 0.1), struct.pack("<f", float("inf"))),
    "double": (DOUBLE, struct.pack("<d", 0.1), struct.pack("<d", float("nan"))),
    "guid": (GUID, bytes(range(16)), b"\xFF" * 16), "text": (TEXT, b"a\0b\0\0\0", b"\0\0"),
    "varint": (VARINT, b"\xFF" * 9 + b"\1", b"\xFE" + b"\xFF" * 8 + b"\1"), "varuint": (VARUINT, b"\0", b"\xFF" * 9 + b"\1"),
    "utf8": (UTF8, b"a", b"z"), "boolean8": (BOOLEAN8, b"\0", b"\1"),
}


def type_cases():
    def one(type_bytes, payload, after=INT32):
        rows = [field("f", *type_bytes), field("after", after)]
        return stream(metadata(metadata_row(fields=rows)), THREADS, events(event(payload=payload + u32(77))))

    for name, (code, first, second) in VALUES.items():
        yield name, "", stream(metadata(metadata_row(fields=[field("f", code), field("g", code)])), THREADS,
                               events(event(payload=first + second)))
        yield f"array-of-{name}", "", one([ARRAY, code], u16(2) + first + second)
        yield f"array-of-no-{name}", "", one([ARRAY, code], u16(0))
        yield f"fixed-array-of-{name}", "", one([FIXED_ARRAY, code, u16(2)], first + second)
        yield f"object-of-{name}", "", one([OBJECT, u16(1), field("o", code)], second)
        yield f"array-of-object-of-{name}", "", one([ARRAY, OBJECT, u16(1), field("o", code)], u16(2) + first + second)
        rules = "location-element" if code in (TEXT, VARINT, VARUINT) else ""
        if not rules:
            place = 8  # position of the data: after the location and the next field
            for kind, location in (("dataloc", DATALOC), ("relloc", RELLOC)):
                at = place if location == DATALOC else place - 4
                yield f"{kind}-of-{name}", "", stream(
                    metadata(metadata_row(fields=[field("f", location, code), field("after", INT32)])), THREADS,
                    events(event(payload=u32(len(first + second) << 16 | at) + u32(77) + first + second)))
        else:
            yield f"dataloc-of-{name}", rules, one([DATALOC, code], u32(0))
    for code in (0, 2, 27, 128, 255):
        yield f"code-{code}", "metadata-row", whole(metadata(metadata_row(id=2, event_id=2, fields=[field("f", code)])))
    yield "decimal", "type-misread", one([DECIMAL], bytes(16))
    yield "datetime", "type-misread", one([DATETIME], struct.pack("<8H", 2026, 11, 6, 21, 10, 0, 0, 0))
    yield "array-without-element", "metadata-row", whole(
        metadata(metadata_row(id=2, event_id=2, fields=[field("f", ARRAY)])))
    yield "fixed-array-without-count", "metadata-row", whole(
        metadata(metadata_row(id=2, event_id=2, fields=[field("f", FIXED_ARRAY, INT32)])))
    yield "fixed-array-of-0", "fixed-array-size", one([FIXED_ARRAY, INT32, u16(0)], b"")
    yield "fixed-array-of-largest", "fixed-array-size", stream(
        metadata(metadata_row(fields=[field("f", FIXED_ARRAY, INT32, u16(65535))])), THREADS)
    yield "object-of-nothing", "", one([OBJECT, u16(0)], b"")
    yield "object-of-nothing-last", "", stream(
        metadata(metadata_row(fields=[field("f", OBJECT, u16(0))])), THREADS, events(event()))
    yield "array-of-objects-of-nothing", "array-of-empty-objects", one([ARRAY, OBJECT, u16(0)], u16(3))
    yield "array-of-array", "array-of-arrays", one([ARRAY, ARRAY, INT32], u16(1) + u16(1) + u32(1))
    yield "array-of-array-of-utf16", "", one([ARRAY, ARRAY, UTF16], u16(2) + u16(1) + b"a\0" + u16(2) + b"b\0c\0")
    yield "array-of-fixed-array-of-utf16", "", one([ARRAY, FIXED_ARRAY, UTF16, u16(2)], u16(2) + b"a\0b\0" + b"c\0d\0")
    yield "array-of-dataloc", "array-of-arrays", one([ARRAY, DATALOC, INT32], u16(1) + u32(0))
    yield "object-with-a-name-twice", "", one([OBJECT, u16(2), field("o", BYTE), field("o", BYTE)], b"\1\2")
    for depth in (8, 31):
        yield f"objects-{depth}-deep", "", one([nested(depth)], u32(5))
    yield "objects-33-deep", "reader-limits", one([nested(33)], u32(5))
    yield "objects-1000-deep", "reader-limits", one([nested(1000)], u32(5))
    yield "arrays-1000-deep", "reader-limits", stream(
        metadata(metadata_row(fields=[field("f", *[ARRAY] * 1000, INT32)])), THREADS, events(event(payload=u16(0) + u32(77))))


UTF8_TEXT = (ARRAY, UTF8)
PROCESS = [field("NamespaceId", VARUINT), field("Name", *UTF8_TEXT), field("NamespaceName", *UTF8_TEXT)]
# The events that a TraceLog knows by their provider and id, with the fields that it expects, and payloads of them.
SYSTEM = {
    (0, "ExistingProcess"): (PROCESS, var(7) + u16(1) + b"a" + u16(0)),
    (1, "ProcessCreate"): (PROCESS, var(7) + u16(1) + b"a" + u16(0)),
    (2, "ProcessExit"): ([], b""),
    (3, "ProcessMapping"): ([field("Id", VARUINT), field("StartAddress", VARUINT), field("EndAddress", VARUINT),
                             field("FileOffset", VARUINT), field("FileName", *UTF8_TEXT), field("MetadataId", VARUINT)],
                            var(1) + var(4096) + var(8191) + var(0) + u16(2) + b"/a" + var(0)),
    (4, "ProcessSymbol"): ([field("Id", VARUINT), field("MappingId", VARUINT), field("StartAddress", VARUINT),
                            field("EndAddress", VARUINT), field("Name", *UTF8_TEXT)],
                           var(1) + var(1) + var(4096) + var(4100) + u16(1) + b"f"),
    (5, "ProcessMappingMetadata"): ([field("Id", VARUINT), field("SymbolMetadata", *UTF8_TEXT), field("VersionMetadata", *UTF8_TEXT)],
                                    var(1) + u16(0) + u16(0)),
}


def known_cases():
    """Yields events that TraceLog knows: with the fields and name that it expects, and with others."""
    def one(provider, event_id, name, fields, payload):
        return stream(metadata(metadata_row(provider=provider, event_id=event_id, name=name, fields=fields)), THREADS,
                      events(event(payload=payload), event(2, 2010, payload=payload)))

    other = ([field("n", BYTE)], b"\1")
    for (event_id, name), right in SYSTEM.items():
        yield f"system-{event_id}", "", one("Universal.System", event_id, name, *right)
        yield f"system-{event_id}-other-fields", "known-events", one("Universal.System", event_id, name, *other)
        yield f"system-{event_id}-other-name", "known-events", one("Universal.System", event_id, "Other", *right)
        if right[0]:
            yield f"system-{event_id}-one-field-less", "known-events", one(
                "Universal.System", event_id, name, right[0][:-1], right[1])
    yield "system-0-text-of-utf16", "known-events", one(
        "Universal.System", 0, "ExistingProcess", [PROCESS[0], field("Name", ARRAY, UTF16), field("NamespaceName", ARRAY, UTF16)],
        var(7) + u16(1) + b"a\0" + u16(0))
    yield "system-0-more-fields", "known-events", one(
        "Universal.System", 0, "ExistingProcess", [*PROCESS, field("more", BYTE)], SYSTEM[0, "ExistingProcess"][1] + b"\1")
    yield "system-6", "", one("Universal.System", 6, "Other", *other)
    yield "system-100", "", one("Universal.System", 100, "Other", *other)
    for name in ("cpu", "cswitch"):
        yield f"events-{name}", "", one("Universal.Events", 1, name, [field("Value", VARUINT)], var(300))
        yield f"events-{name}-other-fields", "known-events", one("Universal.Events", 1, name, *other)
        yield f"events-{name}-other-type", "known-events", one(
            "Universal.Events", 1, name, [field("Value", UINT64)], u64(300))
    yield "events-other", "", one("Universal.Events", 1, "Other", *other)
    yield "events-CPU", "", one("Universal.Events", 1, "CPU", *other)
    yield "lower-case-system", "known-events", one("universal.system", 0, "Other", *other)
    yield "lower-case-events", "known-events", one("universal.events", 0, "cpu", *other)


def payload_cases():
    def one(fields, payload):
        rows = [field(name, *parts) for name, *parts in fields]
        return stream(metadata(metadata_row(fields=rows)), THREADS, events(event(payload=payload), event(2, 2010, payload=payload)))

    number = ("n", INT32)
    yield "empty", "payload", one([number], b"")
    yield "short", "payload", one([number], b"\1\2\3")
    yield "long", "", one([number], u32(1) + b"more")
    yield "without-fields", "", one([], b"more")
    yield "second-field-missing", "payload", one([number, ("m", INT32)], u32(1))
    yield "text-without-end", "payload", one([("t", TEXT)], b"a\0b\0")
    yield "text-of-an-odd-byte", "payload", one([("t", TEXT)], b"a\0b")
    yield "text-with-a-lone-surrogate", "", one([("t", TEXT)], b"a\0\0\xD8b\0\0\0")
    yield "text-utf8-not-utf8", "", one([("t", ARRAY, UTF8)], u16(3) + NOT_UTF8)
    yield "text-utf8-other-letters", "", one([("t", ARRAY, UTF8)], u16(6) + "größ".encode())
    yield "text-utf16-with-nul", "", one([("t", ARRAY, UTF16)], u16(3) + b"a\0\0\0b\0")
    yield "array-too-long", "payload", one([("a", ARRAY, INT32)], u16(3) + u32(1) + u32(2))
    yield "array-count-cut", "payload", one([("a", ARRAY, INT32)], b"\1")
    yield "array-of-32767", "", one([("a", ARRAY, BYTE)], u16(32767) + b"\1" * 32767)
    yield "array-of-32768", "array-count", one([("a", ARRAY, BYTE)], u16(32768) + b"\1" * 32768)
    yield "array-of-65000", "array-count", one([("a", ARRAY, BYTE)], u16(65000) + b"\1" * 65000)
    yield "fixed-array-short", "payload", one([("a", FIXED_ARRAY, INT32, u16(3))], u32(1))
    yield "varuint-of-11-bytes", "payload", one([("v", VARUINT)], ELEVEN_BYTES)
    yield "varuint-cut", "payload", one([("v", VARUINT)], b"\xFF\xFF")
    yield "varuint-padded", "", one([("v", VARUINT), number], var(5, 5) + u32(1))
    yield "varint-over-64-bits", "payload", one([("v", VARINT)], b"\xFF" * 9 + b"\x7F")
    yield "boolean8-of-2", "", one([("b", BOOLEAN8)], b"\2")
    yield "boolean32-of-2", "", one([("b", BOOLEAN32)], u32(2))
    yield "boolean32-of-2^31+1", "", one([("b", BOOLEAN32)], u32(2**31 + 1))
    yield "boolean32-of-2^31", "boolean-value", one([("b", BOOLEAN32)], u32(2**31))
    yield "boolean32s-in-an-array", "boolean-value", one([("b", ARRAY, BOOLEAN32)], u16(2) + u32(1) + u32(256))
    yield "boolean32-of-256", "boolean-value", one([("b", BOOLEAN32)], u32(256))
    for kind, code in (("dataloc", DATALOC), ("relloc", RELLOC)):
        zero = 4 if code == DATALOC else 0
        yield f"{kind}-of-nothing", "", one([("l", code, BYTE)], u32(zero))
        yield f"{kind}-at-0", "", one([("l", code, BYTE)], u32(0))
        yield f"{kind}-outside", "payload", one([("l", code, BYTE)], u32(8 << 16 | zero))
        yield f"{kind}-largest", "payload", one([("l", code, BYTE)], b"\xFF" * 4)
        yield f"{kind}-cut", "payload", one([("l", code, BYTE)], b"\1\0")
        yield f"{kind}-of-half-an-element", "payload", one([("l", code, INT32)], u32(6 << 16 | zero) + b"\1" * 6)
        yield f"{kind}-text-without-nul", "", one([("l", code, UTF16)], u32(4 << 16 | zero) + b"a\0b\0")
        yield f"{kind}-text-with-nul", "", one([("l", code, UTF8)], u32(4 << 16 | zero) + b"a\0b\0")
        yield f"{kind}-text-empty", "", one([("l", code, UTF16)], u32(zero))
    yield "datalocs-to-the-same-bytes", "", one(
        [("l", DATALOC, BYTE), ("m", DATALOC, BYTE)], 2 * u32(2 << 16 | 8) + b"\1\2")
    yield "dataloc-to-itself", "", one([("l", DATALOC, BYTE)], u32(4 << 16))
    for size in (65436, 65437, 100_000):
        yield f"of-{size}-bytes", "" if size <= 65436 else "payload-size", one([("n", INT32)], u32(5) + bytes(size - 4))


def thread_cases():
    def one(*rows, thread=1):
        return stream(META, threads(*rows), events(event(payload=u32(1), thread=thread, capture_thread=thread)))

    yield "none", "thread-defined", stream(META, EVENTS)
    yield "empty-block", "", whole(threads())
    yield "row-of-no-bytes", "thread-row", whole(threads(row(b"")))
    yield "row-too-long", "thread-row", whole(block(THREAD, u16(100) + thread_row(2)[2:]))
    yield "row-size-cut", "thread-row", whole(block(THREAD, b"\1"))
    for index in (0, 2**32, 2**63, 2**64 - 1):
        yield f"index-{index}", "", one(thread_row(index), thread=index)
    yield "index-padded", "", one(thread_row(var(1, 6)))
    yield "index-of-11-bytes", "thread-row", whole(threads(thread_row(ELEVEN_BYTES)))
    yield "index-over-64-bits", "thread-row", whole(threads(thread_row(b"\xFF" * 9 + b"\x7F")))
    yield "again", "thread-redefined", whole(THREADS)
    yield "again-in-one-block", "thread-redefined", one(thread_row(), thread_row())
    yield "again-other-ids", "thread-redefined", one(thread_row(), thread_row(pid=7, tid=8))
    yield "again-after-sequence-point", "thread-redefined", stream(
        META, THREADS, EVENTS, sequence_point(), THREADS, LATER)
    yield "again-after-flush", "", stream(
        META, THREADS, EVENTS, sequence_point(flags=FLUSH_THREADS), threads(thread_row(tid=50)), events(event(1, 3010, u32(1))))
    yield "again-after-flush-of-metadata", "thread-redefined", stream(
        META, THREADS, EVENTS, sequence_point(flags=FLUSH_METADATA), META, THREADS, LATER)
    yield "used-after-flush", "thread-defined", stream(META, THREADS, EVENTS, sequence_point(flags=FLUSH_THREADS), LATER)
    yield "two-of-one-tid", "", one(thread_row(1), thread_row(2))
    yield "two-of-one-tid-and-other-pid", "", one(thread_row(1), thread_row(2, pid=99))
    yield "without-ids", "", one(thread_row(pid=None, tid=None))
    yield "without-pid", "", one(thread_row(pid=None))
    yield "without-tid", "", one(thread_row(tid=None))
    yield "without-anything", "", one(thread_row(name=None, pid=None, tid=None))
    yield "without-pid-but-that-of-the-trace", "", stream(
        META, threads(thread_row(pid=None)), EVENTS, start=trace(pairs=[("ProcessId", "77")]))
    for number in (0, 2**31 - 1):
        yield f"pid-{number}", "", one(thread_row(pid=number))
        yield f"tid-{number}", "", one(thread_row(tid=number))
    for number in (2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1):
        yield f"pid-{number}", "", one(thread_row(pid=number))
        yield f"tid-{number}", "", one(thread_row(tid=number))
    yield "name-empty", "", one(thread_row(name=""))
    yield "name-long", "", one(thread_row(name="n" * 60000))
    yield "name-with-nul", "", one(thread_row(name="a\0b"))
    yield "name-not-utf8", "string-utf8", one(thread_row(name=NOT_UTF8))
    yield "name-too-long", "thread-row", whole(threads(row(var(2) + b"\1\x7Fabc")))
    yield "name-twice", "", one(thread_row(more=b"\1" + text("other")))
    yield "pid-twice", "", one(thread_row(more=b"\2" + var(7)))
    yield "tid-twice", "", one(thread_row(more=b"\3" + var(7)))
    yield "pairs", "", one(thread_row(more=b"\4" + text("k") + text("v") + b"\4" + text("k") + text("w")))
    yield "pair-not-utf8", "string-utf8", one(thread_row(more=b"\4" + text("k") + text(NOT_UTF8)))
    yield "pair-cut", "thread-row", whole(threads(row(var(2) + b"\4\1k")))
    for kind in (0, 5, 255):
        yield f"kind-{kind}", "thread-row", whole(threads(thread_row(2, more=bytes([kind, 1]))))


def removal_cases():
    big = threads(thread_row(BIG_INDEX))
    used = events(event(1, 2000, u32(7), thread=BIG_INDEX, capture_thread=BIG_INDEX))

    def removed(*blocks, number=1):
        return stream(META, big, used, remove_threads((BIG_INDEX, number)), *blocks)

    yield "once", "", removed()
    yield "empty-block", "", whole(remove_threads())
    yield "of-unknown-thread", "thread-removed", whole(remove_threads((BIG_INDEX + 1, 0)))
    yield "twice", "thread-removed", removed(remove_threads((BIG_INDEX, 1)))
    yield "twice-in-one-block", "thread-removed", stream(META, big, used, remove_threads((BIG_INDEX, 1), (BIG_INDEX, 1)))
    yield "of-low-index", "remove-thread-index", whole()[:-4] + remove_threads((1, 2)) + ENDING
    yield "of-index-4194304", "remove-thread-index", stream(
        threads(thread_row(4194304)), remove_threads((4194304, 0)))
    yield "of-index-4194305", "", stream(threads(thread_row(4194305)), remove_threads((4194305, 0)))
    yield "of-index-that-is-the-tid-of-another", "remove-thread-index", stream(
        META, threads(thread_row(1, tid=43), thread_row(43, tid=1)), events(event(payload=u32(1))), remove_threads((1, 1)),
        events(event(1, 2010, u32(2), thread=43, capture_thread=43)))
    yield "cut", "thread-row", whole(block(REMOVE_THREAD, var(1)))
    yield "index-of-11-bytes", "thread-row", whole(block(REMOVE_THREAD, ELEVEN_BYTES))
    yield "number-too-low", "sequence-point-number", removed(number=0)
    yield "number-higher", "", removed(number=5)
    yield "event-after", "thread-defined", removed(
        events(event(2, 2010, u32(7), thread=BIG_INDEX, capture_thread=BIG_INDEX)))
    yield "again-without-flush", "thread-index-reused", removed(big)
    yield "again-after-sequence-point", "thread-index-reused", removed(sequence_point(), big)
    yield "again-after-flush", "", removed(sequence_point(flags=FLUSH_THREADS), big)
    yield "again-after-flush-of-metadata", "thread-index-reused", removed(sequence_point(flags=FLUSH_METADATA), big)
    yield "then-listed", "sequence-point-thread", removed(sequence_point(listed=[(BIG_INDEX, 1)]))
    yield "then-another", "", removed(threads(thread_row(BIG_INDEX + 1)), events(
        event(1, 2010, u32(8), thread=BIG_INDEX + 1, capture_thread=BIG_INDEX + 1)))
    yield "other-with-its-tid", "", removed(threads(thread_row(BIG_INDEX + 1, name="other")))


def label_cases():
    def one(*items, label=1):
        return stream(META, THREADS, labels(label_list(*items)), events(event(payload=u32(1), label=label)))

    values = {"activity": b"\1" + bytes(range(16)), "related": b"\2" + bytes(range(16)), "trace-id": b"\3" + bytes(range(16)),
              "span-id": b"\4" + u64(5), "string": b"\5" + text("k") + text("v"), "integer": b"\6" + text("k") + var(9),
              "keywords": b"\x08" + u64(5), "level": b"\x09\2", "version": b"\x0A\3"}
    for name, value in values.items():
        yield name, "", one(value)
        yield f"{name}-twice", "", one(value, value)
        yield f"{name}-cut", "label-row", stream(
            META, THREADS, block(LABEL_LIST, u32(1) + u32(1) + bytes([value[0] | 0x80]) + value[1:-1]), EVENTS)
    yield "opcode", "", one(b"\7\1")
    yield "opcode-of-the-row", "", stream(
        metadata(metadata_row(optional=b"\1\1")), THREADS, labels(label_list(b"\7\1")), events(event(label=1)))
    yield "all", "", one(*values.values())
    yield "activity-of-zeros", "", one(b"\1" + bytes(16))
    yield "level-0", "", one(b"\x09\0")
    yield "level-255", "", one(b"\x09\xFF")
    yield "keywords-largest", "", one(b"\x08" + b"\xFF" * 8)
    yield "version-255", "", one(b"\x0A\xFF")
    for kind in (0, 11, 127):
        yield f"kind-{kind}", "label-row labels-defined", one(bytes([kind]) + b"\1")
    yield "without-last", "label-row labels-defined", stream(
        META, THREADS, labels(b"\x0A\1"), events(event(payload=u32(1), label=1)))
    yield "empty-block", "label-row", whole(block(LABEL_LIST))
    yield "header-cut", "label-row", whole(block(LABEL_LIST, u32(1) + b"\1\0"))
    yield "no-lists", "", whole(labels())
    yield "count-too-high", "label-row", whole(labels(label_list(b"\x0A\1"), count=2))
    yield "count-largest", "label-row", whole(labels(label_list(b"\x0A\1"), count=2**32 - 1))
    yield "count-too-low", "block-end", whole(labels(label_list(b"\x0A\1"), label_list(b"\x0A\2"), count=1))
    yield "first-0", "label-first-index", whole(labels(label_list(b"\x0A\1"), first=0))
    yield "first-0-of-none", "label-first-index", whole(labels(first=0))
    yield "first-largest", "", stream(META, THREADS, labels(label_list(b"\x0A\1"), first=2**32 - 1),
                                      events(event(payload=u32(1), label=2**32 - 1)))
    yield "index-over-32-bits", "label-row", whole(labels(label_list(b"\x0A\1"), label_list(b"\x0A\1"), first=2**32 - 1))
    yield "again", "label-redefined", whole(labels(label_list(b"\x0A\1")), labels(label_list(b"\x0A\2")))
    yield "again-after-sequence-point", "", stream(
        META, THREADS, labels(label_list(b"\x0A\1")), events(event(1, 2000, u32(1), label=1)), sequence_point(),
        labels(label_list(b"\x0A\2")), events(event(2, 3010, u32(1), label=1)))
    yield "used-after-sequence-point", "labels-defined", stream(
        META, THREADS, labels(label_list(b"\x0A\1")), events(event(1, 2000, u32(1), label=1)), sequence_point(),
        events(event(2, 3010, u32(1), label=1)))
    yield "used-before", "labels-defined", stream(
        META, THREADS, events(event(payload=u32(1), label=1)), labels(label_list(b"\x0A\1")))
    yield "undefined", "labels-defined", stream(META, THREADS, events(event(payload=u32(1), label=9)))
    yield "out-of-order", "", stream(META, THREADS, labels(label_list(b"\x0A\1"), first=9), labels(label_list(b"\x0A\2"), first=3),
                                     events(event(payload=u32(1), label=9), event(2, payload=u32(1), label=3)))
    yield "string-not-utf8", "string-utf8", one(b"\5" + text("k") + text(NOT_UTF8))
    yield "string-long", "", one(b"\5" + text("k") + text("v" * 100_000))
    yield "integer-largest", "", one(b"\6" + text("k") + b"\xFF" * 9 + b"\1")
    yield "integer-of-11-bytes", "label-row labels-defined", one(b"\6" + text("k") + ELEVEN_BYTES)


def stack_cases():
    def one(*lists, stack=1, **header):
        return stream(META, THREADS, stacks(*lists, **header), events(event(payload=u32(1), stack=stack)))

    frames = u64(0x401000) + u64(0x402000)
    yield "of-two", "", one(frames)
    yield "empty", "", one(b"")
    yield "of-zeros", "", one(bytes(16))
    yield "of-largest", "", one(b"\xFF" * 16)
    yield "of-half-a-frame", "stack-size", one(frames + b"\1\2\3\4")
    yield "of-4-byte-pointers", "", stream(META, THREADS, stacks(u32(0x1000) + u32(0x2000)), events(event(payload=u32(1), stack=1)),
                                           start=trace(pointer_size=4))
    yield "of-8190", "", one(b"".join(map(u64, range(1, 8191))))
    yield "of-8191", "stack-frames", one(b"".join(map(u64, range(1, 8192))))
    yield "size-too-high", "stack-row", whole(block(STACK, u32(1) + u32(1) + u32(100) + frames))
    yield "size-largest", "stack-row", whole(block(STACK, u32(1) + u32(1) + u32(2**32 - 1) + frames))
    yield "empty-block", "stack-row", whole(block(STACK))
    yield "header-cut", "stack-row", whole(block(STACK, u32(1) + b"\1"))
    yield "none", "", whole(stacks())
    yield "count-too-high", "stack-row", whole(stacks(frames, count=2))
    yield "count-largest", "stack-row", whole(stacks(frames, count=2**32 - 1))
    yield "count-too-low", "block-end", whole(stacks(frames, frames, count=1))
    yield "first-0", "", whole(stacks(frames, first=0))
    yield "first-largest", "", one(frames, stack=2**32 - 1, first=2**32 - 1)
    yield "id-over-32-bits", "", one(frames, frames, stack=2**32 - 1, first=2**32 - 1)
    yield "again", "stack-redefined", whole(stacks(frames), stacks(frames))
    yield "again-after-sequence-point", "", stream(
        META, THREADS, stacks(frames), events(event(1, 2000, u32(1), stack=1)), sequence_point(), stacks(u64(9)),
        events(event(2, 3010, u32(1), stack=1)))
    yield "used-after-sequence-point", "stack-defined", stream(
        META, THREADS, stacks(frames), events(event(1, 2000, u32(1), stack=1)), sequence_point(), events(event(2, 3010, u32(1), stack=1)))
    yield "undefined", "stack-defined", stream(META, THREADS, events(event(payload=u32(1), stack=9)))
    yield "used-before", "stack-defined", stream(META, THREADS, events(event(payload=u32(1), stack=1)), stacks(frames))


def event_cases():
    def one(**fields):
        return stream(META, THREADS, events(event(**{"payload": u32(7), **fields})))

    def rows(data, rules="", least=2000, most=2000, **header):
        return rules, stream(META, THREADS, event_block_of(data, least, most, **header))

    plain = event_rows(event(1, 2000, u32(7)))
    yield "empty-block", "event-block-header", whole(block(EVENT))
    yield "header-cut", "event-block-header", whole(block(EVENT, u16(20) + u16(1) + bytes(8)))
    yield "header-of-0", *rows(plain, "event-block-header", header_size=0)
    yield "header-of-19", *rows(plain, "event-block-header", header_size=19)
    yield "header-of-24", *rows(plain, header_size=24, more=b"more")
    yield "header-largest", *rows(plain, "event-block-header", header_size=65535)
    yield "no-rows", *rows(b"", "event-block-empty")
    for name, least, most in (("least-0", 0, 2000), ("least-late", 2001, 2000), ("most-early", 2000, 1999), ("most-late", 2000, 3000),
                              ("both-0", 0, 0), ("swapped", 3000, 1000), ("largest", 2000, 2**64 - 1)):
        yield f"times-{name}", *rows(plain, "block-timestamps", least, most)
    for flags in (3, 0x8001, 0xFFFF):
        yield f"flags-{flags:#x}", *rows(plain, flags=flags)
    uncompressed = u32(1) + u32(1) + u64(1) + u64(1) + u32(0) + u32(0) + u64(2000) + u32(0) + u32(4) + u32(7)
    yield "uncompressed", *rows(u32(len(uncompressed)) + uncompressed, "uncompressed-rows", flags=0)
    yield "row-cut", *rows(plain[:-2], "event-row")
    yield "row-flags-only", *rows(plain + b"\x9F", "event-row")
    yield "row-of-flags-0", *rows(plain + b"\0\x0A" + u32(8), "", most=2010)
    yield "first-row-of-flags-0", *rows(b"\0\xD0\x0F", "metadata-defined thread-defined")
    yield "row-with-reserved-flag", *rows(bytes([plain[0] | 0x20]) + plain[1:], "")
    yield "bytes-after-rows", *rows(plain + b"\x80", "event-row")
    yield "metadata-0", "metadata-defined", one(metadata_id=0)
    yield "metadata-undefined", "metadata-defined", one(metadata_id=9)
    yield "metadata-later", "metadata-defined", stream(THREADS, events(event(payload=u32(7))), META)
    yield "metadata-over-32-bits", *rows(b"\xDF" + OVER_32_BITS + plain[2:], "event-row")
    yield "thread-undefined", "thread-defined", one(thread=9)
    yield "capture-thread-undefined", "thread-defined", one(capture_thread=9)
    yield "other-capture-thread", "", stream(
        META, threads(thread_row(1), thread_row(2, tid=44)), events(event(payload=u32(7), thread=2, capture_thread=1)))
    yield "capture-thread-change", "capture-thread-change", stream(
        META, threads(thread_row(1), thread_row(2, tid=44)),
        events(event(1, 2000, u32(7)), event(1, 2010, u32(8), thread=2, capture_thread=2, sorted=False)))
    yield "capture-thread-change-sorted", "", stream(
        META, threads(thread_row(1), thread_row(2, tid=44)),
        events(event(1, 2000, u32(7)), event(1, 2010, u32(8), thread=2, capture_thread=2)))
    yield "number-0", "sequence-order", one(number=0)
    yield "number-2", "", one(number=2)
    yield "number-2^31", "", one(number=2**31)
    yield "number-largest", "sequence-order", one(number=2**32 - 1)
    yield "number-again", "sequence-order", stream(
        META, THREADS, events(event(1, payload=u32(7)), event(1, payload=u32(8))))
    yield "number-back", "sequence-order", stream(
        META, THREADS, events(event(5, payload=u32(7)), event(3, payload=u32(8))))
    yield "number-gap", "", stream(META, THREADS, events(event(1, payload=u32(7)), event(9, payload=u32(8))))
    yield "number-gap-across-blocks", "", stream(
        META, THREADS, events(event(1, payload=u32(7))), events(event(9, payload=u32(8))))
    for cpu in (1, 255, 2**32 - 1):
        yield f"cpu-{cpu}", "", one(cpu=cpu)
    for cpu in (256, 65536, 2**31, 2**32 - 2):
        yield f"cpu-{cpu}", "processor-number", one(cpu=cpu)
    for time in (0, 1, 1000, 2**62, 2**63 - 11):
        yield f"time-{time}", "", one(time=time)
    for time in (2**63 - 10, 2**63, 2**64 - 1):
        yield f"time-{time}", "event-timestamp", one(time=time)
    yield "same-times", "", stream(META, THREADS, events(event(1, payload=u32(7)), event(2, payload=u32(8))))
    yield "payload-too-long", *rows(plain[:-5] + var(1000) + u32(7), "event-row")
    yield "payload-largest", *rows(plain[:-5] + var(2**32 - 1) + u32(7), "event-row")
    yield "blocks-of-one-event", "", stream(META, THREADS, *[events(event(n, 2000 + n, u32(n))) for n in range(1, 20)])
    yield "not-sorted", "", stream(
        META, THREADS, events(event(1, 2000, u32(7), sorted=False), event(2, 2010, u32(8), sorted=False)))


def order_cases():
    two = threads(thread_row(1), thread_row(2, tid=44))

    def of(number, time, thread, sorted=False):
        return event(number, time, u32(number), thread=thread, capture_thread=thread, sorted=sorted)

    yield "of-one-thread", "capture-thread-order", stream(META, two, events(of(1, 2010, 1), of(2, 2000, 1)))
    yield "of-one-thread-across-blocks", "capture-thread-order", stream(
        META, two, events(of(1, 2010, 1)), events(of(2, 2000, 1)))
    yield "of-two-threads", "", stream(META, two, events(of(1, 2010, 1)), events(of(1, 2000, 2)))
    yield "of-two-threads-sorted", "sorted-flag", stream(META, two, events(of(1, 2010, 1, True)), events(of(1, 2000, 2)))
    yield "of-two-threads-in-one-block", "sorted-flag", stream(
        META, two, events(of(1, 2010, 1, True), of(1, 2000, 2, True)))
    yield "interleaved-blocks", "", stream(
        META, two, events(of(1, 2000, 1), of(2, 2020, 1)), events(of(1, 2010, 2), of(2, 2030, 2)))
    yield "before-the-sequence-point-before", "after-sequence-point", stream(
        META, two, events(of(1, 2000, 1)), sequence_point(3000), events(of(2, 2990, 1)))
    yield "after-the-sequence-point-after", "before-sequence-point", stream(
        META, two, events(of(1, 3010, 1)), sequence_point(3000))
    yield "at-the-sequence-point", "", stream(
        META, two, events(of(1, 3000, 1)), sequence_point(3000), events(of(2, 3000, 1)))


def sequence_point_cases():
    def one(*points):
        return stream(META, THREADS, EVENTS, *points, LATER)

    yield "empty", "sequence-point-row", one(block(SEQUENCE_POINT))
    yield "cut", "sequence-point-row", one(block(SEQUENCE_POINT, u64(3000) + b"\0"))
    yield "first", "", stream(sequence_point(0), META, THREADS, EVENTS)
    yield "last", "", stream(META, THREADS, EVENTS, sequence_point())
    yield "only", "", stream(sequence_point())
    yield "several", "", one(*[sequence_point(3000 + n) for n in range(9)])
    yield "of-one-time", "", one(sequence_point(3000), sequence_point(3000))
    yield "backwards", "sequence-point-order", one(sequence_point(3000), sequence_point(2900))
    yield "time-largest", "", stream(META, THREADS, EVENTS, sequence_point(2**64 - 1))
    yield "time-2^63", "", stream(META, THREADS, EVENTS, sequence_point(2**63))
    for flags in (4, 0x80000000):
        yield f"flags-{flags:#x}", "", one(sequence_point(flags=flags))
    yield "flags-all", "", stream(META, THREADS, EVENTS, sequence_point(flags=2**32 - 1), META, THREADS, LATER)
    yield "lists-the-thread", "", one(sequence_point(listed=[(1, 2)]))
    yield "lists-losses", "", stream(
        META, THREADS, EVENTS, sequence_point(listed=[(1, 5)]), events(event(6, 3010, u32(9))))
    yield "number-too-low", "sequence-point-number", one(sequence_point(listed=[(1, 1)]))
    yield "number-0", "sequence-point-number", one(sequence_point(listed=[(1, 0)]))
    yield "number-2^31", "", stream(META, THREADS, EVENTS, sequence_point(listed=[(1, 2**31)]))
    yield "lists-no-events", "", stream(
        META, threads(thread_row(1), thread_row(2, tid=44)), EVENTS, sequence_point(listed=[(1, 2), (2, 0)]), LATER)
    yield "lists-a-thread-twice", "", one(sequence_point(listed=[(1, 2), (1, 2)]))
    yield "lists-unknown-thread", "sequence-point-thread", one(sequence_point(listed=[(9, 2)]))
    yield "count-too-high", "sequence-point-row", one(sequence_point(listed=[(1, 2)], count=2))
    yield "count-largest", "sequence-point-row", one(sequence_point(listed=[(1, 2)], count=2**32 - 1))
    yield "count-too-low", "block-end", one(sequence_point(listed=[(1, 2)], count=0))
    yield "before-metadata", "", stream(sequence_point(100), META, THREADS, EVENTS)
    yield "flushes-twice", "", stream(
        META, THREADS, EVENTS, sequence_point(flags=3), sequence_point(flags=3), META, THREADS, LATER)
    yield "flush-in-every-interval", "", stream(*itertools.chain.from_iterable(
        (META, THREADS, events(event(1, 2000 + 100 * n, u32(n))), sequence_point(2050 + 100 * n, flags=3, listed=[(1, 1)]))
        for n in range(10)))
