"""Tests of the choice and order of suites, and of the builds that they need."""

import re
import time
import types

import pytest

from testing import case
from testing import suites
from testing.configuration import BuildError

DEFAULT = ["unit", "programs", "kernel", "vm", "conformance"]
MORE = ["kernel-more", "conformance-more", "runner", "vm-systemd", "vm-more", "vm-asan", "programs-more", "unit-asan",
        "fuzz", "unit-tsan", "lint", "bench-instructions"]


def names(chosen):
    return [suite.name for suite in chosen]


def named(name):
    return names(suites.named(name))


def test_without_names_the_default_suites_run():
    assert names(suites.choose([])) == DEFAULT


def test_all_runs_the_default_suites_first():
    assert names(suites.choose([], everything=True)) == DEFAULT + MORE


def test_named_suites_run_once_in_the_order_of_the_list():
    assert names(suites.choose(["lint", "vm-tsan", "vm", "lint"])) == ["vm", "vm-systemd", "vm-more", "vm-asan", "lint", "vm-tsan"]


def test_a_name_means_itself_and_what_it_begins():
    assert named("lint") == ["lint"]
    assert named("programs") == ["programs", "programs-more"]
    assert named("package")[:2] == ["package", "package-root"]
    assert named("bench") == ["bench-instructions", "bench"]


def test_suites_by_name_only_need_their_whole_name():
    assert named("unit") == ["unit", "unit-asan", "unit-tsan"]
    assert named("unit-arm64") == ["unit-arm64"]
    assert named("conformance") == ["conformance", "conformance-more"]


def test_unknown_name_selects_no_suite():
    assert named("unit-") == []


def programs_of(name, monkeypatch):
    """Returns the names of the programs that a suite runs. The registered programs, which are stand-ins, are also in
    other suites, such as more and threads."""
    [suite] = [suite for suite in suites.SUITES if suite.name == name]
    registered = [types.SimpleNamespace(name=" ".join(tags) or "plain", suites=["base", *tags])
                  for tags in ([], ["more"], ["threads"], ["more", "threads"], ["asan"], ["more", "tsan"])]
    monkeypatch.setattr(suite.build, "registered", lambda _suite: registered)
    return [program.name for program in suite.programs()]


@pytest.mark.parametrize("base", ["programs", "kernel", "vm", "conformance"])
def test_tests_in_the_suite_more_run_in_its_suite_alone(base, monkeypatch):
    assert programs_of(base, monkeypatch) == ["plain", "threads", "asan"]
    assert programs_of(f"{base}-more", monkeypatch) == ["more", "more threads", "more tsan"]


def test_sanitizers_run_the_tests_in_the_suite_more_too(monkeypatch):
    assert len(programs_of("programs-asan", monkeypatch)) == 6
    assert programs_of("vm-tsan", monkeypatch) == ["more tsan"]


def test_each_benchmark_is_in_one_suite(monkeypatch):
    [suite] = [suite for suite in suites.SUITES if suite.name == "bench"]
    registered = [types.SimpleNamespace(name=name, suites=tags) for name, tags in
                  (("time", []), ("count", ["icount"]), ("slow", ["long"]), ("slow count", ["icount", "long"]))]
    monkeypatch.setattr(suite.build, "registered", lambda **_: registered)
    programs = {suite.name: [benchmark.name for benchmark in suite.programs()]
                for suite in suites.SUITES if suite.name.startswith("bench")}
    assert programs == {"bench-instructions": ["count"], "bench": ["time"]}


@pytest.mark.parametrize("name", ["unit-tsan", "programs-tsan"])
def test_thread_sanitizer_runs_tests_with_threads_alone(name, monkeypatch):
    assert programs_of(name, monkeypatch) == ["threads", "more threads"]


def test_longer_tests_under_systemd_are_a_suite(monkeypatch):
    [suite] = [suite for suite in suites.SUITES if suite.name == "vm-systemd"]
    registered = [types.SimpleNamespace(name=" ".join(tags), suites=["vm", *tags])
                  for tags in (["more"], ["systemd"], ["more", "systemd"])]
    monkeypatch.setattr(suite.build, "registered", lambda _suite: registered)
    assert {suite.name: [program.name for program in suite.programs()] for suite in suites.SUITES
            if suite.name in ("vm", "vm-systemd", "vm-more")} == {"vm": ["systemd"], "vm-systemd": ["more systemd"], "vm-more": ["more"]}


