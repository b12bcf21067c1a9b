#!/usr/bin/python3
"""Tests that `nettrace record --dotnet` records the same events of a .NET process as `dotnet-trace collect` does at the same
time: the same number of events, with the same names, ids, levels, keywords, threads, activities and values. `nettrace dump`
and TraceEvent must show both files alike. Needs a machine without user_events, on which both record by EventPipe."""

import contextlib
import os
import pathlib
import subprocess
import time

from support import commands
from support import script

import dotnet_recorded_test as recorded
import reader

TOOL, VERSION = "dotnet-trace", "10.0.750501"
PROVIDERS = (recorded.PROVIDER, recorded.DESCRIBED, recorded.RUNTIME)
SESSION_KEYWORDS = 0xF << 44  # keywords that EventSource adds for its sessions
# Maximum difference, in ns, of the times of an event in the two files. The runtime writes the event to one file after
# the other, and its thread may be interrupted between the two writes.
MAX_DIFFERENCE = 1_000_000_000


def wait_until(is_true, what):
    end = time.monotonic() + 60
    while not is_true():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: the condition was not met within 60 s")
        time.sleep(0.05)


def record(args, program):
    """Records two rounds of events with nettrace, and the second one also with dotnet-trace. Returns the two files and
    the events that the program printed in the second round."""
    tool = reader.install_tool(args.out / "tools", TOOL, VERSION)
    ours, theirs, out, err = (args.out / name for name in ("ours.nettrace", "theirs.nettrace", "printed", "log"))
    theirs.unlink(missing_ok=True)
    providers = [f"{name}:ffffffffffffffff:4" for name in PROVIDERS[:2]] + [f"{recorded.RUNTIME}:{recorded.GC:x}:4"]
    shown = args.out / "tool.log"
    with contextlib.ExitStack() as stack:
        def start(command, path, **options):
            process = subprocess.Popen(command, stdout=stack.enter_context(open(path, "wb")), **options)
            stack.callback(lambda: (process.kill(), process.wait()))
            return process
        process = start([*program, "60", str(recorded.COUNT), "2"], out, stdin=subprocess.PIPE,
                        stderr=stack.enter_context(open(err, "wb")))
        wait_until(lambda: "ready" in err.read_text(), "the start of the program")
        recording = start([args.nettrace, "record", "-o", ours, f"--dotnet={recorded.PROVIDERS}", "--pid", str(process.pid)],
                          args.out / "record.log")
        wait_until(lambda: "written" in err.read_text(), "the first round")
        peer = start([tool, "collect", "--process-id", str(process.pid), "--output", theirs, "--providers",
                      ",".join(providers)], shown, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT,
                     env={**os.environ, **reader.ENVIRONMENT})
        # The tool prints this when the runtime has enabled the events.
        wait_until(lambda: "Output File" in shown.read_text(), TOOL)
        process.stdin.write(b"\n")
        process.stdin.close()
        ends = [each.wait(60) for each in (process, recording, peer)]
    if ends != [0, 0, 0]:
        raise AssertionError(f"the program, nettrace and {TOOL} ended with {ends}: {shown.read_text()}")
    events = recorded.printed(out)
    return ours, theirs, events[len(events) // 2:]


def comparable(event, is_theirs):
    """Returns the members of an event that must be equal in both files."""
    keywords = int(event["keywords"], 0) if isinstance(event["keywords"], str) else event["keywords"]
    payload = recorded.with_ticks(event["payload"]) if event["provider"] in PROVIDERS[:2] else event["payload"]
    return {"name": event["name"], "id": event["id"], "version": event["version"], "level": event["level"],
            "keywords": keywords & ~SESSION_KEYWORDS if is_theirs else keywords, "opcode": event["opcode"],
            "tid": event["tid"], "activityId": event.get("activityId"),
            "relatedActivityId": event.get("relatedActivityId"), "payload": payload}


def second_round(events):
    """Returns the events from the second round on. The last EVENTS * COUNT events of the program are those of this round."""
    count = recorded.EVENTS * recorded.COUNT
    first = sorted((event["timestamp"] for event in events if event["provider"] in PROVIDERS[:2]))[-count]
    return [event for event in events if event["timestamp"] >= first]


def problems_of(view, ours, theirs):
    """Returns messages about events that differ, for each provider in the order of time."""
    ours, theirs, problems = second_round(ours), second_round(theirs), []
    for provider in PROVIDERS:
        both = [[event for event in events if event["provider"] == provider] for events in (ours, theirs)]
        print(f"{view}: {provider}: {len(both[0])} events of nettrace, {len(both[1])} of {TOOL}")
        if len(both[0]) != len(both[1]) or not both[0]:
            problems.append(f"{view}: {provider}: nettrace recorded {len(both[0])} events, and {TOOL} {len(both[1])}")
        for one, other in zip(*both):
            got, wanted = comparable(one, False), comparable(other, True)
            problems += [f"{view}: {provider}: {one['name']}: {key} is {got[key]} instead of {wanted[key]}"
                         for key in wanted if got[key] != wanted[key]]
            if abs(one["timestamp"] - other["timestamp"]) > MAX_DIFFERENCE:
                problems.append(f"{view}: {one['name']} is at {one['timestamp']} instead of {other['timestamp']}")
    return problems


def main():
    args = script.parser(__doc__, "nettrace", "reader", "out").parse_args()
    if pathlib.Path("/sys/kernel/tracing/user_events_data").exists():
        raise script.Skipped("needs a kernel without user_events, on which .NET programs are recorded by EventPipe")
    args.out = args.out.absolute()
    args.out.mkdir(parents=True, exist_ok=True)
    program = reader.build_project(args.reader, recorded.PROJECT)
    command = reader.build(args.reader)
    ours, theirs, printed = record(args, program)
    dumped = [list(commands.dump(args.nettrace, file)) for file in (ours, theirs)]
    problems = problems_of("dump", *dumped)
    problems += problems_of("TraceEvent", *(reader.read(command, file)[0] for file in (ours, theirs)))
    shown = [(event["name"], event["payload"]) for event in second_round(dumped[0]) if event["provider"] in PROVIDERS[:2]]
    problems += [f"nettrace recorded {other} instead of {event}" for event, other in zip(printed, shown) if event != other]
    lost = [commands.info(args.nettrace, file)["lost"] for file in (ours, theirs)]
    problems += [] if lost == [0, 0] else [f"nettrace and {TOOL} lost {lost} events instead of none"]
    print("\n".join(problems[:20]), end="\n" if problems else "")
    return not problems


if __name__ == "__main__":
    script.main(main)
