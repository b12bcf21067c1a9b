"""Compares what `nettrace dump --json` and TraceEvent show for one file.

TraceEvent shows some things differently although the file is right. Each of these quirks is known here and counted, so
that a test can say which of them its file may have:
  latin1   text in UTF-8 code units that is not ASCII is shown byte by byte
  nul      text ends at its first NUL
  empty    an object without fields at the end of the payload is shown as null
  implied  an event whose metadata row has no opcode, and whose name ends in Start or Stop, is shown with opcode 1 or 2
  label    a TraceLog ignores the opcode in an event's label, and shows the opcode of the metadata row
If a file has no value, TraceEvent shows one: a process id of 0, a thread id of -1, the name EventID(n), the CPU of an
earlier event.
"""

import collections
import datetime
import itertools
import re
import struct

from support import commands

QUIRKS = ("latin1", "nul", "empty", "implied", "label")
NO_ID = "00000000-0000-0000-0000-000000000000"
START_STOP = {1: "start", 2: "stop"}
# Metadata rows of these providers have no names. dump shows the documented names; TraceEvent does so only in its views of
# the .NET runtime.
UNNAMED_PROVIDERS = ("Microsoft-Windows-DotNETRuntime", "Microsoft-Windows-DotNETRuntimeRundown",
                     "Microsoft-DotNETCore-SampleProfiler")
MAX_SHOWN = 20
# A DateTime: TraceEvent shows seven digits of its fraction, dump nine.
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z")


class Comparison:
    """`events`: number of events; `differences`: messages, at most MAX_SHOWN; `count`: number of differences; `quirks`:
    a Counter of QUIRKS."""

    def __init__(self, allowed=(), own_ids=False):
        """`own_ids`: the events keep their own ids, which differ from the ids of their metadata rows."""
        self._allowed = frozenset(allowed)
        self._own_ids = own_ids
        self._schemas = {}  # (id, name) in dump, by (providerGuid, id) in TraceEvent.
        self._view = ""  # The part of TraceEvent that is being compared, for messages.
        self._log = False
        self.events = 0
        self.quirks = collections.Counter()
        self.differences = []
        self.count = 0

    def files(self, dumped, shown, totals, lost, log=False):
        """`dumped`: the events that dump shows. `shown`, `totals`: the events and totals that TraceEvent shows, in a
        TraceLog if `log` is true. `lost`: the number of lost events that nettrace reports."""
        self._log = log
        self._view = "TraceLog: " if log else ""
        if totals["exception"]:
            self._differ("TraceEvent threw: " + totals["exception"].splitlines()[0])
        if totals["payloadFailures"]:
            self._differ(f"TraceEvent could not read the payloads of {totals['payloadFailures']} events")
        self._same("events lost", lost, totals["lost"])
        self.events = len(dumped)
        self._same("number of events", len(dumped), len(shown))
        for before, after in itertools.pairwise(shown):
            if after["timestamp"] < before["timestamp"]:
                self._differ(f"TraceEvent shows timestamp {after['timestamp']} after {before['timestamp']}, which is later")
        # dump may show the events in the order of the file.
        for number, (ours, theirs) in enumerate(zip(in_order(dumped), in_order(shown)), 1):
            self._event(f"event {number} ({_show(ours['provider'] + '/' + ours['name'])} at {ours['timestamp']})",
                        ours, theirs)

    def processes(self, shown, totals):
        """Checks that the processes of a TraceLog match the events of Universal.System: each process begins with a
        ProcessCreate or exists from the start, has the last name that it was given, and ends with ProcessExit."""
        self._view = "TraceLog: "
        expected = collections.defaultdict(list)  # By pid.
        for event in shown:
            if event["provider"] != "Universal.System":
                continue
            lives = expected[event["pid"]]
            if event["name"] == "ProcessCreate" or not lives:
                lives.append({"startMs": event["relativeMs"] if event["name"] == "ProcessCreate" else None})
            elif event["name"] == "ExistingProcess":
                lives[-1]["startMs"] = event["relativeMs"]  # TraceLog uses the last of these events.
            if event["name"] == "ProcessExit":
                lives[-1]["endMs"] = event["relativeMs"]
            else:
                lives[-1]["image"] = event["payload"]["Name"]
        processes = collections.defaultdict(list)
        for process in totals["processes"]:
            processes[process["pid"]].append(process)
        for pid, lives in expected.items():
            self._same(f"number of processes with id {pid}", len(lives), len(processes[pid]))
            for life, process in zip(lives, sorted(processes[pid], key=lambda process: process["startMs"])):
                for key, value in life.items():
                    if value is not None:
                        self._same(f"process {pid}: {key}", value, process[key])

    def values(self, where, ours, theirs):
        """Compares two values in the form that JSON has for them."""
        self._value(where, ours, theirs)

    def _event(self, where, ours, theirs):
        for key in ("timestamp", "provider", "version", "level", "keywords"):
            self._same(f"{where}: {key}", ours[key], theirs[key])
        if "time" in ours and abs(_nanoseconds(ours["time"]) - _nanoseconds(theirs["time"])) > 1000:
            self._same(f"{where}: time", ours["time"], theirs["time"])
        if ours["cpu"] is not None:
            self._same(f"{where}: cpu", ours["cpu"], theirs["cpu"])
        self._same(f"{where}: pid", _as_int32(ours["pid"] or 0), theirs["pid"])
        self._same(f"{where}: tid", _as_int32(-1 if ours["tid"] is None else ours["tid"]), theirs["tid"])
        for key in ("activityId", "relatedActivityId"):
            self._same(f"{where}: {key}", (ours.get(key) or NO_ID).lower(), theirs[key].lower())
        self._id(where, ours, theirs)
        self._name(where, ours, theirs)
        self._value(f"{where}: payload", ours["payload"], theirs["payload"])

    def _id(self, where, ours, theirs):
        if not self._own_ids:
            self._same(f"{where}: id", ours["id"], theirs["id"])
        schema = (ours["id"], ours["name"])
        before = self._schemas.setdefault((theirs["providerGuid"], theirs["id"]), schema)
        self._same(f"{where}: id and name of earlier events with TraceEvent's id {theirs['id']}", before, schema)

    def _name(self, where, ours, theirs):
        name, opcode = theirs["name"], theirs["opcode"]
        if ours["provider"] in UNNAMED_PROVIDERS and name.startswith("EventID("):
            ours = {**ours, "name": ""}
        if not ours["name"] and name == f"EventID({theirs['id']})":
            name = ""
        if opcode != 0:
            name = name.removesuffix("/" + theirs["opcodeName"])
        ending = START_STOP.get(opcode)
        implied = ending is not None and ours["opcode"] == 0 and ours["name"].lower().endswith(ending)
        if implied:
            self._quirk("implied", f"{where}: opcode 0 became {opcode}")
        elif self._log and "OpCode" in ours.get("labels", {}) and ours["opcode"] != opcode:
            self._quirk("label", f"{where}: opcode {ours['opcode']} became {opcode}")
        else:
            self._same(f"{where}: opcode", ours["opcode"], opcode)
        if ending and ours["name"].lower().endswith(ending) and name == ours["name"][:-len(ending)]:
            return
        self._same(f"{where}: name", ours["name"], name)

    def _value(self, where, ours, theirs):
        if isinstance(ours, str) != isinstance(theirs, str):
            ours, theirs = _integer(ours), _integer(theirs)
        if isinstance(ours, dict) and isinstance(theirs, dict):
            self._same(f"{where}: field names", list(ours), list(theirs))
            for key in ours.keys() & theirs.keys():
                self._value(f"{where}.{key}", ours[key], theirs[key])
        elif isinstance(ours, list) and isinstance(theirs, list):
            self._same(f"{where}: number of elements", len(ours), len(theirs))
            for index, (one, other) in enumerate(zip(ours, theirs)):
                self._value(f"{where}[{index}]", one, other)
        elif isinstance(ours, str) and isinstance(theirs, str):
            self._text(where, ours, theirs)
        elif commands.is_malformed_text(ours, theirs) or commands.is_malformed_text(theirs, ours):
            pass
        elif ours == {} and theirs is None:
            self._quirk("empty", f"{where}: {{}} is shown as null")
        elif not _same_number(ours, theirs):
            self._differ(f"{where}: {_show(ours)} is shown as {_show(theirs)}")

    def _text(self, where, ours, theirs):
        if ours == theirs or TIME.fullmatch(ours) and TIME.fullmatch(theirs) and _nanoseconds(ours) == _nanoseconds(theirs):
            return
        for kinds in (("nul",), ("latin1",), ("nul", "latin1")):
            if _as_shown(ours, kinds) == theirs:
                for kind in kinds:
                    self._quirk(kind, f"{where}: {_show(ours)} is shown as {_show(theirs)}")
                return
        self._differ(f"{where}: {_show(ours)} is shown as {_show(theirs)}")

    def _same(self, what, ours, theirs):
        if ours != theirs or type(ours) is not type(theirs):
            self._differ(f"{what}: {_show(ours)} is shown as {_show(theirs)}")

    def _quirk(self, kind, text):
        self.quirks[kind] += 1
        if kind not in self._allowed:
            self._differ(f"{text} ({kind})")

    def _differ(self, text):
        self.count += 1
        if self.count <= MAX_SHOWN:
            self.differences.append(self._view + text)


