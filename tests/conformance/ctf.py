"""Compares what a reader shows of an exported CTF trace, of version 1.8 or 2, with what `nettrace dump --json --raw`
shows of the NetTrace file: the same events in the order of time, with the same names, values, times, threads, CPUs and labels,
and the same number of lost events.

Values are compared in one form: a value whose type differs in CTF is converted to the form that dump shows."""

import collections
import datetime
import math
import re
import struct

from support import commands
from support import script

MAX_SHOWN = 20
OF_ROWS = ("OpCode", "Keywords", "Level", "Version")  # Labels that replace a property of the metadata row.
NUL_SHOWN = "\u2400"  # A NUL would end a string in CTF.
EMPTY_SHOWN = "\u200b"  # babeltrace2 2.0.4 shows an earlier event's text in place of an empty one.


def babeltrace():
    """Returns the Python module of babeltrace2; raises Skipped if it is not installed."""
    try:
        import bt2
    except ImportError as reason:
        raise script.Skipped(f"the Python module of babeltrace2 cannot be imported: {reason}")
    return bt2


Trace = collections.namedtuple("Trace", "events discarded environment")


def read(folder):
    """Returns the Trace that babeltrace2 reads from the directory. `discarded`: (begin, end, count) of each loss, times
    in ns."""
    bt2 = babeltrace()
    events, discarded, environment = [], [], {}
    for message in bt2.TraceCollectionMessageIterator(str(folder)):
        if type(message) is bt2._StreamBeginningMessageConst:
            environment.update({key: str(value) for key, value in message.stream.trace.environment.items()})
        elif type(message) is bt2._DiscardedEventsMessageConst:
            discarded.append((message.beginning_default_clock_snapshot.ns_from_origin,
                              message.end_default_clock_snapshot.ns_from_origin, message.count))
        elif type(message) is bt2._EventMessageConst:
            events.append(_event(bt2, message))
    return Trace(events, discarded, environment)


def _event(bt2, message):
    event = message.event
    packet = event.packet.context_field or {}
    context = _value(bt2, event.common_context_field)
    level = event.cls.log_level
    return {"time": message.default_clock_snapshot.ns_from_origin, "name": event.name,
            "cpu": int(packet["cpu_id"]) if "cpu_id" in packet else None,
            "log_level": getattr(level, "value", level),  # babeltrace2 2.1 and later return an Enum.
            "context": context, "payload": _value(bt2, event.payload_field) if event.payload_field is not None else {}}


def _value(bt2, field):
    """Returns a field as Python values, without the lengths of sequences."""
    if isinstance(field, bt2._StructureFieldConst):
        members = {name: _value(bt2, field[name]) for name in field}
        return {name: value for name, value in members.items()
                if not (re.fullmatch("_.*_length", name, re.DOTALL) and name[1:-len("_length")] in members)}
    if isinstance(field, bt2._ArrayFieldConst):
        return [_value(bt2, element) for element in field]
    if isinstance(field, bt2._StringFieldConst):
        return "" if str(field) == EMPTY_SHOWN else str(field)
    if isinstance(field, bt2._RealFieldConst):
        return float(field)
    if isinstance(field, bt2._BoolFieldConst):
        return bool(field)
    if isinstance(field, bt2._EnumerationFieldConst):
        return Named(int(field), _labels(field))
    return int(field)


def _labels(field):
    # Does not use field.labels: in babeltrace2 2.0.4, it is empty if a number without a name comes before all numbers
    # that have a name.
    return tuple(label for label, mapping in field.cls.items()
                 if any(part.lower <= int(field) <= part.upper for part in mapping.ranges))


class Named(int):
    """A number of an enumeration, with its names."""

    def __new__(cls, number, names):
        self = super().__new__(cls, number)
        self.names = names
        return self

    def __getnewargs__(self):
        return int(self), self.names


