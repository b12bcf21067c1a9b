"""Which benchmarks ./run bench NAME means."""

import types

import pytest

from testing import bench

BENCHMARKS = ["provider", "nettrace cost", "nettrace memory", "nettracer", "a", "a b"]
LONG = ["nettrace long", "long"]


@pytest.mark.parametrize("name, meant", [
    (None, BENCHMARKS),
    # A whole name means that one alone, first words all that begin with them, a part of a word none.
    ("provider", ["provider"]),
    ("nettrace memory", ["nettrace memory"]),
    ("a", ["a"]),
    ("nettrace", ["nettrace cost", "nettrace memory"]),
    ("nettrace c", []),
    ("prov", []),
    # What takes long runs only when it is asked for.
    ("nettrace long", ["nettrace long"]),
    ("long", ["long"]),
])
def test_name(name, meant):
    benchmarks = [types.SimpleNamespace(name=name, suites=["long"] if name in LONG else [])
                  for name in BENCHMARKS + LONG]
    assert [benchmark.name for benchmark in bench.named(name, benchmarks)] == meant