@pytest.mark.parametrize("wanted", [None, "Writer*"])
def test_unit_asan_leaves_repetitive_cases_out_unless_cases_are_named(wanted, monkeypatch):
    [suite] = [suite for suite in suites.SUITES if suite.name == "unit-asan"]
    filters = []
    monkeypatch.setattr(suites.meson, "run_here", lambda *arguments: filters.append(arguments[-1]))
    monkeypatch.setenv("GTEST_FILTER", wanted or "")
    suite.run("unit-asan", [])
    if wanted:
        assert filters == [wanted]
        return
    sources = "".join(path.read_text() for path in (suites.REPETITIVE.parent).rglob("*.cc"))
    names = filters[0].removeprefix("-").split(":")
    assert len(names) > 20
    for name in names:
        assert re.search(rf"\bTEST(_F)?\({name.replace('.', ', ')}\)", sources), \
            f"repetitive.txt names {name}, which no source defines"


def lanes_of(chosen):
    return [[names(lane) for lane in group] for group in suites.in_lanes(chosen)]


def test_suites_of_different_lanes_run_at_the_same_time():
    assert lanes_of(suites.choose([])) == [[["unit", "programs", "conformance"], ["kernel"], ["vm"]]]
    assert lanes_of(suites.choose([], everything=True)) == [
        [["unit", "programs", "conformance", *MORE[6:]], ["kernel", "kernel-more", "conformance-more"],
         ["vm", "vm-more", "vm-asan"], ["runner", "vm-systemd"]]]
    assert lanes_of(suites.choose(["unit-arm64", "lint"])) == [[["lint"]], [["unit-arm64"]]]


class Configuration:
    """A stand-in for a build folder that records what it compiles."""

    def __init__(self, name, error=None):
        self.folder = types.SimpleNamespace(name=name)
        self.wall = self.cpu = 0.0
        self.units = []
        self.compiled = []
        self._error = error

    def build_for(self, programs):
        self.compiled.append(programs)
        if self._error:
            raise BuildError(self._error)


def suite(name, build, when=suites.DEFAULT, does=None):
    return suites.Suite(name, "", build, lambda: [f"{name}'s"], does or (lambda prefix, _: [case.passed(prefix)]), when)


@pytest.fixture(autouse=True)
def fixture_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def run(chosen):
    started = suites.Run(chosen)
    return [result for each in chosen for result in started.run(each)]


def test_each_stage_is_compiled_by_one_call_before_its_first_suite():
    gcc, other = Configuration("gcc"), Configuration("other")
    seen = []
    chosen = [suite("a", gcc), suite("b", gcc, does=lambda *_: seen.append(list(gcc.compiled)) or [case.passed("b")]),
              suite("c", gcc, suites.ALL), suite("d", other, suites.ALL), suite("e", gcc, suites.ALL)]
    run(chosen)
    assert seen == [[["a's", "b's"]]]
    assert gcc.compiled == [["a's", "b's"], ["c's", "e's"]]
    assert other.compiled == [["d's"]]


def test_a_build_that_fails_fails_each_suite_and_shows_its_message_once():
    gcc, other = Configuration("gcc", "a.cc:1: wrong"), Configuration("other")
    cases = run([suite("a", gcc), suite("b", gcc), suite("c", other)])
    assert cases == [case.failed("a/build", "a.cc:1: wrong"), case.failed("b/build", "see a/build"), case.passed("c")]
    assert len(gcc.compiled) == 1


def test_a_suite_without_tests_is_failed():
    [result] = run([suite("a", Configuration("gcc"), does=lambda *_: [])])
    assert result == case.failed("a", "has no tests")


def test_an_error_of_the_runner_keeps_the_results_of_other_suites():
    gcc = Configuration("gcc")
    first, second = run([suite("a", gcc, does=lambda *_: 1 // 0), suite("b", gcc)])
    assert (first.name, first.outcome) == ("a/runner", case.FAILED)
    assert "ZeroDivisionError" in first.detail
    assert second == case.passed("b")


def test_times_of_builds_and_suites_are_measured():
    gcc = Configuration("gcc")
    gcc.wall, gcc.cpu = 2.5, 4.5
    started = suites.Run([suite("a", gcc, does=lambda prefix, _: time.sleep(0.1) or [case.passed(prefix)] * 3)])
    started.run(started._builds._chosen[0])
    taken = started.finish()
    assert [(usage.name, usage.wall, usage.cpu) for usage in taken.builds] == [("gcc", 2.5, 4.5)]
    [usage] = taken.suites
    assert (usage.name, usage.cases) == ("a", 3)
    assert usage.wall >= 0.1
