#!/usr/bin/python3
"""Tests that babeltrace2 shows the output of `nettrace export --to ctf`, and a strict reader that of `--to ctf2`, as
`nettrace dump` shows the file. The files are generated files with every type, label and loss, files of the .NET
runtime, and recordings of kernel tracepoints."""

import json
import os
import pathlib
import subprocess
import sys
import zipfile

from support import commands
from support import script
from support.kernel import workload

import ctf
import ctf2
import ctf_exports
import recorded_test

# Each file with the number of its lost events.
FILES = {"types": 0, "quirks": 0, "labels": 0, "activities": 0, "names": 0, "intervals": 0, "lost": 129, "account": 0, "empty": 0,
         "sections": 8, "sections-0": 5, "sections-1": 0, "sections-2": 3}
SEEDS = range(1, 4)


def export(args, file, *options):
    return ctf_exports.export(args.nettrace, "ctf", file, args.out, *options)


def check(args, file):
    """Returns whether both versions of the exported file match dump."""
    count, comparisons = ctf_exports.compare(args.nettrace, file, args.out)
    for form, comparison in comparisons.items():
        print(f"{file.name}: {count} events, {comparison.count} differences in {form}")
        for text in comparison.differences:
            print(f"  {text}")
    return all(comparison.count == 0 for comparison in comparisons.values())


def check_program(folder):
    """Returns whether the program babeltrace2 reads the folder without messages other than those about lost events."""
    done = subprocess.run(["babeltrace2", folder], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, check=False)
    warnings = [line for line in done.stderr.splitlines() if "discarded" not in line and line]
    if done.returncode != 0 or warnings:
        print(f"babeltrace2 {folder}: exit status {done.returncode}, messages {warnings[:5]}")
        return False
    return True


def check_generated(args):
    subprocess.run([args.generate, args.out], check=True)
    passed = True
    for name, lost in FILES.items():
        file = args.out / f"{name}.nettrace"
        passed &= check(args, file)
        found = commands.info(args.nettrace, file)["lost"]
        if found != lost:
            print(f"{name}: {found} events are lost instead of {lost}")
            passed = False
    return passed


def check_random(args):
    """Checks random schemas, values and losses."""
    subprocess.run([args.random, args.out, "100", *map(str, SEEDS)], check=True)
    return all([check(args, args.out / f"random-{seed}.nettrace") for seed in SEEDS])


def check_losses(args):
    """Checks the times and the number of events of each loss in both versions of CTF."""
    # Each loss with its begin, its end, and the number of events. The times are those of sequence points and events in
    # the generator's file.
    start = ctf.nanoseconds("2026-11-21T12:30:45.678Z")
    wanted = [(start + 10, start + 10, 5), (start + 10, start + 20, 3), (start + 20, start + 30, 4),
              (start + 30, start + 30, 10), (start + 30, start + 30, 100), (start + 30, start + 40, 7)]
    file = args.out / "lost.nettrace"
    passed = True
    for form, read in (("ctf", ctf.read), ("ctf2", ctf2.read)):
        found = read(ctf_exports.export(args.nettrace, form, file, args.out)).discarded
        if sorted(found) != sorted(wanted):
            print(f"lost.nettrace: the losses of {form} are {sorted(found)} instead of {sorted(wanted)}")
            passed = False
    return passed


def check_profile(args):
    """Checks that Trace Compass treats the traces as LTTng-UST's."""
    trace = ctf.read(export(args, args.out / "lost.nettrace", "--profile", "lttng"))
    environment = {key: trace.environment.get(key) for key in ("domain", "tracer_name", "tracer_major")}
    event = trace.events[0]["context"]
    who = {key: event.get(key) for key in ("vpid", "vtid", "procname")}
    if environment == {"domain": "ust", "tracer_name": "lttng-ust", "tracer_major": "2"} and \
            who == {"vpid": 100, "vtid": 101, "procname": "main"}:
        return True
    print(f"--profile lttng: environment or context are not those of LTTng-UST: {environment}, {who}")
    return False


def check_vectors(args):
    archives = sorted(args.vectors.glob("*.nettrace.zip"))
    passed = True
    for archive in archives:
        zipfile.ZipFile(archive).extractall(args.out)
        file = args.out / archive.stem
        facts = json.loads(archive.with_name(archive.stem + ".facts.json").read_text())
        passed &= check(args, file) and bool(facts)
    return passed and bool(archives)


def check_recorded(args):
    """Checks a recording of the kernel, and one that has lost events."""
    if os.geteuid() != 0 or not recorded_test.TRACEFS.exists():
        print("kernel tracepoints are not recorded: that needs root and tracefs")
        return True
    files = [args.out / "kernel.nettrace", args.out / "small-ring.nettrace"]
    # The second recording has the tracepoints with tens of thousands of events. It uses a small ring, which loses most
    # events, because babeltrace2's module takes too long to read all of them.
    many = {"raw_syscalls:sys_enter", "raw_syscalls:sys_exit", "kmem:kmalloc"}
    tracepoints = [[name for name in recorded_test.KERNEL_TRACEPOINTS if name not in many], sorted(many)]
    load_command = [sys.executable, workload.__file__, args.out, args.out / "times"]
    for file, names, ring in zip(files, tracepoints, ("8M", "4K")):
        commands.record(args.nettrace, file, names, load_command, ["--ring-size", ring])
    passed = all([check(args, file) for file in files])
    return check_names(args, files[0]) and check_processes(args, files[0]) and passed


def check_names(args, file):
    """Checks that numbers for which the kernel has names are enumerations."""
    dumped = {(event["name"], event["payload"]["state"]): event["symbols"]["state"]
              for event in commands.dump(args.nettrace, file, "--event", "inet_sock_set_state") for event in [
                  dict(event, payload={"state": event["payload"]["newstate"]},
                       symbols={"state": event.get("symbols", {}).get("newstate")})]}
    shown = {(event["name"].partition(":")[2], int(event["payload"]["newstate"])):
             (event["payload"]["newstate"].names or (None,))[0]
             for event in ctf.read(export(args, file, "--event", "inet_sock_set_state")).events}
    if dumped != shown or not any(shown.values()):
        print(f"{file.name}: the names of states are {shown} instead of {dumped}")
        return False
    return True


def check_processes(args, file):
    """Checks that one of the events task_rename has the name of its process, which is python3."""
    events = ctf.read(export(args, file, "--event", "task_rename")).events
    names = {event["context"]["process"] for event in events}
    if not any(pathlib.PurePath(name).name.startswith("python3") for name in names):
        print(f"{file.name}: python3 is not among the processes {sorted(names)[:20]}")
        return False
    return True


def main():
    args = script.parser(__doc__, "nettrace", "generate", "random", "vectors", "out").parse_args()
    ctf.babeltrace()
    args.out.mkdir(parents=True, exist_ok=True)
    passed = [check_generated(args), check_random(args), check_losses(args), check_profile(args), check_recorded(args)]
    passed.append(check_program(args.out / "types--processes--account.ctf"))
    if not args.vectors.is_dir():
        print("the files of the .NET runtime are not here")
        return all(passed)
    return check_vectors(args) and all(passed)


if __name__ == "__main__":
    script.main(main)
