"""Tests of the table that --times prints, and of the times of the last run that --list shows."""

import json

import pytest

from testing import suites
from testing import times


@pytest.fixture(name="stored")
def fixture_stored(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "nettraced/times.json"


def taken(*usages):
    result = times.Times()
    result.suites += [times.Usage(name, wall, 0.0, 1) for name, wall in usages]
    return result


def test_list_shows_minutes_of_the_last_run(stored):
    taken(("unit", 90.0), ("vm", 3.0)).store()
    taken(("unit", 24.0)).store()
    rows = {words[0]: words[1:] for words in map(str.split, suites.listing().splitlines())}
    assert rows["unit"][:2] == ["0.4", "min"]
    assert rows["vm"][:2] == ["0.1", "min"]
    assert rows["lint"][0] == "-"
    assert [path.name for path in stored.parent.iterdir()] == ["times.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"unit": 3}', '{"unit": {}}', '{"unit": {"wall": "x"}}', "\udcff"])
def test_ignores_an_invalid_file_of_times(stored, text):
    stored.parent.mkdir()
    stored.write_bytes(text.encode(errors="surrogateescape"))
    assert times.last_minutes("unit") == "-"
    taken(("unit", 60.0)).store()
    assert json.loads(stored.read_text())["unit"] == {"wall": 60.0, "cpu": 0.0, "cases": 1}


def test_times_that_cannot_be_stored_are_no_error(stored):
    stored.parent.write_text("no folder")
    taken(("unit", 60.0)).store()
    assert times.last_minutes("unit") == "-"


def test_the_table_has_builds_suites_and_the_slowest_tests():
    result = taken(("unit", 12.34))
    result.builds.append(times.Usage("build-gcc", 100.0, 195.5))
    result.tests += [times.Step(f"unit: test {number}", number) for number in range(30)]
    result.units.append(times.Step("build-gcc: a.cc.o", 45.25))
    lines = [line.split() for line in result.table().splitlines()]
    assert lines[:5] == [["wall", "s", "CPU", "s", "cases"], ["builds"], ["build-gcc", "100.0", "195.5"],
                         ["suites"], ["unit", "12.3", "0.0", "1"]]
    first = lines.index(["slowest", "tests"]) + 1
    assert lines[first] == ["29.0", "s", "unit:", "test", "29"]
    assert lines[first + times.SLOWEST] == ["slowest", "translation", "units"]
    assert lines[-1] == ["45.2", "s", "build-gcc:", "a.cc.o"]


def test_translation_units_are_limited_to_this_run(tmp_path):
    log = tmp_path / ".ninja_log"
    assert times.read_ninja_log(tmp_path) == set()
    log.write_text("# ninja log v5\n0\t9000\t111\told.o\taa\n0\t500\t111\ta.o\tbb\n")
    before = times.read_ninja_log(tmp_path)
    # This run compiles a.o again and a new unit with two outputs, and links a program, which is no unit.
    log.write_text(log.read_text() + "0\t700\t222\ta.o\tbb\n10\t1510\t222\tb.o\tcc\n10\t1510\t222\tb.dwo.o\tcc\n"
                   "1510\t1600\t222\tprogram\tdd\n")
    units = times.units_of(times.read_ninja_log(tmp_path) - before, "build-gcc")
    assert sorted(unit.seconds for unit in units) == [0.7, 1.5]
    assert "build-gcc: a.o" in [unit.name for unit in units]