class Comparison:
    def __init__(self, is_ctf2=False):
        self.is_ctf2 = is_ctf2  # CTF 2 keeps all names and texts unchanged, except for NUL.
        self.count = 0
        self.differences = []

    def trace(self, dumped, trace, lost):
        self._same("number of events", len(dumped), len(trace.events))
        times = [event["time"] for event in trace.events]
        self._same("times of events in ascending order", sorted(times), times)
        self._same("events lost", lost, sum(count for _, _, count in trace.discarded))
        # Sorts both lists, because events with the same time on different CPUs may be in any order.
        ours = sorted((_expected(event, self.is_ctf2) for event in dumped), key=_sort_key)
        theirs = sorted(trace.events, key=_sort_key)
        for number, (one, other) in enumerate(zip(ours, theirs), 1):
            where = f"event {number} ({one['name']!r} at {one['time']})"
            for key in ("time", "name", "cpu"):
                self._same(f"{where}: {key}", one[key], other[key])
            for key, value in one["context"].items():
                self.value(f"{where}: {key}", value, other["context"][key])
            self._same(f"{where}: labels", one["labels"], _joined(other["context"]["labels"]))
            self._payload(where, one, other)

    def _payload(self, where, one, other):
        if one["error"] is not None:
            self._same(f"{where}: error", one["error"], other["payload"].get("error"))
            return
        # CTF 1.8 changes names, so values are compared by position.
        self.value(f"{where}: payload", one["payload"], other["payload"])

    def value(self, where, ours, theirs):
        if isinstance(ours, dict) and isinstance(theirs, dict):
            self._same(f"{where}: number of members", len(ours), len(theirs))
            for (name, one), (mangled, other) in zip(ours.items(), theirs.items()):
                known = name if self.is_ctf2 else identifier(name)
                if not re.fullmatch(re.escape(known) + "(_[0-9]+)?", mangled):
                    self._differ(f"{where}: {name!r} became {mangled!r}")
                self.value(f"{where}.{name}", one, other)
        elif isinstance(ours, list) and isinstance(theirs, list):
            self._same(f"{where}: number of elements", len(ours), len(theirs))
            for index, (one, other) in enumerate(zip(ours, theirs)):
                # In CTF, an array within an array is the member `value` of a struct.
                inner = isinstance(one, list) and isinstance(other, dict)
                self.value(f"{where}[{index}]", one, other["value"] if inner else other)
        elif not commands.is_malformed_text(ours, theirs) and not _same_scalar(ours, theirs):
            self._differ(f"{where}: {ours!r} became {theirs!r}")

    def _same(self, what, ours, theirs):
        if ours != theirs:
            self._differ(f"{what}: {str(ours)[:200]} became {str(theirs)[:200]}")

    def _differ(self, text):
        self.count += 1
        if self.count <= MAX_SHOWN:
            self.differences.append(text)


def printable(text):
    """Returns text of the metadata as programs show it to people: on one line, without control characters that a
    terminal obeys."""
    return re.sub("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]",
                  lambda found: f"\\u{ord(found[0]):04x}", text)


def identifier(name):
    """Returns the name that readers show for a field."""
    return re.sub(b"[^A-Za-z0-9]", b"_", name.encode()[:200]).decode()


def _sort_key(event):
    return event["time"], -1 if event["cpu"] is None else event["cpu"]


def label_texts(labels):
    """Returns the labels of an event of dump as exports have them: as text, and without the labels in OF_ROWS."""
    return {name: [str(each) for each in value] if isinstance(value, list) else str(value)
            for name, value in labels.items() if name not in OF_ROWS}


def _joined(labels):
    """Returns the value of each label; a list if an event has the label several times, as in dump."""
    values = {}
    for label in labels:
        values.setdefault(label["name"], []).append(label["value"])
    return {name: value if len(value) > 1 else value[0] for name, value in values.items()}


def _expected(dumped, is_ctf2):
    """Converts an event of dump to the form that _event returns for events of CTF."""
    name = f"{dumped['provider']}:{dumped['name']}"
    labels = dict(dumped["labels"])
    context = {
        "pid": -1 if dumped["pid"] is None else int(dumped["pid"]),
        "tid": -1 if dumped["tid"] is None else int(dumped["tid"]), "thread": "-" if dumped["thread"] is None else dumped["thread"],
        "level": dumped["level"], "opcode": dumped["opcode"], "version": dumped["version"],
        "keywords": int(dumped["keywords"], 16),
        "activity_id": dumped["activityId"] or "-", "related_activity_id": dumped["relatedActivityId"] or "-",
        "trace_id": labels.pop("TraceId", "-"), "span_id": labels.pop("SpanId", "-"),
        "stack": [int(frame, 16) for frame in dumped.get("stack", [])]}
    return {"time": nanoseconds(dumped["time"]), "name": name if is_ctf2 else printable(name), "cpu": dumped["cpu"],
            "context": context, "payload": dumped["payload"], "error": dumped.get("error"),
            "labels": label_texts(labels)}


def nanoseconds(utc):
    """Returns the nanoseconds since 1970 of 2026-11-21T10:00:00.123456789Z."""
    whole, _, fraction = utc.removesuffix("Z").partition(".")
    seconds = datetime.datetime.fromisoformat(whole + "+00:00").timestamp()
    return round(seconds) * 10**9 + int(fraction.ljust(9, "0") or 0)


def _same_scalar(ours, theirs):
    if isinstance(theirs, bool):
        return ours is theirs
    if isinstance(ours, bool):
        return theirs == int(ours) and ("true" if ours else "false") in theirs.names
    if isinstance(theirs, float):
        ours = float(ours)
        return ours == theirs or (math.isnan(ours) and math.isnan(theirs)) or _single(ours) == theirs
    if isinstance(theirs, int):
        return not isinstance(ours, (dict, list)) and ours is not None and int(ours) == theirs
    return isinstance(ours, str) and ours.replace("\0", NUL_SHOWN) == theirs


def _single(number):
    """Converts a single to what dump shows: the shortest text that reads back as the same number."""
    try:
        return struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return None
