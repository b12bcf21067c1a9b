#!/usr/bin/python3
"""Tests that a service with a field of every type makes the same recording through a ring in user space, here, as through
user_events, in the VM: the same events, names, types and values in `nettrace dump` and in TraceEvent."""

import itertools
import json
import os
import pathlib
import subprocess
import tempfile

from support import commands
from support import script

import check_files
import reader

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
TRACEPOINT = "Vm_EveryType_L4K1"
# Keys of an event that differ between two runs of the service. `threadInfo` has the transport.
OF_THE_RUN = {"timestamp", "time", "relativeMs", "pid", "tid", "cpu", "thread", "threadInfo"}
MAX_SHOWN = 20


def record(args):
    """Returns the files, by transport."""
    files = {"ring": args.out / "ring.nettrace", "user_events": args.out / "user_events.nettrace"}
    command = [args.nettrace, "record", "-e", TRACEPOINT, "-o"]
    with tempfile.TemporaryDirectory(prefix="transports-") as folder:
        rings = {"EVENTHEADER_TRANSPORT": "ring", "EVENTHEADER_SOCKET": f"{folder}/events"}
        subprocess.run([*command, files["ring"], "--", args.service], stdout=subprocess.DEVNULL, env={**os.environ, **rings}, check=True)
    subprocess.run([REPOSITORY / "scripts/vm.py", "--out", args.out, "--", *command, "/out/user_events.nettrace", "--", args.service],
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return files


def lines(events):
    """Returns each event as a line of JSON, without the keys in OF_THE_RUN. JSON keeps the types of values apart: 1 and 1.0."""
    return [json.dumps({key: value for key, value in event.items() if key not in OF_THE_RUN}, sort_keys=True) for event in events]


def types(nettrace, file):
    """Returns the types of all fields, as the metadata of an export to CTF declares them."""
    with tempfile.TemporaryDirectory(prefix="transports-") as folder:
        subprocess.run([nettrace, "export", "--to", "ctf", file, "-o", f"{folder}/ctf"], check=True)
        metadata = pathlib.Path(folder, "ctf/metadata").read_text(encoding="utf-8")
    # Declarations of events follow those of the trace and its streams.
    return [line for line in metadata.split("event {", 1)[1].splitlines() if "Vm_EveryType" not in line]


def compare(what, ring, user_events):
    """Prints the differences of two lists of lines. Returns whether there are none."""
    different = [pair for pair in itertools.zip_longest(ring, user_events) if pair[0] != pair[1]]
    print(f"{what}: {len(ring)} lines by ring, {len(user_events)} by user_events, {len(different)} differences")
    for pair in different[:MAX_SHOWN]:
        print(f"  ring        {pair[0]}\n  user_events {pair[1]}")
    return not different and len(ring) > 80


def main():
    args = script.parser(__doc__, "nettrace", "reader", "service", "out").parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    command = reader.build(args.reader)
    files = record(args)
    for file in files.values():
        subprocess.run([args.nettrace, "verify", "--strict", file], check=True)
    passed = [check_files.report(file, check_files.check(args.nettrace, command, file, own_ids=True)) for file in files.values()]
    for what, get in (("nettrace dump --json", lambda file: lines(commands.dump(args.nettrace, file))),
                      ("nettrace dump --json --raw", lambda file: lines(commands.dump(args.nettrace, file, "--raw"))),
                      ("types", lambda file: types(args.nettrace, file)),
                      ("TraceEvent", lambda file: lines(event for event in reader.read(command, file)[0]
                                                        if event["provider"] == "Vm_EveryType"))):
        passed.append(compare(what, get(files["ring"]), get(files["user_events"])))
    return all(passed)


if __name__ == "__main__":
    script.main(main)
