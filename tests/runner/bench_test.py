"""Tests which benchmarks ./run bench NAME selects."""

import types

import pytest

from testing import bench

BENCHMARKS = ["provider", "nettrace cost", "nettrace memory", "nettracer", "a", "a b"]
LONG = ["nettrace long", "long"]


@pytest.mark.parametrize("name, meant", [
    (None, BENCHMARKS),
    # A whole name selects only that benchmark, first words select all that begin with them, and a part of a word
    # selects none.
    ("provider", ["provider"]),
    ("nettrace memory", ["nettrace memory"]),
    ("a", ["a"]),
    ("nettrace", ["nettrace cost", "nettrace memory"]),
    ("nettrace c", []),
    ("prov", []),
    # Benchmarks that take long run only when they are named.
    ("nettrace long", ["nettrace long"]),
    ("long", ["long"]),
])
def test_name(name, meant):
    benchmarks = [types.SimpleNamespace(name=name, suites=["long"] if name in LONG else [])
                  for name in BENCHMARKS + LONG]
    assert [benchmark.name for benchmark in bench.named(name, benchmarks)] == meant
