"""Compares what Perfetto's trace processor shows of the fxt and json exports of a file with what `nettrace dump --json`
shows of the file: the same events with the same names, times, threads, processes, durations, flows and values, the same
losses, and no errors in its table `stats`."""

import collections
import csv
import decimal
import math
import os
import pathlib
import re
import subprocess
import sys

from support import commands
from support import script

import ctf
import export_files_test as exports

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
NAME = "trace_processor_shell"
OPTIONS = ("--processes", "--account")
LOST, ARROWS = "lost events", "NetTrace.Arrows"
START, STOP = 1, 2  # Opcodes.
MAX_SHOWN = 20

# Texts are in hexadecimal, because the shell prints quotes and line feeds unchanged.
QUERIES = {
    "stats": "select hex(name), value from stats where value != 0 and severity in ('error', 'data_loss')",
    "slices": "select s.ts, s.dur, hex(s.category), hex(s.name), s.arg_set_id, t.tid, p.pid from slice s"
              " join track k on k.id = s.track_id left join thread_track tk on tk.id = k.id"
              " left join thread t on t.utid = tk.utid"
              " left join args a on a.arg_set_id = k.source_arg_set_id and a.key = 'upid'"
              " left join process p on p.upid = coalesce(t.upid, a.int_value)"
              " order by s.id",
    "arguments": "select arg_set_id, hex(key), value_type, int_value, printf('%!.17g', real_value),"
                 " hex(string_value) from args order by id",
    "flows": "select b.ts, hex(b.name), e.ts, hex(e.name) from flow f join slice b on b.id = f.slice_out"
             " join slice e on e.id = f.slice_in",
    "counters": "select hex(k.name), c.ts, printf('%!.17g', c.value) from counter c join track k on k.id = c.track_id"
                " order by c.id",
    "threads": "select t.tid, p.pid, hex(t.name) from thread t left join process p using (upid)",
    "processes": "select pid, hex(name) from process",
}
# `thread` is None for the slice of an activity.
Slice = collections.namedtuple("Slice", "time duration category name arguments thread process")
Trace = collections.namedtuple("Trace", "stats slices flows counters threads processes")


