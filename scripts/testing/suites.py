"""The suites of ./run test: what each suite needs built, and where its programs run."""

import dataclasses
import functools
import itertools
import os
import pathlib
import shutil
import subprocess
import threading
import time
import traceback
import typing

from testing import bench
from testing import case
from testing import lint
from testing import meson
from testing import processes
from testing import times
from testing.configuration import ASAN, CROSS, GCC, LINT, TSAN, BuildError, Configuration

TRACEFS = pathlib.Path("/sys/kernel/tracing")

# Cases of unit tests that the suite unit-asan leaves out.
REPETITIVE = meson.SCRIPTS.parent / "tests/unit/repetitive.txt"

# Tests that are also registered in this Meson suite run only with --all.
MORE = "more"

DEFAULT, ALL, BY_NAME = "by default", "with --all", "only by name"


@dataclasses.dataclass
class Suite:
    name: str
    what: str
    build: Configuration
    programs: typing.Callable[[], list]  # Returns the programs that the suite needs and runs.
    run: typing.Callable[[str, list], list]  # Takes the suite's name and its programs, and returns its cases.
    when: str
    in_vm: bool = False  # Runs in the VM, always or if this machine lacks something.
    lane: int = 0  # Suites of different lanes may run at the same time; 0: no other suite runs during this one.


def _here(build, suite, slowness, prefix, tests):
    return meson.run_here(build, suite, tests, prefix, slowness)


def _without_repetition(build, suite, slowness, prefix, tests):
    names = [line for line in REPETITIVE.read_text().splitlines() if not line.startswith("#")]
    return meson.run_here(build, suite, tests, prefix, slowness, os.environ.get("GTEST_FILTER") or f"-{':'.join(names)}")


def _in_vm(build, suite, _slowness, prefix, tests):
    return meson.run_in_vm(build, suite, tests, prefix)


def _in_one_vm(build, suite, _slowness, prefix, tests):
    return meson.run_in_vm(build, suite, tests, prefix, one_boot=True)


def _tracefs_is_mounted():
    """Returns whether tracefs is mounted and this user is root. Mounts tracefs if it is not mounted yet."""
    if os.geteuid() != 0:
        return False
    if not (TRACEFS / "events").exists():
        subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACEFS], capture_output=True, check=False)
    return (TRACEFS / "events").exists()


def _kernel(build, suite, slowness, prefix, tests):
    if _tracefs_is_mounted():
        return _here(build, suite, slowness, prefix, tests)
    print("   this needs root and tracefs; running in the VM", flush=True)
    return _in_vm(build, suite, slowness, prefix, tests)


def _fuzz(build, suite, slowness, prefix, tests):
    # Each run begins with the corpora alone: inputs from earlier runs would make it longer each time.
    shutil.rmtree(build.folder / "tests/fuzz/found", ignore_errors=True)
    return _here(build, suite, slowness, prefix, tests)


def _benchmarks(counts):
    """Returns the benchmarks that count instructions, or those that do not."""
    return [benchmark for benchmark in bench.find(GCC) if bench.counts_instructions(benchmark) == counts]


def _bench(prefix, benchmarks):
    cases = []
    for benchmark in benchmarks:
        try:
            cases += [case.passed(f"{prefix}/{benchmark.name}: {result['case']}") for result in bench.run(GCC, benchmark)]
        except bench.BenchmarkError as error:
            cases.append(case.failed(f"{prefix}/{benchmark.name}", str(error)))
    return cases


def _lint(prefix, _programs):
    return lint.run(prefix)


def _registered(build, suite, tags, without):
    return [test for test in build.registered(suite)
            if set(tags) <= set(test.suites) and (without is None or without not in test.suites)]


def _suite(name, what, when, run, build, suite, *, tags=(), without=None, slowness=2, in_vm=False, lane=0):
    """Returns a suite of the tests that are registered in the Meson suite `suite` and in all suites `tags`, but not in
    the suite `without`. `slowness` multiplies their time limits."""
    return Suite(name, what, build, functools.partial(_registered, build, suite, tags, without),
                 functools.partial(run, build, suite, slowness), when, in_vm, lane)


# Lanes. The tests of the kernel and of services in the VM mostly wait, so that other lanes can use the processors. Tests
# that record events of this machine's kernel (kernel, conformance-more) never run side by side, because some check that
# no other process writes these events.
KERNEL, MACHINE, SERVICES, BUSY = 1, 2, 3, 4

