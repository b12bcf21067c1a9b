#!/usr/bin/python3
"""Both libraries as they are installed: examples are compiled against nothing else, found by pkg-config,
and run."""

import glob
import os
import pathlib
import shlex
import subprocess
import tempfile
import unittest

from support import script

ARGS = script.options(__doc__, "build", "source", "meson", "cc", "cxx")

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
C = ["-std=c11", *WARNINGS]
CXX17 = ["-std=c++17", *WARNINGS]
CXX = ["-std=c++20", *WARNINGS]


class InstalledTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="installed-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        root = cls.folder / "root"
        call(*shlex.split(str(ARGS.meson)), "install", "-C", ARGS.build, "--no-rebuild", "--quiet", "--tags", "devel", "--destdir",
             root)
        [package_files] = glob.glob(f"{root}/**/pkgconfig", recursive=True)
        [cls.headers] = root.glob("**/include")
        cls.pkg_config = {**os.environ, "PKG_CONFIG_SYSROOT_DIR": str(root), "PKG_CONFIG_PATH": package_files}

    def package(self, *words):
        return call("pkg-config", *words, environment=self.pkg_config).split()

    def build(self, compiler, options, package, *sources):
        """Returns the program."""
        program = self.folder / "program"
        call(*shlex.split(str(compiler)), *options, "-o", program, *sources, *self.package("--cflags", "--libs", package))
        return program

    def example(self, name):
        return ARGS.source / "examples" / name

    def test_every_public_header_is_there(self):
        public = ARGS.source / "include"
        self.assertEqual(headers_in(self.headers), headers_in(public))

    def test_headers_need_nothing_that_is_not_installed(self):
        for package, name in (("eventheader", "eventheader"), ("nettrace", "nettrace"), ("nettrace-writer", "nettrace")):
            source = self.folder / "headers.cc"
            source.write_text("".join(f"#include <{header}>\n" for header in headers_in(self.headers)
                                      if header.startswith(name + "/")))
            call(*shlex.split(str(ARGS.cxx)), *CXX, "-fsyntax-only", source, *self.package("--cflags", package))

    def test_service_in_c(self):
        program = self.build(ARGS.cc, C, "eventheader", self.example("c_service.c"))
        self.assertIn(" events written, 0 failed; ", call(program))

    def test_service_in_cxx(self):
        program = self.build(ARGS.cxx, CXX, "eventheader", self.example("logger_bridge.cc"))
        self.assertIn(" 0 failed; ", call(program))

    def test_service_in_cxx17(self):
        program = self.build(ARGS.cxx, CXX17, "eventheader", self.example("cxx17_service.cc"))
        self.assertIn(" events written, 0 failed; ", call(program))

    def test_nettrace_writer_and_reader(self):
        file = self.folder / "shop.nettrace"
        call(self.build(ARGS.cxx, CXX, "nettrace", self.example("nettrace/write.cc")), file)
        counts = call(self.build(ARGS.cxx, CXX, "nettrace-writer", self.example("nettrace/read.cc")), file)
        self.assertEqual(counts.split(), ["10", "Example.Shop", "Request", "0", "lost"])


def headers_in(folder):
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*.h"))


def call(*command, environment=None):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=environment, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{shlex.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


if __name__ == "__main__":
    unittest.main()
