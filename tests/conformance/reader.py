"""Builds and runs traceevent/, a program around TraceEvent (C#).

Nothing is written to the source tree. The tests are skipped if there is no .NET SDK, or if the package is not in this
machine's package cache and cannot be downloaded.
"""

import collections
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import threading

from support import script

PROJECT = pathlib.Path(__file__).resolve().parent / "traceevent" / "traceevent.csproj"
# The build servers that dotnet leaves running would keep the caller's pipes open.
NO_SERVERS = ["--disable-build-servers", "-p:UseSharedCompilation=false"]
ENVIRONMENT = {"DOTNET_CLI_TELEMETRY_OPTOUT": "1", "DOTNET_NOLOGO": "1", "DOTNET_CLI_UI_LANGUAGE": "en"}


class Broken(Exception):
    """The program does not build or run although TraceEvent is available."""


def build(folder):
    """Builds the program below `folder`, or brings it up to date; returns its command line. Raises Skipped if there is no
    .NET SDK or package."""
    return build_project(folder, PROJECT)


def build_project(folder, project):
    """Builds a C# project below `folder`, as build() builds traceevent/; returns the command line of its program."""
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


def publish_project(folder, project, framework):
    """Builds a C# project for another version of .NET, with its runtime from NuGet. Returns the path of the program. Raises
    Skipped if the runtime cannot be downloaded."""
    if not shutil.which("dotnet"):
        raise script.Skipped("there is no dotnet (the .NET SDK) on this machine")
    folder = pathlib.Path(folder).absolute() / framework
    options = ["-r", "linux-x64", f"-p:TargetFramework={framework}", "--artifacts-path", folder, *NO_SERVERS]
    restored = _dotnet("restore", project, *options, "-p:SelfContained=true")
    if restored.returncode != 0:
        raise script.Skipped(f"the runtime of {framework} cannot be restored: {restored.stdout.strip().splitlines()[-1:]}")
    published = _dotnet("publish", project, *options, "--no-restore", "--self-contained", "-c", "Release", "-o", folder / "out")
    if published.returncode != 0:
        raise Broken(f"{project} does not build for {framework}:\n{published.stdout}")
    return folder / "out" / project.stem


def install_tool(folder, name, version):
    """Installs a tool of .NET below `folder`, unless it is there. Returns its path. Raises Skipped if it cannot be
    downloaded."""
    if not shutil.which("dotnet"):
        raise script.Skipped("there is no dotnet (the .NET SDK) on this machine")
    folder = pathlib.Path(folder).absolute() / f"{name}-{version}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / f"{name}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / name).exists():
            installed = _dotnet("tool", "install", name, "--version", version, "--tool-path", folder)
            if installed.returncode != 0:
                raise script.Skipped(f"{name} {version} cannot be installed: {installed.stdout.strip().splitlines()[-1:]}")
    return folder / name


def _sources(project):
    """Returns a hash of the project's files, the version of TraceEvent in the environment, and the path and modification
    time of dotnet."""
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
        raise Broken(f"{file}: TraceEvent ended with status {ran.returncode} and printed no totals")
    return [json.loads(line) for line in lines[:-1]], totals


def read_totals(command, files):
    """Returns only the totals, for many files at once."""
    ran = subprocess.run([*command, "--totals", *files], stdout=subprocess.PIPE, env={**os.environ, **ENVIRONMENT}, check=False)
    totals = [json.loads(line) for line in ran.stdout.splitlines()]
    if len(totals) != len(files):
        raise Broken(f"TraceEvent ended with status {ran.returncode}, {len(totals)} totals for {len(files)} files")
    return totals


def read_both(command, files):
    """Yields for each file what TraceEvent shows as in `read`, and in a TraceLog: two pairs of events and totals. Yields
    None for a file at which TraceEvent ends the process, does not end within a minute, or uses more than 1 GiB."""
    files = list(files)
    environment = {**os.environ, **ENVIRONMENT, "DOTNET_GCHeapHardLimit": hex(1 << 30), "DOTNET_DbgEnableMiniDump": "0"}
    while files:
        with subprocess.Popen([*command, "--both", *files], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              env=environment) as process:
            timer = threading.Timer(0, lambda: None)
            while files:
                timer.cancel()
                timer = threading.Timer(60, process.kill)
                timer.start()
                views = [_next_view(process.stdout), _next_view(process.stdout)]
                if None in views:
                    break
                files.pop(0)
                yield views
            timer.cancel()
        if files:
            files.pop(0)
            yield None


def _next_view(lines):
    """Returns the next events up to their totals, and the totals; None if the lines end before."""
    events = []
    for line in lines:
        record = json.loads(line, object_pairs_hook=merged)
        if "end" in record:
            return events, record
        events.append(record)
    return None


def merged(pairs):
    """Returns the object with these members. Members of one name become an array of their values, as in `nettrace
    dump`."""
    members, repeated = {}, {name for name, count in collections.Counter(name for name, _ in pairs).items() if count > 1}
    for name, value in pairs:
        if name in repeated:
            members.setdefault(name, []).append(value)
        else:
            members[name] = value
    return members


def _dotnet(*arguments):
    return subprocess.run(
        ["dotnet", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", env={**os.environ, **ENVIRONMENT}, check=False)
