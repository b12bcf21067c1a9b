#!/usr/bin/python3
"""Records load_service in three ways, each into DIR/NAME.nettrace, with the output of the service in DIR/NAME.json.
Needs root and a kernel with user_events (./run vm).

  recorder-first  the recorder has registered the tracepoints before the service starts
  service-first   the service and its threads run before the recorder starts
  small-rings     as recorder-first, with rings of one page
"""

import os
import pathlib
import subprocess
import sys
import threading

from support import commands
from support import script
from support.load import load

# Ring size that exceeds what one CPU writes.
LARGE_RINGS = ("--ring-size", "8M")
SMALL_RINGS = ("--ring-size", "4K")


def recorder_first(nettrace, service, file, events=load.EVENTS, rings=LARGE_RINGS):
    """Records; returns what the service printed."""
    return commands.record(nettrace, file, load.TRACEPOINTS, [service, "--events", str(events)], rings)


def small_rings(nettrace, service, file, events=load.EVENTS):
    return recorder_first(nettrace, service, file, events, SMALL_RINGS)


def service_first(nettrace, service, file, events=load.EVENTS):
    with subprocess.Popen([service, "--events", str(events), "--wait"], stdout=subprocess.PIPE, text=True) as process:
        # The service stops itself once it is registered and its threads run.
        _, state = os.waitpid(process.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(state):
            raise RuntimeError(f"the service ended before the recording, with wait status {state}")
        printed = []
        # Reaps the service as soon as it ends. Until then, tail --pid would wait for the zombie.
        reaper = threading.Thread(target=lambda: printed.append(process.communicate()[0]))
        reaper.start()
        go_on = f"kill -CONT {process.pid} && exec tail --pid={process.pid} -s 0.1 -f /dev/null"
        commands.record(nettrace, file, [load.PROVIDER], ["sh", "-c", go_on], LARGE_RINGS)
        reaper.join()
    return printed[0]


WAYS = {"recorder-first": recorder_first, "service-first": service_first, "small-rings": small_rings}


def main():
    parser = script.parser(__doc__, "nettrace", "service")
    parser.add_argument("folder", type=pathlib.Path, metavar="DIR")
    args = parser.parse_args()
    for name, way in WAYS.items():
        printed = way(args.nettrace, args.service, args.folder / f"{name}.nettrace")
        (args.folder / f"{name}.json").write_text(printed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
