"""The suites of ./run test: what each builds, and where its programs run."""

import dataclasses
import functools
import os
import pathlib
import shutil
import subprocess
import traceback
import typing

from testing import bench
from testing import case
from testing import lint
from testing import meson
from testing.configuration import ASAN, CLANG, CROSS, GCC, TSAN, BuildError

TRACEFS = pathlib.Path("/sys/kernel/tracing")


@dataclasses.dataclass
class Suite:
    name: str
    what: str
    run: typing.Callable[[str], list]  # Takes the suite's name, returns its cases.
    in_vm: bool = False  # At least sometimes.
    by_name: bool = False  # Takes long: runs only if it is named.


def _here(build, suite, prefix, slowness=2):
    build.build_for(build.registered(suite))
    return meson.run_here(build, suite, prefix, slowness)


def _all_built(build, suite, prefix):
    """Builds all there is, so that both compilers see every file."""
    build.configure()
    build.build_all()
    return meson.run_here(build, suite, prefix, slowness=4)


def _in_vm(build, suite, prefix, tag=None):
    """The tests of a suite, or those of them that are registered in the suite `tag`, too."""
    tests = [test for test in build.registered(suite) if tag is None or tag in test.suites]
    build.build_for(tests)
    return meson.run_in_vm(build, suite, tests, prefix)


def _tracefs_is_mounted():
    """Mounts it, too, where that is all that is missing."""
    if os.geteuid() != 0:
        return False
    if not (TRACEFS / "events").exists():
        subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACEFS], capture_output=True, check=False)
    return (TRACEFS / "events").exists()


def _kernel(prefix):
    if _tracefs_is_mounted():
        return _here(GCC, "kernel", prefix)
    print("   no root or no tracefs here", flush=True)
    return _in_vm(GCC, "kernel", prefix)


def _fuzz(prefix):
    # Each run begins with the corpora alone: what an earlier one has found would make it longer and longer.
    shutil.rmtree(ASAN.folder / "tests/fuzz/found", ignore_errors=True)
    return _here(ASAN, "fuzz", prefix)


def _bench(prefix):
    cases = []
    for benchmark in bench.find():
        try:
            cases += [case.passed(f"{prefix}/{benchmark.name}: {result['case']}") for result in bench.run(benchmark)]
        except bench.BenchmarkError as error:
            cases.append(case.failed(f"{prefix}/{benchmark.name}", str(error)))
    return cases


def _suite(name, what, function, *arguments, in_vm=False, by_name=False, **options):
    return Suite(name, what, functools.partial(function, *arguments, **options), in_vm, by_name)


WITH_ASAN = "... with AddressSanitizer and UndefinedBehaviorSanitizer"
WITH_TSAN = "... with ThreadSanitizer"
SUITES = [
    _suite("runner", "this test runner and ./run vm themselves", _here, GCC, "runner", in_vm=True),
    _suite("unit-gcc", "the unit tests, by g++", _all_built, GCC, "unit"),
    _suite("unit-clang", "... by clang", _all_built, CLANG, "unit"),
    _suite("unit-asan", WITH_ASAN, _here, ASAN, "unit", slowness=16),
    _suite("unit-tsan", WITH_TSAN, _here, TSAN, "unit", slowness=16),
    _suite("unit-arm64", "... for arm64, under qemu-user; only if it is named", _here, CROSS["arm64"], "unit", slowness=20, by_name=True),
    _suite("unit-s390x", "... for s390x, which is big-endian", _here, CROSS["s390x"], "unit", slowness=20, by_name=True),
    _suite("unit-i386", "... for i386, which has 32 bits", _here, CROSS["i386"], "unit", slowness=2, by_name=True),
    _suite("programs-gcc", "the programs, the examples and the installed libraries, by g++", _here, GCC, "programs", slowness=4),
    _suite("programs-clang", "... by clang", _here, CLANG, "programs", slowness=4),
    _suite("programs-asan", WITH_ASAN, _here, ASAN, "programs", slowness=16),
    _suite("programs-tsan", WITH_TSAN, _here, TSAN, "programs", slowness=16),
    _suite("kernel", "perf rings of this machine's kernel, where root has tracefs, else of the VM's", _kernel, in_vm=True),
    _suite("vm", "what needs user_events, in the VM", _in_vm, GCC, "vm", in_vm=True),
    _suite("vm-asan", WITH_ASAN + ", those that say so", _in_vm, ASAN, "vm", tag="asan", in_vm=True),
    _suite("vm-tsan", WITH_TSAN + ", those that say so", _in_vm, TSAN, "vm", tag="tsan", in_vm=True),
    _suite("conformance", "what independent readers make of our files", _here, GCC, "conformance", in_vm=True),
    _suite("conformance-ctf2", "... the babeltrace2 of Debian 13, in a fresh root, of exports to CTF 2", _here, GCC, "conformance-ctf2",
           by_name=True),
    _suite("fuzz", "each fuzzer: its corpus, then 10 s of new inputs", _fuzz),
    _suite("bench", "each benchmark runs once and gives results", _bench, in_vm=True),
    _suite("lint", "clang-format, clang-tidy, shellcheck, pyflakes, mandoc", lint.run),
    _suite("browser", "the documents' site in Chromium, where that is installed", _here, GCC, "browser", by_name=True),
    _suite("package", "the Debian packages: built, checked by lintian, and what is in them", _here, GCC, "package", by_name=True),
    _suite("package-root", "... in fresh roots: installed, upgraded, purged; README's first program", _here, GCC, "package-root",
           by_name=True),
    _suite("package-arm64", "... for arm64, cross-built; what is in them runs under qemu-user", _here, GCC, "package-arm64", by_name=True),
    _suite("package-vm", "... under systemd, in the VM", _here, GCC, "package-vm", in_vm=True, by_name=True),
    _suite("soak", "how exact recordings are, and nettraced under load and kills, for hours; only if it is named", _here, GCC, "soak", by_name=True),
    _suite("soak-vm", "... in the VM", _in_vm, GCC, "soak-vm", in_vm=True, by_name=True),
]


def named(name):
    """The suites that a name on the command line means: itself, and all that it begins, without those among them that run
    by name only where others do not."""
    meant = [suite for suite in SUITES if suite.name == name or suite.name.startswith(name + "-")]
    return [suite for suite in meant if not suite.by_name] or meant


def run(suite):
    try:
        cases = suite.run(suite.name)
    except BuildError as error:
        return [case.failed(f"{suite.name}/build", str(error))]
    except Exception:
        # An error in the runner must not cost the other suites' results.
        return [case.failed(f"{suite.name}/runner", traceback.format_exc())]
    if not cases:
        return [case.failed(suite.name, "has no tests")]
    return cases
