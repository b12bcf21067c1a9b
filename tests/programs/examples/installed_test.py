#!/usr/bin/python3
"""Tests both libraries as they are installed. Examples are compiled against only the installed files, found by
pkg-config or CMake, and run. Also tests the libraries as a Meson subproject."""

import functools
import glob
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

from support import documents
from support import script

ARGS = script.options(__doc__, "build", "source", "meson", "cc", "cxx")

PROJECTS = pathlib.Path(__file__).with_name("projects")
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
C = ["-std=c11", *WARNINGS]
CXX17 = ["-std=c++17", *WARNINGS]
CXX = ["-std=c++20", *WARNINGS]

# Headers for C++17 and older; all other headers need C++20.
CXX17_HEADERS = {f"eventheader/{name}.h" for name in (
    "activity", "formatted", "macros", "macros_c", "provider", "tracepoint_name", "wire")}
# Headers that include the headers of a logger.
BRIDGES = {f"eventheader/bridges/{logger}.h" for logger in ("absl_log", "boost_log", "glog", "opentelemetry", "spdlog")}
C_HEADERS = {f"eventheader/{name}.h" for name in ("eventheader_c", "macros_c")}


class InstalledTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="installed-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        root = cls.folder / "root"
        call(*shlex.split(str(ARGS.meson)), "install", "-C", ARGS.build, "--no-rebuild", "--quiet", "--tags", "devel,runtime",
             "--destdir", root)
        [package_files] = glob.glob(f"{root}/**/pkgconfig", recursive=True)
        cls.libraries = pathlib.Path(package_files).parent
        [cls.headers] = root.glob("**/include")
        cls.pkg_config = {**os.environ, "PKG_CONFIG_SYSROOT_DIR": str(root), "PKG_CONFIG_PATH": package_files}

    @classmethod
    @functools.cache  # pkg-config takes half a second to read the hundreds of files of abseil.
    def package(cls, *words):
        return call("pkg-config", *words, environment=cls.pkg_config).split()

    def build(self, compiler, options, package, *sources):
        """Compiles the sources; returns the program."""
        program = self.folder / "program"
        call(*shlex.split(str(compiler)), *options, "-o", program, *sources, *self.package("--cflags", "--libs", package))
        return program

    def example(self, name):
        return ARGS.source / "examples" / name

    def run_with_libraries(self, *command):
        return call(*command, environment={**os.environ, "LD_LIBRARY_PATH": str(self.libraries)})

    def check_services(self, folder):
        """Runs the programs that the CMake project and the Meson project build in `folder`."""
        self.assertIn(" events written, 0 failed; ", self.run_with_libraries(folder / "service_c"))
        self.assertIn(" events written, 0 failed; ", self.run_with_libraries(folder / "service_cxx17"))
        self.assertIn(" 0 failed; ", self.run_with_libraries(folder / "service_cxx"))
        self.run_with_libraries(folder / "c_api")

    def errors(self, compiler, *options):
        """Returns the error lines of a compiler."""
        done = subprocess.run([*shlex.split(str(compiler)), *options], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False)
        return re.findall(r"^.*error:.*$", done.stderr, flags=re.MULTILINE)

    def test_every_public_header_is_installed(self):
        public = ARGS.source / "include"
        self.assertEqual(headers_in(self.headers), headers_in(public))

    def test_headers_need_nothing_that_is_not_installed(self):
        for package, name in (("eventheader", "eventheader"), ("nettrace", "nettrace"), ("nettrace-writer", "nettrace")):
            source = self.folder / "headers.cc"
            source.write_text("".join(f"#include <{header}>\n" for header in headers_in(self.headers)
                                      if header.startswith(name + "/") and header not in BRIDGES))
            call(*shlex.split(str(ARGS.cxx)), *CXX, "-fsyntax-only", source, *self.package("--cflags", package))

    def test_bridges_need_only_the_headers_of_their_logger(self):
        for bridge in BRIDGES & set(headers_in(self.headers)):
            with self.subTest(bridge):
                source = self.folder / "bridge.cc"
                source.write_text(f"#include <{bridge}>\n")
                found = self.errors(ARGS.cxx, *CXX, "-fsyntax-only", source, *self.package("--cflags", "eventheader"))
                self.assertEqual([error for error in found if f"{bridge} needs" not in error], [])

    def test_service_in_c(self):
        program = self.build(ARGS.cc, C, "eventheader", self.example("c_service.c"))
        self.assertIn(" events written, 0 failed; ", call(program))

    def test_service_in_cxx(self):
        program = self.build(ARGS.cxx, CXX, "eventheader", self.example("logger_bridge.cc"))
        self.assertIn(" 0 failed; ", call(program))

    def test_service_in_cxx17(self):
        program = self.build(ARGS.cxx, CXX17, "eventheader", self.example("cxx17_service.cc"))
        self.assertIn(" events written, 0 failed; ", call(program))

    def test_c_api_by_the_shared_library(self):
        program = self.build(ARGS.cc, C, "eventheader-c", PROJECTS / "c_api.c")
        self.run_with_libraries(program)
        self.assertIn("[libeventheader-c.so.0]", call("readelf", "--dynamic", program))

    def test_nettrace_writer_and_reader(self):
        file = self.folder / "shop.nettrace"
        program = self.build(ARGS.cxx, CXX, "nettrace", self.example("nettrace/write.cc"))
        self.assertIn("[libnettrace.so.0]", call("readelf", "--dynamic", program))
        self.run_with_libraries(program, file)
        counts = self.run_with_libraries(self.build(ARGS.cxx, CXX, "nettrace-writer", self.example("nettrace/read.cc")), file)
        self.assertEqual(counts.split(), ["10", "Example.Shop", "Request", "0", "lost"])

    def test_commands_of_the_guides(self):
        folder = self.folder / "guides"
        folder.mkdir()
        for name, example in (("service.cc", "service.cc"), ("service.c", "c_service.c"), ("convert.cc", "nettrace/read.cc"),
                              ("write.cc", "nettrace/write.cc")):
            (folder / name).symlink_to(self.example(example))
        commands = [block.text for block in documents.taken_by(__file__, ARGS.source)]
        self.assertEqual(len(commands), 2)
        for text in commands:
            call("bash", "-e", "-o", "pipefail", "-c", text, environment=self.pkg_config, cwd=folder)

    def test_older_language_is_one_error(self):
        for header in headers_in(self.headers):
            if "/internal/" in header or header == "nettrace/need_cxx20.h":
                continue
            for standard in ("c++14", "c++17"):
                with self.subTest(header, standard=standard):
                    source = self.folder / "one.cc"
                    source.write_text(f"#include <{header}>\n")
                    found = self.errors(ARGS.cxx, f"-std={standard}", "-fsyntax-only", source, *self.package("--cflags", "nettrace"))
                    in_cxx17 = header in CXX17_HEADERS
                    if in_cxx17 and standard == "c++17" or header == "eventheader/eventheader_c.h":
                        self.assertEqual(found, [])
                    else:
                        [error] = found
                        self.assertIn("needs C++17" if in_cxx17 else "C++20", error)

    def test_headers_for_cxx_in_c(self):
        for header in headers_in(self.headers):
            if header.startswith("eventheader/") and "/internal/" not in header:
                with self.subTest(header):
                    source = self.folder / "one.c"
                    source.write_text(f"#include <{header}>\n")
                    found = self.errors(ARGS.cc, "-std=c11", "-fsyntax-only", source, *self.package("--cflags", "eventheader"))
                    self.assertEqual(len(found), 0 if header in C_HEADERS else 1, found)

    def test_shared_library_exports_the_declared_names(self):
        def defined(file, *options, kinds="TVWD"):
            """Returns the names of functions, virtual tables and types that a file defines. Kinds V and W are weak
            symbols: a program that uses one has its own copy."""
            listed = call("nm", "--demangle", "--defined-only", *options, file).splitlines()
            return {line[19:].partition("@@")[0] for line in listed if line[17:18] in list(kinds)}

        exported = defined(self.libraries / "libnettrace.so.0", "--dynamic")
        own = r"((vtable|typeinfo|typeinfo name) for )?nettrace::(?!internal::|\w+::Impl)"
        public = {name for name in defined(self.libraries / "libnettrace.a") if re.match(own, name)}
        needed = {name for name in defined(self.libraries / "libnettrace.a", kinds="T") if re.match(own, name)}
        # Virtual tables are selected by their names: the letter that nm shows for them depends on the compiler. Other
        # data is not compared, because it depends on the compiler which constants of headers have a symbol.
        needed |= {name for name in public if name.startswith("vtable")}
        self.assertIn("nettrace::Reader::Next()", needed)
        self.assertIn("vtable for nettrace::FdSink", needed)
        self.assertEqual(needed - exported, set())
        self.assertEqual(exported - public, set())
        c_api = defined(self.libraries / "libeventheader-c.so.0", "--dynamic")
        self.assertIn("eh_provider_create", c_api)
        self.assertEqual({name for name in c_api if not name.startswith("eh_")}, set())

    def cmake_compilers(self):
        return [f"-DCMAKE_{language}_COMPILER={';'.join(shlex.split(str(compiler)))}"
                for language, compiler in (("C", ARGS.cc), ("CXX", ARGS.cxx))]

    def test_cmake_fetch_content(self):
        build = self.folder / "fetch-content-build"
        call("cmake", "-S", PROJECTS / "fetch_content", "-B", build, f"-DEXAMPLES={ARGS.source}/examples",
             f"-DFETCHCONTENT_SOURCE_DIR_NETTRACED={ARGS.source}", *self.cmake_compilers())
        call("cmake", "--build", build, "--parallel", "2")
        for name in ("service", "service_c"):
            self.assertIn(" events written, 0 failed", self.run_with_libraries(build / name))

    def test_cmake(self):
        build = self.folder / "cmake-build"
        version = self.package("--modversion", "eventheader")[0]
        call("cmake", "-S", PROJECTS / "cmake", "-B", build, f"-DEXAMPLES={ARGS.source}/examples", f"-DVERSION={version}",
             f"-DCMAKE_PREFIX_PATH={self.headers.parent}", *self.cmake_compilers())
        call("cmake", "--build", build, "--parallel", "2")
        self.check_services(build)
        file = build / "shop.nettrace"
        self.run_with_libraries(build / "write", file)
        self.assertEqual(self.run_with_libraries(build / "read", file).split(), ["10", "Example.Shop", "Request", "0", "lost"])

    def test_cmake_refuses_another_version(self):
        source = self.folder / "cmake-version"
        source.mkdir()
        (source / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.16)\nproject(Version NONE)\nfind_package(eventheader 99 QUIET)\n"
            "if(eventheader_FOUND OR NOT eventheader_CONSIDERED_VERSIONS)\n  message(FATAL_ERROR found)\nendif()\n")
        call("cmake", "-S", source, "-B", self.folder / "cmake-version-build",
             f"-Deventheader_DIR={self.libraries / 'cmake/eventheader'}")

    def test_meson_subproject(self):
        source, build = self.folder / "meson", self.folder / "meson-build"
        shutil.copytree(PROJECTS / "meson", source)
        (source / "subprojects/nettraced").symlink_to(ARGS.source)
        (source / "c_api.c").symlink_to(PROJECTS / "c_api.c")
        for name in ("service.cc", "c_service.c", "cxx17_service.cc", "logger_bridge.cc", "nettrace/read.cc", "nettrace/write.cc"):
            (source / os.path.basename(name)).symlink_to(self.example(name))
        meson = shlex.split(str(ARGS.meson))
        # Builds the libraries from their source, even if this machine has them installed.
        call(*meson, "setup", build, source, "-Doptimization=0", "-Ddebug=false", "--force-fallback-for=eventheader,nettrace",
             environment={**os.environ, "CC": str(ARGS.cc), "CXX": str(ARGS.cxx), "CCACHE_NOHASHDIR": "1"})
        # The programs that use nettrace are compiled but not linked, because the whole library would take a minute.
        call("ninja", "-C", build, "service", "service_c", "service_cxx17", "service_cxx", "c_api", "write.p/write.cc.o", "read.p/read.cc.o")
        self.check_services(build)


def headers_in(folder):
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*.h"))


def call(*command, environment=None, cwd=None):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=environment, cwd=cwd, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{shlex.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


if __name__ == "__main__":
    script.run_cases()
