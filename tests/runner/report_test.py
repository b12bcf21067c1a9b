"""Tests which cases are counted for a test, however it ends: `meson test` runs one script for each way."""

import pathlib
import subprocess
import time
import types

import pytest

from testing import case
from testing import configuration
from testing import meson
from testing import report


def gtest(*cases, then="exit 0"):
    """Returns a stand-in for a GoogleTest program, which writes a report with these cases."""
    report = f'<testsuites><testsuite name="S">{"".join(cases)}</testsuite></testsuites>'
    return f"cat >\"${{1#--gtest_output=xml:}}\" <<'END'\n{report}\nEND\n{then}"


ONE = '<testcase name="One" classname="S" status="run"/>'
TWO = '<testcase name="Two" classname="S" status="run"/>'
FAILED = '<testcase name="One" classname="S" status="run"><failure message="a.cc:3&#x0A;1 is not 2"/></testcase>'
SKIPPED = '<testcase name="One" classname="S" status="run"><skipped message="a.cc:3&#x0A;no&#x0A;perf"/></testcase>'
DISABLED = '<testcase name="DISABLED_One" classname="S" status="notrun" result="suppressed"/>'

SKIPS_CASES = f"""#!/usr/bin/python3
import sys
import unittest
sys.path.insert(0, {str(pathlib.Path(__file__).parents[1])!r})
from support import script
class CasesTest(unittest.TestCase):
    def test_one(self):
        self.skipTest("no tmpfs:\\nnot root")
    def test_two(self):
        pass
script.run_cases()
"""
# Each script is registered under its name; names that begin with "gtest" use the protocol of GoogleTest.
SCRIPTS = {
    "passes": 'test "$OF_THE_TEST" = "registered"',
    "fails": "echo to stdout; echo to stderr >&2; exit 3",
    "skips": "echo more; echo no tracefs; exit 77",
    "skips cases": SKIPS_CASES,
    "crashes": "kill -SEGV $$",
    "prints what XML cannot have": r"printf 'bold \033[1m and \000\n'",
    "hangs": "echo before; sleep 60 & wait",
    "gtest passes": gtest(ONE, TWO),
    "gtest fails": gtest(FAILED, then="exit 1"),
    "gtest skips": gtest(SKIPPED),
    "gtest disabled": gtest(DISABLED),
    "gtest empty": gtest(),
    "gtest leaks": gtest(ONE, then="exit 23"),
    "gtest crashes": "echo '[ RUN      ] S.One'; echo '[ RUN      ] S.Two'; kill -ABRT $$",
    "gtest crashes after its report": gtest(ONE, then="kill -ABRT $$"),
    "gtest hangs after its report": gtest(ONE, then="sleep 60"),
}
# Each script has a separate suite, because Meson runs no further test of a suite after such a script.
BREAKERS = {
    "missing": "#!/no/such/interpreter",
    "gtest half a report": 'echo "<testsuites>" >"${1#--gtest_output=xml:}"; kill -KILL $$',
}


@pytest.fixture(name="build", scope="module")
def fixture_build(tmp_path_factory):
    """Returns a stand-in for a Configuration, in whose folder the scripts are registered."""
    source = tmp_path_factory.mktemp("source")
    lines = ["project('nettraced')"]
    suites = {}
    for name, script in (SCRIPTS | BREAKERS).items():
        (source / f"{name}.sh").write_text(script if script.startswith("#!") else f"#!/bin/sh\n{script}\n")
        (source / f"{name}.sh").chmod(0o755)
        suite = name if name in BREAKERS else "scripts"
        suites.setdefault(suite, []).append(types.SimpleNamespace(name=name, is_gtest=name.startswith("gtest")))
        seconds = 3 if "hangs" in name else 60
        lines.append(f"test('{name}', files('{name}.sh'), suite: '{suite}', timeout: {seconds}, env: {{'OF_THE_TEST': 'registered'}},"
                     f" protocol: '{'gtest' if name.startswith('gtest') else 'exitcode'}')")
    (source / "meson.build").write_text("\n".join(lines))
    folder = source / "build"
    subprocess.run([configuration.MESON, "setup", folder, source], stdout=subprocess.DEVNULL, check=True)
    # A report of an earlier run, which must not be used as the report of this run.
    (folder / "gtest crashes.xml").write_text(f"<testsuites><testsuite name='S'>{ONE}</testsuite></testsuites>")
    return types.SimpleNamespace(folder=folder, inside=[], registered=suites.get)


