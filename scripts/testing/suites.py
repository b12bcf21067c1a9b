"""The suites of ./run test: what each builds, and where its programs run."""

import concurrent.futures
import dataclasses
import functools
import os
import pathlib
import subprocess
import tempfile
import traceback
import typing
import unittest

from testing import bench
from testing import case
from testing import configuration
from testing import lint
from testing import machine
from testing import program

WORKERS = 2
FUZZ_SECONDS = 10
TRACEFS = pathlib.Path("/sys/kernel/tracing")


@dataclasses.dataclass
class Suite:
    name: str
    what: str
    run: typing.Callable[[str], list]  # Takes the suite's name, returns its cases.
    in_vm: bool = False  # At least sometimes.


def _tests_of(build, registered_as, kind="tests"):
    build.configure()
    return [test for test in build.programs(kind) if registered_as in test.suites]


def _run_here(tests, prefix, slowness=1):
    """Side by side what may be, then one by one what may not."""
    cases = []
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        runs = [pool.submit(program.run, test, prefix, slowness) for test in tests if test.is_parallel]
        for run in runs:
            cases += run.result()
    for test in tests:
        if not test.is_parallel:
            cases += program.run(test, prefix, slowness)
    return cases


def _run_in_vm(build, tests, prefix):
    return machine.run(tests, prefix, build.folder / "vm-out" / prefix)


def _unit(build, prefix):
    """Builds all there is, so that both compilers see every file."""
    tests = _tests_of(build, "unit")
    build.build_all()
    return _run_here(tests, prefix, slowness=2)


def _sanitized_unit(build, prefix):
    tests = _tests_of(build, "unit")
    build.build_for(tests)
    return _run_here(_without_address_randomization(tests), prefix, slowness=16)


def _without_address_randomization(tests):
    # clang 14's sanitizers do not know the address ranges of kernels with vm.mmap_rnd_bits above 28.
    setarch = ["setarch", "--addr-no-randomize"]
    if subprocess.run([*setarch, "true"], capture_output=True, check=False).returncode != 0:
        return tests
    return [dataclasses.replace(test, command=setarch + test.command) for test in tests]


def _tracefs_is_mounted():
    """Mounts it, too, where that is all that is missing."""
    if os.geteuid() != 0:
        return False
    if not (TRACEFS / "events").exists():
        subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACEFS], capture_output=True, check=False)
    return (TRACEFS / "events").exists()


def _kernel(prefix):
    tests = _tests_of(configuration.GCC, "kernel")
    configuration.GCC.build_for(tests)
    if _tracefs_is_mounted():
        return _run_here(tests, prefix)
    print("   no root or no tracefs here", flush=True)
    return _run_in_vm(configuration.GCC, tests, prefix)


def _vm(prefix):
    tests = _tests_of(configuration.GCC, "vm")
    configuration.GCC.build_for(tests)
    return _run_in_vm(configuration.GCC, tests, prefix)


def _sanitized_vm(build, sanitizer, prefix):
    tests = [test for test in _tests_of(build, "vm") if sanitizer in test.suites]
    build.build_for(tests)
    return _run_in_vm(build, _without_address_randomization(tests), prefix)


def _conformance(prefix):
    tests = _tests_of(configuration.GCC, "conformance")
    configuration.GCC.build_for(tests)
    return _run_here(tests, prefix)


def _fuzz(prefix):
    """Each fuzzer replays its corpus, then looks for more; what it finds anew is not kept."""
    fuzzers = _tests_of(configuration.ASAN, "fuzz")
    configuration.ASAN.build_for(fuzzers)
    with tempfile.TemporaryDirectory(prefix="nettraced-fuzz-") as folder:
        runs = []
        for fuzzer in _without_address_randomization(fuzzers):
            found = pathlib.Path(folder) / fuzzer.name
            found.mkdir()
            # The build folder keeps the input that crashed it.
            artifacts = f"-artifact_prefix={configuration.ASAN.folder}/{fuzzer.name}-"
            # libFuzzer writes to the first of its folders only.
            options, corpora = fuzzer.command[:], []
            while pathlib.Path(options[-1]).is_dir():
                corpora.insert(0, options.pop())
            runs.append(dataclasses.replace(
                fuzzer, name=f"{fuzzer.name} (corpus)", command=[*options, artifacts, "-runs=0", *corpora]))
            runs.append(dataclasses.replace(
                fuzzer, name=f"{fuzzer.name} ({FUZZ_SECONDS} s)", seconds=FUZZ_SECONDS + fuzzer.seconds,
                command=[*options, artifacts, "-runs=-1", f"-max_total_time={FUZZ_SECONDS}", str(found), *corpora]))
        return _run_here(runs, prefix)


