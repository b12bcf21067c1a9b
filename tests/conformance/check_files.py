#!/usr/bin/python3
"""Checks that the reference reader shows .nettrace files as `nettrace dump` does: the same events, in
the order of time, with the same names, values, ids and threads; as many lost; and no exception.

example:
  check_files.py --nettrace build/bin/nettrace --reader build/traceevent trace.nettrace

exit status: 0 it does; 1 it does not; 77 the reference reader cannot be had (the last line says why)
"""

import argparse
import json
import pathlib
import subprocess
import sys

import comparison
import reader

EXIT_SKIPPED = 77


def dump(nettrace, file):
    """Our own reading of a file: its events, and how many were lost."""
    # TraceEvent knows nothing of EventHeader's formats.
    events = subprocess.run([nettrace, "dump", "--json", "--raw", file], stdout=subprocess.PIPE, check=True).stdout
    info = subprocess.run([nettrace, "info", "--json", file], stdout=subprocess.PIPE, check=True).stdout
    return [json.loads(line) for line in events.splitlines()], json.loads(info)


def check(nettrace, command, file, allowed=(), own_ids=False):
    """The Comparison of one file."""
    events, info = dump(nettrace, file)
    shown, totals = reader.read(command, file)
    result = comparison.Comparison(allowed, own_ids)
    result.files(events, shown, totals, info["lost"])
    return result


def report(file, result):
    """Prints it; returns whether the file passed."""
    quirks = "".join(f", {count} {kind}" for kind, count in sorted(result.quirks.items()))
    print(f"{file}: {result.events} events, {result.count} differences{quirks}")
    for text in result.differences:
        print(f"  {text}")
    if result.count > len(result.differences):
        print(f"  ... and {result.count - len(result.differences)} more")
    return result.count == 0


def add_options(parser):
    parser.add_argument("--nettrace", required=True, type=pathlib.Path, help="our program")
    parser.add_argument("--reader", required=True, type=pathlib.Path, metavar="DIR",
                        help="where the reference reader is built")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--allow", default=[], type=lambda text: text.split(","), metavar="KIND,...",
                        help=f"what the reader may show differently: {', '.join(comparison.QUIRKS)}")
    parser.add_argument("--own-ids", action="store_true",
                        help="the events keep ids of their own, as recorded EventHeader events do")
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE")
    args = parser.parse_args()
    if unknown := set(args.allow) - set(comparison.QUIRKS):
        parser.error(f"--allow: there is no {', '.join(sorted(unknown))}")
    try:
        command = reader.build(args.reader)
    except reader.Unavailable as reason:
        print(reason)
        return EXIT_SKIPPED
    passed = [report(file, check(args.nettrace, command, file, args.allow, args.own_ids)) for file in args.files]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
