"""What is counted: one case is one promise checked."""

import dataclasses
import json

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclasses.dataclass
class Case:
    name: str
    outcome: str
    detail: str = ""  # What failed, or why it was skipped.

    def to_json(self):
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def from_json(line):
        return Case(**json.loads(line))


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
    """For people: a linker's command line need not be shown to its end."""
    lines = (line if len(line) <= width else line[:width] + " [...]" for line in text.rstrip().splitlines())
    return "\n".join("    " + line for line in lines)
