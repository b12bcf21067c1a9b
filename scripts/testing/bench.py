"""Finds and runs the benchmarks: the programs that Meson has registered with benchmark().

Each benchmark prints a table, or with --json one object on each line. A benchmark in the suite "icount" counts guest
instructions and runs in the VM; the others run on this machine.
"""

import json
import tempfile

from testing import meson
from testing import processes

KEYS = {"bench", "case", "unit", "value", "floor", "ratio"}


class BenchmarkError(Exception):
    """A benchmark failed or gave no results; the message gives the reason, without the name of the benchmark."""


def find(build, name=None):
    """Returns the benchmarks of a configuration that a name selects. They need not be built yet."""
    return named(name, build.registered(kind="benchmarks"))


def named(name, benchmarks):
    """Returns the benchmarks that a name selects: the benchmark with exactly this name, else all benchmarks whose names
    begin with its words. Without a name, returns all benchmarks.

    Benchmarks in the suite "long", which take an hour, are selected only by their whole name.
    """
    exact = [benchmark for benchmark in benchmarks if benchmark.name == name]
    return exact or [benchmark for benchmark in benchmarks
                     if "long" not in benchmark.suites and (not name or benchmark.name.startswith(name + " "))]


def counts_instructions(benchmark):
    return "icount" in benchmark.suites


def command(build, benchmark, *options):
    run_it = [*benchmark.command, *options]
    if not counts_instructions(benchmark):
        return run_it
    out = build.folder / "vm-out" / benchmark.name
    return [meson.SCRIPTS / "vm.py", *meson.vm_options(benchmark), "--timeout", "1200", "--out", out, "--", *run_it]


def run(build, benchmark):
    """Runs the benchmark and returns its results, as dictionaries with KEYS."""
    with tempfile.TemporaryFile("w+") as messages:
        done = processes.run(command(build, benchmark, "--json"), cwd=build.folder, stderr=messages)
        if done.returncode != 0:
            messages.seek(0)
            raise BenchmarkError(f"exit status {done.returncode}; its output:\n{done.stdout}{messages.read()}")
    results = [_parse(line) for line in done.stdout.splitlines()]
    if not results:
        raise BenchmarkError("the benchmark printed no results")
    return results


def _parse(line):
    try:
        result = json.loads(line)
    except json.JSONDecodeError as error:
        raise BenchmarkError(f"expected a line of JSON: {line!r}: {error}") from None
    if not isinstance(result, dict) or not KEYS <= result.keys():
        raise BenchmarkError(f"expected an object with the keys {sorted(KEYS)}: {line!r}")
    return result
