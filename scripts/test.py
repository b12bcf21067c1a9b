#!/usr/bin/python3
"""Builds and runs every suite, or those named. The last line is "N passed, N failed, N skipped";
above it stand what failed, and what was skipped and why.

examples:
  ./run test                    # everything, as the CI does
  ./run test unit-gcc lint      # before a commit
  ./run test unit programs      # by both compilers and with both sanitizers
  ./run test soak               # hours; as ./run soak
  GTEST_FILTER='Writer*' ./run test unit-asan

exit status: 0 nothing failed, 1 something failed, 2 there is no such suite.
"""

import argparse
import os
import subprocess
import sys
import time

from testing import case
from testing import meson
from testing import suites


def parse():
    listing = "\n".join(f"  {suite.name:<14} {suite.what}" for suite in suites.SUITES)
    parser = argparse.ArgumentParser(
        prog="./run test", description=f"{__doc__}\nsuites:\n{listing}",
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="name the suites")
    parser.add_argument("suites", nargs="*", metavar="SUITE")
    args = parser.parse_args()
    if args.list:
        print(listing)
        sys.exit(0)
    for name in args.suites:
        if not suites.named(name):
            parser.error(f"there is no suite {name}; there are:\n{listing}")
    return args


def run_suite(suite):
    print(f"== {suite.name}: {suite.what}", flush=True)
    began = time.monotonic()
    cases = suites.run(suite)
    for result in cases:
        if result.outcome == case.FAILED:
            print(f"FAILED {result.name}\n{case.indented(result.detail)}")
    print(f"   {case.totals(cases)} ({time.monotonic() - began:.0f} s)", flush=True)
    return cases


def prepare_vm():
    """Has the VM's kernel built now, in view, not by the first test that boots it."""
    image = subprocess.run([meson.SCRIPTS / "kernel_image.sh"], stdout=subprocess.PIPE, text=True, check=False)
    # Where there is none, each test that boots it fails and says so.
    if image.returncode == 0:
        os.environ["EVENTHEADER_VM_KERNEL"] = image.stdout.strip()


def main():
    args = parse()
    chosen = [suite for suite in suites.SUITES
              if not args.suites and not suite.by_name or any(suite in suites.named(name) for name in args.suites)]
    if any(suite.in_vm for suite in chosen):
        prepare_vm()
    cases = [result for suite in chosen for result in run_suite(suite)]
    print()
    for result in cases:
        if result.outcome == case.SKIPPED:
            print(f"skipped {result.name}: {result.detail}")
    for result in cases:
        if result.outcome == case.FAILED:
            print(f"failed  {result.name}")
    print(case.totals(cases))
    return 1 if case.count(cases, case.FAILED) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
