#!/usr/bin/python3
"""Runs all benchmarks, or the benchmarks that match a name: a whole name or its first words. Each benchmark prints a
table in which every case is compared with its floor (a memcpy, a bare system call) from the same run.

examples:
  ./run bench
  ./run bench provider
  ./run bench nettrace                  # "nettrace cost", "nettrace memory", ...
  ./run bench "nettrace cost"
  ./run bench --json | jq -r 'select(.ratio > 2) | .case'

exit status: 0 all ran, 1 one failed, 2 no benchmark has this name.
"""

import argparse
import subprocess
import sys

from testing import bench
from testing.configuration import BENCH, BuildError


def main():
    parser = argparse.ArgumentParser(
        prog="./run bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", metavar="NAME", help="run only the benchmarks whose names begin with NAME")
    parser.add_argument("--json", action="store_true",
                        help="print one JSON object per line: bench, case, unit, value, floor, ratio")
    args = parser.parse_args()
    try:
        benchmarks = bench.find(BENCH, args.name)
        BENCH.build_for(benchmarks)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    if not benchmarks:
        names = ", ".join(benchmark.name for benchmark in bench.find(BENCH))
        print(f"bench: no benchmark {args.name or ''}; the benchmarks are: {names}", file=sys.stderr)
        return 2
    options = ["--json"] if args.json else []
    worst = 0
    for benchmark in benchmarks:
        status = subprocess.run(
            bench.command(BENCH, benchmark, *options), cwd=BENCH.folder, stdin=subprocess.DEVNULL,
            check=False).returncode
        if status != 0:
            print(f"bench: {benchmark.name} failed with status {status}", file=sys.stderr)
            worst = 1
    return worst


if __name__ == "__main__":
    sys.exit(main())