def find():
    """Returns the path of the program; raises Skipped if it is missing or does not start."""
    shared = pathlib.Path(os.environ.get("SHARED_DIR", REPOSITORY.parent / "shared"))
    path = pathlib.Path(os.environ.get("EVENTHEADER_TRACE_PROCESSOR", shared / "judges" / NAME))
    if not os.access(path, os.X_OK):
        raise script.Skipped(f"{path} is not there; EVENTHEADER_TRACE_PROCESSOR names Perfetto's {NAME}")
    try:
        subprocess.run([path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as reason:
        raise script.Skipped(f"{path} does not start: {reason}")
    return path


def _text(digits):
    return bytes.fromhex(digits).decode("utf-8", "surrogateescape")


def _integer(digits):
    return None if digits == "[NULL]" else int(digits)


def _argument(kind, whole, real, text):
    if kind == "string":
        return _text(text)
    if kind == "real":
        return float(real)
    if kind == "bool":
        return whole == "1"
    return None if kind == "null" else _integer(whole)


def read(program, file):
    """Returns the Trace that the program reads from the file."""
    sql = "".join(f"select '{name}'; {query};\n" for name, query in QUERIES.items())
    out = subprocess.run([program, "query", "-f", "-", file], input=sql, capture_output=True, text=True, check=True).stdout
    found = {}
    for block in out.split("\n\n"):
        [header, *rows] = csv.reader(block.strip().splitlines())
        if header[0].startswith("'"):
            last = found[rows[0][0]] = []
        else:
            last += rows
    sets = collections.defaultdict(list)
    for number, key, *value in found["arguments"]:
        sets[number].append((_text(key), _argument(*value)))
    slices = [Slice(int(time), int(duration), _text(category), _text(name), sets.get(of, []), _integer(tid),
                    _integer(pid) or 0)
              for time, duration, category, name, of, tid, pid in found["slices"]]
    return Trace({_text(name): int(value) for name, value in found["stats"]}, slices,
                 [(int(begin), _text(one), int(end), _text(other)) for begin, one, end, other in found["flows"]],
                 [(_text(name), int(time), float(value)) for name, time, value in found["counters"]],
                 {(_integer(pid) or 0, _integer(tid)): _text(name) for tid, pid, name in found["threads"]},
                 {_integer(pid): _text(name) for pid, name in found["processes"]})


def compare(nettrace, file, folder):
    """Exports the file to both formats in `folder`. Returns the number of its events, and the differences of each format."""
    program = find()
    dumped = subprocess.run([nettrace, "dump", "--json", *OPTIONS, file], check=True, stdout=subprocess.PIPE).stdout
    # Perfetto sorts events by time, and keeps the order of events with the same time.
    events = [dict(_until_nul(exports.load(line))) for line in dumped.splitlines()]
    for event in events:
        event["ns"] = ctf.nanoseconds(event["time"])
    names = _names(events)
    events.sort(key=lambda event: event["ns"])
    lost = commands.info(nettrace, file)["lost"]
    found = {}
    for form in (Fxt(), Json()):
        out = folder / f"{file.stem}.{form.name}"
        subprocess.run([nettrace, "export", "--to", form.name, *OPTIONS, file, "-o", out], check=True,
                       stderr=subprocess.DEVNULL)
        found[form.name] = form.compare(events, names, lost, out, read(program, out))
    return len(events), found


def report(nettrace, file, folder):
    """Prints what `compare` finds; returns whether there are no differences."""
    count, found = compare(nettrace, file, folder)
    for form, differences in found.items():
        print(f"{file.name}: {count} events, {len(differences)} differences in {form}")
        for text in differences[:MAX_SHOWN]:
            print(f"  {text}")
    return not any(found.values())


def _until_nul(value):
    """Returns the value as Perfetto shows it, which ends a text at a NUL."""
    if isinstance(value, exports.Pairs):
        return exports.Pairs((name, _until_nul(member)) for name, member in value)
    if isinstance(value, list):
        return [_until_nul(element) for element in value]
    return value.partition("\0")[0] if isinstance(value, str) else value


def _names(events):
    """Returns the last name of each thread, by (pid, tid), and of each process, by (pid, 0)."""
    names, known = {}, {}
    for event in events:
        pid, tid = event["pid"] or 0, event["tid"] or 0
        if event["provider"] == "Universal.System" and pid:
            if event["name"] in ("ExistingProcess", "ProcessCreate"):
                known[pid] = dict(event["payload"]).get("Name")
            elif event["name"] == "ProcessExit":
                known.pop(pid, None)
        if known.get(pid):
            names[pid, 0] = known[pid]
        if tid and event["thread"]:
            names[pid, tid] = event["thread"]
    return names


class Format:
    """An export format, and how Perfetto shows events in it."""
    start = 0  # The time, in ns since 1970, that Perfetto shows as 0.
    no_name = ""  # The name that Perfetto shows for an event without one.

    @staticmethod
    def thread(event):
        """Returns the id of the thread on which Perfetto shows the event."""
        return event["tid"] or 0

    def compare(self, events, names, lost, file, trace):
        found = exports.Differences()
        found.same("errors and losses in `stats`", {}, trace.stats)
        self.begin(file)
        slices = [each for each in trace.slices if each.name != LOST and each.category != ARROWS]
        expected, arrows = self.expected(events)
        found.same("number of slices", len(expected), len(slices))
        for ours, theirs in zip(expected, slices):
            where = f"{self.name}: {ours.name!r} at {ours.time}"
            found.same(f"{where}: name", ours.name or self.no_name, theirs.name)
            for key in ("time", "duration", "category", "thread", "process"):
                found.same(f"{where}: {key}", getattr(ours, key), getattr(theirs, key))
            self.same_arguments(found, where, ours.arguments, theirs.arguments)
        found.same("arrows", sorted(arrows), sorted(trace.flows))
        found.same("ends of arrows", sorted(end for begin, one, to, other in arrows for end in ((begin, one), (to, other))),
                   sorted((each.time, each.name) for each in trace.slices if each.category == ARROWS))
        counts = [dict(each.arguments) for each in trace.slices if each.name == LOST]
        found.same("events lost", lost, sum(each[f"{self.prefix}count"] for each in counts))
        found.same("greatest count of lost events", lost, max((value for _, _, value in trace.counters), default=0))
        shown = trace.threads | {(pid, 0): name for pid, name in trace.processes.items()}
        for ids, name in names.items():
            found.same(f"name of the process and thread {ids}", name, shown.get(ids))
        return found

    def expected(self, events):
        """Returns the slices and the arrows of the events. An arrow is the time and name of the slice at which it
        begins, and the time and name of the slice at which it ends."""
        slices, arrows, open_slices = [], [], collections.defaultdict(list)
        for event in events:
            time, activity, related = event["ns"] - self.start, event["activityId"], event["relatedActivityId"]
            if related and open_slices[related]:
                begin = slices[open_slices[related][-1]]
                arrows.append((begin.time, begin.name, time, event["name"]))
            ids = {"thread": self.thread(event), "process": event["pid"] or 0}
            if activity and event["opcode"] == START:
                open_slices[activity].append(len(slices))
                ids["thread"], duration = None, -1
            elif activity and event["opcode"] == STOP and open_slices[activity]:
                place = open_slices[activity].pop()
                begin = slices[place]
                slices[place] = begin._replace(duration=time - begin.time, arguments=[
                    *begin.arguments, (event, (begin.name, begin.category))])
                continue
            else:
                duration = 0
            slices.append(Slice(time, duration, event["provider"], event["name"], [(event, None)], **ids))
        return slices, arrows


class Fxt(Format):
    name = "fxt"
    prefix = ""

    def begin(self, file):
        pass

    def same_arguments(self, found, where, events, shown):
        for event, ended in events:
            own = [each for each in shown if len(events) == 1 or each[0].startswith("stop.") == bool(ended)]
            # The argument `more` is JSON, in which a text continues after a NUL.
            exports.same_arguments(found, where, event, ended, own,
                                   lambda ours, theirs: is_argument(ours, _until_nul(theirs)))


class Json(Format):
    name = "json"
    prefix, no_name = "args.", "[No name]"

    @staticmethod
    def thread(event):
        return event["tid"] or event["pid"] or 0

    def begin(self, file):
        with open(file, "rb") as text:
            text.seek(-100, os.SEEK_END)
            [start] = re.findall(rb'"clockStart":"([^"]*)"', text.read())
        self.start = ctf.nanoseconds(start.decode())

    def same_arguments(self, found, where, events, shown):
        expected = []
        for event, ended in events:
            prefix = "args.stop." if ended else "args."
            payload = [(f"payload.{name}", value) for name, value in exports.all_leaves(event["payload"])]
            own = exports.properties(event, ("activityId", "relatedActivityId"), ended)
            expected += [(prefix + name, value) for name, value in own + payload]
        expected, shown = dict(expected), dict(shown)
        # Perfetto shows neither null nor empty objects and arrays.
        optional = {name for name, value in expected.items() if value in (None, "{}", "[]")}
        found.same(f"{where}: names of arguments", sorted(expected.keys() - optional), sorted(shown.keys() - optional))
        for name, value in expected.items():
            if name in shown and not is_argument(value, shown[name]):
                found.append(f"{where}: {name}: {value!r} became {shown[name]!r}"[:400])


def is_argument(ours, shown):
    # Perfetto shows null as a text. It rounds the last bits of some numbers of JSON, and reads the smallest ones as 0.
    return exports.is_argument(ours, shown) or (ours is None and shown == "null") or (
        isinstance(ours, decimal.Decimal) and math.isclose(ours, shown, rel_tol=1e-15, abs_tol=sys.float_info.min))
