"""Exports files to both versions of CTF, and compares what readers show with what `nettrace dump` shows of the file.
The reader of 1.8 is babeltrace2, that of 2 is our strict reader."""

import shutil
import subprocess

from support import commands

import ctf
import ctf2


def compare(nettrace, file, folder):
    """Exports the file as 1.8 and 2, into folders below `folder`. Returns the number of its events, and for each
    version the Comparison with dump."""
    options = ("--processes", "--account")
    dumped = list(commands.dump(nettrace, file, "--raw", *options))
    lost = commands.info(nettrace, file)["lost"]
    comparisons = {}
    for form, read_trace in (("ctf", ctf.read), ("ctf2", ctf2.read)):
        comparisons[form] = ctf.Comparison(form == "ctf2")
        comparisons[form].trace(dumped, read_trace(export(nettrace, form, file, folder, *options)), lost)
    return len(dumped), comparisons


def export(nettrace, form, file, folder, *options):
    """Exports the file; returns the directory."""
    directory = folder / f"{file.stem}{''.join(options)}.{form}"
    shutil.rmtree(directory, ignore_errors=True)
    subprocess.run([nettrace, "export", "--to", form, *options, file, "-o", directory], check=True, stderr=subprocess.DEVNULL)
    return directory