# In the order in which the suites run, except that suites of different lanes run at the same time.
SUITES = [
    _suite("unit", "the unit tests", DEFAULT, _here, GCC, "unit", slowness=4, lane=BUSY),
    _suite("programs", "the programs, the examples and the installed libraries",
           DEFAULT, _here, GCC, "programs", without=MORE, slowness=4, lane=BUSY),
    _suite("kernel", "perf rings of this machine's kernel if root has tracefs here, else of the VM's kernel",
           DEFAULT, _kernel, GCC, "kernel", without=MORE, in_vm=True, lane=KERNEL),
    _suite("vm", "tests of user_events, in one boot of the VM",
           DEFAULT, _in_one_vm, GCC, "vm", without=MORE, in_vm=True, lane=MACHINE),
    _suite("conformance", "independent readers read our files",
           DEFAULT, _here, GCC, "conformance", without=MORE, in_vm=True, lane=BUSY),

    _suite("kernel-more", "the tests of kernel that take longer", ALL, _kernel, GCC, "kernel", tags=[MORE], in_vm=True,
           lane=KERNEL),
    _suite("conformance-more", "the tests of conformance that take longer",
           ALL, _here, GCC, "conformance", tags=[MORE], in_vm=True, lane=KERNEL),
    _suite("runner", "./run, ./run test and ./run vm themselves", ALL, _here, GCC, "runner", in_vm=True, lane=SERVICES),
    _suite("vm-systemd", "the tests of vm under systemd that take longer",
           ALL, _in_vm, GCC, "vm", tags=[MORE, "systemd"], in_vm=True, lane=SERVICES),
    _suite("vm-more", "the other tests of vm that take longer",
           ALL, _in_vm, GCC, "vm", tags=[MORE], without="systemd", in_vm=True, lane=MACHINE),
    _suite("vm-asan", "the tests of vm with the tag asan, with the sanitizers of unit-asan",
           ALL, _in_vm, ASAN, "vm", tags=["asan"], in_vm=True, lane=MACHINE),
    _suite("programs-more", "the tests of programs that take longer",
           ALL, _here, GCC, "programs", tags=[MORE], slowness=4, lane=BUSY),
    _suite("unit-asan", "the unit tests with AddressSanitizer and UndefinedBehaviorSanitizer",
           ALL, _without_repetition, ASAN, "unit", slowness=16, lane=BUSY),
    _suite("fuzz", "each fuzzer: its corpora, and new inputs until 3 s are over", ALL, _fuzz, ASAN, "fuzz", lane=BUSY),
    _suite("unit-tsan", "the unit tests that run threads, with ThreadSanitizer",
           ALL, _here, TSAN, "unit", tags=["threads"], slowness=16, lane=BUSY),
    Suite("lint", "clang-format, shellcheck, pyflakes, mandoc, prose; clang-tidy and separate compilation of changed "
          "sources (--full: of all)",
          LINT, list, _lint, ALL, lane=BUSY),
    Suite("bench-instructions", "each benchmark that counts instructions runs once and gives results", GCC,
          functools.partial(_benchmarks, counts=True), _bench, ALL, in_vm=True, lane=BUSY),

    _suite("unit-arm64", "the unit tests for arm64, under qemu-user",
           BY_NAME, _here, CROSS["arm64"], "unit", slowness=20),
    _suite("unit-s390x", "the unit tests for s390x, which is big-endian",
           BY_NAME, _here, CROSS["s390x"], "unit", slowness=20),
    _suite("unit-i386", "the unit tests for i386, which has 32 bits", BY_NAME, _here, CROSS["i386"], "unit"),
    _suite("conformance-ctf2", "the babeltrace2 of Debian 13, in a fresh root, reads exports to CTF 2",
           BY_NAME, _here, GCC, "conformance-ctf2"),
    _suite("browser", "the website of the documents in Chromium, if it is installed", BY_NAME, _here, GCC, "browser"),
    _suite("package", "the Debian packages: their build, lintian, and their contents",
           BY_NAME, _here, GCC, "package"),
    _suite("package-root", "the packages in fresh roots: installed, upgraded, purged; README's first program",
           BY_NAME, _here, GCC, "package-root"),
    _suite("package-arm64", "the packages for arm64, cross-built; their programs run under qemu-user",
           BY_NAME, _here, GCC, "package-arm64"),
    _suite("package-vm", "the packages under systemd, in the VM", BY_NAME, _here, GCC, "package-vm", in_vm=True),
    Suite("bench", "each benchmark that measures times runs once and gives results", GCC,
          functools.partial(_benchmarks, counts=False), _bench, BY_NAME),
    # Only these suites need whole programs with a sanitizer. The programs take minutes to compile, and seconds to end:
    # LeakSanitizer and UndefinedBehaviorSanitizer start llvm-symbolizer to compare findings with tests/lsan.supp and
    # tests/ubsan.supp.
    _suite("programs-asan", "programs and programs-more with the sanitizers of unit-asan",
           BY_NAME, _here, ASAN, "programs", slowness=16),
    _suite("programs-tsan", "the tests of programs that run threads, with ThreadSanitizer",
           BY_NAME, _here, TSAN, "programs", tags=["threads"], slowness=16),
    _suite("vm-tsan", "the tests of vm with the tag tsan, with ThreadSanitizer",
           BY_NAME, _in_vm, TSAN, "vm", tags=["tsan"], in_vm=True),
    _suite("slow", "tests that take minutes and rarely fail", BY_NAME, _here, GCC, "slow"),
    _suite("slow-vm", "tests in the VM that take minutes and rarely fail", BY_NAME, _in_vm, GCC, "slow-vm", in_vm=True),
    _suite("soak", "exact counts of long recordings, and of nettraced under load and kills; takes hours",
           BY_NAME, _here, GCC, "soak"),
    _suite("soak-vm", "the tests of soak that need the VM", BY_NAME, _in_vm, GCC, "soak-vm", in_vm=True),
]


