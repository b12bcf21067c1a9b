"""Reads the samples of tracepoints in a perf.data file that `perf record` wrote. The layout is documented in
tools/perf/Documentation/perf.data-file-format.txt and perf_event_open(2)."""

import struct

RECORD_LOST = 2
RECORD_SAMPLE = 9
RECORD_LOST_SAMPLES = 13

IDENTIFIER, IP, TID, TIME, ADDR, ID = 1 << 16, 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 6
STREAM_ID, CPU, PERIOD, RAW = 1 << 9, 1 << 7, 1 << 8, 1 << 10
KNOWN = IDENTIFIER | IP | TID | TIME | ADDR | ID | STREAM_ID | CPU | PERIOD | RAW


class Sample:
    """One sample: its time and CPU, and the tracepoint's record."""

    __slots__ = ("time", "cpu", "raw")

    def __init__(self, time, cpu, raw):
        self.time, self.cpu, self.raw = time, cpu, raw


def read(path):
    """Returns the samples in the order of the file, and the number of samples that the kernel lost."""
    with open(path, "rb") as file:
        data = memoryview(file.read())
    magic, _, attr_size, attrs_at, attrs_size, data_at, data_size = struct.unpack_from("<8s6Q", data)
    assert magic == b"PERFILE2"
    kinds = {}  # the sample type (PERF_SAMPLE_...) of each event, by the event's id
    for at in range(attrs_at, attrs_at + attrs_size, attr_size):
        kind = struct.unpack_from("<Q", data, at + 24)[0]
        ids_at, ids_size = struct.unpack_from("<QQ", data, at + attr_size - 16)
        for event in struct.unpack_from(f"<{ids_size // 8}Q", data, ids_at):
            kinds[event] = kind
    samples, lost = [], 0
    at, end = data_at, data_at + data_size
    while at < end:
        record, _, size = struct.unpack_from("<IHH", data, at)
        if record == RECORD_SAMPLE:
            kind = kinds[struct.unpack_from("<Q", data, at + 8)[0]]
            assert kind & IDENTIFIER and kind & RAW and kind & ~KNOWN == 0, f"unsupported sample type {hex(kind)}"
            samples.append(_sample(data, at + 8, kind))
        elif record == RECORD_LOST:
            lost += struct.unpack_from("<Q", data, at + 16)[0]
        elif record == RECORD_LOST_SAMPLES:
            lost += struct.unpack_from("<Q", data, at + 8)[0]
        at += size
    return samples, lost


def _sample(data, at, kind):
    time = cpu = None
    for bit in (IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD):
        if not kind & bit:
            continue
        if bit == TIME:
            time = struct.unpack_from("<Q", data, at)[0]
        elif bit == CPU:
            cpu = struct.unpack_from("<I", data, at)[0]
        at += 8
    size = struct.unpack_from("<I", data, at)[0]
    return Sample(time, cpu, bytes(data[at + 4:at + 4 + size]))
