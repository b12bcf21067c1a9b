"""A test program's outcome, told from its exit status and report."""

import time
import unittest

from testing import case
from testing import program

REPORT = '<testsuites><testsuite name="S">{}</testsuite></testsuites>'


def run(script, is_gtest=False, seconds=10):
    return program.run(
        program.Program(name="it", command=["sh", "-c", script, "it"], environment={"OF_THE_TEST": "its own"}, folder="/",
                        suites=["unit"], seconds=seconds, is_gtest=is_gtest, is_parallel=True, depends=[]), "suite")


def run_gtest(*cases, status=0):
    """A stand-in for a GoogleTest program: writes the report that it is asked for."""
    return run(f"cat >${{1#--gtest_output=xml:}} <<'END'\n{REPORT.format(''.join(cases))}\nEND\nexit {status}", is_gtest=True)


class PlainProgram(unittest.TestCase):
    def test_status_0_is_passed(self):
        self.assertEqual(run("true"), [case.passed("suite/it")])

    def test_another_status_is_failed_and_shows_the_output(self):
        [result] = run("echo to stdout; echo to stderr >&2; exit 3")
        self.assertEqual(result.outcome, case.FAILED)
        for part in ("exit status 3", "to stdout", "to stderr"):
            self.assertIn(part, result.detail)

    def test_status_77_is_skipped_and_the_last_line_is_the_reason(self):
        self.assertEqual(run("echo more; echo no tracefs; exit 77"), [case.skipped("suite/it", "no tracefs")])

    def test_a_signal_is_failed_and_named(self):
        [result] = run("kill -SEGV $$")
        self.assertEqual(result.outcome, case.FAILED)
        self.assertIn("SIGSEGV", result.detail)

    def test_a_hang_is_failed_and_ends_its_children_too(self):
        began = time.monotonic()
        [result] = run("echo before; sleep 60 & wait", seconds=0.5)
        self.assertLess(time.monotonic() - began, 30)
        self.assertEqual(result.outcome, case.FAILED)
        self.assertIn("before", result.detail)

    def test_a_missing_program_is_failed(self):
        missing = program.Program("it", ["/does/not/exist"], {}, "", [], 1, False, True, [])
        self.assertEqual(program.run(missing, "suite")[0].outcome, case.FAILED)

    def test_the_registered_environment_reaches_it(self):
        self.assertEqual(run('test "$OF_THE_TEST" = "its own"'), [case.passed("suite/it")])


class GoogleTestProgram(unittest.TestCase):
    def test_each_case_counts(self):
        cases = run_gtest('<testcase name="One" classname="S" result="completed"/>',
                          '<testcase name="Two" classname="S" result="completed"/>')
        self.assertEqual(cases, [case.passed("suite/it: S.One"), case.passed("suite/it: S.Two")])

    def test_a_failure_shows_its_message(self):
        [result] = run_gtest('<testcase name="One" classname="S" result="completed">'
                             '<failure message="a.cc:3&#x0A;1 is not 2"/></testcase>', status=1)
        self.assertEqual(result, case.failed("suite/it: S.One", "a.cc:3\n1 is not 2"))

    def test_a_skip_shows_its_reason(self):
        [result] = run_gtest('<testcase name="One" classname="S" result="skipped">'
                             '<skipped message="a.cc:3&#x0A;no&#x0A;perf"/></testcase>')
        self.assertEqual(result, case.skipped("suite/it: S.One", "no perf"))

    def test_a_disabled_case_is_skipped(self):
        [result] = run_gtest('<testcase name="DISABLED_One" classname="S" result="suppressed"/>')
        self.assertEqual(result.outcome, case.SKIPPED)

    def test_no_cases_is_failed(self):
        self.assertEqual(run_gtest()[0].outcome, case.FAILED)

    def test_a_bad_status_without_a_failed_case_is_failed(self):
        cases = run_gtest('<testcase name="One" classname="S" result="completed"/>', status=23)
        self.assertEqual([result.outcome for result in cases], [case.PASSED, case.FAILED])

    def test_a_crash_is_failed_and_names_the_case(self):
        [result] = run("echo '[ RUN      ] S.One'; echo '[ RUN      ] S.Two'; kill -ABRT $$", is_gtest=True)
        self.assertEqual(result.outcome, case.FAILED)
        self.assertIn("SIGABRT in S.Two", result.detail)

    def test_a_report_cut_short_is_failed(self):
        [result] = run('echo "<testsuites>" >"${1#--gtest_output=xml:}"; kill -KILL $$', is_gtest=True)
        self.assertEqual(result.outcome, case.FAILED)
