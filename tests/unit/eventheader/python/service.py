#!/usr/bin/python3
"""The services whose events eventheader_test.py records.

  service.py NAME
"""

import ctypes
import datetime
import ipaddress
import logging
import os
import sys
import threading
import time
import uuid

import eventheader

PROVIDER = "Test_Python"
SHORT = "x" * 60
THREADS, CHILDREN, EVENTS = 6, 3, 200
PR_SET_SECCOMP, SECCOMP_MODE_STRICT, EXIT_SKIPPED = 22, 1, 77


class Unprintable:
    def __str__(self):
        raise ValueError("no text")


class Text(str):
    """A str whose __str__ the module must not call."""

    def __str__(self):
        raise ValueError("no text")


def recursive():
    values = [1]
    values.append(values)
    return values


# Values by the name of their field, with the JSON that `nettrace dump` shows. MISSING: the event has no such field.
MISSING = object()
TYPES = {
    "int": (-5, -5),
    "int_low": (-2**63, "-9223372036854775808"),
    "float": (0.25, 0.25),
    "true": (True, True),
    "false": (False, False),
    "text": ("größer €", "größer €"),
    "bytes": (b"\0\xff", "00ff"),
    "bytearray": (bytearray(b"ab"), "6162"),
    "memory": (memoryview(b"abcd")[::2], "6163"),
    "none": (None, MISSING),
    "ints": ([1, -2], [1, -2]),
    "floats": ((0.5, 1.5), [0.5, 1.5]),
    "bools": ([True, False], [True, False]),
    "texts": (["a", "", "ü"], ["a", "", "ü"]),
    "binaries": ([b"a", b""], ["61", ""]),
    "uuid": (uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"), "00112233-4455-6677-8899-aabbccddeeff"),
    "uuids": ([uuid.UUID(int=1)], ["00000000-0000-0000-0000-000000000001"]),
    "ip4": (ipaddress.ip_address("10.1.2.3"), "10.1.2.3"),
    "ip6": (ipaddress.ip_address("2001:db8::1"), "2001:db8::1"),
    "time": (datetime.datetime(2026, 1, 2, 3, 4, 5, 999999, datetime.timezone.utc), "2026-01-02T03:04:05Z"),
    "before_1970": (datetime.datetime(1969, 12, 31, 23, 59, 59, 500000, datetime.timezone.utc), "1969-12-31T23:59:59Z"),
    "level": (eventheader.Level.ERROR, 2),
}
ODD = {
    "unsigned": (2**64 - 1, "18446744073709551615"),
    "over_64_bits": (2**64, "18446744073709551616"),
    "below_64_bits": (-2**63 - 1, "-9223372036854775809"),
    "very_large": (1 << 20000, "0x1" + "0" * 5000),
    "nan": (float("nan"), "NaN"),
    "infinity": (float("-inf"), "-Infinity"),
    "nul": ("a\0b", "a\0b"),
    "surrogate": ("a\udc80b", "a\ufffdb"),
    "pair": ("\ud83d\ude00", "\U0001f600"),
    "empty_text": ("", ""),
    "empty_list": ([], []),
    "int_and_float": ([1, 2.5], [1.0, 2.5]),
    "mixed": ([1, "a", None], ["1", "a", "None"]),
    "nested": ([[1], [2]], ["[1]", "[2]"]),
    "recursive": (recursive(), ["1", "[1, [...]]"]),
    "large_in_list": ([1, 2**64], ["1", "18446744073709551616"]),
    "dict": ({"a": 1}, "{'a': 1}"),
    "unprintable": (Unprintable(), "<Unprintable>"),
    "subclass": (Text("abc"), "abc"),
    "a;b": (1, MISSING),
    "": (2, MISSING),
}
RENAMED = {"a_b": 1, "_": 2}
# Values that are too large, so that their event is refused.
REFUSED = {"long_text": "x" * 100000, "long_bytes": bytes(9000), "long_list": list(range(9000)), "long_nul": "\0" * 8200}


def expected(values):
    return {name: shown for name, (_, shown) in values.items() if shown is not MISSING}


def until(ready):
    end = time.monotonic() + 60
    while not ready():
        if time.monotonic() > end:
            sys.exit("service.py: no collector enabled the event within 60 s")
        time.sleep(0.001)


def recorded(provider, name):
    """Returns an event that a collector records from now on."""
    event = provider.event(name)
    until(lambda: event.enabled)
    return event


def report(provider):
    print(*provider.counters, flush=True)


def values():
    provider = eventheader.Provider(PROVIDER)
    event = recorded(provider, "Values")
    assert event(**{name: value for name, (value, _) in TYPES.items()})
    assert event(**{name: value for name, (value, _) in ODD.items()})
    assert event()
    for name, value in REFUSED.items():
        assert not event(**{name: value}), f"an event with the field {name} was not refused"
    assert not event(**{f"f{i}": True for i in range(1025)})
    assert not event(**{"n" * 9000: 1})
    assert event(last=1)
    report(provider)


def lines():
    provider = eventheader.Provider(PROVIDER)
    recorded(provider, "E")
    logger = logging.getLogger("shop.cart")
    handler = eventheader.Handler(provider)
    logger.addHandler(handler)
    logger.propagate = False
    until(lambda: handler.wanted_level() == 1)
    handler.update_level(logger)
    for number, level in enumerate((5, 10, 20, 25, 30, 40, 50, 60)):
        logger.log(level, "line %d", number, extra={"user": "ann", "logger": "other", "sizes": [1, 2]})
    try:
        raise KeyError("lost")
    except KeyError:
        logger.exception("failed")
    logger.error("%d", "no number")
    logger.error("%s", Unprintable())
    logger.error("ü" * 5000)
    logger.error("large", extra={"a": ["x" * 100] * 100})
    logger.error("odd", extra={"a;b": "y" * 5000, "b": Unprintable()})
    record = logging.makeLogRecord({"levelno": logging.ERROR, "msg": "by a queue", "name": "shop"})
    thread = threading.Thread(target=handler.emit, args=(record,))
    thread.start()
    thread.join()
    logging.logThreads = False
    logger.error("no thread")
    logging.Handler.handle(handler, logging.makeLogRecord({"name": "", "levelno": 40, "msg": "no logger"}))
    report(provider)


def threads():
    provider = eventheader.Provider(PROVIDER)
    event = recorded(provider, "E")

    def run(thread):
        with eventheader.Activity(bytes([thread + 1]) * 16):
            for number in range(EVENTS):
                event(thread=thread, number=number, **{f"f{number % 7}": number})

    started = [threading.Thread(target=run, args=(thread,)) for thread in range(THREADS)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    report(provider)


def forks():
    provider = eventheader.Provider(PROVIDER)
    event = recorded(provider, "E")
    children = []
    for child in range(CHILDREN):
        children.append(os.fork())
        if children[-1] == 0:
            # The first event starts the transport of the child.
            until(lambda: event(child=child, number=-1))
            for number in range(EVENTS):
                event(child=child, number=number)
            os._exit(0)
    for pid in children:
        assert os.waitpid(pid, 0)[1] == 0
    report(provider)


def activities():
    provider = eventheader.Provider(PROVIDER)
    recorded(provider, "E")
    start = provider.event("Start", opcode=eventheader.Opcode.START)
    stop = provider.event("Stop", opcode=eventheader.Opcode.STOP)
    with eventheader.Activity(uuid.UUID(int=1)):
        with eventheader.Activity(bytes(15) + b"\2"):
            start()
            stop()
        stop()
    stop()
    report(provider)


def disabled():
    """Writes events that are disabled, while the kernel kills the process at any system call but read, write and exit."""
    provider = eventheader.Provider(PROVIDER)
    event, handler = provider.event("E"), eventheader.Handler(provider)
    record = logging.makeLogRecord({"levelno": logging.ERROR, "msg": Unprintable()})
    assert not event.enabled
    if ctypes.CDLL(None).prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0:
        sys.exit(EXIT_SKIPPED)
    for number in range(10000):
        event(number=number, text="text", touchy=record)
        handler.handle(record)
    os.write(1, b"done")
    os.getpid()  # a forbidden system call: the kernel ends the process


if __name__ == "__main__":
    {each.__name__: each for each in (values, lines, threads, forks, activities, disabled)}[sys.argv[1]]()
