#!/usr/bin/python3
"""Tests that TraceLog, as in PerfView, shows a start-stop activity for each pair of start and stop events that the
examples for C and HTTP have written, with its duration and the activity around it. They are recorded in the VM.

With --record, records them on this machine, which needs root and a kernel with user_events, and tests nothing."""

import pathlib
import subprocess

from support import commands
from support import script

import activities_test
import reader

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
ROUNDS, REQUESTS = 20, 40
# For each example: its tracepoints, its options, and its number of pairs. Three of four requests call the backend.
EXAMPLES = {
    "c-service": (["ExampleC_L4K1", "ExampleC_L3K1"], ["--rounds", str(ROUNDS)], ROUNDS),
    "http-service": (["ExampleHttp_L4K1", "ExampleHttp_L4K2"], ["--requests", str(REQUESTS), "--threads", "4"],
                     REQUESTS + REQUESTS * 3 // 4),
}


def record(args):
    for name, program in programs(args).items():
        tracepoints, options, _ = EXAMPLES[name]
        commands.record(args.nettrace, args.out / f"{name}.nettrace", tracepoints, [program, *options])
    return True


def programs(args):
    return {name: getattr(args, name.replace("-", "_")) for name in EXAMPLES}


def record_in_vm(args):
    examples = [word for name, program in programs(args).items() for word in (f"--{name}", program)]
    subprocess.run([REPOSITORY / "scripts/vm.py", "--out", args.out, "--env", "PYTHONPATH", "--", __file__, "--record",
                    "--nettrace", args.nettrace, *examples, "--reader", args.reader, "--out", "/out"],
                   stdin=subprocess.DEVNULL, check=True)


def check(args, command, name):
    _, _, pairs = EXAMPLES[name]
    wanted, texts = activities_test.problems(args.nettrace, command, args.out / f"{name}.nettrace")
    print("\n  ".join([f"{name}: the file has {len(wanted)} pairs of {pairs}; {len(texts)} problems", *texts]))
    return len(wanted) == pairs and not texts


def main():
    parser = script.parser(__doc__, "nettrace", "reader", *EXAMPLES, "out")
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    if args.record:
        return record(args)
    args.out.mkdir(parents=True, exist_ok=True)
    command = reader.build(args.reader)
    record_in_vm(args)
    return all([check(args, command, name) for name in EXAMPLES])


if __name__ == "__main__":
    script.main(main)
