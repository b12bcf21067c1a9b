"""Exports to CTF, of both versions, and what their readers show of them beside what `nettrace dump` shows of the file:
babeltrace2 of 1.8, and our strict reader of 2."""

import shutil
import subprocess

from support import commands

import ctf
import ctf2


def compare(nettrace, file, folder):
    """Exports the file as 1.8 and 2, into folders below `folder`; the number of its events, and the Comparison of each
    version with dump."""
    options = ("--processes", "--account")
    dumped = list(commands.dump(nettrace, file, "--raw", *options))
    lost = commands.info(nettrace, file)["lost"]
    comparisons = {}
    for form, read_trace in (("ctf", ctf.read), ("ctf2", ctf2.read)):
        comparisons[form] = ctf.Comparison(form == "ctf2")
        comparisons[form].trace(dumped, read_trace(export(nettrace, form, file, folder, *options)), lost)
    return len(dumped), comparisons


def export(nettrace, form, file, folder, *options):
    """The directory that the file is exported to."""
    directory = folder / f"{file.stem}{''.join(options)}.{form}"
    shutil.rmtree(directory, ignore_errors=True)
    subprocess.run([nettrace, "export", "--to", form, *options, file, "-o", directory], check=True, stderr=subprocess.DEVNULL)
    return directory
