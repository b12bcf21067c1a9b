"""Runs registered tests by `meson test`, here or in the VM with as few boots as they allow."""

import pathlib
import shutil
import subprocess

from testing import configuration
from testing import report

SCRIPTS = pathlib.Path(__file__).resolve().parents[1]

# Software emulation, on a loaded machine: a guest's second can be this many of the host's.
GUEST_SLOWNESS = 10

DEFAULT_CPUS = "4"

# In a build folder: what is laid over the root of machines that boot systemd (tests/vm/systemd/meson.build).
SYSTEMD_FILES = "tests/vm/systemd/files"


def run_here(build, suite, prefix, slowness=1):
    """The cases of the tests of `suite`, which are built; `slowness` stretches their time limits."""
    tests = build.registered(suite)
    logbase = build.folder / "meson-logs" / f"testlog-{prefix}"
    return _run(build, tests, prefix, logbase, [*build.inside, *_command(build, suite, tests, logbase), "-t", str(slowness)])


def run_in_vm(build, suite, tests, prefix):
    """The cases of `tests`, each in a machine such as it asks for. /out is build-.../vm-out/PREFIX."""
    out = build.folder / "vm-out" / prefix
    shutil.rmtree(out, ignore_errors=True)
    cases = []
    for number, group in enumerate(groups(tests)):
        print(f"   in the VM: {', '.join(test.name for test in group)}", flush=True)
        log = f"testlog-{number}"
        seconds = 60 + GUEST_SLOWNESS * sum(test.seconds or 600 for test in group)
        cases += _run(build, group, prefix, out / log, [
            SCRIPTS / "vm.py", "--out", out, "--timeout", str(seconds), *vm_options(group[0]),
            *(["--files", build.folder / SYSTEMD_FILES] if "systemd" in group[0].suites else []), "--",
            # --verbose shows which test ran when the machine went down.
            *_command(build, suite, group, f"/out/{log}"), "-t", str(GUEST_SLOWNESS), "--num-processes", "1", "--verbose"])
    return cases


def vm_options(test):
    """The options of vm.py that a program asks for by the suites it is registered in beside its own."""
    if "icount" in test.suites:
        return ["--icount"]
    cpus = [suite.removeprefix("cpus-") for suite in test.suites if suite.startswith("cpus-")]
    systemd = ["--systemd"] if "systemd" in test.suites else []
    return ["--cpus", cpus[0] if cpus else DEFAULT_CPUS, *systemd]


def groups(tests):
    """Lists of tests that can share one boot."""
    shared = {}
    for test in tests:
        alone = test.name if "own-boot" in test.suites else ""
        shared.setdefault((alone, *vm_options(test)), []).append(test)
    return list(shared.values())


def _command(build, suite, tests, logbase):
    return [configuration.MESON, "test", "-C", build.folder, "--no-rebuild", "--no-stdsplit", "--logbase", logbase,
            "--suite", suite, *(test.name for test in tests)]


def _run(build, tests, prefix, logbase, command):
    # Meson takes a report that it finds for that of the run.
    for stale in (f"{logbase}.json", f"{logbase}.junit.xml", *(build.folder / f"{test.name}.xml" for test in tests)):
        pathlib.Path(stale).unlink(missing_ok=True)
    ended = subprocess.run(
        command, cwd=configuration.REPOSITORY, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    return report.read(tests, prefix, logbase, ended)
