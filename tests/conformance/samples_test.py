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

# Takes the CPU below a recursion of known depth, and exits.
DEPTH = 20
RECURSION = r"""
#include <time.h>
namespace Shop {
__attribute__((noinline)) void spin() {
  for (volatile int i = 0; i < 100000000; ++i) {
  }
}
__attribute__((noinline)) int recurse(int n) {
  if (n == 0) spin();
  int below = n == 0 ? 0 : recurse(n - 1);
  __asm__ volatile("" : "+r"(below));
  return below;
}
}  // namespace Shop
int main() {
  for (int i = 0; i < 5; ++i) Shop::recurse(DEPTH);
  return 0;
}
"""


def is_sample(event):
    return event["provider"] == "Universal.Events"


def compare_events(recorded, shown, tid):
    """Returns the differences between the events that dump and TraceLog show. Modules are compared for the test's own
    program, whose thread is `tid`."""
    if len(shown) != len(recorded):
        return [f"TraceLog shows {len(shown)} events; dump shows {len(recorded)}"]
    texts = []
    frames = named = 0
    for event, wanted in zip(shown, recorded):
        facts = [(each["timestamp"], each["tid"], each["payload"].get("Value")) for each in (event, wanted)]
        if facts[0] != facts[1] or len(event["stack"]) != len(wanted.get("frames", [])):
            texts.append(f"{event} instead of {wanted}")
            continue
        frames += len(event["stack"])
        # TraceLog does not find the modules of a process that has started another program since. On a busy machine, many
        # of the other processes do that. The test's program is called nettrace before it starts python3.
        if event["tid"] != tid or wanted["thread"] != "python3":
            continue
        # Frames that dump shows as addresses are of code without frame pointers.
        for found, frame in zip(event["stack"], wanted.get("frames", [])):
            if frame.startswith("0x"):
                continue
            named += 1
            # TraceLog shows the names of modules in lower case.
            if found.split("!")[0].lower() != frame.rsplit("+", 1)[0].split("!")[0].lower():
                texts.append(f"{found} instead of {frame}")
    if named < 10:
        texts.append(f"only {named} frames of the test's program are in a module")
    if not any("vmlinux!" in frame for event in shown for frame in event["stack"]):
        texts.append("no frame is in a function of the kernel")
    kinds = {event["kind"] for event in shown}
    print(f"{len(shown)} events, {frames} frames, {named} of the program compared, of the types {kinds}")
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


def check_recursion(args, command):
    """Returns what is wrong with the stacks that TraceLog shows for a program whose stacks are known."""
    program, file = args.out / "recursion", args.out / "recursion.nettrace"
    subprocess.run(["c++", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", f"-DDEPTH={DEPTH}", "-x", "c++",
                    "-o", program, "-"], input=RECURSION.encode(), check=True)
    subprocess.run([args.nettrace, "record", "-o", file, "--cpu", "--", program.absolute()], check=True)
    tid = next(event["tid"] for event in commands.dump(args.nettrace, file, "--event", "cpu")
               if event["thread"] == "recursion")
    events, totals = reader.read(command, file, "--log")
    if totals["exception"]:
        return [f"TraceLog ended with {totals['exception']}"]
    functions = ["spin", *["recurse"] * (DEPTH + 1), "main"]
    stacks = [[frame for frame in event["stack"] if not frame.startswith("vmlinux!")] for event in events
              if is_sample(event) and event["tid"] == tid]
    inside = [stack for stack in stacks if stack and "spin" in stack[0]]
    whole = [stack for stack in inside if len(stack) > len(functions) and stack[-1].startswith("libc")
             and all(frame.startswith("recursion!") and name in frame for name, frame in zip(functions, stack))]
    print(f"{len(stacks)} samples of the recursion, {len(inside)} in its loop, {len(whole)} whole")
    if len(inside) < 100 or len(whole) * 100 < len(inside) * 99:
        return [f"{len(whole)} of {len(inside)} stacks are whole: {[stack for stack in inside if stack not in whole][:3]}"]
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
    tid = max(times, key=times.get)
    return [*compare_events(recorded, shown, tid)[:10], *compare_times(recorded, totals, tid),
            *check_recursion(args, command)]


def main():
    args = script.parser(__doc__, "nettrace", "reader", "out").parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    texts = check(args, reader.build(args.reader))
    print("\n".join(texts), end="\n" if texts else "")
    return not texts


if __name__ == "__main__":
    script.main(main)
