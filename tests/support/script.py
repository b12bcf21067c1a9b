"""Parses the command lines of tests that are scripts, and ends them with the right exit status."""

import argparse
import pathlib
import sys
import time
import unittest

EXIT_SKIPPED = 77


class Skipped(Exception):
    """The test cannot run here; the message is the reason, in one line."""


def parser(description, *paths):
    """Returns a parser that requires `--NAME PATH` for each of `paths`."""
    result = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in paths:
        result.add_argument(f"--{name}", required=True, type=pathlib.Path, metavar="PATH")
    return result


def options(description, *paths, **numbers):
    """Returns the paths and numbers of the command line. The keyword arguments are numbers with their defaults: `--NAME
    N`. Other arguments are left to unittest."""
    known = parser(description, *paths)
    for name, default in numbers.items():
        known.add_argument(f"--{name}", type=int, default=default, metavar="N")
    result, rest = known.parse_known_args()
    sys.argv[1:] = rest
    return result


def main(check):
    """Ends the script: with status 0 or 1 if `check` returns whether it passed, with 77 if it raises Skipped."""
    try:
        sys.exit(0 if check() else 1)
    except Skipped as reason:
        print(reason)
        sys.exit(EXIT_SKIPPED)


class TimedResult(unittest.TextTestResult):
    """Prints the seconds that each case took as `took NAME: SECONDS`, which the test runner reads."""

    def startTest(self, test):
        self._began = time.monotonic()
        super().startTest(test)

    def stopTest(self, test):
        super().stopTest(test)
        print(f"took {_name(test)}: {time.monotonic() - self._began:.2f}", flush=True)


class TimedRunner(unittest.TextTestRunner):
    resultclass = TimedResult


def _name(test):
    return test.id().removeprefix("__main__.")


def more(case):
    """Marks a slower case, which only the option --more runs."""
    case.part = "--more"
    return case


def slow(case):
    """Marks a case that takes a minute or more, which only the option --slow runs."""
    case.part = "--slow"
    return case


class Loader(unittest.TestLoader):
    """Loads the cases that are marked for the option `part`; all cases if it is None."""
    part = None

    def getTestCaseNames(self, testCaseClass):
        return [name for name in super().getTestCaseNames(testCaseClass)
                if self.part in (None, getattr(getattr(testCaseClass, name), "part", "--quick"))]


def run_cases(require=lambda: None):
    """Ends the script like `main`, with the cases of its unittest classes, if `require` does not raise Skipped. Prints
    `skipped case NAME: REASON` for each skipped case, which the test runner counts."""
    loader = Loader()
    for option in ("--quick", "--more", "--slow"):
        if option in sys.argv:
            sys.argv.remove(option)
            loader.part = option

    def check():
        require()
        result = unittest.main(exit=False, testRunner=TimedRunner, testLoader=loader).result
        for test, reason in result.skipped:
            print(f"skipped case {_name(test)}: {' '.join(reason.split())}", flush=True)
        return result.wasSuccessful()
    main(check)
