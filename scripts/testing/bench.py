"""Finds and runs the benchmarks: the programs that Meson has registered with benchmark().

Each prints a table, and with --json one object a line. One registered in the suite "icount" counts
guest instructions and runs in the VM; the others run here.
"""

import json
import subprocess

from testing import configuration
from testing import meson

KEYS = {"bench", "case", "unit", "value", "floor", "ratio"}


class BenchmarkError(Exception):
    """A benchmark failed, or gave no results; the message says which."""


def find(name=None):
    benchmarks = named(name, configuration.RELEASE.registered(kind="benchmarks"))
    configuration.RELEASE.build_for(benchmarks)
    return benchmarks


def named(name, benchmarks):
    """Those that a name means: the one called so, else all whose name begins with its words. No name: all.

    Those in the suite "long", which take an hour, only by their whole name.
    """
    exact = [benchmark for benchmark in benchmarks if benchmark.name == name]
    return exact or [benchmark for benchmark in benchmarks
                     if "long" not in benchmark.suites and (not name or benchmark.name.startswith(name + " "))]


def command(benchmark, *options):
    run_it = [*benchmark.command, *options]
    if "icount" not in benchmark.suites:
        return run_it
    out = configuration.RELEASE.folder / "vm-out" / benchmark.name
    return [meson.SCRIPTS / "vm.py", *meson.vm_options(benchmark), "--timeout", "1200", "--out", out, "--", *run_it]


def run(benchmark):
    """Its results, as dictionaries with KEYS."""
    done = subprocess.run(command(benchmark, "--json"), cwd=configuration.RELEASE.folder, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchmarkError(f"exit status {done.returncode}; its output:\n{done.stdout}{done.stderr}")
    results = [_parse(line) for line in done.stdout.splitlines()]
    if not results:
        raise BenchmarkError("gave no result")
    return results


def _parse(line):
    try:
        result = json.loads(line)
    except json.JSONDecodeError as error:
        raise BenchmarkError(f"not JSON: {line!r}: {error}") from None
    if not isinstance(result, dict) or not KEYS <= result.keys():
        raise BenchmarkError(f"lacks one of {sorted(KEYS)}: {line!r}")
    return result
