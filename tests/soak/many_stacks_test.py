#!/usr/bin/python3
"""Tests that programs read many stacks in memory that does not grow with their number: `nettrace info`, `dump
--stacks`, `top`, `report`, `symbolize`, and the exports of stacks. Prints the peak memory. The sum of the export folded
must be the number of samples whose stacks are within its limit.

  many_stacks_test.py --nettrace PATH --generate PATH --out PATH --different NUMBER SAMPLES..."""

import subprocess

from support import commands
from support import script

EXPORTED_STACKS = 1 << 20  # the limit of different stacks in nettrace-export(1)


def command_of_cases(args, file):
    out = args.out / "out"
    return {"info": ["info", file], "top --by function": ["top", "--by", "function", file],
            **{f"export --to {form}": ["export", "--to", form, file, "-o", out]
               for form in ("folded", "speedscope", "pprof")},
            "report": ["report", file, "-o", out], "symbolize": ["symbolize", file, "-o", out],
            "dump --stacks": ["dump", "--stacks", file]}


def exported(samples, different):
    """Returns the number of samples in an export, which leaves out samples whose stacks exceed its limit."""
    kept = min(different, EXPORTED_STACKS)
    return samples // different * kept + min(samples % different, kept)


def folded_sum(path):
    with path.open() as lines:
        return sum(int(line.rsplit(" ", 1)[1]) for line in lines)


def main():
    parser = script.parser(__doc__, "nettrace", "generate", "out")
    parser.add_argument("--different", type=int, required=True, help="number of different stacks")
    parser.add_argument("samples", type=int, nargs="+", help="numbers of samples of the files, in ascending order")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    memories, problems = [], []
    for samples in args.samples:
        file = args.out / f"{samples}.nettrace"
        subprocess.run([args.generate, file, str(samples), str(args.different)], check=True)
        print(f"{samples:,} samples, {file.stat().st_size / 1e6:,.0f} MB")
        memories.append({})
        for name, words in command_of_cases(args, file).items():
            command = [args.nettrace, *words]
            memory = commands.peak_memory("/bin/sh", "-c", 'exec "$@" > /dev/null', "sh", *command)
            memories[-1][name] = memory
            print(f"  {name:24} {memory / 1024:8.1f} MiB", flush=True)
            if name == "export --to folded" and (found := folded_sum(args.out / "out")) != exported(samples, args.different):
                problems.append(f"{name}: the sum is {found} samples instead of {exported(samples, args.different)}")
        file.unlink()
        (args.out / "out").unlink()
    problems += commands.memory_growth(memories[0], memories[-1])
    print("\n".join(problems), end="\n" if problems else "")
    return not problems


if __name__ == "__main__":
    script.main(main)
