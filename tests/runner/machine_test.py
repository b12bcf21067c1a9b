"""Which tests share a boot, and what becomes of them when the VM goes down."""

import pathlib
import subprocess
import tempfile
import unittest

from testing import case
from testing import machine
from testing import program


def test_in(name, *suites):
    return program.Program(name, ["true"], {}, "", ["vm", *suites], 30, False, True, [])


class Groups(unittest.TestCase):
    def names(self, *tests):
        return [[test.name for test in group] for group in machine.groups(tests)]

    def test_the_same_machine_is_booted_once(self):
        self.assertEqual(self.names(test_in("a"), test_in("b", "cpus-1"), test_in("c"), test_in("d", "cpus-1")),
                         [["a", "c"], ["b", "d"]])

    def test_the_default_asked_for_is_still_the_default(self):
        self.assertEqual(self.names(test_in("a"), test_in("b", "cpus-4")), [["a", "b"]])

    def test_own_boot_is_alone(self):
        self.assertEqual(self.names(test_in("a", "own-boot"), test_in("b", "own-boot"), test_in("c"), test_in("d")),
                         [["a"], ["b"], ["c", "d"]])

    def test_suites_become_options(self):
        self.assertEqual(machine.vm_options(test_in("a", "cpus-2")), ["--cpus", "2"])
        self.assertEqual(machine.vm_options(test_in("a", "icount")), ["--icount"])


class Results(unittest.TestCase):
    def read(self, status, *results):
        with tempfile.TemporaryDirectory() as folder:
            reported = pathlib.Path(folder) / "results"
            reported.write_text("".join(result.to_json() + "\n" for result in results))
            ended = subprocess.CompletedProcess([], status, stdout="what it said")
            return machine.read_results([test_in("a"), test_in("b")], "vm", reported, ended)

    def test_what_the_guest_reports_counts(self):
        reported = [case.passed("vm/a: S.One"), case.skipped("vm/b", "why")]
        self.assertEqual(self.read(0, *reported), reported)

    def test_a_program_without_a_result_is_failed(self):
        [first, second] = self.read(125, case.passed("vm/a"))
        self.assertEqual(first, case.passed("vm/a"))
        self.assertEqual((second.name, second.outcome), ("vm/b", case.FAILED))
        self.assertIn("what it said", second.detail)

    def test_a_bad_end_after_all_results_is_failed_too(self):
        cases = self.read(124, case.passed("vm/a"), case.passed("vm/b"))
        self.assertEqual([result.outcome for result in cases], [case.PASSED, case.PASSED, case.FAILED])
