#!/usr/bin/python3
"""Tests in the VM that `nettrace record --dotnet` records the events of .NET programs.

One program starts before the recording, and one during it. The file must have the events that the programs printed, those
of the garbage collector, and those of the kernel. TraceEvent, and Perfetto for the exports, must show the events as
`nettrace dump` shows them."""

import datetime
import json
import pathlib
import shlex
import subprocess

from support import commands
from support import script

import check_files
import perfetto
import reader

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PROJECT = pathlib.Path(__file__).resolve().parent / "dotnet_events" / "dotnet_events.csproj"
PROVIDER = "NetTrace-Test-Events"
DESCRIBED = "NetTrace-Test-Described"
RUNTIME = "Microsoft-Windows-DotNETRuntime"
GC = 0x1
COUNT = 30
EVENTS = 9  # events of both providers together; the program writes each COUNT times
# The commands that run in the VM. One program starts before the recording, and one during it.
SCRIPT = """
{program} 60 {count} > /out/early.out 2> /out/early.err &
until grep -q ready /out/early.err; do sleep 0.1; done
{nettrace} record --json -o /out/dotnet.nettrace --dotnet={providers} \\
    -e sched:sched_process_exec -- sh -c '{program} 60 {count} > /out/late.out; sleep 1' > /out/summary.json
echo $? > /out/status
wait
"""
NAMES = ("early", "late")
PROVIDERS = f"{PROVIDER}:info,{DESCRIBED},{RUNTIME}:info:{GC}"


def record(args):
    """Records in the VM; returns the file."""
    program = shlex.join(map(str, reader.build_project(args.reader, PROJECT)))
    text = SCRIPT.format(program=program, count=COUNT, nettrace=args.nettrace, providers=PROVIDERS)
    subprocess.run([REPOSITORY / "scripts/vm.py", "--cpus", "2", "--out", args.out, "--", "sh", "-c", text],
                   stdin=subprocess.DEVNULL, check=True)
    return args.out / "dotnet.nettrace"


def printed(path):
    return [(event["name"], event["payload"]) for event in map(json.loads, path.read_text().splitlines())]


def with_ticks(payload):
    """Returns a payload with its DateTime as the program prints it. Only streams that the runtime writes have
    DateTimes."""
    if "time" not in payload:
        return payload
    time = str(payload["time"])
    if "T" not in time:
        return {**payload, "time": time}
    seconds, part = time.removesuffix("Z").split(".")
    since = datetime.datetime.fromisoformat(seconds) - datetime.datetime(1601, 1, 1)
    return {**payload, "time": str((since.days * 86400 + since.seconds) * 10_000_000 + int(part[:7]))}


def problems_of_events(events, args):
    """Returns messages about events of the programs that differ from what the programs printed."""
    by_process = {}
    for event in events:
        if event["provider"] in (PROVIDER, DESCRIBED):
            by_process.setdefault(event["pid"], []).append(event)
    wanted = [printed(args.out / f"{name}.out") for name in NAMES]
    problems = [f"{name}: the program printed {len(one)} events instead of {EVENTS * COUNT}" for name, one in zip(NAMES, wanted)
                if len(one) != EVENTS * COUNT]
    if len(by_process) != len(NAMES):
        problems.append(f"{len(by_process)} processes have events instead of {len(NAMES)}")
    # Events are in the order of time, so the first process is the program that is enabled first.
    for name, one, got in zip(NAMES, wanted, by_process.values()):
        shown = [(event["name"], event["payload"]) for event in got]
        problems += [f"{name}: recorded {other} instead of {event}" for event, other in zip(one, shown) if event != other][:3]
        if len(shown) != len(one):
            problems.append(f"{name}: {len(shown)} events are recorded, and {len(one)} were printed")
        without = [event["name"] for event in got if not event.get("activityId")]
        if without:
            problems.append(f"{name}: {len(without)} events have no activity id, such as {without[0]}")
    return problems


