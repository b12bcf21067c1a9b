#!/usr/bin/python3
"""The reference reader shows recordings as `nettrace dump` does: those of the first-light service, made in
the VM, and one of kernel tracepoints, made here."""

import argparse
import json
import os
import pathlib
import subprocess
import sys

import check_files
import reader

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
FIRST_LIGHT = REPOSITORY / "tests/vm/record"
sys.path.append(str(FIRST_LIGHT))
import load  # pylint: disable=wrong-import-position
import record  # pylint: disable=wrong-import-position

TRACEFS = pathlib.Path("/sys/kernel/tracing/events")
# Fields of every kind: fixed arrays, strings elsewhere in the record, signed and unsigned numbers; a name that
# the reader would take apart if its row had no opcode.
KERNEL_TRACEPOINTS = ("sched:sched_switch", "sched:sched_process_exec", "sched:sched_process_fork",
                      "raw_syscalls:sys_enter", "raw_syscalls:sys_exit", "timer:hrtimer_start")
LOAD = "for i in 1 2 3 4 5 6 7 8; do /bin/true; done"


def record_first_light(args):
    """Records in the VM; returns the files."""
    subprocess.run(
        [REPOSITORY / "scripts/vm.py", "--cpus", "4", "--out", args.out, "--", FIRST_LIGHT / "record.py",
         "--nettrace", args.nettrace, "--service", args.service, "/out"], stdin=subprocess.DEVNULL, check=True)
    return [args.out / f"{name}.nettrace" for name in record.WAYS]


def check_first_light(args, file):
    """Texts that say which events are not those that the service wrote."""
    service = json.loads(file.with_suffix(".json").read_text())
    return load.problems(args.nettrace, file, service, lossy=file.stem == "small-rings")


def record_kernel(args):
    """Records here; returns the files: none where that is not possible."""
    if os.geteuid() != 0 or not TRACEFS.exists():
        print("kernel tracepoints are not recorded: that needs root and tracefs")
        return []
    file = args.out / "kernel.nettrace"
    selectors = [word for name in KERNEL_TRACEPOINTS for word in ("-e", name)]
    subprocess.run([args.nettrace, "record", "-o", file, *selectors, "--ring-size", "8M", "--", "sh", "-c", LOAD],
                   stdin=subprocess.DEVNULL, check=True)
    return [file]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    check_files.add_options(parser)
    parser.add_argument("--service", required=True, type=pathlib.Path, help="the first-light service")
    parser.add_argument("--out", required=True, type=pathlib.Path, metavar="DIR", help="where recordings go")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    try:
        command = reader.build(args.reader)
    except reader.Unavailable as reason:
        print(reason)
        return check_files.EXIT_SKIPPED
    passed = True
    for file in record_first_light(args):
        # An event's own id, 0 here, is not its row's.
        result = check_files.check(args.nettrace, command, file, own_ids=True)
        problems = check_first_light(args, file)
        print("\n".join(problems), end="\n" if problems else "")
        passed &= check_files.report(file, result) and not problems
    for file in record_kernel(args):
        result = check_files.check(args.nettrace, command, file)
        passed &= check_files.report(file, result) and result.events > 0
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