def _integer(value):
    """Returns the number that a string of digits stands for in the JSON of `nettrace dump`; other values unchanged."""
    if isinstance(value, str) and re.fullmatch("-?[0-9]{16,20}", value) and abs(int(value)) > 2**53:
        return int(value)
    return value


def in_order(events):
    """Returns the events in the order of time. Readers show events with the same time in any order, so these are in the
    order of their thread ids."""
    return sorted(events, key=lambda event: (event["timestamp"], -1 if event["tid"] is None else event["tid"]))


def _nanoseconds(utc):
    """Returns the nanoseconds since 1970 of "2026-11-21T10:00:00.1234567Z", with any number of digits. TraceEvent's
    times have a resolution of 100 ns."""
    seconds, _, fraction = utc.removesuffix("Z").partition(".")
    whole = datetime.datetime.fromisoformat(seconds + "+00:00")
    return round(whole.timestamp()) * 10**9 + int(fraction[:9].ljust(9, "0"))


def _as_int32(number):
    """Returns an id of 64 bits, as in the file, as the signed number of 32 bits that TraceEvent shows."""
    return (int(number) + 2**31) % 2**32 - 2**31


def _as_shown(text, kinds):
    if "nul" in kinds:
        text = text.partition("\0")[0]
    if "latin1" in kinds:
        text = text.encode("utf-8").decode("latin-1")
    return text


def _same_number(ours, theirs):
    if type(ours) is not type(theirs) and not {type(ours), type(theirs)} <= {int, float}:
        return False
    if ours == theirs:
        return True
    if float not in (type(ours), type(theirs)):
        return False
    # A reader may show 2.0 as 2. It may show a single with as few digits as the single needs, or convert the single to a
    # double and show the digits of the double.
    if float(ours) == float(theirs):
        return True
    try:
        single, other = _single(ours), _single(theirs)
    except OverflowError:
        return False
    return single == other and single in (float(ours), float(theirs))


def _single(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


def _show(value):
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."
