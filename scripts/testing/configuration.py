"""The build folders of the tests. There is one folder for each way to compile."""

import dataclasses
import json
import os
import pathlib
import shutil
import sys
import time

from testing import processes
from testing import times

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
MESON = "/usr/bin/meson"  # Debian's, not one from pip earlier in PATH.

# A unity build compiles several sources as one. They share headers and inline functions, which take most of the compile
# time.
UNITY = ("-Dunity=on", "-Dunity_size=16")

# All checkouts share one compiler cache: its keys contain neither the folder that debug information names nor the paths
# of the sources that a unity file includes.
CACHE = {"CCACHE_NOHASHDIR": "1", "CCACHE_BASEDIR": str(REPOSITORY)}


class BuildError(Exception):
    """A build that failed; the message is the compiler's."""


@dataclasses.dataclass
class Program:
    """A test or benchmark that is registered with Meson."""
    name: str
    command: list
    suites: list
    seconds: int  # Time limit in seconds; 0: none.
    is_gtest: bool
    depends: list


class Configuration:
    """A build folder and its options for Meson. `inside` is a command that runs the commands of the build in another
    environment, such as a Debian root for another architecture. Without it, they run on this machine."""

    def __init__(self, name, compiler, *options, inside=()):
        self.folder = REPOSITORY / f"build-{name}"
        self.inside = list(inside)
        self.units = []  # Translation units that this run compiled.
        self.wall = self.cpu = 0.0  # Time of this run for configuring and compiling, in s.
        self._configured = False
        self._compiler = compiler
        # Debug information has line numbers only: the rest would add a quarter to the compile time. A unity file
        # includes sources by absolute paths. Without the prefix map, __FILE__ would contain these paths, and object
        # files of tests would differ between checkouts, so that ccache could not share them.
        arguments = ["-g1", f"-fmacro-prefix-map={self.folder}/../="]
        self._options = ["-Dtests=true", "-Dwerror=true", f"-Dc_args={arguments}", f"-Dcpp_args={arguments}", *UNITY,
                         *options]

    def registered(self, suite=None, kind="tests"):
        """Returns the programs of a suite, or of all suites; `kind` is "tests" or "benchmarks"."""
        self.configure()
        found = [Program(name=entry["name"], command=_with_environment(entry["env"], entry["cmd"]),
                         suites=[name.partition(":")[2] for name in entry["suite"]],
                         seconds=max(entry["timeout"], 0), is_gtest=entry["protocol"] == "gtest",
                         depends=entry["depends"])
                 for entry in self._introspect(kind)]
        return [program for program in found if suite is None or suite in program.suites]

    def configure(self):
        """Brings the folder up to date with the build files, once in a run. Compiles nothing."""
        if self._configured:
            return
        stamp = self.folder / ".run-options"
        wanted = json.dumps([self._compiler, self._options])
        if not stamp.exists() or stamp.read_text() != wanted:
            shutil.rmtree(self.folder, ignore_errors=True)
            self._call([MESON, "setup", self.folder, *self._options])
            stamp.write_text(wanted)
        else:
            self._call(["ninja", "-C", self.folder, "build.ninja"])
        self._configured = True

    def build_for(self, programs):
        """Compiles these programs and what they need, in one call of ninja."""
        self.configure()
        files = {target["id"]: target["filename"] for target in self._introspect("targets")}
        wanted = {file for test in programs for target in test.depends for file in files[target]}
        if wanted:
            self._ninja(sorted(os.path.relpath(file, self.folder) for file in wanted))

    def build_files(self, ending):
        """Makes all generated files with this ending, such as headers."""
        made = [file for target in self._introspect("targets") if target["type"] == "custom"
                for file in target["filename"] if file.endswith(ending)]
        self._ninja([os.path.relpath(file, self.folder) for file in made])

    def _introspect(self, what):
        return json.loads((self.folder / f"meson-info/intro-{what}.json").read_text())

    def _ninja(self, targets):
        # Prints to stderr, because results may be on stdout.
        print(f"   building {self.folder.name}", file=sys.stderr)
        before = times.read_ninja_log(self.folder)
        try:
            self._call(["ninja", "--quiet", "-k", "0", "-C", self.folder, *targets])
        finally:
            self.units += times.units_of(times.read_ninja_log(self.folder) - before, self.folder.name)

    def _call(self, command):
        cc, cxx = self._compiler
        began = time.monotonic()
        done = processes.run(
            [*self.inside, *command], cwd=REPOSITORY, env={**os.environ, **CACHE, "CC": cc, "CXX": cxx})
        self.wall += time.monotonic() - began
        self.cpu += done.cpu
        if done.returncode != 0:
            raise BuildError(done.stdout)


def _with_environment(variables, command):
    return ["env", *(f"{name}={value}" for name, value in variables.items()), *command] if variables else command


def _cross(architecture):
    """Returns the configuration for another architecture, by its cross file, in a Debian root that has its libraries
    and qemu-user."""
    folder = REPOSITORY / "scripts/cross"
    return Configuration(architecture, GCC_COMPILER, "-Doptimization=1", "--cross-file", str(folder / f"{architecture}.ini"),
                         inside=[folder / "in_root.sh", architecture])


GCC_COMPILER = ("ccache gcc", "ccache g++")
CLANG_COMPILER = ("ccache clang-14", "ccache clang++-14")

# Optimization takes a third of the compile time at level 1 and half of it at level 2. Level 1 is enough for the programs
# that also run in the VM, where instructions are emulated. b_lundef=false permits undefined symbols in
# libraries: with clang, only the program has the symbols of the sanitizers.
GCC = Configuration("gcc", GCC_COMPILER, "-Doptimization=1")
ASAN = Configuration("asan", CLANG_COMPILER, "-Dfuzzers=true", "-Doptimization=0", "-Db_sanitize=address,undefined",
                     "-Db_lundef=false")
TSAN = Configuration("tsan", CLANG_COMPILER, "-Doptimization=0", "-Db_sanitize=thread", "-Db_lundef=false")
# For measurements: optimized as in Debian's packages.
BENCH = Configuration("bench", GCC_COMPILER, "-Doptimization=2")
# This folder gives the commands that compile each source by itself. Only generated headers are made in it.
LINT = Configuration("lint", CLANG_COMPILER, "-Dfuzzers=true", "-Dunity=off")
CROSS = {architecture: _cross(architecture) for architecture in ("arm64", "s390x", "i386")}
