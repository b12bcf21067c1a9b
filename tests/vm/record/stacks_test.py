#!/usr/bin/python3
"""Tests the stacks of events that a service writes to user_events: each event has the code of its thread in user space,
and no frame of the kernel. Needs root and a kernel with user_events (./run vm)."""

import json
import pathlib
import tempfile

from support import commands
from support import script
from support.load import load

ARGS = script.options(__doc__, "nettrace", "service")


def check():
    with tempfile.TemporaryDirectory(prefix="stacks-") as folder:
        file = pathlib.Path(folder) / "trace.nettrace"
        with_stacks = [word for tracepoint in load.TRACEPOINTS for word in ("-e", tracepoint, "--stacks")]
        service = json.loads(commands.record(ARGS.nettrace, file, [], [ARGS.service, "--events", "1000"],
                                             [*with_stacks, "--ring-size", "8M"]))
        problems = load.problems(ARGS.nettrace, file, service, events=1000)
        events = [event for event in commands.dump(ARGS.nettrace, file, "--stacks") if event["provider"] == load.PROVIDER]
    modules = set()
    for event in events:
        frames = event.get("frames", [])
        if not frames or any(int(address, 16) >> 63 for address in event["stack"]):
            problems.append(f"event {event['timestamp']} has no stack, or one with frames of the kernel: {frames}")
        modules.update(frame.split("+")[0].split("!")[0] for frame in frames[:1])
    # The innermost frame is in the service, because libeventheader is linked into it and makes the system call itself.
    if len(events) != 1000 or modules != {pathlib.Path(ARGS.service).name}:
        problems.append(f"{len(events)} events instead of 1000 were written by code in {modules} instead of {ARGS.service}")
    print("\n  ".join([f"{len(events)} events: {len(problems)} problems", *problems[:20]]), flush=True)
    return not problems


if __name__ == "__main__":
    script.main(check)
