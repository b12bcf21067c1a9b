"""The command lines of tests that are scripts, and how they end."""

import argparse
import pathlib
import sys
import unittest

EXIT_SKIPPED = 77


class Skipped(Exception):
    """The test cannot be run here; the message is the reason, in one line."""


def parser(description, *paths):
    """A parser that requires `--NAME PATH` for each of `paths`."""
    result = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in paths:
        result.add_argument(f"--{name}", required=True, type=pathlib.Path, metavar="PATH")
    return result


def options(description, *paths, **numbers):
    """The paths that the command line gives, and the numbers, which have these defaults: `--NAME N`; what else it has
    is left to unittest."""
    known = parser(description, *paths)
    for name, default in numbers.items():
        known.add_argument(f"--{name}", type=int, default=default, metavar="N")
    result, rest = known.parse_known_args()
    sys.argv[1:] = rest
    return result


def main(check):
    """Ends the script: status 0 or 1 where `check` returns whether all is well, 77 where it raises Skipped."""
    try:
        sys.exit(0 if check() else 1)
    except Skipped as reason:
        print(reason)
        sys.exit(EXIT_SKIPPED)


def run_cases(require=lambda: None):
    """Ends the script as `main` does, with the cases of its unittest classes, which need what `require` checks. Of each
    case that is skipped it says so in a line of its own, `skipped case NAME: REASON`, which the test runner counts."""
    def check():
        require()
        result = unittest.main(exit=False).result
        for test, reason in result.skipped:
            print(f"skipped case {test.id().removeprefix('__main__.')}: {' '.join(reason.split())}", flush=True)
        return result.wasSuccessful()
    main(check)
