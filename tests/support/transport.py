"""The transport of the services in tests that run with each: user_events, or rings in user space, which the build files
choose by EVENTHEADER_TRANSPORT."""

import os
import pathlib
import tempfile
import unittest.mock

RINGS = os.environ.get("EVENTHEADER_TRANSPORT") == "ring"
# Whether this user can record events of the kernel, which also reports the names of threads. Without it, a thread that has
# ended has the name of its process.
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
