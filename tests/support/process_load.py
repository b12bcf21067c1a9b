#!/usr/bin/python3
"""Starts processes, and records their starts and ends into FILE. One process gets the pid of an earlier one, and one
runs two programs in turn. Prints the processes as {"name", "pid", "began", "ended"}, where "began" and "ended" are
ranges of CLOCK_REALTIME in ns. Needs root and tracefs."""

import json
import os
import pathlib
import subprocess
import sys
import time

from support import script

LAST_PID = pathlib.Path("/proc/sys/kernel/ns_last_pid")


def run(*command, pid=None):
    """Runs a program, with this pid if that is possible."""
    if pid is not None:
        LAST_PID.write_text(str(pid - 1), encoding="ascii")
    before = time.time_ns()
    child = os.fork()
    if child == 0:
        os.execv(command[0], command)
    after = time.time_ns()
    os.waitpid(child, 0)
    return {"name": os.path.realpath(command[0]), "pid": child, "began": [before, after + 1_000_000_000],
            "ended": [after, time.time_ns()]}


def run_two_programs():
    """Runs this program and then another one in one process. Returns an entry for each program."""
    before = time.time_ns()
    child = os.fork()
    if child == 0:
        time.sleep(1.5)  # Longer than an interval of the recording.
        os.execv("/bin/sleep", ["/bin/sleep", "0.2"])
    after = time.time_ns()
    os.waitpid(child, 0)
    executed = [before + 1_500_000_000, time.time_ns()]
    return [{"name": os.path.realpath(sys.executable), "pid": child, "began": [before, after], "ended": executed},
            {"name": os.path.realpath("/bin/sleep"), "pid": child, "began": executed, "ended": executed}]


def load():
    processes = [run("/bin/sleep", "1.2")]
    again = None
    # Starts /bin/true up to 100 times until it gets the pid of the first process, because another process may get it.
    for _ in range(100 if LAST_PID.exists() else 0):
        again = run("/bin/true", pid=processes[0]["pid"])
        if again["pid"] == processes[0]["pid"]:
            break
    processes += [again] if again else []
    processes += run_two_programs()
    processes.append(run("/bin/sleep", "0.1"))
    print(json.dumps(processes))


def main():
    parser = script.parser(__doc__, "nettrace")
    parser.add_argument("file", type=pathlib.Path, metavar="FILE")
    args = parser.parse_args()
    ran = subprocess.run([args.nettrace, "record", "-o", args.file, "-e", "sched:sched_process_exec", "--",
                          sys.executable, __file__, "load"], stdout=subprocess.PIPE, check=True)
    args.file.with_suffix(".json").write_bytes(ran.stdout)


if __name__ == "__main__":
    if sys.argv[1:] == ["load"]:
        load()
    else:
        main()
