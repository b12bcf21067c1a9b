#!/usr/bin/python3
"""Tests that the babeltrace2 of Debian 13, which reads CTF 2, shows the output of `nettrace export --to ctf2` as
`nettrace dump` shows the file. Runs in a fresh root, which needs root and mmdebstrap."""

import pathlib
import pickle
import shutil
import subprocess
import sys

from support import commands
from support import script

import ctf
import ctf_exports

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS / "package"))
import roots

SEEDS = range(1, 6)
OPTIONS = ("--processes", "--account")
READ = "import ctf, pickle, sys; pickle.dump(ctf.read('/tmp/trace'), sys.stdout.buffer)"


def read(root, folder):
    """Returns the ctf.Trace that the babeltrace2 of the fresh root reads from the directory."""
    copy = root.path / "tmp/trace"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    return pickle.loads(subprocess.run(
        ["chroot", root.path, "env", "-i", "PATH=/usr/bin", "PYTHONPATH=/tmp/tests:/tmp/tests/conformance",
         "python3", "-c", READ], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True).stdout)


def check(args, root, file):
    dumped = list(commands.dump(args.nettrace, file, "--raw", *OPTIONS))
    comparison = ctf.Comparison(is_ctf2=True)
    comparison.trace(dumped, read(root, ctf_exports.export(args.nettrace, "ctf2", file, args.out, *OPTIONS)),
                     commands.info(args.nettrace, file)["lost"])
    print(f"{file.name}: {len(dumped)} events, {comparison.count} differences")
    for text in comparison.differences:
        print(f"  {text}")
    return comparison.count == 0


def main():
    args = script.parser(__doc__, "nettrace", "generate", "random", "out").parse_args()
    roots.need_root()
    shutil.rmtree(args.out, ignore_errors=True)
    args.out.mkdir(parents=True)
    subprocess.run([args.generate, args.out], check=True)
    subprocess.run([args.random, args.out, "300", *map(str, SEEDS)], check=True)
    files = sorted(args.out.glob("*.nettrace"))
    with roots.fresh("trixie") as root:
        root.install("babeltrace2", "python3-bt2")
        for source in ("support", "conformance/ctf.py"):
            copy = shutil.copytree if (TESTS / source).is_dir() else shutil.copy
            (root.path / "tmp/tests" / source).parent.mkdir(parents=True, exist_ok=True)
            copy(TESTS / source, root.path / "tmp/tests" / source)
        print(root.run("babeltrace2", "--version").splitlines()[0])
        return all([check(args, root, file) for file in files]) and len(files) > len(SEEDS)


if __name__ == "__main__":
    script.main(main)
