#!/usr/bin/python3
"""Runs a test several times: repeat.py TIMES PROGRAM [ARGUMENT...]. Fails if one of the runs fails, and is skipped if
the first run is."""

import subprocess
import sys

from support import script


def main():
    times, command = int(sys.argv[1]), sys.argv[2:]
    failed = 0
    for run in range(times):
        print(f"run {run + 1} of {times}", flush=True)
        status = subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode
        if status == script.EXIT_SKIPPED and run == 0:
            return status
        failed += status != 0
    print(f"{failed} of {times} runs failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
