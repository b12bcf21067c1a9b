#!/usr/bin/python3
"""Tests that a recording of load_service shows every event that its threads wrote, or counts it as lost. Needs root and
a kernel with user_events (./run vm)."""

import json
import pathlib
import tempfile

from support import script
from support.load import load
from support.load import record

ARGS = script.options(__doc__, "nettrace", "service", events=load.EVENTS)


def check():
    passed = True
    for name, way in record.WAYS.items():
        with tempfile.TemporaryDirectory(prefix="record-") as folder:
            file = pathlib.Path(folder) / "trace.nettrace"
            service = json.loads(way(ARGS.nettrace, ARGS.service, file, ARGS.events))
            problems = load.problems(ARGS.nettrace, file, service, lossy=name == "small-rings",
                                     events=ARGS.events)
        print("\n  ".join([f"{name}: {len(problems)} problems", *problems]), flush=True)
        passed &= not problems
    return passed


if __name__ == "__main__":
    script.main(check)
