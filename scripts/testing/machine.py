"""Runs test programs in the VM, with as few boots as they allow."""

import dataclasses
import json
import pathlib
import shutil
import subprocess

from testing import case
from testing import program

SCRIPTS = pathlib.Path(__file__).resolve().parents[1]

# Software emulation, on a loaded machine: a guest's second can be this many of the host's.
SLOWNESS = 10

DEFAULT_CPUS = "4"


def vm_options(test):
    """What a program asks of its machine, by the suites it is registered in beside its own."""
    if "icount" in test.suites:
        return ["--icount"]
    cpus = [suite.removeprefix("cpus-") for suite in test.suites if suite.startswith("cpus-")]
    return ["--cpus", cpus[0] if cpus else DEFAULT_CPUS]


def groups(tests):
    """Lists of tests that can share one boot."""
    shared = {}
    for test in tests:
        alone = test.name if "own-boot" in test.suites else ""
        shared.setdefault((alone, *vm_options(test)), []).append(test)
    return list(shared.values())


def run(tests, prefix, out):
    """The cases of the tests, each in a machine as it asks for. What they leave in /out is in out."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    cases = []
    for number, group in enumerate(groups(tests)):
        print(f"   in the VM: {', '.join(test.name for test in group)}", flush=True)
        cases += _run_group(group, prefix, out, f"boot-{number}")
    return cases


def _run_group(tests, prefix, out, boot):
    (out / f"{boot}.programs").write_text(json.dumps([dataclasses.asdict(test) for test in tests]))
    seconds = 60 + SLOWNESS * sum(test.seconds or 600 for test in tests)
    machine = subprocess.run(
        [SCRIPTS / "vm.py", "--out", out, "--timeout", str(seconds), *vm_options(tests[0]), "--",
         SCRIPTS / "guest_tests.py", prefix, boot],
        cwd=SCRIPTS.parent, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", check=False)
    return read_results(tests, prefix, out / f"{boot}.results", machine)


def read_results(tests, prefix, results, machine):
    """What the guest reported, and a failure for each test that it did not come to the end of."""
    lines = results.read_text().splitlines() if results.exists() else []
    cases = [case.Case.from_json(line) for line in lines]
    done = {result.name.partition(":")[0] for result in cases}
    missing = [test for test in tests if f"{prefix}/{test.name}" not in done]
    went_down = f"the VM ended with status {machine.returncode}:\n{machine.stdout}"
    cases += [case.failed(f"{prefix}/{test.name}", "not run to its end: " + went_down) for test in missing]
    if machine.returncode != 0 and not missing:
        cases.append(case.failed(f"{prefix}/vm", went_down))
    return cases


def run_in_guest(prefix, boot):
    """The other end of run(): one boot's programs."""
    out = pathlib.Path("/out")
    with open(out / f"{boot}.results", "w", buffering=1) as results:
        for fields in json.loads((out / f"{boot}.programs").read_text()):
            for result in program.run(program.Program(**fields), prefix, SLOWNESS):
                results.write(result.to_json() + "\n")
    return 0
