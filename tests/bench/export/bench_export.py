#!/usr/bin/python3
"""Measures what `nettrace export` costs for an event of 8 fields, 3 of them text. The floor for CPU time is `nettrace
dump --json` of the same file. The floor for peak memory is the export of a file with a tenth of the events, because
memory must not grow with the file. Also measures how long babeltrace2 takes to read the CTF.

  bench_export.py --nettrace PATH [--events N] [--json]
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from support import bench_report
from support import script
from support import trace_bytes

# Names and types: numbers of 8, 4, 4 and 8 bytes, one boolean, and texts of 8-bit units.
FIELDS = [b"\x02id\x0c", b"\x04port\x0a", b"\x06status\x09", b"\x04took\x0e", b"\x02ok\x1a", b"\x06method\x13\x17",
          b"\x04path\x13\x17", b"\x05agent\x13\x17"]
TEXTS = (b"GET", b"/index.html?page=3", b"curl/7.88.1")
EVENTS_OF_INTERVAL = 10_000


def payload():
    numbers = (12345).to_bytes(8, "little") + (443).to_bytes(4, "little") + (200).to_bytes(4, "little") + bytes(8) + b"\1"
    return numbers + b"".join(len(text).to_bytes(2, "little") + text for text in TEXTS)


def run(command):
    """Runs the command and returns its CPU time in s and its peak memory in MiB."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"bench_export: {' '.join(map(str, command))}: exit status {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def main():
    parser = script.parser(__doc__, "nettrace")
    parser.add_argument("--events", type=int, default=1_000_000, help="a multiple of %s" % (10 * EVENTS_OF_INTERVAL))
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.events <= 0 or args.events % (10 * EVENTS_OF_INTERVAL):
        parser.error(f"--events must be a multiple of {10 * EVENTS_OF_INTERVAL}")
    bench_report.head(args.json, f"{args.events} events of 8 fields")
    with tempfile.TemporaryDirectory(prefix="bench-export-") as folder:
        measure(pathlib.Path(folder), args)


def measure(folder, args):
    files = {}
    for events in (args.events // 10, args.events):
        files[events] = folder / f"{events}.nettrace"
        trace_bytes.write_long(files[events], events // EVENTS_OF_INTERVAL, FIELDS, payload(), EVENTS_OF_INTERVAL)
    few, all_of_them = files.values()
    nanoseconds = 1e9 / args.events
    floor, memory = run([args.nettrace, "dump", "--json", all_of_them])
    bench_report.row("export", args.json, "dump --json: memory", "MiB", memory, run([args.nettrace, "dump", "--json", few])[1])
    for to in ("ctf", "ctf2", "fxt", "json", "csv", "parquet", "otlp", "otlp-json"):
        out = folder / to
        _, least = run([args.nettrace, "export", "--to", to, few, "-o", out])
        remove(out)
        seconds, memory = run([args.nettrace, "export", "--to", to, all_of_them, "-o", out])
        bench_report.row("export", args.json, f"{to}: CPU time of an event, floor: dump --json", "ns", seconds * nanoseconds,
                         floor * nanoseconds)
        bench_report.row("export", args.json, f"{to}: memory, floor: a tenth of the events", "MiB", memory, least)
        if to == "ctf" and shutil.which("babeltrace2"):
            seconds, _ = run(["babeltrace2", "--output-format=dummy", out])
            bench_report.row("export", args.json, "ctf: read by babeltrace2, floor: dump --json", "ns", seconds * nanoseconds,
                             floor * nanoseconds)
        remove(out)


if __name__ == "__main__":
    main()
