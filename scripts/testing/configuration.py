"""The build folders of the tests: one for each way to compile."""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
MESON = "/usr/bin/meson"  # Debian's, not one that pip put first.


class BuildError(Exception):
    """Something does not build; the message is the compiler's."""


@dataclasses.dataclass
class Program:
    """A test or benchmark that is registered with Meson."""
    name: str
    command: list
    suites: list
    seconds: int  # Its time limit; 0: none.
    is_gtest: bool
    depends: list


class Configuration:
    """`inside` is the command that runs others where there is what this way to compile needs; none: here."""

    def __init__(self, name, compiler, *options, inside=()):
        self.folder = REPOSITORY / f"build-{name}"
        self.inside = list(inside)
        self._compiler = compiler
        # Lines are enough of debug information: the rest of it would be a quarter of the time to compile.
        self._options = ["-Dtests=true", "-Dwerror=true", "-Dc_args=-g1", "-Dcpp_args=-g1", *options]

    def registered(self, suite=None, kind="tests"):
        """The programs of a suite, or all; `kind` is "tests" or "benchmarks"."""
        self.configure()
        found = [Program(name=entry["name"], command=_with_environment(entry["env"], entry["cmd"]),
                         suites=[name.partition(":")[2] for name in entry["suite"]],
                         seconds=max(entry["timeout"], 0), is_gtest=entry["protocol"] == "gtest",
                         depends=entry["depends"])
                 for entry in self._introspect(kind)]
        return [program for program in found if suite is None or suite in program.suites]

    def configure(self):
        """Brings the folder up to date with the build files, compiling nothing."""
        stamp = self.folder / ".run-options"
        wanted = json.dumps([self._compiler, self._options])
        if not stamp.exists() or stamp.read_text() != wanted:
            shutil.rmtree(self.folder, ignore_errors=True)
            self._call([MESON, "setup", self.folder, *self._options])
            stamp.write_text(wanted)
        else:
            self._call(["ninja", "-C", self.folder, "build.ninja"])

    def build_all(self):
        self._ninja([])

    def build_for(self, programs):
        """Compiles what these programs are and need."""
        files = {target["id"]: target["filename"] for target in self._introspect("targets")}
        wanted = {file for test in programs for target in test.depends for file in files[target]}
        if wanted:
            self._ninja(sorted(os.path.relpath(file, self.folder) for file in wanted))

    def _introspect(self, what):
        return json.loads((self.folder / f"meson-info/intro-{what}.json").read_text())

    def _ninja(self, targets):
        # Not to stdout, which may be for results.
        print(f"   building {self.folder.name}", file=sys.stderr)
        self._call(["ninja", "--quiet", "-k", "0", "-C", self.folder, *targets])

    def _call(self, command):
        cc, cxx = self._compiler
        done = subprocess.run(
            # One cache for all checkouts: the folder they are in, which debug information names, does not matter.
            [*self.inside, *command], cwd=REPOSITORY, env={**os.environ, "CC": cc, "CXX": cxx, "CCACHE_NOHASHDIR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        if done.returncode != 0:
            raise BuildError(done.stdout)


def _with_environment(variables, command):
    return ["env", *(f"{name}={value}" for name, value in variables.items()), *command] if variables else command


def _cross(architecture):
    """Another architecture's, by its cross file, in a Debian root that has its libraries and qemu-user."""
    folder = REPOSITORY / "scripts/cross"
    return Configuration(architecture, GCC_COMPILER, "-Doptimization=1", "--cross-file", str(folder / f"{architecture}.ini"),
                         inside=[folder / "in_root.sh", architecture])


GCC_COMPILER = ("ccache gcc", "ccache g++")
CLANG_COMPILER = ("ccache clang-14", "ccache clang++-14")

GCC = Configuration("gcc", GCC_COMPILER)
# GCC's programs are also those of the VM and of the conformance tests, hence optimized as usual; the
# others compile faster with less.
CLANG = Configuration("clang", CLANG_COMPILER, "-Doptimization=1")
# b_lundef: with clang the sanitizers' own symbols are in the program, not in the libraries it links.
ASAN = Configuration("asan", CLANG_COMPILER, "-Dfuzzers=true", "-Doptimization=1", "-Db_sanitize=address,undefined",
                     "-Db_lundef=false")
TSAN = Configuration("tsan", CLANG_COMPILER, "-Doptimization=1", "-Db_sanitize=thread", "-Db_lundef=false")
RELEASE = Configuration("bench", GCC_COMPILER, "--buildtype=release")
CROSS = {architecture: _cross(architecture) for architecture in ("arm64", "s390x", "i386")}
