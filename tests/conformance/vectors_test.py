#!/usr/bin/python3
"""Tests files that .NET wrote, from the shared vectors. Our program around TraceEvent must show the facts that come
with the files, so that the other tests can rely on this program. `nettrace dump` must show what TraceEvent shows."""

import collections
import json
import os
import pathlib
import tempfile
import zipfile

from support import script

import check_files
import reader


def check_facts(name, facts, shown, totals):
    """Returns messages about differences between TraceEvent's view and the facts."""
    texts = []

    def same(what, wanted, got):
        if wanted != got:
            texts.append(f"{name}: {what}: {got} instead of {wanted}")

    same("exception", None, totals["exception"])
    same("events", facts["events"], len(shown))
    same("lost", facts["lost_by_event_gaps"] + facts["lost_by_sequence_points"], totals["lost"])
    same("first timestamp", facts["first_ts"], min(event["timestamp"] for event in shown))
    same("last timestamp", facts["last_ts"], max(event["timestamp"] for event in shown))
    same("bytes of payload", facts["payload_bytes"], sum(event["payloadSize"] for event in shown))
    schemas = collections.Counter((event["provider"], event["id"]) for event in shown)
    wanted = collections.Counter()
    for provider, _, event_id, count in facts["event_types"]:
        wanted[provider, event_id] += count
    same("events of each schema", wanted, schemas)
    return texts


def main():
    args = script.parser(__doc__, "nettrace", "reader", "vectors").parse_args()
    vectors = pathlib.Path(os.environ["SHARED_DIR"]) / "vectors" if "SHARED_DIR" in os.environ else args.vectors
    archives = sorted(vectors.glob("*.nettrace.zip"))
    if not archives:
        raise script.Skipped(f"there are no vectors (*.nettrace.zip) in {vectors}; SHARED_DIR names the folder above it")
    command = reader.build(args.reader)
    passed = True
    with tempfile.TemporaryDirectory(prefix="nettraced-vectors-") as folder:
        for archive in archives:
            zipfile.ZipFile(archive).extractall(folder)
            file = pathlib.Path(folder) / archive.stem
            facts = json.loads(archive.with_name(archive.stem + ".facts.json").read_text())
            differences = check_facts(file.name, facts, *reader.read(command, file))
            print("\n".join(differences) or f"{file.name}: TraceEvent agrees with the facts")
            passed &= not differences
            passed &= check_files.report(file, check_files.check(args.nettrace, command, file, log=False))
    return passed


if __name__ == "__main__":
    script.main(main)