def _bench(prefix):
    cases = []
    for benchmark in bench.find():
        try:
            results = bench.run(benchmark)
        except bench.BenchmarkError as error:
            cases.append(case.failed(f"{prefix}/{benchmark.name}", str(error)))
            continue
        cases += [case.passed(f"{prefix}/{benchmark.name}: {result['case']}") for result in results]
    return cases


def _runner(prefix):
    suite = unittest.defaultTestLoader.discover(configuration.REPOSITORY / "tests/runner", pattern="*_test.py")
    results = _Cases(prefix)
    suite.run(results)
    return results.cases


class _Cases(unittest.TestResult):
    """Takes the results of Python's own unit tests as cases."""

    def __init__(self, prefix):
        super().__init__()
        self.cases = []
        self._prefix = prefix

    def _name(self, test):
        return f"{self._prefix}/{test.id()}"

    def addSuccess(self, test):
        self.cases.append(case.passed(self._name(test)))

    def addSkip(self, test, reason):
        self.cases.append(case.skipped(self._name(test), reason))

    def addFailure(self, test, err):
        self.cases.append(case.failed(self._name(test), self._exc_info_to_string(err, test)))

    addError = addFailure


SUITES = [
    Suite("runner", "this test runner and ./run vm themselves", _runner, in_vm=True),
    Suite("unit-gcc", "the unit tests, by g++", functools.partial(_unit, configuration.GCC)),
    Suite("unit-clang", "the unit tests, by clang", functools.partial(_unit, configuration.CLANG)),
    Suite("unit-asan", "... with AddressSanitizer and UndefinedBehaviorSanitizer",
          functools.partial(_sanitized_unit, configuration.ASAN)),
    Suite("unit-tsan", "... with ThreadSanitizer", functools.partial(_sanitized_unit, configuration.TSAN)),
    Suite("kernel", "perf rings of this machine's kernel, where root has tracefs, else of the VM's", _kernel, in_vm=True),
    Suite("vm", "what needs user_events, in the VM", _vm, in_vm=True),
    Suite("vm-asan", "... those that say so, with AddressSanitizer and UndefinedBehaviorSanitizer",
          functools.partial(_sanitized_vm, configuration.ASAN, "asan"), in_vm=True),
    Suite("vm-tsan", "... those that say so, with ThreadSanitizer",
          functools.partial(_sanitized_vm, configuration.TSAN, "tsan"), in_vm=True),
    Suite("conformance", "what independent readers make of our files", _conformance, in_vm=True),
    Suite("fuzz", f"each fuzzer: its corpus, then {FUZZ_SECONDS} s of new inputs", _fuzz),
    Suite("bench", "each benchmark runs once and gives results", _bench, in_vm=True),
    Suite("lint", "clang-format, clang-tidy, shellcheck, pyflakes, mandoc", lint.run),
]

def named(name):
    """The suites that a name on the command line means: itself, or all that it begins."""
    return [suite for suite in SUITES if suite.name == name or suite.name.startswith(name + "-")]


def run(suite):
    try:
        cases = suite.run(suite.name)
    except configuration.BuildError as error:
        return [case.failed(f"{suite.name}/build", str(error))]
    except Exception:
        # A fault of the runner's own must not cost the other suites' results.
        return [case.failed(f"{suite.name}/runner", traceback.format_exc())]
    if not cases:
        return [case.failed(suite.name, "has no tests")]
    return cases
