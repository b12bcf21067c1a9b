#!/usr/bin/python3
"""Tests samples of CPU time, and times without a CPU, in TraceEvent. Its parser must know the events and show their
processes, modules and functions, and PerfView's view Thread Time must have the right times."""

import re
import subprocess

from support import commands
from support import script

import comparison
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

# Waits for a line, takes the CPU below a recursion of known depth, which qsort calls if SORTS is defined, and exits.
DEPTH = 20
RECURSION = r"""
#include <stdio.h>
#include <stdlib.h>
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
int compare(const void*, const void*) { return recurse(DEPTH) + 1; }
}  // namespace Shop
int main() {
  getchar();
  for (int i = 0; i < 5; ++i) {
#ifdef SORTS
    int numbers[2] = {0, 0};
    qsort(numbers, 2, sizeof numbers[0], Shop::compare);
#else
    Shop::recurse(DEPTH);
#endif
  }
  return 0;
}
"""
# For each kind of stack, the flags of the compiler, the options of the recording, and the callers of the recursion. A frame
# of libc may have no name, because Debian's package has no symbols of internal functions.
KINDS = {
    "frame pointers": (["-fno-omit-frame-pointer"], [], "main( libc)+"),
    "dwarf": (["-fomit-frame-pointer", "-DSORTS"], ["--stacks=dwarf", "--ring-size", "16M"],
              "compare( libc)+ main( libc)+ _start"),
}


def is_sample(event):
    return event["provider"] == "Universal.Events"


def compare_events(recorded, shown, tid):
    """Returns the differences between the events that dump and TraceLog show. Modules are compared for the test's own
    program, whose thread is `tid`."""
    if len(shown) != len(recorded):
        return [f"TraceLog shows {len(shown)} events; dump shows {len(recorded)}"]
    texts = []
    frames = named = 0
    for event, wanted in zip(comparison.in_order(shown), comparison.in_order(recorded)):
        facts = [(each["timestamp"], each["tid"], each["payload"].get("Value")) for each in (event, wanted)]
        if facts[0] != facts[1] or len(event["stack"]) != len(wanted.get("frames", [])):
            texts.append(f"TraceLog shows {event} instead of {wanted}")
            continue
        frames += len(event["stack"])
        # TraceLog does not find the modules of a process that has started another program since. On a busy machine, many
        # of the other processes do that. The thread of the test's program has the name nettrace before it starts python3.
        # A thread that waits in execve() has the new name, and the stack of the old program.
        if event["tid"] != tid or wanted["thread"] != "python3" or any("!execve+" in frame for frame in wanted.get("frames", [])):
            continue
        # Frames that dump shows as addresses are of code without frame pointers.
        for found, frame in zip(event["stack"], wanted.get("frames", [])):
            if frame.startswith("0x"):
                continue
            named += 1
            # TraceLog shows the names of modules in lower case.
            if found.split("!")[0].lower() != frame.rsplit("+", 1)[0].split("!")[0].lower():
                texts.append(f"TraceLog shows frame {found} in another module than {frame}")
    if named < 10:
        texts.append(f"only {named} frames of the test's program were compared; at least 10 are needed")
    if not any("vmlinux!" in frame for event in shown for frame in event["stack"]):
        texts.append("TraceLog shows no frame in vmlinux")
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


def text_of(stack):
    """Returns the functions of a stack of the recursion, innermost first, with "libc" for each frame in libc."""
    words = []
    for frame in stack:
        module, function = frame.split("!", 1) if "!" in frame else ("", frame)
        name = re.sub(r"^(?:_ZN4Shop\d+|Shop::)([a-z]+).*", r"\1", function)
        words.append(name if module == "recursion" else "libc" if module.startswith("libc.") else frame)
    return " ".join(words)


def check_recursion(args, command, kind):
    """Returns what is wrong with the stacks that TraceLog shows for a program whose stacks are known."""
    flags, options, callers = KINDS[kind]
    program, file = args.out / "recursion", args.out / "recursion.nettrace"
    subprocess.run(["c++", "-O1", "-fno-optimize-sibling-calls", *flags, f"-DDEPTH={DEPTH}", "-x", "c++", "-o", program, "-"],
                   input=RECURSION.encode(), check=True)
    with subprocess.Popen(program, stdin=subprocess.PIPE) as process:
        subprocess.run([args.nettrace, "record", "-o", file, "--cpu", *options, "--pid", str(process.pid), "--", "sh", "-c",
                        f"echo >/proc/{process.pid}/fd/0; exec sleep 60"], check=True)
    events, totals = reader.read(command, file, "--log")
    if totals["exception"]:
        return [f"TraceLog ended with {totals['exception']}"]
    stacks = [(text_of(frame for frame in event["stack"] if not frame.startswith("vmlinux!")), event["broken"])
              for event in events if is_sample(event) and event["pid"] == process.pid]
    inside = [stack for stack in stacks if re.match(r"spin\b", stack[0])]
    bad = [stack for stack in inside
           if stack[1] or not re.fullmatch(r"spin( recurse){%d} %s" % (DEPTH + 1, callers), stack[0])]
    # On a busy machine, the recorder skips stacks that it has no time to unwind. The file has their number.
    skipped = commands.info(args.nettrace, file)["stacksSkipped"]
    print(f"{kind}: {len(stacks)} samples of the recursion, {len(inside)} in its loop, {len(inside) - len(bad)} whole; "
          f"{skipped} skipped")
    if len(inside) - len(bad) < 100 or (len(bad) - skipped) * 100 > len(inside):
        return [f"{kind}: {len(bad)} of {len(inside)} stacks lack callers or are broken ({skipped} skipped): {bad[:3]}"]
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
            *[text for kind in KINDS for text in check_recursion(args, command, kind)]]


def main():
    args = script.parser(__doc__, "nettrace", "reader", "out").parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    texts = check(args, reader.build(args.reader))
    print("\n".join(texts), end="\n" if texts else "")
    return not texts


if __name__ == "__main__":
    script.main(main)
