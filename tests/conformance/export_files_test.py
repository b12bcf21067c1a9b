#!/usr/bin/python3
"""Tests that the csv, json and fxt output of `nettrace export` has what `nettrace dump --json` shows: the same events
in the same order, with the same values, times and threads, and the same number of lost events. Python's modules read
csv and json; a strict reader reads fxt."""

import csv
import decimal
import json
import re
import subprocess

from support import commands
from support import script

import ctf
import fxt

FILES = ("types", "quirks", "labels", "activities", "names", "intervals", "lost", "account", "empty", "sections")
SEEDS = range(1, 5)
MAX_SHOWN = 10
csv.field_size_limit(1 << 30)


class Pairs(list):
    """A JSON object, in which a name may occur twice."""


class Differences(list):
    def same(self, where, ours, theirs):
        if ours != theirs:
            self.append(f"{where}: {str(ours)[:200]} became {str(theirs)[:200]}")


def load(text):
    return json.loads(text, object_pairs_hook=Pairs, parse_float=decimal.Decimal)


def dump(args, file):
    out = subprocess.run([args.nettrace, "dump", "--json", "--processes", "--account", file], check=True,
                         stdout=subprocess.PIPE).stdout
    return [dict(load(line)) for line in out.splitlines()]


def export(args, file, to):
    out = args.out / f"{file.stem}.{to}"
    subprocess.run([args.nettrace, "export", "--to", to, "--processes", "--account", file, "-o", out], check=True,
                   stderr=subprocess.DEVNULL)
    return out


def leaves(payload, parent=""):
    """Yields the names and values of the payload's fields that are not structs."""
    for name, value in payload:
        if isinstance(value, Pairs):
            yield from leaves(value, f"{parent}{name}.")
        else:
            yield parent + name, value


def is_cell(value, cell):
    """Returns whether the cell shows the value."""
    if value is None or isinstance(value, bool):
        return cell == {None: "", True: "true", False: "false"}[value]
    if isinstance(value, str):
        shown = ctf.printable(value)
        return cell == shown or (cell == "'" + shown and shown[0] in "=+-@")
    if isinstance(value, list):
        return load(cell) == value
    try:
        return float(cell) == float(value)
    except ValueError:
        return False


def check_csv(args, file, events, lost):
    found = Differences()
    with open(export(args, file, "csv"), encoding="utf-8", newline="") as text:
        header, *rows = csv.reader(text)
    found.same("number of columns, and of different names", len(header), len(set(header)))
    fields = set(header[header.index("error") + 1:])
    rows = [dict(zip(header, row, strict=True)) for row in rows]
    found.same("events lost", lost, sum(int(row["lost"]) for row in rows if row["lost"]))
    rows = [row for row in rows if not row["lost"]]
    found.same("number of events", len(events), len(rows))
    for number, (event, row) in enumerate(zip(events, rows), 1):
        where = f"csv: event {number}"
        for key, column in (("time", "time"), ("provider", "provider"), ("name", "event"), ("level", "level"),
                            ("keywords", "keywords"), ("opcode", "opcode"), ("pid", "pid"), ("tid", "tid"),
                            ("thread", "thread"), ("cpu", "cpu"), ("activityId", "activity_id"),
                            ("relatedActivityId", "related_activity_id")):
            if not is_cell(event[key], row[column]):
                found.same(f"{where}: {key}", event[key], row[column])
        found.same(f"{where}: error", event.get("error", ""), row["error"])
        for name, value in leaves(event["payload"]):
            columns = [ctf.printable(column) for column in (name, f"{name}_2", f"{name}_3")]
            cells = [row[column] for column in columns if column in fields]
            if not any(is_cell(value, cell) for cell in cells):
                found.same(f"{where}: {name}", value, cells)
    return found


