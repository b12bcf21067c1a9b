"""The cases that the tests count. One case checks one promise."""

import dataclasses

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclasses.dataclass
class Case:
    name: str
    outcome: str
    detail: str = ""  # The message of a failure, or the reason for skipping.


def passed(name):
    return Case(name, PASSED)


def failed(name, detail):
    return Case(name, FAILED, detail)


def skipped(name, reason):
    return Case(name, SKIPPED, reason)


def count(cases, outcome):
    return sum(case.outcome == outcome for case in cases)


def totals(cases):
    return ", ".join(f"{count(cases, outcome)} {outcome}" for outcome in (PASSED, FAILED, SKIPPED))


def indented(text, width=400):
    """Indents lines, and cuts long lines, such as the command line of a linker."""
    lines = (line if len(line) <= width else line[:width] + " [...]" for line in text.rstrip().splitlines())
    return "\n".join("    " + line for line in lines)
