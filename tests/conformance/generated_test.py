#!/usr/bin/python3
"""What readers make of the files that the generator writes with our writer: the reference reader shows
what `nettrace dump` shows, and both show the values that the generator says are in there."""

import argparse
import json
import pathlib
import subprocess
import sys

import check_files
import comparison
import reader

# Each file, and what the reference reader may show in its own way there: it has to, too.
FILES = {"types": (), "quirks": ("latin1", "nul"), "labels": (), "names": (), "intervals": (), "lost": (), "empty": ()}
LOST = {"lost": 129}


def check_expected(folder, name, nettrace):
    """Texts that say where our own reading differs from what the generator wrote."""
    expected = [json.loads(line) for line in (folder / f"{name}.expected").read_text().splitlines()]
    events, _ = check_files.dump(nettrace, folder / f"{name}.nettrace")
    result = comparison.Comparison()
    if len(events) != len(expected):
        return [f"{name}: {len(events)} events instead of {len(expected)}"]
    for event, wanted in zip(events, expected):
        result.values(wanted["name"], wanted, {"name": event["name"], "payload": event["payload"]})
    return [f"{name}: {text} by nettrace dump" for text in result.differences]


def check_file(folder, name, allowed, args, command):
    file = folder / f"{name}.nettrace"
    result = check_files.check(args.nettrace, command, file, allowed)
    passed = check_files.report(file, result)
    for kind in set(allowed) - set(result.quirks):
        print(f"  the reference reader no longer shows text in its own way ({kind}): drop that from the documents")
        passed = False
    lost = check_files.dump(args.nettrace, file)[1]["lost"]
    if lost != LOST.get(name, 0):
        print(f"  {lost} events lost instead of {LOST.get(name, 0)}")
        passed = False
    return passed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    check_files.add_options(parser)
    parser.add_argument("--generate", required=True, type=pathlib.Path, help="the generator")
    parser.add_argument("--out", required=True, type=pathlib.Path, metavar="DIR", help="where it writes")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    subprocess.run([args.generate, args.out], check=True)
    passed = True
    for name in ("types", "quirks"):
        for text in check_expected(args.out, name, args.nettrace):
            print(text)
            passed = False
    try:
        command = reader.build(args.reader)
    except reader.Unavailable as reason:
        print(reason)
        return check_files.EXIT_SKIPPED if passed else 1
    for name, allowed in FILES.items():
        passed &= check_file(args.out, name, allowed, args, command)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
