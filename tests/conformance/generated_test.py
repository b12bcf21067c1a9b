#!/usr/bin/python3
"""Tests readers of the files that the generator writes with our writer. TraceEvent must show what `nettrace dump`
shows, and both must show the values that the generator has written."""

import json
import subprocess

from support import commands
from support import script

import check_files
import comparison
import reader

# Each file, with its quirks. TraceEvent must show each of these quirks, and no others.
FILES = {"types": (), "quirks": ("latin1", "nul"), "labels": ("label",), "activities": (),
         "activity-paths": (), "names": (), "intervals": (), "lost": (), "account": (), "empty": (),
         "repaired": (), "sections": (), "sections-0": (), "sections-1": (), "sections-2": ()}
LOST = {"lost": 129, "repaired": 129, "sections": 8, "sections-0": 5, "sections-2": 3}


def check_expected(folder, name, nettrace):
    """Returns messages about differences between `nettrace dump` and what the generator wrote."""
    expected = [json.loads(line) for line in (folder / f"{name}.expected").read_text().splitlines()]
    events = check_files.dump(nettrace, folder / f"{name}.nettrace")
    result = comparison.Comparison()
    if len(events) != len(expected):
        return [f"{name}: nettrace dump shows {len(events)} events instead of {len(expected)}"]
    for event, wanted in zip(events, expected):
        result.values(wanted["name"], wanted, {"name": event["name"], "payload": event["payload"]})
    return [f"{name}: {text} by nettrace dump" for text in result.differences]


def check_file(folder, name, allowed, args, command):
    file = folder / f"{name}.nettrace"
    result = check_files.check(args.nettrace, command, file, allowed)
    passed = check_files.report(file, result)
    for kind in set(allowed) - set(result.quirks):
        print(f"  TraceEvent no longer has the quirk '{kind}' in this file; remove it from FILES and from the documents")
        passed = False
    lost = commands.info(args.nettrace, file)["lost"]
    if lost != LOST.get(name, 0):
        print(f"  nettrace info states {lost} lost events instead of {LOST.get(name, 0)}")
        passed = False
    return passed


def repair(args):
    """Writes repaired.nettrace: the repaired copy of a file without its end, with an event that reports the repair."""
    cut = args.out / "cut.nettrace"
    cut.write_bytes((args.out / "lost.nettrace").read_bytes()[:-1])
    subprocess.run([args.nettrace, "repair", cut, "-o", args.out / "repaired.nettrace"], stderr=subprocess.DEVNULL, check=True)


def main():
    args = script.parser(__doc__, "nettrace", "reader", "generate", "out").parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    subprocess.run([args.generate, args.out], check=True)
    repair(args)
    passed = True
    for name in ("types", "quirks", "account"):
        for text in check_expected(args.out, name, args.nettrace):
            print(text)
            passed = False
    if not passed:
        return False
    command = reader.build(args.reader)
    return all([check_file(args.out, name, allowed, args, command) for name, allowed in FILES.items()])


if __name__ == "__main__":
    script.main(main)
