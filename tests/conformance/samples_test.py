#!/usr/bin/python3
"""Tests that TraceEvent reads samples of CPU time and times without a CPU as PerfView shows them: as events that its parser
knows, with processes, modules and functions, and as the times of its view Thread Time."""

import subprocess

from support import commands
from support import script

import reader

# Takes the CPU and sleeps in turn.
WORK = """
import time
for _ in range(10):
    end = time.monotonic() + 0.05
    while time.monotonic() < end:
        pass
    time.sleep(0.05)
"""


def is_sample(event):
    return event["provider"] == "Universal.Events"


def compare_events(recorded, shown):
    """Returns the differences between the events that dump and TraceLog show."""
    if len(shown) != len(recorded):
        return [f"TraceLog shows {len(shown)} events; dump shows {len(recorded)}"]
    texts = []
    others = []
    frames = named = 0
    for event, wanted in zip(shown, recorded):
        facts = [(each["timestamp"], each["tid"], each["payload"].get("Value")) for each in (event, wanted)]
        if facts[0] != facts[1] or len(event["stack"]) != len(wanted.get("frames", [])):
            texts.append(f"{event} instead of {wanted}")
            continue
        frames += len(event["stack"])
        # Frames that dump shows as addresses are of code without frame pointers.
        for found, frame in zip(event["stack"], wanted.get("frames", [])):
            if frame.startswith("0x"):
                continue
            named += 1
            # TraceLog shows the names of modules in lower case.
            if found.split("!")[0].lower() != frame.rsplit("+", 1)[0].split("!")[0].lower():
                others.append(f"{found} instead of {frame}")
    # A thread may be switched out in a program and in again in the next one, whose modules TraceLog then shows.
    if len(others) > 0.01 * named:
        texts += others
    if not any("vmlinux!" in frame for event in shown for frame in event["stack"]):
        texts.append("no frame is in a function of the kernel")
    kinds = {event["kind"] for event in shown}
    print(f"{len(shown)} events, {frames} frames, {named} in modules, {len(others)} in others, of the types {kinds}")
    if "DynamicTraceEventData" in str(kinds):
        texts.append(f"TraceEvent's parser does not know the events: {kinds}")
    return texts


def compare_times(recorded, totals, tid):
    """Returns the differences between the times of the thread and those that Thread Time shows, in ms."""
    def of(kind):
        return sum(time for name, time in totals["threadTimes"].items()
                   if name.startswith(f"Thread ({tid})") and name.endswith(kind))

    samples = sum(event["name"] == "cpu" and event["tid"] == tid for event in recorded)
    without = sum(int(event["payload"]["Value"]) for event in recorded
                  if event["name"] == "cswitch" and event["tid"] == tid) / 1e6
    print(f"thread {tid}: {samples} samples and {of('CPU_TIME'):.1f} ms with a CPU; {without:.1f} ms without, "
          f"{of('BLOCKED_TIME'):.1f} ms in Thread Time")
    if without < 400 or abs(of("BLOCKED_TIME") - without) > 0.02 * without:
        return [f"Thread Time shows {of('BLOCKED_TIME')} ms without a CPU; {without} are recorded: {totals['threadTimes']}"]
    return []


def check(args, command):
    file = args.out / "samples.nettrace"
    subprocess.run([args.nettrace, "record", "-o", file, "--cpu", "--off-cpu", "--", "/usr/bin/python3", "-c", WORK],
                   check=True)
    recorded = [event for event in commands.dump(args.nettrace, file, "--stacks") if is_sample(event)]
    events, totals = reader.read(command, file, "--log")
    if totals["exception"]:
        return [f"TraceLog ended with {totals['exception']}"]
    times = {}
    for event in recorded:
        if event["thread"] == "python3" and event["name"] == "cswitch":
            times[event["tid"]] = times.get(event["tid"], 0) + int(event["payload"]["Value"])
    shown = [event for event in events if is_sample(event)]
    return [*compare_events(recorded, shown)[:10], *compare_times(recorded, totals, max(times, key=times.get))]


def main():
    args = script.parser(__doc__, "nettrace", "reader", "out").parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    texts = check(args, reader.build(args.reader))
    print("\n".join(texts), end="\n" if texts else "")
    return not texts


if __name__ == "__main__":
    script.main(main)
