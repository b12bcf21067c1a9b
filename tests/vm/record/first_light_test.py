#!/usr/bin/python3
"""From a service's events through the kernel into a file that shows every one of them: runs load_service
and `nettrace record` together. Needs root and a kernel with user_events (./run vm)."""

import argparse
import json
import pathlib
import sys
import tempfile

import load
import record


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    record.add_options(parser)
    args = parser.parse_args()
    failed = False
    for name, way in record.WAYS.items():
        with tempfile.TemporaryDirectory(prefix="first-light-") as folder:
            file = pathlib.Path(folder) / "trace.nettrace"
            service = json.loads(way(args.nettrace, args.service, file))
            problems = load.problems(args.nettrace, file, service, lossy=name == "small-rings")
        print("\n  ".join([f"{name}: {len(problems)} problems", *problems]), flush=True)
        failed |= bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
