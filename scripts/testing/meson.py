"""Runs registered tests with `meson test`, on this machine or in the VM, with as few boots as possible."""

import pathlib
import shutil

from testing import configuration
from testing import processes
from testing import report

SCRIPTS = pathlib.Path(__file__).resolve().parents[1]

# With software emulation on a loaded machine, one second of the guest can take this many seconds of the host.
GUEST_SLOWNESS = 10

DEFAULT_CPUS = 4

# Duration of each test of this run, in s.
steps = []

# Path in a build folder: the files that are laid over the root of machines that boot systemd
# (tests/vm/systemd/meson.build).
SYSTEMD_FILES = "tests/vm/systemd/files"


def run_here(build, suite, tests, prefix, slowness=1, gtest_filter=None):
    """Returns the cases of `tests`, which are built and registered in `suite`; `slowness` multiplies their time limits.
    `gtest_filter` selects cases of GoogleTest programs."""
    # For Meson, an empty list of names means all tests of the suite.
    if not tests:
        return []
    logbase = build.folder / "meson-logs" / f"testlog-{prefix}"
    environment = ["env", f"GTEST_FILTER={gtest_filter}"] if gtest_filter else []
    return _run(build, tests, prefix, logbase, [*build.inside, *environment, *_command(build, suite, tests, logbase), "-t", str(slowness)])


def run_in_vm(build, suite, tests, prefix, one_boot=False):
    """Returns the cases of `tests`. Each test runs in a machine that meets its requirements; with `one_boot`, all run
    in one machine that meets the requirements of all. /out is build-.../vm-out/PREFIX."""
    out = build.folder / "vm-out" / prefix
    shutil.rmtree(out, ignore_errors=True)
    cases = []
    for number, group in enumerate([tests] if one_boot and tests else groups(tests)):
        print(f"   {prefix}, in the VM: {', '.join(test.name for test in group)}", flush=True)
        log = f"testlog-{number}"
        seconds = 60 + GUEST_SLOWNESS * sum(test.seconds or 600 for test in group)
        cases += _run(build, group, prefix, out / log, [
            SCRIPTS / "vm.py", "--out", out, "--timeout", str(seconds), *vm_options(*group),
            *(["--files", build.folder / SYSTEMD_FILES] if any("systemd" in test.suites for test in group) else []), "--",
            # --verbose shows which test was running when the machine went down.
            *_command(build, suite, group, f"/out/{log}"), "-t", str(GUEST_SLOWNESS), "--num-processes", "1", "--verbose"])
    return cases


def vm_options(*tests):
    """Returns the options of vm.py for a machine that meets the requirements of all `tests`. A test is also registered
    in suites that state its requirements, such as cpus-8 or systemd."""
    wanted = {suite for test in tests for suite in test.suites}
    if "icount" in wanted:
        return ["--icount"]
    cpus = [int(suite.removeprefix("cpus-")) for suite in wanted if suite.startswith("cpus-")]
    return ["--cpus", str(max(cpus, default=DEFAULT_CPUS)), *(["--systemd"] if "systemd" in wanted else [])]


def groups(tests):
    """Returns lists of tests that can share one boot."""
    shared = {}
    for test in tests:
        alone = test.name if "own-boot" in test.suites else ""
        shared.setdefault((alone, *vm_options(test)), []).append(test)
    return list(shared.values())


def _command(build, suite, tests, logbase):
    return [configuration.MESON, "test", "-C", build.folder, "--no-rebuild", "--no-stdsplit", "--logbase", logbase,
            "--suite", suite, *(test.name for test in tests)]


def _run(build, tests, prefix, logbase, command):
    # Meson would use an old report as the report of this run.
    for stale in (f"{logbase}.json", f"{logbase}.junit.xml", *(build.folder / f"{test.name}.xml" for test in tests)):
        pathlib.Path(stale).unlink(missing_ok=True)
    ended = processes.run(command, cwd=configuration.REPOSITORY)
    steps.extend(report.durations(tests, prefix, logbase))
    return report.read(tests, prefix, logbase, ended)
