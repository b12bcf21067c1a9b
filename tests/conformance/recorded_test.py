#!/usr/bin/python3
"""TraceEvent shows recordings as `nettrace dump` does: those of load_service, made in the VM, and one of
kernel tracepoints, made here."""

import json
import os
import pathlib
import subprocess
import sys

from support import commands
from support import script
from support.kernel import workload
from support.load import load
from support.load import record

import check_files
import reader

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
TRACEFS = pathlib.Path("/sys/kernel/tracing/events")
# They have fields of every sort: fixed arrays, strings elsewhere in the record, signed and unsigned numbers;
# and a name that TraceEvent would take apart if its metadata row had no opcode.
KERNEL_TRACEPOINTS = ("sched:sched_switch", "sched:sched_process_exec", "sched:sched_process_fork",
                      "raw_syscalls:sys_enter", "raw_syscalls:sys_exit", "timer:hrtimer_start",
                      "sock:inet_sock_set_state", "task:task_rename", "kmem:kmalloc", "workqueue:workqueue_queue_work")


def record_load(args):
    """Records in the VM; returns the files."""
    subprocess.run(
        [REPOSITORY / "scripts/vm.py", "--cpus", "4", "--out", args.out, "--env", "PYTHONPATH", "--", record.__file__,
         "--nettrace", args.nettrace, "--service", args.service, "/out"], stdin=subprocess.DEVNULL, check=True)
    return [args.out / f"{name}.nettrace" for name in record.WAYS]


def check_load(args, command, file):
    # An event's own id, 0 here, is not its row's.
    result = check_files.check(args.nettrace, command, file, own_ids=True)
    service = json.loads(file.with_suffix(".json").read_text())
    problems = load.problems(args.nettrace, file, service, lossy=file.stem == "small-rings")
    print("\n".join(problems), end="\n" if problems else "")
    return check_files.report(file, result) and not problems


def record_kernel(args):
    """Records here; returns the files: none where that is not possible."""
    if os.geteuid() != 0 or not TRACEFS.exists():
        print("kernel tracepoints are not recorded: that needs root and tracefs")
        return []
    file = args.out / "kernel.nettrace"
    command = [sys.executable, workload.__file__, args.out, args.out / "times"]
    commands.record(args.nettrace, file, KERNEL_TRACEPOINTS, command, ["--ring-size", "8M"])
    return [file]


def check_kernel(args, command, file):
    result = check_files.check(args.nettrace, command, file)
    # The comparison is worth something only if such text is in the file.
    names = [event["payload"].get("newcomm") for event in commands.dump(args.nettrace, file, "--event", "task_rename")]
    if workload.THREAD_NAME not in names:
        print(f"{file}: no thread was named {workload.THREAD_NAME}")
        return False
    return check_files.report(file, result) and result.events > 0


def main():
    args = script.parser(__doc__, "nettrace", "reader", "service", "out").parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    command = reader.build(args.reader)
    passed = [check_load(args, command, file) for file in record_load(args)]
    passed += [check_kernel(args, command, file) for file in record_kernel(args)]
    return all(passed)


if __name__ == "__main__":
    script.main(main)
