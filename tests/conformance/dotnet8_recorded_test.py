#!/usr/bin/python3
"""Tests that `nettrace record --dotnet` records the events of a .NET 8 program, by EventPipe. The file must have the events
that the program printed, and TraceEvent must show them as `nettrace dump` does. The program contains its runtime, which
comes from NuGet."""

import json
import subprocess

from support import commands
from support import script

import check_files
import dotnet_recorded_test as recorded
import reader

FRAMEWORK = "net8.0"
PROVIDERS = (recorded.PROVIDER, recorded.DESCRIBED)


def record(args, program):
    """Records a program; returns the file and the summary."""
    file = args.out / "dotnet8.nettrace"
    with open(args.out / "printed", "wb") as output, subprocess.Popen([program, "60", str(recorded.COUNT)], stdout=output,
                                                                      stderr=subprocess.PIPE, text=True) as process:
        process.stderr.readline()
        ran = subprocess.run([args.nettrace, "record", "--json", "-o", file, f"--dotnet={recorded.PROVIDERS}",
                              "--pid", str(process.pid)], stdout=subprocess.PIPE, text=True, check=True)
    return file, json.loads(ran.stdout)


def main():
    args = script.parser(__doc__, "nettrace", "reader", "out").parse_args()
    args.out = args.out.absolute()
    args.out.mkdir(parents=True, exist_ok=True)
    program = reader.publish_project(args.out / "program", recorded.PROJECT, FRAMEWORK)
    command = reader.build(args.reader)
    file, summary = record(args, program)
    events = list(commands.dump(args.nettrace, file))
    shown = [(event["name"], event["payload"]) for event in events if event["provider"] in PROVIDERS]
    wanted = recorded.printed(args.out / "printed")
    problems = [f"{other} is recorded instead of {event}" for event, other in zip(wanted, shown) if event != other][:3]
    if len(shown) != len(wanted) or len(wanted) != recorded.EVENTS * recorded.COUNT:
        problems.append(f"{len(shown)} events recorded and {len(wanted)} printed instead of {recorded.EVENTS * recorded.COUNT}")
    if "GC/Start" not in {event["name"] for event in events if event["provider"] == recorded.RUNTIME}:
        problems.append("no GC/Start of the runtime is recorded")
    states = [(process["state"], process["reason"], process["by"]) for process in summary["dotnet"]]
    if states != [("enabled", "", "eventPipe")]:
        problems.append(f"the processes are {states} instead of one that is enabled by eventPipe")
    print("\n".join(problems), end="\n" if problems else "")
    return check_files.report(file, check_files.check(args.nettrace, command, file, log=False)) and not problems


if __name__ == "__main__":
    script.main(main)
