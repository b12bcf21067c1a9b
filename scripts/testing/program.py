"""Runs one test program as Meson registered it and tells its cases."""

import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import xml.etree.ElementTree

from testing import case

# A program that says so with this status did not run; its last line of output is the reason.
EXIT_SKIPPED = 77

UBSAN_SUPPRESSIONS = pathlib.Path(__file__).resolve().parents[2] / "tests/ubsan.supp"
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "strict_string_checks=1:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": f"halt_on_error=1:print_stacktrace=1:suppressions={UBSAN_SUPPRESSIONS}",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}


@dataclasses.dataclass
class Program:
    """A test as in Meson's intro-tests.json."""
    name: str
    command: list
    environment: dict
    folder: str
    suites: list
    seconds: float  # Until it is taken for hanging; 0: never.
    is_gtest: bool
    is_parallel: bool
    depends: list

    @staticmethod
    def from_meson(entry, build_folder):
        return Program(
            name=entry["name"], command=entry["cmd"], environment=entry["env"],
            # Arguments that Meson makes of what it builds are relative to there.
            folder=entry["workdir"] or str(build_folder),
            suites=[suite.partition(":")[2] or suite for suite in entry["suite"]],
            seconds=max(entry["timeout"], 0), is_gtest=entry["protocol"] == "gtest",
            is_parallel=entry["is_parallel"], depends=entry["depends"])


def run(program, prefix, slowness=1):
    """The program's cases, each named prefix/...; slowness stretches its time limit."""
    name = f"{prefix}/{program.name}"
    with tempfile.TemporaryDirectory(prefix="nettraced-test-") as scratch:
        report = pathlib.Path(scratch) / "report.xml"
        command = list(program.command)
        if program.is_gtest:
            command.append(f"--gtest_output=xml:{report}")
        try:
            status, output = _execute(command, program, slowness)
        except subprocess.TimeoutExpired as hang:
            return [case.failed(name, f"no end within {hang.timeout:g} s; its output:\n"
                                + (hang.stdout or b"").decode(errors="replace"))]
        except OSError as error:
            return [case.failed(name, f"cannot be started: {error}")]
        if program.is_gtest and status != EXIT_SKIPPED:
            return _gtest_cases(name, report, status, output)
    if status == EXIT_SKIPPED:
        lines = output.strip().splitlines()
        return [case.skipped(name, lines[-1] if lines else "no reason given")]
    if status != 0:
        return [case.failed(name, f"{_describe(status)}; its output:\n{output}")]
    return [case.passed(name)]


def _execute(command, program, slowness):
    timeout = program.seconds * slowness or None
    # A session of its own: what hangs is ended together with whatever it started.
    process = subprocess.Popen(
        command, cwd=program.folder or None, start_new_session=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**SANITIZER_OPTIONS, **os.environ, **program.environment})
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        raise subprocess.TimeoutExpired(command, timeout, output) from None
    return process.returncode, output.decode(errors="replace")


def _describe(status):
    if status < 0:
        return f"ended by {signal.Signals(-status).name}"
    return f"exit status {status}"


def _gtest_cases(name, report, status, output):
    if not report.exists():
        # It crashed: what was running then is the last one begun.
        begun = re.findall(r"^\[ RUN      \] (\S+)", output, re.MULTILINE)
        where = f" in {begun[-1]}" if begun else ""
        return [case.failed(name, f"{_describe(status)}{where}; its output:\n{output}")]
    try:
        cases = [_gtest_case(name, element)
                 for element in xml.etree.ElementTree.parse(report).iter("testcase")]
    except xml.etree.ElementTree.ParseError:
        return [case.failed(name, f"{_describe(status)}, and half a report; its output:\n{output}")]
    if not cases:
        cases = [case.failed(name, "has no test cases")]
    elif status != 0 and not case.count(cases, case.FAILED):
        # Such as a leak that only shows at the end.
        cases.append(case.failed(name, f"{_describe(status)} though no case failed; its output:\n{output}"))
    return cases


def _gtest_case(program_name, element):
    name = f"{program_name}: {element.get('classname')}.{element.get('name')}"
    failures = element.findall("failure")
    if failures:
        return case.failed(name, "\n".join(failure.get("message", "") for failure in failures))
    if element.get("result") == "suppressed":
        return case.skipped(name, "disabled in the source")
    skip = element.find("skipped")
    if skip is not None or element.get("result") == "skipped":
        # The first line is file:line.
        _, _, reason = (skip.get("message", "") if skip is not None else "").partition("\n")
        return case.skipped(name, " ".join(reason.split()) or "no reason given")
    return case.passed(name)
