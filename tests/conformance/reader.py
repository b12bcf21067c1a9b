"""Builds and runs traceevent/, a program around TraceEvent (C#).

Nothing is written to the source tree. The tests are skipped if there is no .NET SDK, or if the package is not in this
machine's package cache and cannot be downloaded.
"""

import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import subprocess

from support import script

PROJECT = pathlib.Path(__file__).resolve().parent / "traceevent" / "traceevent.csproj"
# The build servers that dotnet leaves running would keep the caller's pipes open.
NO_SERVERS = ["--disable-build-servers", "-p:UseSharedCompilation=false"]
ENVIRONMENT = {"DOTNET_CLI_TELEMETRY_OPTOUT": "1", "DOTNET_NOLOGO": "1", "DOTNET_CLI_UI_LANGUAGE": "en"}


class Broken(Exception):
    """The program does not build or run although TraceEvent is available."""


def build(folder):
    """Builds the program below `folder`, or brings it up to date; returns its command line. Raises Skipped."""
    return build_project(folder, PROJECT)


def build_project(folder, project):
    """Builds any C# project in the same way."""
    if not shutil.which("dotnet"):
        raise script.Skipped("there is no dotnet (the .NET SDK) on this machine")
    folder = pathlib.Path(folder).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / f"bin/{project.stem}/release/{project.stem}.dll"
    with open(folder / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Several tests may build at the same time.
        # dotnet takes seconds even if there is nothing to build.
        built_from, stamp = _sources(project), folder / f"{project.stem}.built-from"
        if program.exists() and stamp.exists() and stamp.read_text(encoding="ascii") == built_from:
            return ["dotnet", program]
        artifacts = ["--artifacts-path", folder]
        restored = _dotnet("restore", project, *artifacts, *NO_SERVERS)
        if restored.returncode != 0:
            lines = [line.strip() for line in restored.stdout.splitlines() if "error" in line]
            raise script.Skipped(
                f"the packages of {project.name} (TraceEvent is one of them) cannot be restored: "
                + (lines[0] if lines else f"dotnet restore ended with {restored.returncode}"))
        built = _dotnet("build", project, *artifacts, *NO_SERVERS, "--no-restore", "-c", "Release", "-v", "quiet")
        if built.returncode != 0:
            raise Broken(f"{project} does not build:\n{built.stdout}")
        stamp.write_text(built_from, encoding="ascii")
    return ["dotnet", program]


def _sources(project):
    """Returns a hash of the project's files, the version that it gets from the environment, and the dotnet that builds
    them."""
    dotnet = pathlib.Path(shutil.which("dotnet")).resolve()
    version = os.environ.get("TraceEventVersion", "")
    key = hashlib.sha256(f"{dotnet}\0{dotnet.stat().st_mtime_ns}\0{version}".encode())
    for file in sorted(path for path in project.parent.rglob("*") if path.is_file()):
        key.update(f"\0{file.relative_to(project.parent)}\0".encode() + file.read_bytes())
    return key.hexdigest()


def read(command, file, *options):
    """Returns the list of events that TraceEvent shows for a file, and its totals. `options`: those of Program.cs."""
    ran = subprocess.run([*command, *options, file], stdout=subprocess.PIPE, env={**os.environ, **ENVIRONMENT}, check=False)
    lines = ran.stdout.splitlines()
    totals = json.loads(lines[-1]) if lines else {}
    if "end" not in totals:
        raise Broken(f"TraceEvent ended with {ran.returncode} and without totals on {file}")
    return [json.loads(line) for line in lines[:-1]], totals


def read_totals(command, files):
    """Returns only the totals, for many files at once."""
    ran = subprocess.run([*command, "--totals", *files], stdout=subprocess.PIPE, env={**os.environ, **ENVIRONMENT}, check=False)
    totals = [json.loads(line) for line in ran.stdout.splitlines()]
    if len(totals) != len(files):
        raise Broken(f"TraceEvent ended with {ran.returncode} and has totals of {len(totals)} of {len(files)} files")
    return totals


def _dotnet(*arguments):
    return subprocess.run(
        ["dotnet", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", env={**os.environ, **ENVIRONMENT}, check=False)
