#!/usr/bin/python3
"""Records the events that write_events.py packs by hand, and tests that `nettrace dump --json` and TraceEvent show the
values of the table, which is written from the specification.

With --reader, the events are recorded in the VM, and Perfetto must show the exports, too. Without it, they are recorded on
this machine, which needs root and a kernel with user_events, and other readers are left out."""

import itertools
import json
import pathlib
import subprocess
import sys

from support import commands
from support import script

import events
import table
import write_events

FOLDER = pathlib.Path(__file__).resolve().parent
MAX_SHOWN = 20


def check_table():
    """Returns messages about encodings and formats that the table leaves out."""
    covered = {(row.encoding, shown_as) for row in table.ROWS for shown_as in row.formats.split()}
    return [f"the table lacks {encoding} {shown_as}"
            for encoding, shown_as in itertools.product(table.ENCODINGS, table.FORMATS)
            if (encoding, shown_as) not in covered]


def check_shown(by, wanted, shown):
    """Returns messages about payloads in `shown`, by the events' names, that differ from those in `wanted`."""
    problems = [f"{by} shows no event {name}" for name in wanted if name not in shown]
    for name in wanted.keys() & shown.keys():
        for field in wanted[name].keys() | shown[name].keys():
            ours, theirs = (json.dumps(side[name].get(field, "(none)")) for side in (wanted, shown))
            if ours != theirs:
                problems.append(f"{name}: {field} is {ours}, and {by} shows {theirs}")
    return problems


def record(nettrace, file):
    commands.record(nettrace, file, [write_events.TRACEPOINT], [sys.executable, FOLDER / "write_events.py"],
                    ["--ring-size", "8M"])


def record_in_vm(nettrace, file):
    subprocess.run([FOLDER.parents[2] / "scripts/vm.py", "--out", file.parent, "--env", "PYTHONPATH", "--",
                    __file__, "--nettrace", nettrace, "--out", f"/out/{file.name}"],
                   stdin=subprocess.DEVNULL, check=True)


def check_traceevent(args, everything):
    sys.path.append(str(FOLDER.parent))
    import reader
    shown, totals = reader.read(reader.build(args.reader), args.out)
    problems = ["TraceEvent threw: " + totals["exception"]] if totals["exception"] else []
    return problems + check_shown("TraceEvent", {name: wanted for name, _, _, wanted in everything},
                                  {event["name"]: event["payload"] for event in shown})


def check_perfetto(args):
    sys.path.append(str(FOLDER.parent))
    import perfetto
    try:
        _, differences = perfetto.compare(args.nettrace, args.out, args.out.parent)
    except script.Skipped as reason:
        print(f"Perfetto is left out: {reason}")
        return []
    return [text for texts in differences.values() for text in texts]


def report(problems):
    for problem in problems[:MAX_SHOWN]:
        print(problem)
    if len(problems) > MAX_SHOWN:
        print(f"... and {len(problems) - MAX_SHOWN} more")
    return not problems


def main():
    parser = script.parser(__doc__, "nettrace", "out")
    parser.add_argument("--reader", type=pathlib.Path, metavar="PATH")
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    (record_in_vm if args.reader else record)(args.nettrace, args.out)
    everything = list(events.all_events())
    dumped = list(commands.dump(args.nettrace, args.out))
    problems = check_table()
    if len(dumped) != len(everything):
        problems.append(f"{len(everything)} events were written, and {len(dumped)} recorded")
    problems += check_shown("nettrace dump", {name: shown for name, _, shown, _ in everything},
                            {event["name"]: event["payload"] for event in dumped})
    if args.reader:
        problems += check_perfetto(args) + check_traceevent(args, everything)
    print(f"{len(everything)} events, {len(problems)} problems")
    return report(problems)


if __name__ == "__main__":
    script.main(main)
