#!/usr/bin/python3
"""Tests that Perfetto's trace processor shows the fxt and json output of `nettrace export` as `nettrace dump` shows the
file. The files are generated and random files, files of the .NET runtime, and recordings. The recordings are of the
examples and of a service with a field of every type, both through rings, and of kernel tracepoints, once with losses."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest.mock
import zipfile

from support import commands
from support import script
from support.kernel import workload

import perfetto
import recorded_test

FILES = ("types", "quirks", "labels", "activities", "activity-paths", "names", "lost", "account", "empty", "sections",
         "sections-0", "sections-1", "sections-2")
SEEDS = range(1, 3)
# The tracepoints of each service, and its options.
SERVICES = {
    "types": (["Vm_EveryType_L4K1"], []),
    "service": ([f"ExampleService_{suffix}" for suffix in ("L4K1", "L4K2", "L2K2")], ["--events", "6", "--threads", "2"]),
    "c-service": (["ExampleC_L4K1", "ExampleC_L3K1"], ["--rounds", "3"]),
    "cxx17-service": (["ExampleOrders_L4K1", "ExampleOrders_L2K1"], ["--orders", "3"]),
    "http-service": (["ExampleHttp_L4K1", "ExampleHttp_L4K2"], ["--requests", "40", "--threads", "4"]),
    "logger-bridge": ([f"ExampleLogger_L{level}K1" for level in range(1, 6)], ["--lines", "100"]),
    "plugin-host": (["ExamplePlugin_L4K1"], ["--rounds", "2"]),
    "spdlog-service": ([f"ExampleSpdlog_L{level}K1" for level in range(1, 6)], ["--lines", "60"]),
}
# Services that only some builds have.
OPTIONAL = {"spdlog-service"}
# Tracepoints with so many events that a small ring loses most of them.
MANY = {"raw_syscalls:sys_enter", "raw_syscalls:sys_exit", "kmem:kmalloc"}


def generate(args):
    subprocess.run([args.generate, args.out], check=True)
    subprocess.run([args.random, args.out, "100", *map(str, SEEDS)], check=True)
    return [args.out / f"{name}.nettrace" for name in (*FILES, *(f"random-{seed}" for seed in SEEDS))]


def unpack(args):
    """Returns the files of the .NET runtime."""
    for archive in args.vectors.glob("*.nettrace.zip"):
        zipfile.ZipFile(archive).extractall(args.out)
    return sorted(args.out / archive.stem for archive in args.vectors.glob("*.nettrace.zip"))


def record_services(args):
    """Returns a recording of each service, and of the one in Python."""
    files = [args.out / "python.recorded.nettrace"]
    python = pathlib.Path(__file__).resolve().parents[2] / "examples/python_service.py"
    with tempfile.TemporaryDirectory(prefix="perfetto-") as folder, unittest.mock.patch.dict(
            os.environ, EVENTHEADER_TRANSPORT="ring", EVENTHEADER_SOCKET=f"{folder}/events"):
        commands.record(args.nettrace, files[0], ["ExamplePython_L4K1", "ExamplePython_L2K1"], [sys.executable, python])
        for name, (tracepoints, options) in SERVICES.items():
            if name in OPTIONAL and getattr(args, name.replace("-", "_")) is None:
                print(f"{name}: not in this build")
                continue
            files.append(args.out / f"{name}.recorded.nettrace")
            plugin = [args.plugin] if name == "plugin-host" else []
            commands.record(args.nettrace, files[-1], tracepoints, [getattr(args, name.replace("-", "_")), *options, *plugin])
    return files


def record_kernel(args):
    """Returns two recordings of kernel tracepoints, the second with lost events; no files if recording is not possible."""
    if os.geteuid() != 0 or not recorded_test.TRACEFS.exists():
        print("kernel tracepoints are not recorded: that needs root and tracefs")
        return []
    files = [args.out / "kernel.nettrace", args.out / "small-ring.nettrace"]
    names = [[name for name in recorded_test.KERNEL_TRACEPOINTS if name not in MANY], sorted(MANY)]
    load = [sys.executable, workload.__file__, args.out, args.out / "times"]
    for file, tracepoints, ring in zip(files, names, ("8M", "4K")):
        commands.record(args.nettrace, file, tracepoints, load, ["--ring-size", ring])
    return files


def main():
    always = [name for name in SERVICES if name not in OPTIONAL]
    parser = script.parser(__doc__, "nettrace", "generate", "random", "vectors", "out", "plugin", *always)
    for name in OPTIONAL:
        parser.add_argument(f"--{name}", type=pathlib.Path)
    args = parser.parse_args()
    perfetto.find()
    args.out.mkdir(parents=True, exist_ok=True)
    files = generate(args) + unpack(args) + record_services(args) + record_kernel(args)
    return all([perfetto.report(args.nettrace, file, args.out) for file in files])


if __name__ == "__main__":
    script.main(main)
