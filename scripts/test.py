#!/usr/bin/python3
"""Builds and runs test suites: by default those that show that the system works, with --all all suites except those
that run only by name, or the named suites. A name also selects the suites that begin with it, except those that run
only by name: vm selects vm, vm-systemd, vm-more and vm-asan.

The last line of output is "N passed, N failed, N skipped". The lines above it list the failed cases, and the skipped
cases with the reasons.

examples:
  ./run test                    # the suites that show that the system works
  ./run test --all --times      # all suites except those that run only by name, with times
  ./run test unit lint          # before a commit
  ./run test soak               # takes hours; the same as ./run soak
  GTEST_FILTER='Writer*' ./run test unit-asan

exit status: 0 nothing failed, 1 something failed, 2 there is no suite with this name.
"""

import argparse
import itertools
import os
import subprocess
import sys
import time

from testing import case
from testing import lint
from testing import meson
from testing import processes
from testing import suites


def parse():
    listing = suites.listing()
    parser = argparse.ArgumentParser(
        prog="./run test", description=f"{__doc__}\nsuites, and the minutes of their last run here:\n{listing}",
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="run all suites except those that run only by name")
    parser.add_argument("--full", action="store_true", help="make the suite lint check all sources with clang-tidy")
    parser.add_argument("--times", action="store_true",
                        help="print the times of builds and suites, and the slowest tests and translation units")
    parser.add_argument("--list", action="store_true", help="list the suites, with the minutes of their last run")
    parser.add_argument("suites", nargs="*", metavar="SUITE")
    args = parser.parse_args()
    if args.list:
        print(listing)
        sys.exit(0)
    for name in args.suites:
        if not suites.named(name):
            parser.error(f"unknown suite {name}; the suites are:\n{listing}")
    if args.all and args.suites:
        parser.error("--all runs every suite; name suites or use --all")
    return args


def run_suite(run, suite):
    print(f"== {suite.name}: {suite.what}", flush=True)
    began = time.monotonic()
    cases = run.run(suite)
    lines = [f"FAILED {result.name}\n{case.indented(result.detail)}" for result in cases if result.outcome == case.FAILED]
    lines.append(f"   {suite.name}: {case.totals(cases)} ({time.monotonic() - began:.0f} s)")
    print("\n".join(lines), flush=True)
    return cases


def run_all(run, chosen):
    """Runs suites one after the other, except that suites of different lanes run at the same time. Returns their cases."""
    cases = []
    for group in suites.in_lanes(chosen):
        cases += itertools.chain(*processes.in_parallel(
            lambda lane: [result for suite in lane for result in run_suite(run, suite)], group, len(group)))
    return cases


def prepare_vm():
    """Builds the VM's kernel now, so that the user sees the progress, and not in the first test that boots it."""
    image = subprocess.run([meson.SCRIPTS / "kernel_image.sh"], stdout=subprocess.PIPE, text=True, check=False)
    # If there is no kernel, each test that boots it fails with a message.
    if image.returncode == 0:
        os.environ["EVENTHEADER_VM_KERNEL"] = image.stdout.strip()


def main():
    args = parse()
    processes.end_when_interrupted()
    lint.full = args.full
    chosen = suites.choose(args.suites, args.all)
    if any(suite.in_vm for suite in chosen):
        prepare_vm()
    run = suites.Run(chosen)
    cases = run_all(run, chosen)
    taken = run.finish()
    print()
    for result in cases:
        if result.outcome == case.SKIPPED:
            print(f"skipped {result.name}: {result.detail}")
    for result in cases:
        if result.outcome == case.FAILED:
            print(f"failed  {result.name}")
    if args.times:
        print(f"\n{taken.table()}\n")
    print(case.totals(cases))
    return 1 if case.count(cases, case.FAILED) else 0


if __name__ == "__main__":
    sys.exit(main())
