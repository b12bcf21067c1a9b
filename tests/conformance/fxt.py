"""A strict reader of the Fuchsia trace format, by its specification. Whatever the specification does not allow is an
Error with its offset, and so is what Perfetto would drop or misread."""

import collections
import struct

MAGIC = 0x0016547846040010

# `number` is the id of a counter, or the id that correlates asynchronous slices and flows. Arguments are pairs.
Event = collections.namedtuple("Event", "offset type time process thread category name arguments number")
Object = collections.namedtuple("Object", "offset type koid name arguments")

INSTANT, COUNTER, DURATION_BEGIN, DURATION_END, DURATION_COMPLETE, ASYNC_BEGIN, ASYNC_INSTANT, ASYNC_END, FLOW_BEGIN, \
    FLOW_STEP, FLOW_END = range(11)
WITHOUT_NUMBER = (INSTANT, DURATION_BEGIN, DURATION_END)
PROCESS, THREAD = 1, 2


class Error(Exception):
    def __init__(self, offset, text):
        super().__init__(f"at {offset}: {text}")


class Koid(int):
    """The id of a kernel object."""


class Record:
    """The words of a record, read in order."""

    def __init__(self, data, offset, size, strings):
        self.data, self.offset, self.end, self.strings = data, offset, offset + size, strings

    def need(self, condition, text):
        if not condition:
            raise Error(self.offset, text)

    def word(self):
        self.need(self.offset + 8 <= self.end, "the record ends before its next word")
        [word] = struct.unpack_from("<Q", self.data, self.offset)
        self.offset += 8
        return word

    def text(self, size):
        padded = (size + 7) // 8 * 8
        self.need(self.offset + padded <= self.end, "a text extends past its record")
        text, padding = self.data[self.offset:self.offset + size], self.data[self.offset + size:self.offset + padded]
        self.need(not any(padding), "padding is not zero")
        self.offset += padded
        try:
            return text.decode("utf-8")
        except UnicodeDecodeError as reason:
            raise Error(self.offset, f"a text is not UTF-8: {reason}")

    def string(self, ref):
        if ref & 0x8000:
            self.need(ref & 0x7FFF, "an inline text is empty")
            return self.text(ref & 0x7FFF)
        self.need(ref == 0 or ref in self.strings, f"text {ref} is not registered")
        return self.strings[ref] if ref else ""

    def argument(self):
        begin = self.offset
        head = self.word()
        kind, size, name_ref, rest = bits(head, 0, 3), bits(head, 4, 15), bits(head, 16, 31), bits(head, 32, 63)
        name = self.string(name_ref)
        self.need(name, "an argument has no name")
        value = self.value(kind, rest)
        self.need(self.offset == begin + 8 * size, f"argument {name!r} of type {kind} does not have the size that it states")
        return name, value

    def value(self, kind, rest):
        if kind == 1:
            return struct.unpack("<i", struct.pack("<I", rest))[0]
        if kind == 2:
            return rest
        if kind == 6:
            self.need(rest >> 16 == 0, "reserved bits of an argument are not zero")
            return self.string(rest)
        if kind == 9:
            self.need(rest in (0, 1), "a boolean is neither 0 nor 1")
            return bool(rest)
        self.need(rest == 0, "reserved bits of an argument are not zero")
        if kind == 0:
            return None
        word = self.word()
        if kind == 3:
            [word] = struct.unpack("<q", struct.pack("<Q", word))
            self.need(not -2**31 <= word < 2**31, "a number that fits in 32 bits has 64")
        elif kind == 4:
            self.need(2**32 <= word < 2**63, "an unsigned number fits in 32 bits, or needs more than 63")
        elif kind == 5:
            [word] = struct.unpack("<d", struct.pack("<Q", word))
        else:
            self.need(kind == 8, f"unknown type {kind} of an argument")
            return Koid(word)
        return word

    def arguments(self, count):
        return [self.argument() for _ in range(count)]


def bits(word, first, last):
    return word >> first & (1 << (last - first + 1)) - 1


