"""The reference reader: builds and runs traceevent/ (C#, with the TraceEvent package).

Nothing of it is written to the source tree. Where it cannot be had, Unavailable says why: there is no
.NET SDK, or the package is neither in this machine's package cache nor to be downloaded.
"""

import fcntl
import json
import os
import pathlib
import shutil
import subprocess

PROJECT = pathlib.Path(__file__).resolve().parent / "traceevent" / "traceevent.csproj"
# The build servers that dotnet leaves behind would keep the caller's pipes open.
NO_SERVERS = ["--disable-build-servers", "-p:UseSharedCompilation=false"]
ENVIRONMENT = {"DOTNET_CLI_TELEMETRY_OPTOUT": "1", "DOTNET_NOLOGO": "1", "DOTNET_CLI_UI_LANGUAGE": "en"}


class Unavailable(Exception):
    """The reader cannot be had on this machine; the message is the reason, in one line."""


class Broken(Exception):
    """The reader is there and does not build or run."""


def build(folder):
    """Builds the reader below `folder`, or brings it up to date; returns its command line."""
    if not shutil.which("dotnet"):
        raise Unavailable("there is no dotnet (the .NET SDK) on this machine")
    folder = pathlib.Path(folder).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Several tests may ask for it at once.
        artifacts = ["--artifacts-path", folder]
        restored = _dotnet("restore", PROJECT, *artifacts, *NO_SERVERS)
        if restored.returncode != 0:
            lines = [line.strip() for line in restored.stdout.splitlines() if "error" in line]
            raise Unavailable("the package Microsoft.Diagnostics.Tracing.TraceEvent cannot be restored: "
                              + (lines[0] if lines else f"dotnet restore ended with {restored.returncode}"))
        built = _dotnet("build", PROJECT, *artifacts, *NO_SERVERS, "--no-restore", "-c", "Release", "-v", "quiet")
        if built.returncode != 0:
            raise Broken(f"{PROJECT} does not build:\n{built.stdout}")
    return ["dotnet", folder / "bin/traceevent/release/traceevent.dll"]


def read(command, file):
    """What the reader says of a file: its list of events, and its totals."""
    ran = subprocess.run([*command, file], stdout=subprocess.PIPE, env={**os.environ, **ENVIRONMENT}, check=False)
    lines = ran.stdout.splitlines()
    totals = json.loads(lines[-1]) if lines else {}
    if "end" not in totals:
        raise Broken(f"the reference reader ended with {ran.returncode} and without totals on {file}")
    return [json.loads(line) for line in lines[:-1]], totals


def _dotnet(*arguments):
    return subprocess.run(
        ["dotnet", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", env={**os.environ, **ENVIRONMENT}, check=False)
