#!/usr/bin/python3
"""Tests the Debian packages for arm64 that `./run package --arch arm64` builds: lintian finds nothing, all compiled
files are for arm64, and programs from the packages run under qemu-user."""

import os
import pathlib
import re
import tempfile
import unittest
import zipfile

import roots
from support import script

VECTORS = pathlib.Path(os.environ.get("SHARED_DIR", roots.REPOSITORY.parent / "shared")) / "vectors"


class CrossTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # The folder is below the checkout, which has the same path inside the root in which the programs run.
        below = roots.REPOSITORY / "build-package"
        below.mkdir(exist_ok=True)
        folder = tempfile.TemporaryDirectory(prefix="arm64-", dir=below)
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.packages = roots.build_packages(cls.folder / "packages", "--arch", "arm64", environment=roots.QUICK)
        cls.files = cls.folder / "files"
        for package in cls.packages.values():
            roots.call("dpkg-deb", "--extract", package, cls.files)

    def run_program(self, name, *arguments):
        """Returns what a program of the packages prints, with the libraries of the packages."""
        return roots.call(roots.REPOSITORY / "scripts/cross/in_root.sh", "arm64", "qemu-aarch64", "-E",
                          f"LD_LIBRARY_PATH={self.files / 'usr/lib/aarch64-linux-gnu'}", self.files / "usr/bin" / name,
                          *arguments, cwd=roots.REPOSITORY)

    def test_builds_the_expected_packages_for_arm64(self):
        self.assertEqual({name for name in self.packages if not name.endswith("-dbgsym")},
                         {"libeventheader0", "libeventheader-dev", "libnettrace0", "libnettrace-dev", "nettrace-tools", "nettraced"})
        for package in self.packages.values():
            self.assertEqual(roots.call("dpkg-deb", "--field", package, "Architecture").strip(), "arm64", package.name)

    def test_all_that_is_compiled_is_for_arm64(self):
        compiled = {}
        for file in self.files.rglob("*"):
            if not file.is_symlink() and file.is_file() and file.read_bytes().startswith((b"\x7fELF", b"!<arch>\n")):
                listed = roots.call("readelf", "--file-header", "--wide", file)
                compiled[file.name] = set(re.findall(r"Machine: +(.+)", listed))
        self.assertLessEqual({"eventheader", "nettrace", "nettraced", "libeventheader.a", "libnettrace.a"}, compiled.keys())
        self.assertTrue(any(name.startswith("libeventheader-c.so.") for name in compiled))
        self.assertTrue(any(name.startswith("libnettrace.so.") for name in compiled))
        self.assertEqual({name: machines for name, machines in compiled.items() if machines != {"AArch64"}}, {})

    def test_the_daemon_runs_and_is_of_this_version(self):
        version = roots.call("dpkg-deb", "--field", self.packages["nettraced"], "Version").strip()
        self.assertIn(version, self.run_program("nettraced", "--version"))

    def test_programs_have_printed_their_completions(self):
        completions = self.files / "usr/share/bash-completion/completions"
        for name in ("eventheader", "nettrace", "nettraced"):
            self.assertEqual((completions / name).read_text(), self.run_program(name, "completion", "bash"))

    def test_verify(self):
        archives = sorted(VECTORS.glob("*.nettrace.zip"))
        if not archives:
            self.skipTest(f"there are no files *.nettrace.zip in {VECTORS}")
        for archive in archives:
            zipfile.ZipFile(archive).extractall(self.folder)
            self.assertRegex(self.run_program("nettrace", "verify", self.folder / archive.stem), " [1-9][0-9]* events, 0 errors")


def main():
    roots.need_root()
    script.run_cases()


if __name__ == "__main__":
    script.main(main)