def named(name):
    """Returns the suites that a name on the command line selects: the suite with exactly this name, and the suites
    whose names continue it after "-". The latter do not include suites that run only by name, unless the name selects
    no other suites."""
    meant = [suite for suite in SUITES if suite.name == name or suite.name.startswith(name + "-")]
    return [suite for suite in meant if suite.name == name or suite.when != BY_NAME
            or all(other.when == BY_NAME for other in meant)]


def choose(names, everything=False):
    """Returns the suites to run, in order: the named suites, else the default suites, or with `everything` all except
    those that run by name only."""
    if names:
        meant = [suite.name for name in names for suite in named(name)]
        return [suite for suite in SUITES if suite.name in meant]
    return [suite for suite in SUITES if suite.when == DEFAULT or everything and suite.when == ALL]


def in_lanes(chosen):
    """Returns the suites in groups, which run one after the other. A group has a list of suites for each lane. The
    lists of a group run at the same time."""
    groups = []
    for _, group in itertools.groupby(chosen, key=lambda suite: suite.lane != 0):
        lanes = {}
        for suite in group:
            lanes.setdefault(suite.lane, []).append(suite)
        groups.append(list(lanes.values()))
    return groups


def listing():
    """Returns a line for each suite: its name, the minutes of its last run, and its description."""
    lines = []
    for when in (DEFAULT, ALL, BY_NAME):
        lines.append(f"{when}:")
        lines += [f"  {suite.name:<17}{times.last_minutes(suite.name):>10}  {suite.what}"
                  for suite in SUITES if suite.when == when]
    return "\n".join(lines)


class Builds:
    """Compiles what the chosen suites need. A stage is everything that the default suites, or all other suites, need
    from one build folder. One call of ninja compiles a stage, so that all processors are busy until its end."""

    def __init__(self, chosen):
        self._chosen = chosen
        self._locks = {id(suite.build): threading.Lock() for suite in chosen}
        self._stages = {}  # The error of each stage that was compiled; None if it succeeded.
        self._blamed = {}  # The suite that reported the failure of each stage.

    def ensure(self, suite):
        """Compiles what the suite needs, if this is not done yet."""
        stage = _stage(suite)
        with self._locks[id(suite.build)]:
            if stage not in self._stages:
                self._stages[stage] = self._compile(stage)
        if error := self._stages[stage]:
            blamed = self._blamed.setdefault(stage, suite.name)
            raise error if blamed == suite.name else BuildError(f"see {blamed}/build") from None

    def folders(self):
        """Returns the configurations in which something was compiled."""
        return list({id(build): build for build, _ in self._stages}.values())

    def _compile(self, stage):
        build, _ = stage
        try:
            build.build_for([program for suite in self._chosen if _stage(suite) == stage for program in suite.programs()])
        except BuildError as error:
            return error
        return None


def _stage(suite):
    return suite.build, suite.when


class Run:
    """Runs suites, and measures their time."""

    def __init__(self, chosen):
        self.times = times.Times()
        self._builds = Builds(chosen)

    def run(self, suite):
        """Runs a suite and returns its cases."""
        try:
            self._builds.ensure(suite)
            began = time.monotonic()
            with processes.metered() as meter:
                cases = suite.run(suite.name, suite.programs()) or [case.failed(suite.name, "has no tests")]
            self.times.suites.append(times.Usage(suite.name, time.monotonic() - began, meter.cpu, len(cases)))
            return cases
        except BuildError as error:
            return [case.failed(f"{suite.name}/build", str(error))]
        except Exception:
            # An error in the runner must not discard the results of the other suites.
            return [case.failed(f"{suite.name}/runner", traceback.format_exc())]

    def finish(self):
        """Returns the times of the run, and stores them for later runs."""
        for build in self._builds.folders():
            self.times.builds.append(times.Usage(build.folder.name, build.wall, build.cpu))
            self.times.units += build.units
        self.times.tests += meson.steps
        self.times.store()
        return self.times
