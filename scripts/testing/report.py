"""Reads the report that `meson test` writes about a run, and returns the cases of each test.

Meson itself counts programs, and trusts the report of a GoogleTest program. It therefore misses a crash before the
program writes its report, and a leak that a sanitizer finds after that.
"""

import json
import os
import pathlib
import re
import signal
import xml.etree.ElementTree

from testing import case
from testing import times


def read(tests, prefix, logbase, ended):
    """Returns the cases of `tests`, each named PREFIX/... `logbase` is the option of Meson with this name. `ended` is
    the process of `meson test`, which has ended."""
    entries = _entries(pathlib.Path(f"{logbase}.json"))
    junit = _junit(pathlib.Path(f"{logbase}.junit.xml"))
    cases, missing = [], []
    for test in tests:
        name = f"{prefix}/{test.name}"
        if test.name in entries and (junit is not None or not test.is_gtest):
            cases += _cases(name, test, entries[test.name], junit)
        else:
            missing.append(case.failed(name, "meson test gave no result for this test"))
    if missing or (ended.returncode and not case.count(cases, case.FAILED)):
        missing.append(case.failed(f"{prefix}/meson test",
                                   f"{_describe(ended.returncode)}; its output:\n{ended.stdout}"))
    return cases + missing


def durations(tests, prefix, logbase):
    """Returns the seconds of each of `tests` that has a result, by Meson's clock: the guest's clock in the VM. For a
    script that prints how long its cases took, returns the seconds of each case instead."""
    entries = _entries(pathlib.Path(f"{logbase}.json"))
    steps = []
    for test in tests:
        if test.name in entries:
            name, entry = f"{prefix}: {test.name}", entries[test.name]
            took = re.findall(r"^took (.+?): ([0-9.]+)$", entry.get("stdout", ""), re.MULTILINE)
            steps += [times.Step(f"{name}: {case_name}", float(seconds)) for case_name, seconds in took] or [
                times.Step(name, entry.get("duration") or 0.0)]
    return steps


def _entries(log):
    """Returns Meson's log entry for each test, by the test's name."""
    lines = log.read_text().splitlines() if log.exists() else []
    entries = {}
    for line in lines:
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:  # The last line, if Meson was killed while writing it.
            break
        entries[entry["name"].rpartition(" / ")[2]] = entry
    return entries


def _junit(report):
    try:
        text = report.read_text(errors="replace")
        # Meson copies a program's output unchanged, with control characters that XML does not allow.
        return xml.etree.ElementTree.fromstring(re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "?", text))
    except (FileNotFoundError, xml.etree.ElementTree.ParseError):
        return None


def _cases(name, test, entry, junit):
    status, output = entry["returncode"], f"its output:\n{entry['stdout']}"
    if entry["result"] == "TIMEOUT":
        return [case.failed(name, f"no end within {entry['duration']:.0f} s; {output}")]
    if entry["result"] == "SKIP":
        return [case.skipped(name, (entry["stdout"].strip() or "no reason given").splitlines()[-1])]
    if not test.is_gtest:
        result = case.failed(name, f"{_describe(status)}; {output}") if status else case.passed(name)
        return [result, *_skipped_in_script(name, entry["stdout"])]
    suites = [suite for suite in junit.iter("testsuite")
              if suite.get("name").startswith(f"nettraced.{entry['name']}.")]
    cases = [_gtest_case(name, element) for suite in suites for element in suite.iter("testcase")]
    if not suites and status:
        # The program crashed during the case that began last.
        begun = re.findall(r"^\[ RUN      \] (\S+)", entry["stdout"], re.MULTILINE)
        return [case.failed(name, f"{_describe(status)}{' in ' + begun[-1] if begun else ''}; {output}")]
    if not cases and "GTEST_FILTER" not in os.environ:
        return [case.failed(name, f"it has no test cases; {output}")]
    if status and not case.count(cases, case.FAILED):
        # LeakSanitizer, for example, finds leaks only after the last case.
        cases.append(case.failed(name, f"{_describe(status)} though no case failed; {output}"))
    return cases


def _skipped_in_script(name, output):
    """Returns the cases of a script that unittest has skipped, from the lines that support.script prints."""
    return [case.skipped(f"{name}: {skipped[1]}", skipped[2])
            for skipped in re.finditer(r"^skipped case (.+?): (.*)$", output, re.MULTILINE)]


def _describe(status):
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


def _gtest_case(program_name, element):
    name = f"{program_name}: {element.get('classname')}.{element.get('name')}"
    failures = [*element.iter("failure"), *element.iter("error")]
    if failures:
        return case.failed(name, "\n".join(failure.text or failure.get("message", "") for failure in failures))
    if element.get("status") == "notrun":
        return case.skipped(name, "disabled in the source")
    skip = element.find("skipped")
    if skip is not None:
        # GoogleTest's first line has the form file:line.
        first, _, rest = skip.get("message", "").partition("\n")
        return case.skipped(name, " ".join((rest or first).split()) or "no reason given")
    return case.passed(name)
