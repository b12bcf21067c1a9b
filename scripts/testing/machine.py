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


def vm_options(test):
    """What a program asks of its machine, by the suites it is registered in beside its own."""
    options = []
    for suite in test.suites:
        if suite == "icount":
            options.append("--icount")
        elif suite.startswith("cpus-"):
            options += ["--cpus", suite.removeprefix("cpus-")]
    return options


def groups(tests):
    """Lists of tests that can share one boot."""
    shared = {}
    for test in tests:
        alone = test.name if "own-boot" in test.suites else ""
        shared.setdefault((alone, *vm_options(test)), []).append(test)
    return list(shared.values())


def run_group(tests, prefix, out):
    """Yields the cases of tests that share one boot."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / "programs.json").write_text(json.dumps([dataclasses.asdict(test) for test in tests]))
    seconds = 60 + SLOWNESS * sum(test.seconds or 600 for test in tests)
    machine = subprocess.run(
        [SCRIPTS / "vm.py", "--out", out, "--timeout", str(seconds), *vm_options(tests[0]), "--",
         SCRIPTS / "guest_tests.py", prefix],
        cwd=SCRIPTS.parent, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", check=False)
    return _read_results(tests, prefix, out, machine)


def _read_results(tests, prefix, out, machine):
    results = out / "results.jsonl"
    lines = results.read_text().splitlines() if results.exists() else []
    cases = [case.Case.from_json(line) for line in lines]
    begun = {result.name.partition(":")[0] for result in cases}
    missing = [test for test in tests if f"{prefix}/{test.name}" not in begun]
    for test in missing:
        cases.append(case.failed(
            f"{prefix}/{test.name}", f"the VM ended (status {machine.returncode}) before this one did:\n{machine.stdout}"))
    if machine.returncode != 0 and not missing:
        cases.append(case.failed(f"{prefix}/vm", f"the VM ended with status {machine.returncode}:\n{machine.stdout}"))
    return cases


def run_in_guest(prefix):
    """The other end of run_group()."""
    out = pathlib.Path("/out")
    with open(out / "results.jsonl", "w", buffering=1) as results:
        for fields in json.loads((out / "programs.json").read_text()):
            for result in program.run(program.Program(**fields), prefix, SLOWNESS):
                results.write(result.to_json() + "\n")
    return 0
