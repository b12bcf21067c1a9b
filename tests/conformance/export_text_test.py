#!/usr/bin/python3
"""What `nettrace export` writes as csv and json, read by Python's modules, is what `nettrace dump --json` shows: the
same events in the same order, with the same values, times and threads, and as many lost."""

import csv
import decimal
import json
import subprocess

from support import commands
from support import script

import ctf

FILES = ("types", "quirks", "labels", "names", "intervals", "lost", "account", "empty", "sections")
SEEDS = range(1, 5)
MAX_SHOWN = 10
csv.field_size_limit(1 << 30)


class Pairs(list):
    """An object of JSON, which may have a name twice."""


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
    """The names and values of the payload's fields that are no structs."""
    for name, value in payload:
        if isinstance(value, Pairs):
            yield from leaves(value, f"{parent}{name}.")
        else:
            yield parent + name, value


def is_cell(value, cell):
    """Whether the cell shows the value."""
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
    found.same("names of columns that are there twice", len(header), len(set(header)))
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
    shown = [event for event in shown if "cat" in event or event["name"] == "thread_name"]
    found.same("number of events", len(events), sum("cat" in event for event in shown))
    events = iter(events)
    for event in shown:
        if event["ph"] == "M":
            threads[event["pid"], event["tid"]] = dict(event["args"])["name"]
            continue
        ours = next(events)
        where = f"json: event at {ours['time']}"
        arguments = dict(event["args"])
        found.same(f"{where}: time", ctf.nanoseconds(ours["time"]), start + int(event["ts"] * 1000))
        for one, other in (("provider", event["cat"]), ("payload", arguments["payload"]), ("level", arguments["level"]),
                           ("cpu", arguments.get("cpu")), ("activityId", arguments.get("activityId"))):
            found.same(f"{where}: {one}", ours[one], other)
        found.same(f"{where}: error", ours.get("error"), arguments.get("error"))
        found.same(f"{where}: thread", (ours["pid"] or 0, ours["tid"] or 0), (event["pid"], event["tid"]))
        if ours["tid"] and ours["thread"]:
            found.same(f"{where}: name of the thread", ours["thread"], threads.get((event["pid"], event["tid"])))
        phase, name = "i", ours["name"]
        if ours["activityId"] and ours["opcode"] in (1, 2):
            phase, names = "be"[ours["opcode"] - 1], opened.setdefault(ours["activityId"], [])
            if phase == "b":
                names.append(name)
            elif names:
                name = names.pop()
            found.same(f"{where}: id", ours["activityId"], event["id"])
        found.same(f"{where}: name and phase", (name, phase), (event["name"], event["ph"]))
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
        for check in (check_csv, check_json):
            found = check(args, file, events, lost)
            print(f"{check.__name__} {name}: {len(events)} events, {len(found)} differences")
            for text in found[:MAX_SHOWN]:
                print(f"  {text}")
            passed &= not found
    return passed


if __name__ == "__main__":
    script.main(main)
