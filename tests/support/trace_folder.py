"""A folder of traces for the tests of a class."""

import pathlib
import subprocess
import tempfile


def make(test_class, traces, generate, events, *seeds):
    """Creates a folder that exists as long as the tests of the class run. The program `traces`
    writes its files into the folder, and `generate` writes a random trace of `events` steps for each seed."""
    holder = tempfile.TemporaryDirectory(prefix="nettrace-traces-")
    test_class.addClassCleanup(holder.cleanup)
    subprocess.run([traces, holder.name], check=True)
    subprocess.run([generate, holder.name, str(events), *map(str, seeds)], check=True)
    return pathlib.Path(holder.name)