@pytest.fixture(name="cases_of", scope="module")
def fixture_cases_of(build):
    began = time.monotonic()
    cases = meson.run_here(build, "scripts", build.registered("scripts"), "suite")
    assert time.monotonic() - began < 30, "a test that hangs was not ended after its timeout of 3 s"
    return lambda name: [result for result in cases if result.name.partition(": ")[0] == f"suite/{name}"]


def assert_failed(cases, name, *said):
    [failure] = cases
    assert (failure.name, failure.outcome) == (name, case.FAILED)
    for text in said:
        assert text in failure.detail


def test_plain_programs_are_one_case(cases_of):
    assert cases_of("passes") == [case.passed("suite/passes")]
    assert cases_of("prints what XML cannot have") == [case.passed("suite/prints what XML cannot have")]
    assert cases_of("skips") == [case.skipped("suite/skips", "no tracefs")]
    assert_failed(cases_of("fails"), "suite/fails", "exit status 3", "to stdout", "to stderr")


def test_cases_that_a_script_skips_count(cases_of):
    assert cases_of("skips cases") == [case.passed("suite/skips cases"),
                                       case.skipped("suite/skips cases: CasesTest.test_one", "no tmpfs: not root")]


def test_a_crash_is_failed_and_names_the_signal(cases_of):
    assert_failed(cases_of("crashes"), "suite/crashes", "SIGSEGV")


def test_a_hang_is_failed_and_ended_with_its_children(cases_of):
    assert_failed(cases_of("hangs"), "suite/hangs", "no end within", "before")


def test_each_gtest_case_counts(cases_of):
    assert cases_of("gtest passes") == [case.passed(f"suite/gtest passes: S.{name}") for name in ("One", "Two")]


def test_a_gtest_failure_shows_its_message(cases_of):
    assert cases_of("gtest fails") == [case.failed("suite/gtest fails: S.One", "a.cc:3\n1 is not 2")]


def test_a_gtest_skip_shows_its_reason(cases_of):
    assert cases_of("gtest skips") == [case.skipped("suite/gtest skips: S.One", "no perf")]


def test_a_disabled_gtest_case_is_skipped(cases_of):
    [result] = cases_of("gtest disabled")
    assert result.outcome == case.SKIPPED


def test_a_gtest_program_without_cases_is_failed(cases_of):
    assert_failed(cases_of("gtest empty"), "suite/gtest empty", "no test cases")


def test_a_gtest_program_without_cases_is_nothing_where_they_are_filtered(build, monkeypatch):
    monkeypatch.setenv("GTEST_FILTER", "None")
    names = [result.name for result in meson.run_here(build, "scripts", build.registered("scripts"), "filtered")]
    assert names
    assert "filtered/gtest empty" not in names


@pytest.mark.parametrize("name, said", [("gtest leaks", "exit status 23"), ("gtest crashes after its report", "SIGABRT")])
def test_a_gtest_program_that_fails_without_a_failed_case_is_failed(cases_of, name, said):
    first, *rest = cases_of(name)
    assert first == case.passed(f"suite/{name}: S.One")
    assert_failed(rest, f"suite/{name}", said)


def test_a_gtest_crash_names_the_case(cases_of):
    assert_failed(cases_of("gtest crashes"), "suite/gtest crashes", "SIGABRT in S.Two")


def test_a_gtest_hang_after_the_report_is_failed(cases_of):
    name = "gtest hangs after its report"
    assert_failed(cases_of(name), f"suite/{name}", "no end within")


@pytest.mark.parametrize("name", BREAKERS)
def test_each_test_is_failed_if_meson_fails(build, name):
    first, second = meson.run_here(build, name, build.registered(name), "broken")
    assert_failed([first], f"broken/{name}", "no result")
    assert_failed([second], "broken/meson test", "its output")


def test_no_tests_are_no_cases(build):
    assert meson.run_here(build, "scripts", [], "suite") == []


def test_the_time_of_each_test_is_noted(build):
    hangs = [test for test in build.registered("scripts") if test.name in ("passes", "hangs")]
    before = len(meson.steps)
    meson.run_here(build, "scripts", hangs, "timed")
    seconds = {step.name: step.seconds for step in meson.steps[before:]}
    assert sorted(seconds) == ["timed: hangs", "timed: passes"]
    assert seconds["timed: hangs"] >= 3 > seconds["timed: passes"]


def test_a_failure_of_meson_after_all_results_is_failed(build, cases_of):
    [passed] = cases_of("passes")
    tests = [test for test in build.registered("scripts") if test.name == "passes"]
    machine = subprocess.CompletedProcess([], 124, stdout="what it said")
    first, second = report.read(tests, "suite", build.folder / "meson-logs/testlog-suite", machine)
    assert first == passed
    assert_failed([second], "suite/meson test", "exit status 124", "what it said")
