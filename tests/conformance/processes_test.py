#!/usr/bin/python3
"""Tests that TraceLog, as in PerfView, shows the processes of recordings made here and in the VM: their names, when
they began and ended, and two processes with the same pid as two. After `nettrace cut`, it must show the processes that
exist when the cut begins."""

import datetime
import json
import os
import pathlib
import subprocess

from support import process_load
from support import script

import reader

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
# Maximum error of a time in ns: TraceEvent rounds times, and the recorder reads the two clocks one after the other.
CLOCK_ERROR = 2_000_000


def record_here(args):
    """Records on this machine; returns None if that is not possible."""
    if os.geteuid() != 0 or not pathlib.Path("/sys/kernel/tracing/events").exists():
        print("not recorded here: that needs root and tracefs")
        return None
    file = args.out / "here.nettrace"
    subprocess.run([process_load.__file__, "--nettrace", args.nettrace, file], check=True)
    return file


def record_in_vm(args):
    subprocess.run([REPOSITORY / "scripts/vm.py", "--cpus", "2", "--out", args.out, "--env", "PYTHONPATH", "--",
                    process_load.__file__, "--nettrace", args.nettrace, "/out/vm.nettrace"],
                   stdin=subprocess.DEVNULL, check=True)
    return args.out / "vm.nettrace"


def nanoseconds(text):
    """Returns nanoseconds since 1970; TraceEvent's times have a resolution of 100 ns."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    seconds = datetime.datetime.fromisoformat(whole + "+00:00").timestamp()
    return int(seconds) * 10**9 + int(fraction[:9].ljust(9, "0"))


def is_within(time, span):
    return span[0] - CLOCK_ERROR <= nanoseconds(time) <= span[1] + CLOCK_ERROR


def problems(command, file, expected):
    _, totals = reader.read(command, file, "--log")
    if totals["exception"]:
        return [totals["exception"]]
    texts = []
    for process in expected:
        # Other processes may have had the pid before and after. Processes that had ended when a cut begins have no
        # duration.
        shown = [other for other in totals["processes"]
                 if other["pid"] == process["pid"] and other["start"] != other["end"]
                 and is_within(other["start"], process["began"])]
        # On a busy machine, exec may come in a later interval than the creation of the process. TraceLog then shows two
        # processes: one with the name of the parent until exec, and one with the expected name from exec on.
        if [other["image"] for other in shown[-1:]] != [process["name"]] or not is_within(
                shown[-1]["end"], (process["began"][0], process["ended"][1])):
            texts.append(f"TraceLog shows {shown} instead of {process}")
    if not any(process["image"] == "swapper" for process in totals["processes"]):
        texts.append("no process is named swapper, as the kernel's idle process is")
    unnamed = [process["pid"] for process in totals["processes"] if not process["image"]]
    if unnamed:
        texts.append(f"processes {unnamed} have no names")
    return texts


def cuts(args, file, expected):
    """Yields cuts of the file, each with the processes that TraceLog must show: those that end after the cut begins. The cuts
    have only the events about processes."""
    # One cut begins while the first process lives, the other when it and its successor have ended.
    for number, time in enumerate((expected[0]["began"][1], expected[-1]["began"][0])):
        cut = file.with_suffix(f".cut{number}.nettrace")
        start = datetime.datetime.fromtimestamp(time // 10**9, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
        subprocess.run([args.nettrace, "cut", file, "-o", cut, "--provider", "None", "--from",
                        f"{start}.{time % 10**9:09}Z"], check=True)
        yield cut, [{**process, "began": [max(time, began) for began in process["began"]]}
                    for process in expected if process["ended"][0] > time]


def main():
    args = script.parser(__doc__, "nettrace", "reader", "out").parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    command = reader.build(args.reader)
    passed = True
    for file in filter(None, [record_here(args), record_in_vm(args)]):
        expected = json.loads(file.with_suffix(".json").read_text(encoding="ascii"))
        passed = passed and len(expected) >= 2
        for part, processes in [(file, expected), *cuts(args, file, expected)]:
            texts = problems(command, part, processes)
            print("\n  ".join([f"{part.name}: {len(processes)} processes, {len(texts)} problems", *texts]))
            passed = passed and not texts and len(processes) > 0
    return passed


if __name__ == "__main__":
    script.main(main)
