#!/usr/bin/python3
"""Tests that TraceEvent shows recordings as `nettrace dump` does: recordings of load_service, made in the VM, and two
recordings of kernel tracepoints, made on this machine, separately and merged into one file."""

import collections
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
# Tracepoints with fields of every sort: fixed arrays, strings elsewhere in the record, signed and unsigned numbers. One
# has a name that TraceEvent would split if its metadata row had no opcode.
KERNEL_TRACEPOINTS = ("sched:sched_switch", "sched:sched_process_exec", "sched:sched_process_fork",
                      "raw_syscalls:sys_enter", "raw_syscalls:sys_exit", "timer:hrtimer_start",
                      "sock:inet_sock_set_state", "task:task_rename", "kmem:kmalloc", "workqueue:workqueue_queue_work")
# Filter of the tracepoints raw_syscalls: only socket, connect, execve and wait4 of x86-64. A busy machine has hundreds
# of thousands of other calls in the time of a recording, which would take minutes to compare.
RARE_CALLS = "id == 41 || id == 42 || id == 59 || id == 61"


def record_load(args):
    """Records in the VM; returns the files."""
    subprocess.run(
        [REPOSITORY / "scripts/vm.py", "--cpus", "4", "--out", args.out, "--env", "PYTHONPATH", "--", record.__file__,
         "--nettrace", args.nettrace, "--service", args.service, "/out"], stdin=subprocess.DEVNULL, check=True)
    return [args.out / f"{name}.nettrace" for name in record.WAYS]


def check_load(args, command, file):
    # The service gives each event the id 0, which differs from the id of its metadata row.
    result = check_files.check(args.nettrace, command, file, own_ids=True)
    service = json.loads(file.with_suffix(".json").read_text())
    problems = load.problems(args.nettrace, file, service, lossy=file.stem == "small-rings")
    info = commands.info(args.nettrace, file)
    shown = [event for event in reader.read(command, file)[0] if event["name"] == "EventsLost"]
    for source, losses in (("the account", [loss["count"] for loss in info["losses"]]),
                           ("the account that TraceEvent shows", [int(event["payload"]["Count"]) for event in shown])):
        if sum(losses) != info["lost"]:
            problems.append(f"nettrace info states {info['lost']} lost events, and {source} {sum(losses)}")
    print("\n".join(problems), end="\n" if problems else "")
    return check_files.report(file, result) and not problems


def record_kernel(args):
    """Records twice on this machine. Returns the files; none if recording is not possible."""
    if os.geteuid() != 0 or not TRACEFS.exists():
        print("kernel tracepoints are not recorded: that needs root and tracefs")
        return []
    files = [args.out / "kernel.nettrace", args.out / "kernel-reversed.nettrace"]
    for file, tracepoints in zip(files, (KERNEL_TRACEPOINTS, KERNEL_TRACEPOINTS[::-1])):
        load_command = [sys.executable, workload.__file__, args.out, args.out / "times"]
        chosen = []
        for tracepoint in tracepoints:
            chosen += ["-e", tracepoint]
            if tracepoint.startswith("raw_syscalls:"):
                chosen += ["--filter", RARE_CALLS]
        commands.record(args.nettrace, file, (), load_command, [*chosen, "--ring-size", "8M"])
    return files


def ids_of(events):
    """Returns the EventIds of each schema. Events with non-ASCII text have a separate schema, because the type of their
    text differs."""
    ids = collections.defaultdict(set)
    for event in events:
        is_ascii = json.dumps(event["payload"], ensure_ascii=False).isascii()
        ids[event["provider"], event["name"], event["opcode"], tuple(event["payload"]), is_ascii].add(event["id"])
    return ids


def check_merged(args, command, files):
    """Checks that merged recordings are shown as one, and that their events keep their ids."""
    if len(files) < 2:
        return True
    merged = args.out / "merged.nettrace"
    # The later recording comes first.
    subprocess.run([args.nettrace, "merge", *files[::-1], "-o", merged], check=True)
    result = check_files.check(args.nettrace, command, merged)
    passed = check_files.report(merged, result)
    shown, _ = reader.read(command, merged, "--log")
    parts = [check_files.dump(args.nettrace, file) for file in files]
    if len(shown) != sum(map(len, parts)):
        print(f"  TraceEvent shows {len(shown)} merged events; the two recordings have {len(parts[0])} and {len(parts[1])}")
        passed = False
    before = ids_of(event for part in parts for event in part)
    after = ids_of(check_files.dump(args.nettrace, merged))
    for schema, ids in before.items():
        if len(ids) > 1 or after[schema] != ids:
            print(f"  {schema} has the ids {sorted(ids)} in the recordings, and {sorted(after[schema])} in the merged file")
            passed = False
    # TraceLog's times must count from the earliest event, although it is not in the first file that was merged.
    early = [event for event in shown if event["relativeMs"] <= 0 and event["timestamp"] > shown[0]["timestamp"]]
    if early:
        print(f"  {len(early)} events later than the first one are shown at 0 ms or before")
        passed = False
    return passed


def check_kernel(args, command, file):
    result = check_files.check(args.nettrace, command, file)
    # The comparison is meaningful only if the file has non-ASCII text.
    names = [event["payload"].get("newcomm") for event in commands.dump(args.nettrace, file, "--event", "task_rename")]
    if workload.THREAD_NAME not in names:
        print(f"{file}: no event task_rename names a thread {workload.THREAD_NAME}")
        return False
    return check_files.report(file, result) and result.events > 0


def main():
    args = script.parser(__doc__, "nettrace", "reader", "service", "out").parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    command = reader.build(args.reader)
    passed = [check_load(args, command, file) for file in record_load(args)]
    kernel = record_kernel(args)
    passed += [check_kernel(args, command, file) for file in kernel]
    passed.append(check_merged(args, command, kernel))
    return all(passed)


if __name__ == "__main__":
    script.main(main)
