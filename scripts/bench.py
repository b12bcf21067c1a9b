#!/usr/bin/python3
"""Runs the benchmarks: all, or those named, by the whole name or its first words. Each prints a table;
every case stands beside its floor (a memcpy, a bare system call) from the same run.

examples:
  ./run bench
  ./run bench provider
  ./run bench nettrace                  # "nettrace cost", "nettrace memory", ...
  ./run bench "nettrace cost"
  ./run bench --json | jq -r 'select(.ratio > 2) | .case'

exit status: 0 all ran, 1 one failed, 2 there is none of that name.
"""

import argparse
import subprocess
import sys

from testing import bench
from testing import configuration


def main():
    parser = argparse.ArgumentParser(
        prog="./run bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", metavar="NAME", help="only this one, or all that begin so")
    parser.add_argument("--json", action="store_true",
                        help="one JSON object a line: bench, case, unit, value, floor, ratio")
    args = parser.parse_args()
    try:
        benchmarks = bench.find(args.name)
    except configuration.BuildError as error:
        print(error, file=sys.stderr)
        return 1
    if not benchmarks:
        names = ", ".join(benchmark.name for benchmark in bench.find())
        print(f"bench: there is no benchmark {args.name or ''}; there are: {names}", file=sys.stderr)
        return 2
    options = ["--json"] if args.json else []
    worst = 0
    for benchmark in benchmarks:
        status = subprocess.run(
            bench.command(benchmark, *options), cwd=configuration.RELEASE.folder, stdin=subprocess.DEVNULL,
            check=False).returncode
        if status != 0:
            print(f"bench: {benchmark.name} failed with status {status}", file=sys.stderr)
            worst = 1
    return worst


if __name__ == "__main__":
    sys.exit(main())