def check_json(args, file, events, lost):
    found = Differences()
    trace = dict(load(export(args, file, "json").read_text(encoding="utf-8")))
    start = ctf.nanoseconds(dict(trace["otherData"])["clockStart"])
    shown = [dict(event) for event in trace["traceEvents"]]
    losses = [dict(event["args"]) for event in shown if "cat" not in event and event["ph"] == "i"]
    found.same("events lost", lost, sum(int(loss["count"]) for loss in losses))
    threads = {}
    opened = {}
    drawn = 0
    arrows = [event for event in shown if event.get("cat") == "NetTrace.Arrows"]
    shown = [event for event in shown
             if event.get("cat", "NetTrace.Arrows") != "NetTrace.Arrows" or event["name"] == "thread_name"]
    found.same("number of events", len(events), sum("cat" in event for event in shown))
    events = iter(events)
    for event in shown:
        if event["ph"] == "M":
            threads[event["pid"], event["tid"]] = dict(event["args"])["name"]
            continue
        ours = next(events)
        where = f"json: event at {ours['time']}"
        phase, name, provider = "i", ours["name"], ours["provider"]
        arguments = dict(event["args"])
        if ours["relatedActivityId"] and opened.get(ours["relatedActivityId"]):
            begin = opened[ours["relatedActivityId"]][-1][2]
            drawn += 1
            found.same(f"{where}: arrow", [
                (kind, end["ts"], end["pid"], end["tid"], begin["name"] if kind == flow else name,
                 drawn if kind == flow else None)
                for end, name, flow in ((begin, begin["name"], "s"), (event, ours["name"], "f")) for kind in ("B", flow, "E")],
                [(each["ph"], each["ts"], each["pid"], each["tid"], each["name"], each.get("id")) for each in arrows[:6]])
            del arrows[:6]
        if ours["activityId"] and ours["opcode"] in (1, 2):
            slices = opened.setdefault(ours["activityId"], [])
            if ours["opcode"] == 1:
                phase = "b"
                slices.append((name, provider, event))
            elif slices:
                phase = "e"
                arguments = dict(arguments["stop"])
                found.same(f"{where}: own name", name, arguments.get("event", slices[-1][0]))
                found.same(f"{where}: own provider", provider, arguments.get("provider", slices[-1][1]))
                name, provider, _ = slices.pop()
            if phase != "i":
                found.same(f"{where}: id", ours["activityId"], event["id"])
        found.same(f"{where}: name and phase", (name, phase), (event["name"], event["ph"]))
        found.same(f"{where}: provider", provider, event["cat"])
        found.same(f"{where}: time", ctf.nanoseconds(ours["time"]), start + int(event["ts"] * 1000))
        for one, other in (("payload", arguments["payload"]), ("level", arguments["level"]),
                           ("cpu", arguments.get("cpu")), ("activityId", arguments.get("activityId"))):
            found.same(f"{where}: {one}", ours[one], other)
        found.same(f"{where}: error", ours.get("error"), arguments.get("error"))
        found.same(f"{where}: thread", (ours["pid"] or 0, ours["tid"] or 0), (event["pid"], event["tid"]))
        if ours["tid"] and ours["thread"]:
            found.same(f"{where}: name of the thread", ours["thread"], threads.get((event["pid"], event["tid"])))
    found.same("arrows that no event explains", [], arrows)
    return found


def properties(event, labels, ended):
    """Returns the arguments of an event that come before those of its fields in fxt. `ended` is the name and the
    provider of the slice that the event ends; None if it ends no slice."""
    result = []
    if ended:
        result += [("event", event["name"])] if event["name"] != ended[0] else []
        result += [("provider", event["provider"])] if event["provider"] != ended[1] else []
    result += [("level", event["level"]), ("keywords", event["keywords"])]
    result += [("opcode", event["opcode"])] if event["opcode"] else []
    result += [("cpu", event["cpu"])] if event["cpu"] is not None else []
    result += [(label, event[label]) for label in labels if event[label]]
    return result + ([("error", event["error"])] if "error" in event else [])


def all_leaves(value, name=""):
    """Yields the names and values of the leaves of the payload: values that are neither structs nor arrays, at any
    depth, and empty structs and arrays."""
    if isinstance(value, Pairs):
        members = [(f"{name}.{key}".removeprefix("."), member) for key, member in value]
    elif isinstance(value, list):
        members = [(f"{name}[{index}]", element) for index, element in enumerate(value)]
    else:
        yield name, value
        return
    if not members and name:
        yield name, "{}" if isinstance(value, Pairs) else "[]"
    for key, member in members:
        yield from all_leaves(member, key)


def is_argument(ours, shown):
    """Returns whether the fxt argument is the value that dump shows, or the beginning of it if there was no room for
    all."""
    if isinstance(ours, decimal.Decimal):
        return isinstance(shown, (float, int, decimal.Decimal)) and float(ours) == float(shown)
    if isinstance(ours, str) and isinstance(shown, str) and shown.endswith("…") and ours != shown:
        return len(shown) > 1500 and ours.startswith(shown[:-1])
    return type(ours) is type(shown) and ours == shown


def expected_arguments(event, ended):
    """Returns the names and values of an event in fxt. A name that is too long is None."""
    first = properties(event, ("activityId", "relatedActivityId"), ended)
    taken = {name for name, _ in first}
    fields = [(f"payload.{name}" if name in taken else name, value) for name, value in all_leaves(event["payload"])]
    prefix = "stop." if ended else ""
    return [(prefix + name if len((prefix + name).encode()) <= 1000 else None, value) for name, value in first + fields]


