"""Support for tests that run once with each transport of the services: user_events, and rings in user space. The build
files select the transport by EVENTHEADER_TRANSPORT."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest.mock

RINGS = os.environ.get("EVENTHEADER_TRANSPORT") in ("ring", "ring-inline")
# Whether this user can record events of the kernel, which also give the names of threads. In a recording without
# these events, a thread that has ended has the name of its process.
HAS_KERNEL = os.geteuid() == 0 and pathlib.Path("/sys/kernel/tracing/events").is_dir()


def give_socket(case):
    """Gives the services and the recorders of a test case their own socket for rings, because other tests run, too."""
    if not RINGS:
        return
    folder = tempfile.TemporaryDirectory(prefix="rings-")
    case.addCleanup(folder.cleanup)
    changed = unittest.mock.patch.dict(os.environ, EVENTHEADER_SOCKET=f"{folder.name}/events")
    changed.start()
    case.addCleanup(changed.stop)


def until(ready, seconds=60):
    """Waits until `ready()` returns true, and fails if it does not within `seconds`."""
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, f"the condition was not met within {seconds} s"
        time.sleep(0.001)


class RingRecorder:
    """Records services by rings with `nettrace record`, for tests that use a tracefs instance if services have user_events.
    The socket must be that of give_socket."""

    def __init__(self, case, nettrace, selector):
        folder = tempfile.TemporaryDirectory(prefix="recorder-")
        case.addCleanup(folder.cleanup)
        case.addCleanup(self.stop)
        self.nettrace, self.selector = nettrace, selector
        self.trace = pathlib.Path(folder.name) / "trace.nettrace"
        self.process = None
        self.events = []

    def start(self):
        """Starts to record, and returns when services can connect. Services that run already connect soon after."""
        if self.process is not None:
            return
        self.trace.unlink(missing_ok=True)
        self.process = subprocess.Popen([self.nettrace, "record", "-o", self.trace, "-e", self.selector],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        lines = []
        while "services use shared memory" not in (line := self.process.stderr.readline()):
            lines.append(line)
            assert line, f"nettrace record ended before services could connect: {lines}"

    def stop(self):
        """Ends the recording, and adds its events to `events`."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGINT)
        errors = self.process.communicate(timeout=60)[1]
        # Exit status 3: the selector has matched no tracepoint, because no service ran.
        assert self.process.returncode in (0, 3), f"nettrace record: exit status {self.process.returncode}: {errors}"
        self.process = None
        subprocess.run([self.nettrace, "verify", "--strict", self.trace], check=True)
        dump = subprocess.run([self.nettrace, "dump", "--json", self.trace], stdout=subprocess.PIPE, text=True, check=True)
        self.events += [json.loads(line) for line in dump.stdout.splitlines()]

    def take(self):
        """Returns the events since the last call. Recording continues if it was active."""
        was_active = self.process is not None
        self.stop()
        events, self.events = self.events, []
        if was_active:
            self.start()
        return events