class Reader:
    def __init__(self, data):
        self.data = data
        self.strings, self.threads = {}, {}
        self.announced, self.initialized = False, False

    def records(self):
        """Yields each Event and Object."""
        data = self.data
        if len(data) % 8:
            raise Error(len(data), "the file ends within a word")
        if data[:8] != struct.pack("<Q", MAGIC):
            raise Error(0, "the file does not begin with the magic number")
        offset = 8
        while offset < len(data):
            [head] = struct.unpack_from("<Q", data, offset)
            size = 8 * bits(head, 4, 15)
            if size == 0 or offset + size > len(data):
                raise Error(offset, "a record is empty, or extends past the end of the file")
            record = Record(data, offset, size, self.strings)
            result = self.record(record, record.word())
            record.need(record.offset == record.end, "a record has more words than its type needs")
            if result is not None:
                yield result
            offset += size

    def record(self, record, head):
        kind = bits(head, 0, 3)
        readers = {0: self.metadata, 1: self.initialization, 2: self.string, 3: self.thread, 4: self.event,
                   7: self.kernel_object}
        record.need(kind in readers, f"unknown type {kind} of a record")
        record.need(kind == 0 or self.announced, "a record comes before the first provider")
        record.need(kind != 4 or self.initialized, "an event comes before the initialization record")
        return readers[kind](record, head)

    def metadata(self, record, head):
        kind = bits(head, 16, 19)
        record.need(kind in (1, 2), f"unknown type {kind} of metadata")
        if kind == 1:
            record.need(bits(head, 60, 63) == 0, "reserved bits are not zero")
            record.text(bits(head, 52, 59))
            self.announced = True
        else:
            record.need(bits(head, 52, 63) == 0, "reserved bits are not zero")
            record.need(self.announced, "a section comes before the record of its provider")

    def initialization(self, record, head):
        record.need(bits(head, 16, 63) == 0, "reserved bits are not zero")
        record.need(record.word() == 10**9, "a tick is not 1 ns")
        self.initialized = True

    def string(self, record, head):
        index, size = bits(head, 16, 30), bits(head, 32, 46)
        record.need(index and not bits(head, 31, 31) and not bits(head, 47, 63), "reserved bits are not zero")
        record.need(0 < size <= 32000, f"a text has {size} bytes; 1 to 32000 are allowed")
        self.strings[index] = record.text(size)

    def thread(self, record, head):
        record.need(bits(head, 16, 23) and not bits(head, 24, 63), "reserved bits are not zero")
        self.threads[bits(head, 16, 23)] = (record.word(), record.word())

    def event(self, record, head):
        begin = record.offset - 8
        kind, count, thread = bits(head, 16, 19), bits(head, 20, 23), bits(head, 24, 31)
        record.need(kind <= FLOW_END, f"unknown type {kind} of an event")
        time = record.word()
        record.need(time < 2**63, "Perfetto would read a time of 2**63 or more as negative")
        if thread == 0:
            ids = record.word(), record.word()
        else:
            record.need(thread in self.threads, f"thread {thread} is not registered")
            ids = self.threads[thread]
        category, name = record.string(bits(head, 32, 47)), record.string(bits(head, 48, 63))
        arguments = record.arguments(count)
        number = None if kind in WITHOUT_NUMBER else record.word()
        return Event(begin, kind, time, *ids, category, name, arguments, number)

    def kernel_object(self, record, head):
        begin = record.offset - 8
        record.need(bits(head, 44, 63) == 0, "reserved bits are not zero")
        kind, koid = bits(head, 16, 23), record.word()
        name = record.string(bits(head, 24, 39))
        arguments = dict(record.arguments(bits(head, 40, 43)))
        record.need(kind == PROCESS or (kind == THREAD and isinstance(arguments.get("process"), Koid)),
                    f"an object of type {kind} is neither a process nor a thread with its process")
        return Object(begin, kind, koid, name, arguments)


def check_timeline(events):
    """Checks that durations and flows, in the order of time, begin before they end. Returns messages about what Perfetto would
    count as errors."""
    open_durations, open_slices, flows, wrong = collections.Counter(), collections.Counter(), {}, []
    for event in sorted(events, key=lambda event: event.time):
        thread = event.process, event.thread
        if event.type == DURATION_BEGIN:
            open_durations[thread] += 1
        elif event.type == DURATION_END:
            open_durations[thread] -= 1
        elif event.type == ASYNC_BEGIN:
            open_slices[event.name, event.number] += 1
        elif event.type in (FLOW_BEGIN, FLOW_END):
            if not open_durations[thread]:
                wrong.append(f"{event}: a flow is outside of a duration")
            if (event.type == FLOW_BEGIN) == (event.number in flows):
                wrong.append(f"{event}: a flow begins twice, or ends before it begins")
            flows[event.number] = event.type == FLOW_END
        if open_durations[thread] < 0:
            wrong.append(f"{event}: a duration ends that has not begun")
    wrong += [f"flow {number} does not end" for number, ended in flows.items() if not ended]
    wrong += [f"a duration of {thread} does not end" for thread, count in open_durations.items() if count]
    return wrong
