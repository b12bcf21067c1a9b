"""Which suites a name on the command line means."""

from testing import suites


def named(name):
    return [suite.name for suite in suites.named(name)]


def test_a_name_means_itself_and_what_it_begins():
    assert named("lint") == ["lint"]
    assert named("programs") == ["programs-gcc", "programs-clang", "programs-asan", "programs-tsan"]
    assert named("package")[:2] == ["package", "package-root"]


def test_what_runs_by_name_only_needs_its_own():
    assert named("unit") == ["unit-gcc", "unit-clang", "unit-asan", "unit-tsan"]
    assert named("unit-arm64") == ["unit-arm64"]


def test_there_is_no_such_suite():
    assert named("unit-") == []
