#!/usr/bin/python3
"""Tests that PerfView's TraceLog shows the stacks of a recording with the modules and functions that `nettrace dump
--stacks` shows. The recording is made here. It has stacks of programs that start."""

import subprocess

from support import commands
from support import script
from support.kernel import tracepoints

import reader

EXEC = "sched:sched_process_exec"
EXIT = "sched:sched_process_exit"
PROGRAM = "/bin/true"
PROGRAMS = 50


def code_of(frame):
    """Returns MODULE!FUNCTION of a frame that dump shows, without the offset; MODULE! if it has no function."""
    if frame.startswith("0x"):
        return frame
    code = frame.rsplit("+", 1)[0]
    return code if "!" in code else code + "!"


def check(args, command):
    file = args.out / "stacks.nettrace"
    subprocess.run([args.nettrace, "record", "-o", file, "-e", EXEC, "--stacks", "-e", EXIT, "--stacks=user", "--",
                    "sh", "-c", f"for i in $(seq {PROGRAMS}); do {PROGRAM}; done"], check=True)
    dumped = [event for event in commands.dump(args.nettrace, file, "--stacks") if "frames" in event]
    # Other processes of the machine may have begun before the recording. TraceLog finds no modules for what such a process
    # did before it starts another program.
    tids = {event["tid"] for event in dumped if event["payload"].get("filename") == PROGRAM}
    wanted = {(event["timestamp"], event["name"], event["tid"]): [code_of(frame) for frame in event["frames"]]
              for event in dumped if event["tid"] in tids}
    events, totals = reader.read(command, file, "--log")
    shown = [event for event in events if event["provider"] == "sched" and event["stack"] and event["tid"] in tids]
    texts = [f"TraceLog ended with {totals['exception']}"] if totals["exception"] else []
    if len(shown) != len(wanted) or len(wanted) < 2 * PROGRAMS:
        texts.append(f"TraceLog shows {len(shown)} stacks; dump shows {len(wanted)}")
    stacks = sorted(wanted.items())
    frames = differences = 0
    for event, (key, stack) in zip(shown, stacks):
        if event["tid"] != key[2] or len(event["stack"]) != len(stack):
            texts.append(f"{key}: TraceLog shows {event['stack']} instead of {stack}")
            continue
        for found, frame in zip(event["stack"], stack):
            frames += 1
            if found.split("!")[0] != frame.split("!")[0]:
                texts.append(f"{key}: TraceLog shows {found} instead of {frame}")
            # TraceLog looks up the return address itself, which may already belong to the next function.
            elif found != frame:
                differences += 1
    if differences * 20 > frames:
        texts.append(f"{differences} of {frames} frames have another function in TraceLog; at most 5 % may")
    named = sum("vmlinux!" in frame for stack in wanted.values() for frame in stack)
    print(f"{len(shown)} stacks, {frames} frames, {named} of the kernel, {differences} with another function")
    return texts[:20]


def main():
    args = script.parser(__doc__, "nettrace", "reader", "out").parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    tracepoints.require(EXEC)
    texts = check(args, reader.build(args.reader))
    print("\n".join(texts), end="\n" if texts else "")
    return not texts


if __name__ == "__main__":
    script.main(main)
