"""Measures where a run spends its time: builds, suites, tests and translation units."""

import contextlib
import dataclasses
import json
import os
import pathlib
import tempfile

SLOWEST = 20


@dataclasses.dataclass
class Usage:
    """The time that a build or a suite took, in seconds. A build has no cases."""
    name: str
    wall: float
    cpu: float
    cases: int | None = None


@dataclasses.dataclass
class Step:
    """A test or a translation unit, and its seconds."""
    name: str
    seconds: float


class Times:
    """Collects the times of one run."""

    def __init__(self):
        self.builds = []
        self.suites = []
        self.tests = []
        self.units = []

    def table(self):
        """Returns the text that --times prints."""
        lines = [f"{'':<24}{'wall s':>10}{'CPU s':>10}{'cases':>8}"]
        for title, usages in (("builds", self.builds), ("suites", self.suites)):
            lines.append(title)
            lines += [f"  {usage.name:<22}{usage.wall:>10.1f}{usage.cpu:>10.1f}{'' if usage.cases is None else usage.cases:>8}"
                      for usage in usages]
        for title, steps in (("tests", self.tests), ("translation units", self.units)):
            lines.append(f"slowest {title}")
            slowest = sorted(steps, key=lambda step: step.seconds, reverse=True)[:SLOWEST]
            lines += [f"  {step.seconds:>8.1f} s  {step.name}" for step in slowest]
        return "\n".join(line.rstrip() for line in lines)

    def store(self):
        """Stores the times of each suite and build of this run for later runs. Keeps the stored times of others."""
        path = _file()
        taken = {usage.name: {"wall": round(usage.wall, 1), "cpu": round(usage.cpu, 1), "cases": usage.cases}
                 for usage in self.builds + self.suites}
        # A run without a writable home folder still returns its results.
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix="times.", delete=False) as file:
                file.write(json.dumps(_stored() | taken, indent=1, sort_keys=True) + "\n")
            os.replace(file.name, path)


def last_minutes(name):
    """Returns the minutes of the last run of a suite or build as text; "-" if there was none."""
    try:
        return f"{_stored()[name]['wall'] / 60:.1f} min"
    except (KeyError, TypeError):
        return "-"


def _file():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(base) / "nettraced/times.json"


def _stored():
    try:
        stored = json.loads(_file().read_text())
    except (OSError, ValueError):
        return {}
    return stored if isinstance(stored, dict) else {}


def read_ninja_log(folder):
    """Returns the steps in a build folder's .ninja_log: the lines of the log, one for each output."""
    try:
        return set((pathlib.Path(folder) / ".ninja_log").read_text(errors="replace").splitlines())
    except OSError:
        return set()


def units_of(lines, build):
    """Returns a Step for each translation unit in the lines of a .ninja_log. A line has the start and end of a step of
    ninja in ms, the mtime, the output, and the hash of the command."""
    units = {}
    for line in lines:
        fields = line.split("\t")
        if len(fields) == 5 and fields[3].endswith(".o"):
            begin, end, _, output, command = fields
            # A step with several outputs has one line for each output.
            units[begin, end, command] = Step(f"{build}: {output}", (int(end) - int(begin)) / 1000)
    return list(units.values())
