#!/usr/bin/python3
"""Tests that PerfView's TraceLog shows traces of the .NET runtime the same before and after `nettrace repair`, `cut`
and `merge`: the same events of the runtime's own providers, which it identifies by their ids, and the same methods on
stacks. One trace is written here, with the sample profiler and rundown enabled; the others are the shared vectors."""

import os
import pathlib
import subprocess
import tempfile
import zipfile

from support import commands
from support import script

import reader

WORKLOAD = pathlib.Path(__file__).resolve().parent / "workload" / "workload.csproj"
WORKLOAD_MILLISECONDS = "500"
# The keywords of dotnet-trace's profile "cpu-sampling", and the runtime's loaded methods. Rundown is enabled by
# default.
PROVIDERS = ("Microsoft-DotNETCore-SampleProfiler:0:5,Microsoft-Windows-DotNETRuntime:4c14fccbd:5,"
             "Workload:ffffffffffffffff:5")
RUNTIME = "Microsoft-Windows-DotNETRuntime"
RUNDOWN = RUNTIME + "Rundown"
SAMPLE = "Microsoft-DotNETCore-SampleProfiler:Thread/Sample"
LOAD = "Microsoft-Windows-DotNETRuntime:Method/LoadVerbose"


def record(args):
    """Records the workload; returns the trace that the runtime writes."""
    file = args.out / "fresh.nettrace"
    program = reader.build_project(args.reader, WORKLOAD)
    environment = {**os.environ, **reader.ENVIRONMENT, "DOTNET_EnableEventPipe": "1",
                   "DOTNET_EventPipeConfig": PROVIDERS, "DOTNET_EventPipeOutputPath": str(file),
                   "DOTNET_EventPipeOutputStreaming": "1"}
    subprocess.run([*program, WORKLOAD_MILLISECONDS], stdout=subprocess.DEVNULL, env=environment, check=True)
    return file


def without_case_of_module(frame):
    """Returns the frame with its module in lower case. The events of .NET that name a module differ in the case, and
    TraceLog takes the name from one of these events."""
    module, mark, method = frame.partition("!")
    return module.lower() + mark + method if mark else frame


def view(command, file):
    """Returns what TraceLog shows of a file, without what depends on the file's name and format."""
    events, totals = reader.read(command, file, "--log")
    shown = [(event["time"], event["provider"], event["name"], event["id"], event["version"], event["opcode"],
              event["pid"], event["tid"], event["payload"], [without_case_of_module(frame) for frame in event["stack"]])
             for event in events]
    return {"events": sorted(shown, key=repr), "typed": totals["typed"], "addresses": totals["codeAddresses"],
            "resolved": totals["resolved"], "methods": totals["methods"], "lost": totals["lost"],
            "processes": [(process["pid"], process["name"]) for process in totals["processes"]],
            "exception": totals["exception"]}


def differences(name, wanted, got):
    texts = []
    for key in wanted:
        if wanted[key] == got[key]:
            continue
        if key != "events":
            texts.append(f"{name}: {key}: {got[key]} instead of {wanted[key]}")
            continue
        texts.append(f"{name}: the events differ: {len(got[key])} are shown, {len(wanted[key])} expected")
        texts += [f"{name}: {one} instead of {other}" for one, other in zip(got[key], wanted[key]) if one != other][:3]
    return texts


def without(views, *keys):
    return {key: value for key, value in views.items() if key not in keys}


def check_middle(args, command, file, original):
    """Cuts out the middle of the trace. Returns messages about events that the cut lacks or shows with other stacks."""
    times = sorted(event[0] for event in original["events"] if event[1] not in (RUNDOWN, RUNTIME))
    if not times:
        return []
    since, until = times[len(times) // 3], times[2 * len(times) // 3]
    output = pathlib.Path(args.out) / f"{file.stem}.middle.nettrace"
    subprocess.run([args.nettrace, "cut", "--since", since, "--until", until, file, "-o", output],
                   stderr=subprocess.DEVNULL, check=True)
    # Events at `since` or `until` are left out, because nettrace compares times with more digits than TraceEvent shows.
    wanted, got = ([event for event in views["events"] if since < event[0] < until and event[1] != RUNDOWN]
                   for views in (original, view(command, output)))
    print(f"{file.name}, its middle: {len(wanted)} events, {sum(bool(event[-1]) for event in wanted)} with stacks")
    return differences(f"{file.name}, its middle", {"events": wanted}, {"events": got})


def check(args, command, file):
    """Returns messages about what TraceLog shows differently after repair, cut or merge."""
    original = view(command, file)
    if original["exception"]:
        return [f"{file.name}: {original['exception']}"]
    print(f"{file.name}: {len(original['events'])} events, {original['typed'].get(SAMPLE, 0)} samples, "
          f"{original['typed'].get(LOAD, 0)} methods loaded, {original['resolved']} of {original['addresses']} "
          f"addresses have a method")
    output = pathlib.Path(args.out) / f"{file.stem}.out.nettrace"

    def rewritten(*words):
        subprocess.run([args.nettrace, *words, "-o", output], stderr=subprocess.DEVNULL, check=True)
        return view(command, output)

    texts = differences(f"{file.name}, repaired", original, rewritten("repair", file))
    # All events are later than this time, so the cut must have all of them.
    texts += differences(f"{file.name}, cut", original, rewritten("cut", "--since", "1990-01-01T00:00:00Z", file))
    texts += check_middle(args, command, file, original)
    # The file is merged with itself, so every event must be shown twice, with the same stacks.
    merged = rewritten("merge", file, file)
    twice = {**original, "typed": {name: 2 * count for name, count in original["typed"].items()},
             "lost": 2 * original["lost"]}
    texts += differences(f"{file.name}, merged", without(twice, "events"), without(merged, "events"))
    if len(merged["events"]) != 2 * len(original["events"]):
        texts.append(f"{file.name}, merged: {len(merged['events'])} events instead of twice {len(original['events'])}")
    return texts


def check_fresh(args, command):
    file = record(args)
    shown = view(command, file)
    texts = check(args, command, file)
    # If the trace had no samples or methods, the test could not find that a command drops them.
    if not shown["typed"].get(SAMPLE) or not shown["typed"].get(LOAD) or not shown["resolved"]:
        texts.append(f"{file.name}: no samples, no loaded methods, or no address of {shown['addresses']} with a method: "
                     f"{shown['typed']}")
    if commands.info(args.nettrace, file)["events"] < len(shown["events"]):
        texts.append(f"{file.name}: nettrace info counts fewer events than TraceLog shows")
    return texts


def check_vectors(args, command):
    vectors = pathlib.Path(os.environ["SHARED_DIR"]) / "vectors" if "SHARED_DIR" in os.environ else args.vectors
    archives = sorted(vectors.glob("*.nettrace.zip"))
    if not archives:
        print(f"there are no vectors (*.nettrace.zip) in {vectors}; SHARED_DIR names the folder above it")
    texts = []
    with tempfile.TemporaryDirectory(prefix="nettraced-vectors-") as folder:
        for archive in archives:
            zipfile.ZipFile(archive).extractall(folder)
            texts += check(args, command, pathlib.Path(folder) / archive.stem)
    return texts


def main():
    args = script.parser(__doc__, "nettrace", "reader", "vectors", "out").parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    command = reader.build(args.reader)
    texts = check_fresh(args, command) + check_vectors(args, command)
    for text in texts:
        print(text if len(text) < 2000 else text[:2000] + "...")
    return not texts


if __name__ == "__main__":
    script.main(main)
