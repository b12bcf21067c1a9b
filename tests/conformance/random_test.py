#!/usr/bin/python3
"""Tests random traces, with random schemas, values, threads, labels, losses and flushes. TraceEvent and `nettrace dump`
must show exactly the events and values that were written, and `nettrace verify --strict` must find nothing. TraceEvent
must show the traces merged into one file as `nettrace dump` shows that file.

examples:
  random_test.py --nettrace build/bin/nettrace --reader build/traceevent \\
    --generate build-gcc/tests/support/nettrace/write_random_traces --out /tmp/random --seeds 1-20
  ... --seeds 1000-1999     # seeds that ./run test does not use

A failure names its seed; --seeds SEED repeats it.
"""

import itertools
import json
import subprocess

from support import commands
from support import script

import check_files
import comparison
import reader

# Quirks of TraceEvent that random files have: non-ASCII text in an array of UTF-8 code units, objects without fields,
# and opcodes in labels.
ALLOWED = ("latin1", "empty", "label")


def seeds(text):
    """Parses "3" or "1-20"."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def file_of(args, seed):
    return args.out / f"random-{seed}.nettrace"


def check_seed(args, seed, views):
    """Returns messages about what is wrong, and the number of events. `views` is what TraceEvent shows, if it is
    available."""
    file = file_of(args, seed)
    *expected, totals = [json.loads(line) for line in file.with_suffix(".expected").read_text().splitlines()]
    texts = []
    verified = subprocess.run(
        [args.nettrace, "verify", "--strict", file], stdout=subprocess.PIPE, text=True, check=False)
    if verified.returncode != 0:
        texts += [f"nettrace verify: {line}" for line in verified.stdout.splitlines()]
    events = check_files.dump(args.nettrace, file)
    # The expected events have the same form as those of nettrace dump, without the keys that dump adds.
    ours = comparison.Comparison()
    ours.values("lost", totals["lost"], commands.info(args.nettrace, file)["lost"])
    ours.values("events", len(expected), len(events))
    for number, (wanted, event) in enumerate(zip(expected, sorted(events, key=lambda event: event["timestamp"])), 1):
        ours.values(f"event {number}", wanted, {key: event[key] for key in wanted})
    texts += [f"nettrace dump: {text}" for text in ours.differences]
    if views:
        theirs = comparison.Comparison(ALLOWED)
        theirs.files(expected, *views[0], totals["lost"])
        # Compares with the events of dump, because the expected events do not state which opcodes are in labels.
        theirs.files(events, *views[1], totals["lost"], log=True)
        texts += [f"TraceEvent: {text}" for text in theirs.differences]
    return texts, len(expected)


def check_merged(args, command):
    """Returns whether all files, with their different clocks, are shown correctly when they are merged."""
    # The file with the finest clock comes first. The merged file uses this clock, so that no two events get the same
    # time.
    files = sorted((file_of(args, seed) for seed in args.seeds),
                   key=lambda file: commands.info(args.nettrace, file)["ticksPerSecond"])[::-1]
    merged = args.out / "merged.nettrace"
    subprocess.run([args.nettrace, "merge", *files, "-o", merged], check=True)
    return check_files.report(merged, check_files.check(args.nettrace, command, merged, ALLOWED, own_ids=True))


def main():
    parser = script.parser(__doc__, "nettrace", "reader", "generate", "out")
    parser.add_argument("--seeds", default=range(1, 21), type=seeds, metavar="FIRST-LAST")
    parser.add_argument("--steps", default=300, type=int, help="a few events each")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    subprocess.run([args.generate, args.out, str(args.steps), *map(str, args.seeds)], check=True)
    unavailable, command = None, None
    try:
        command = reader.build(args.reader)
    except script.Skipped as reason:
        unavailable = reason
    failed, events = 0, 0
    shown = reader.read_both(command, [file_of(args, seed) for seed in args.seeds]) if command else itertools.repeat(())
    for seed, views in zip(args.seeds, shown):
        texts, count = check_seed(args, seed, views)
        if views is None:
            texts.append("TraceEvent ended, hung or used too much memory at this file")
        events += count
        failed += bool(texts)
        for text in texts:
            print(f"seed {seed}: " + text.replace("\n", "\\n"))
    print(f"seeds {args.seeds.start} to {args.seeds.stop - 1}: {events} events, {failed} seeds with differences")
    if command and len(args.seeds) > 1:
        failed += not check_merged(args, command)
    if failed == 0 and unavailable:
        raise unavailable
    return failed == 0


if __name__ == "__main__":
    script.main(main)
