#!/usr/bin/python3
"""Files that .NET wrote, from the shared vectors: our program around the reference reader shows what the
facts that came with the files say, which is what the other tests measure by; and `nettrace dump` shows what
the reference reader shows."""

import argparse
import collections
import json
import os
import pathlib
import sys
import tempfile
import zipfile

import check_files
import reader


def check_facts(name, facts, shown, totals):
    """Texts that say where the reference reader's view differs from the facts."""
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
    kinds = collections.Counter((event["provider"], event["id"]) for event in shown)
    wanted = collections.Counter()
    for provider, _, event_id, count in facts["event_types"]:
        wanted[provider, event_id] += count
    same("events of each kind", wanted, kinds)
    return texts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    check_files.add_options(parser)
    parser.add_argument("--vectors", required=True, type=pathlib.Path, metavar="DIR")
    args = parser.parse_args()
    vectors = pathlib.Path(os.environ["SHARED_DIR"]) / "vectors" if "SHARED_DIR" in os.environ else args.vectors
    archives = sorted(vectors.glob("*.nettrace.zip"))
    if not archives:
        print(f"there are no vectors (*.nettrace.zip) in {vectors}; SHARED_DIR names the folder above it")
        return check_files.EXIT_SKIPPED
    try:
        command = reader.build(args.reader)
    except reader.Unavailable as reason:
        print(reason)
        return check_files.EXIT_SKIPPED
    passed = True
    with tempfile.TemporaryDirectory(prefix="nettraced-vectors-") as folder:
        for archive in archives:
            zipfile.ZipFile(archive).extractall(folder)
            file = pathlib.Path(folder) / archive.stem
            facts = json.loads(archive.with_name(archive.stem + ".facts.json").read_text())
            differences = check_facts(file.name, facts, *reader.read(command, file))
            print("\n".join(differences) or f"{file.name}: the reference reader agrees with the facts")
            passed &= not differences
            passed &= check_files.report(file, check_files.check(args.nettrace, command, file))
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