def same_arguments(found, where, event, ended, shown, is_same=is_argument):
    expected = expected_arguments(event, ended)
    if len(expected) > 15:
        name, more = shown.pop()
        found.same(f"{where}: name of the last argument", "stop.more" if ended else "more", name)
        expected, rest = expected[:14], expected[14:]
        if more.endswith("…"):  # The exporter has cut the JSON.
            more = re.sub(r",?[^,]*$", "}", more, count=1)
        if not more.startswith("}"):
            shown += load(more)
            expected += rest[:len(shown) - 14]
    found.same(f"{where}: number of arguments", len(expected), len(shown))
    for (name, ours), (shown_name, theirs) in zip(expected, shown):
        if name is not None:
            found.same(f"{where}: name of an argument", name, shown_name)
        if not is_same(ours, theirs):
            found.append(f"{where}: {name}: {ours!r} became {theirs!r}"[:400])


def check_fxt(args, file, events, lost):
    found = Differences()
    records = list(fxt.Reader(export(args, file, "fxt").read_bytes()).records())
    shown = [record for record in records if isinstance(record, fxt.Event)]
    found += fxt.check_timeline(shown)
    losses = [event for event in shown if event.category == "lost events"]
    found.same("events lost", lost, sum(dict(event.arguments)["count"] for event in losses
                                        if event.type == fxt.INSTANT))
    if losses:
        found.same("the counter of events lost", [("events", lost)], losses[-1].arguments)
    threads, opened, slices = {}, {}, {}
    own = ("lost events", "NetTrace.Arrows")
    found.same("number of events", len(events),
               sum(isinstance(record, fxt.Event) and record.category not in own for record in records))
    arrows = [event for event in shown if event.type in (fxt.FLOW_BEGIN, fxt.FLOW_END)]
    events = iter(events)
    for record in records:
        if isinstance(record, fxt.Object):
            if record.type == fxt.THREAD:
                threads[int(record.arguments["process"]), record.koid] = record.name
            continue
        if record.category in own:
            continue
        ours = next(events)
        where = f"fxt: event at {ours['time']}"
        ids = int(ours["pid"] or 0), int(ours["tid"] or 0)
        found.same(f"{where}: time", ctf.nanoseconds(ours["time"]), record.time)
        found.same(f"{where}: thread", ids, (record.process, record.thread))
        found.same(f"{where}: provider", ours["provider"], record.category)
        if ids[1] and ours["thread"]:
            found.same(f"{where}: name of the thread", ours["thread"], threads.get(ids))
        if ours["relatedActivityId"] and opened.get(ours["relatedActivityId"]):
            begin, end = arrows[:2]
            del arrows[:2]
            found.same(f"{where}: arrow", (*opened[ours["relatedActivityId"]][-1][1:4], record.time, *ids),
                       (begin.time, begin.process, begin.thread, end.time, end.process, end.thread))
        kind, name, ended = fxt.INSTANT, ours["name"], None
        if ours["activityId"] and ours["opcode"] in (1, 2):
            names = opened.setdefault(ours["activityId"], [])
            if ours["opcode"] == 1:
                kind = fxt.ASYNC_BEGIN
                names.append((name, record.time, *ids, ours["provider"]))
            elif names:
                kind = fxt.ASYNC_END
                name, *_, provider = names.pop()
                ended = name, provider
        if kind != fxt.INSTANT:
            found.same(f"{where}: id of its slice", slices.setdefault(ours["activityId"], record.number), record.number)
        found.same(f"{where}: name and type", (name, kind), (record.name, record.type))
        same_arguments(found, where, ours, ended, record.arguments)
    found.same("arrows that no event explains", [], arrows)
    found.same("number of activities, and of different ids of slices", len(slices), len(set(slices.values())))
    return found


def main():
    args = script.parser(__doc__, "nettrace", "generate", "random", "out").parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    subprocess.run([args.generate, args.out], check=True)
    subprocess.run([args.random, args.out, "300", *map(str, SEEDS)], check=True)
    passed = True
    for name in [*FILES, *(f"random-{seed}" for seed in SEEDS)]:
        file = args.out / f"{name}.nettrace"
        events, lost = dump(args, file), commands.info(args.nettrace, file)["lost"]
        for check in (check_csv, check_json, check_fxt):
            found = check(args, file, events, lost)
            print(f"{check.__name__} {name}: {len(events)} events, {len(found)} differences")
            for text in found[:MAX_SHOWN]:
                print(f"  {text}")
            passed &= not found
    return passed


if __name__ == "__main__":
    script.main(main)