def problems_of_rows(events):
    """Returns messages about wrong properties of events."""
    problems = []
    wanted = {"Numbers": (1, 4, 1, 0), "Texts": (2, 3, 1, 0), "WorkStart": (3, 4, 2, 1), "WorkStop": (4, 4, 2, 2),
              "Others": (6, 4, 1, 0), "Bytes": (7, 4, 1, 0)}
    for event in events:
        if event["provider"] != PROVIDER:
            continue
        got = (event["id"], event["level"], int(event["keywords"], 0) if isinstance(event["keywords"], str)
               else event["keywords"], event["opcode"])
        if got != wanted.get(event["name"]):
            problems.append(f"{event['name']}: id, level, keywords and opcode are {got} instead of {wanted.get(event['name'])}")
            break
    names = {event["name"] for event in events if event["provider"] == RUNTIME}
    if "GC/Start" not in names or "GC/Stop" not in names:
        problems.append(f"GC/Start or GC/Stop is not among the events of the runtime: {sorted(names)}")
    if not any(event["name"] == "sched_process_exec" for event in events):
        problems.append("no event sched_process_exec of the kernel")
    return problems


def processes(events, summary):
    """Returns the entries of the test's programs in the summary, which may also have other .NET processes of the
    machine."""
    pids = {event["pid"] for event in events if event["provider"] == PROVIDER}
    return [process for process in summary["dotnet"] if process["pid"] in pids]


def problems_of_summary(events, args, file):
    summary = json.loads((args.out / "summary.json").read_text())
    problems = []
    states = [(process["state"], process["reason"]) for process in processes(events, summary)]
    if states != [("enabled", "")] * 2:
        problems.append(f"the states and reasons of the two programs are {states}; both must be enabled")
    if (args.out / "status").read_text().strip() != "0":
        problems.append(f"nettrace record ended with {(args.out / 'status').read_text().strip()} instead of 0")
    if summary["lost"] or summary["undecoded"] or commands.info(args.nettrace, file)["lost"]:
        problems.append(f"{summary['lost']} events are lost and {summary['undecoded']} undecoded instead of none")
    verified = subprocess.run([args.nettrace, "verify", file], stdout=subprocess.PIPE, text=True, check=False)
    if verified.returncode != 0:
        problems.append(verified.stdout)
    return problems


def problems_of_traceevent(command, file):
    """Returns messages about events of the runtime that TraceEvent's own parser does not show."""
    shown, _ = reader.read(command, file, "--log")
    starts = [event for event in shown if event["provider"] == RUNTIME and event["name"] == "GC/Start"]
    if not starts or "Reason" not in starts[0]["payload"]:
        return [f"TraceLog shows no GC/Start with a reason: {starts[:1]}"]
    return []


def is_shown_by_perfetto(args, file):
    """Returns whether Perfetto's trace processor shows the exports of each program's events as `nettrace dump` shows
    them; True if it is not installed. Each program has a separate export, because Perfetto assigns events with equal
    activity ids to one process."""
    try:
        perfetto.find()
    except script.Skipped as reason:
        print(reason)
        return True
    results = []
    for pid in sorted({event["pid"] for event in commands.dump(args.nettrace, file) if event["provider"] == PROVIDER}):
        of_process = args.out / f"process-{pid}.nettrace"
        subprocess.run([args.nettrace, "cut", "--pid", str(pid), file, "-o", of_process], check=True)
        results.append(perfetto.report(args.nettrace, of_process, args.out))
    return all(results) and results != []


def main():
    args = script.parser(__doc__, "nettrace", "reader", "out").parse_args()
    args.out = args.out.absolute()
    args.out.mkdir(parents=True, exist_ok=True)
    command = reader.build(args.reader)
    file = record(args)
    events = list(commands.dump(args.nettrace, file))
    problems = problems_of_events(events, args) + problems_of_rows(events) + problems_of_summary(events, args, file)
    problems += problems_of_traceevent(command, file)
    print("\n".join(problems), end="\n" if problems else "")
    result = check_files.check(args.nettrace, command, file, log=False)
    return all([check_files.report(file, result), is_shown_by_perfetto(args, file)]) and not problems


if __name__ == "__main__":
    script.main(main)
