#!/usr/bin/python3
"""Tests `nettrace verify` with the files of odd_files.py. It must find the rules that each file breaks. A file is clean
if it breaks none. TraceEvent must show clean files as `nettrace dump` does, both to programs that read events and in a
TraceLog."""

import collections
import concurrent.futures
import json
import subprocess

from support import commands
from support import script

import comparison
import odd_files
import reader

# Differences that verify does not report, because they depend on the values of fields: see docs/format/verify-rules.md.
QUIRKS = ("latin1", "nul", "empty", "label")


def rules_found(nettrace, file):
    ran = subprocess.run([nettrace, "verify", "--json", file], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    if ran.returncode == 2:
        return {odd_files.UNREADABLE}
    if ran.returncode not in (0, 1):
        raise RuntimeError(f"nettrace verify {file} ended with {ran.returncode}")
    return {json.loads(line)["rule"] for line in ran.stdout.splitlines()}


def dumped(nettrace, file):
    """Returns the exit status of dump, and its events."""
    ran = subprocess.run([nettrace, "dump", "--json", "--raw", "--processes", "--account", file], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, check=False)
    return ran.returncode, [json.loads(line) for line in ran.stdout.splitlines()]


def compare(nettrace, file, views):
    """Returns messages about how TraceEvent's two views differ from dump."""
    if views is None:
        return ["TraceEvent ended, hung or used too much memory at this file"]
    status, events = dumped(nettrace, file)
    if status != 0:
        return [f"nettrace dump ended with {status} instead of 0"]
    for event in events:
        event["timestamp"] = int(event["timestamp"])
    lost = commands.info(nettrace, file)["lost"]
    result = comparison.Comparison(QUIRKS)
    result.files(events, *views[0], lost)
    result.files(events, *views[1], lost, log=True)
    return result.differences


def main():
    parser = script.parser(__doc__, "nettrace", "reader", "out")
    parser.add_argument("--case", default="", metavar="TEXT", help="only the cases with TEXT in their names")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    cases = [case for case in odd_files.cases() if args.case in case[0]]
    files = [args.out / f"{name.replace('/', '-')}.nettrace" for name, _, _ in cases]
    for file, (_, _, data) in zip(files, cases):
        file.write_bytes(data)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda file: rules_found(args.nettrace, file), files))
    problems = [f"{name}: verify finds {sorted(rules)} instead of {sorted(wanted)}"
                for (name, wanted, _), rules in zip(cases, found) if rules != wanted]
    command = reader.build(args.reader)
    clean = [(name, file) for (name, _, _), file, rules in zip(cases, files, found) if not rules]
    for (name, file), views in zip(clean, reader.read_both(command, [file for _, file in clean])):
        problems += [f"{name}: {text}" for text in compare(args.nettrace, file, views)]
    counts = collections.Counter("clean" if not rules else "unclean" for rules in found)
    print("\n  ".join([f"{len(cases)} files, {counts['clean']} of them clean: {len(problems)} problems", *problems]))
    return not problems


if __name__ == "__main__":
    script.main(main)
