#!/usr/bin/python3
"""Checks that TraceEvent shows .nettrace files as `nettrace dump` does: the same events in the order of time, with the
same names, values, ids and threads, the same number of lost events, and no exception.

example:
  check_files.py --nettrace build/bin/nettrace --reader build/traceevent trace.nettrace

exit status: 0 the files pass; 1 they do not; 77 TraceEvent is not available (the last line says why)
"""

import pathlib

from support import commands
from support import script

import comparison
import reader


def dump(nettrace, file):
    # TraceEvent shows values without EventHeader's formats (--raw). It also shows the events about processes and the
    # account, which dump leaves out by default.
    return list(commands.dump(nettrace, file, "--raw", "--processes", "--account"))


def check(nettrace, command, file, allowed=(), own_ids=False, log=True):
    """Returns the Comparison of one file, both with the view of programs that read events and with the TraceLog that
    PerfView shows. `log` must be False for a file of the .NET runtime, because a TraceLog shows the runtime's events
    with the names of TraceEvent's parsers, not those of the file."""
    result = comparison.Comparison(allowed, own_ids)
    events, lost = dump(nettrace, file), commands.info(nettrace, file)["lost"]
    result.files(events, *reader.read(command, file), lost)
    if log:
        shown, totals = reader.read(command, file, "--log")
        result.files(events, shown, totals, lost, log=True)
        result.processes(shown, totals)
    return result


def report(file, result):
    """Prints the result; returns whether the file passed."""
    quirks = "".join(f", {count} {kind}" for kind, count in sorted(result.quirks.items()))
    print(f"{file}: {result.events} events, {result.count} differences{quirks}")
    for text in result.differences:
        print(f"  {text}")
    if result.count > len(result.differences):
        print(f"  ... and {result.count - len(result.differences)} more")
    return result.count == 0


def main():
    parser = script.parser(__doc__, "nettrace", "reader")
    parser.add_argument("--allow", default=[], type=lambda text: text.split(","), metavar="KIND,...",
                        help=f"what TraceEvent may show differently: {', '.join(comparison.QUIRKS)}")
    parser.add_argument("--own-ids", action="store_true",
                        help="the events keep their own ids, as recorded EventHeader events do")
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE")
    args = parser.parse_args()
    if unknown := set(args.allow) - set(comparison.QUIRKS):
        parser.error(f"--allow: unknown quirk {', '.join(sorted(unknown))}")
    command = reader.build(args.reader)
    return all([report(file, check(args.nettrace, command, file, args.allow, args.own_ids)) for file in args.files])


if __name__ == "__main__":
    script.main(main)
