"""Tests which tests share a boot of the VM, and which options of the VM they ask for."""

import types

from testing import meson


def registered(name, *suites):
    return types.SimpleNamespace(name=name, suites=["vm", *suites])


def grouped(*tests):
    return [[test.name for test in group] for group in meson.groups(tests)]


def test_tests_with_equal_requirements_share_a_boot():
    assert grouped(registered("a"), registered("b", "cpus-1"), registered("c"), registered("d", "cpus-1")) == [["a", "c"], ["b", "d"]]


def test_requesting_the_default_needs_no_other_machine():
    assert grouped(registered("a"), registered("b", "cpus-4")) == [["a", "b"]]


def test_own_boot_is_alone():
    tests = [registered("a", "own-boot"), registered("b", "own-boot"), registered("c"), registered("d")]
    assert grouped(*tests) == [["a"], ["b"], ["c", "d"]]


def test_suites_become_options():
    assert meson.vm_options(registered("a", "cpus-2")) == ["--cpus", "2"]
    assert meson.vm_options(registered("a", "icount")) == ["--icount"]
    assert meson.vm_options(registered("a", "cpus-2", "systemd")) == ["--cpus", "2", "--systemd"]


def test_one_machine_meets_the_requirements_of_all_its_tests():
    assert meson.vm_options(registered("a", "cpus-2", "systemd"), registered("b", "cpus-4")) == ["--cpus", "4", "--systemd"]
