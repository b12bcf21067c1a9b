#!/usr/bin/python3
"""Tests that TraceLog, as in PerfView, shows a start-stop activity for each pair of start and stop events, with its
duration and the activity around it. The files have the events of the examples for HTTP and C, with ids that
libeventheader has made. The generator writes the files, because recordings of user_events need a VM."""

import subprocess

from support import commands
from support import script

import reader

START, STOP = 1, 2
# Pairs in the generated file: three requests, three calls of a backend within them, three rounds.
GENERATED_PAIRS = 9
# TraceEvent rounds times to multiples of 100 ns, and a duration has the errors of its two times.
CLOCK_ERROR_MS = 0.0003


def guid(text):
    return text.lower() if text else None


def pairs(events):
    """Returns {activity id: (pid, task, duration in ms, id of the parent)} of the start and stop events of a file. The
    parent is the related activity if that is still running. A round of the example for C has no parent: its related
    activity is the previous round, which has ended."""
    starts, found = {}, {}
    for event in events:
        key = guid(event.get("activityId"))
        if event["opcode"] == START:
            related = guid(event.get("relatedActivityId"))
            starts[key] = event, related if related in starts else None
        elif event["opcode"] == STOP and key in starts:
            start, parent = starts.pop(key)
            # TraceEvent takes the name of an activity from its start event.
            name = start["name"].removesuffix("Start")
            duration = (event["timestamp"] - start["timestamp"]) / 1e6
            found[key] = (start["pid"], name, duration, parent)
    return found


def problems(nettrace, command, file):
    wanted = pairs(commands.dump(nettrace, file))
    _, totals = reader.read(command, file, "--log")
    if totals["exception"]:
        return wanted, [totals["exception"]]
    shown = {guid(activity["id"]): activity for activity in totals["activities"]}
    texts = [f"TraceLog shows {len(totals['activities'])} activities; the file has {len(wanted)} pairs"
             ] if len(totals["activities"]) != len(wanted) else []
    for key, (pid, task, duration, parent) in wanted.items():
        activity = shown.get(key)
        if activity is None:
            texts.append(f"TraceLog does not show {task} {key}")
        elif (activity["pid"], activity["task"], guid(activity["parentId"])) != (pid, task, parent) or \
                abs(activity["durationMs"] - duration) > CLOCK_ERROR_MS:
            texts.append(f"{task} {key}, {duration} ms, parent {parent}: TraceLog shows {activity}")
        elif not activity["name"].startswith(f"{task}(//"):
            texts.append(f"{task} {key} has no path in its name {activity['name']}")
    return wanted, texts


def main():
    args = script.parser(__doc__, "nettrace", "reader", "generate", "out").parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    subprocess.run([args.generate, args.out], check=True)
    command = reader.build(args.reader)
    wanted, texts = problems(args.nettrace, command, args.out / "activity-paths.nettrace")
    print("\n  ".join([f"{len(wanted)} pairs, {len(texts)} problems", *texts]))
    return len(wanted) == GENERATED_PAIRS and not texts


if __name__ == "__main__":
    script.main(main)
