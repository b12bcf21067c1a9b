"""Which benchmarks ./run bench NAME means."""

import types
import unittest

from testing import bench

BENCHMARKS = [types.SimpleNamespace(name=name)
              for name in ("provider", "nettrace cost", "nettrace memory", "nettracer", "a", "a b")]


def named(name):
    return [benchmark.name for benchmark in bench.named(name, BENCHMARKS)]


class Named(unittest.TestCase):
    def test_no_name_means_all(self):
        self.assertEqual(len(named(None)), len(BENCHMARKS))

    def test_a_whole_name_means_that_one_alone(self):
        self.assertEqual(named("provider"), ["provider"])
        self.assertEqual(named("nettrace memory"), ["nettrace memory"])
        self.assertEqual(named("a"), ["a"])

    def test_first_words_mean_all_that_begin_with_them(self):
        self.assertEqual(named("nettrace"), ["nettrace cost", "nettrace memory"])

    def test_a_part_of_a_word_means_none(self):
        self.assertEqual(named("nettrace c"), [])
        self.assertEqual(named("prov"), [])
