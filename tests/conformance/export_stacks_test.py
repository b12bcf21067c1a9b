#!/usr/bin/python3
"""Tests that in the exports folded, speedscope and pprof, the sum of each stack is the number of events that `nettrace
dump --json --stacks` shows with this stack. The files are random ones and, where the kernel allows it, recordings of
programs that start. The readers of the formats are separate from the exporter. Other programs also read the exports, if
they are there: Google's pprof reads pprof, speedscope (from npm) folded and speedscope, and flamegraph.pl folded."""

import collections
import functools
import html
import json
import pathlib
import re
import shutil
import subprocess

from support import commands
from support import script
from support.kernel import tracepoints

import pprof

EXEC = "sched:sched_process_exec"
EXIT = "sched:sched_process_exit"
PROGRAMS = 50
UNITS = ("none", "nanoseconds")
SPEEDSCOPE = "speedscope-1.25.0"
FLAMEGRAPH = "/usr/share/perl5/Devel/NYTProf/flamegraph.pl"  # In Debian's package libdevel-nytprof-perl.


def frame_name(frame):
    """Returns a frame that dump shows as exports show it: without the offset in its function."""
    return re.sub(r"\+0x[0-9a-f]+$", "", frame) if "!" in frame else frame


def wanted_stacks(args, file, *options):
    """Returns the number of events by their kind and stack, root first."""
    events = commands.dump(args.nettrace, file, "--stacks", *options)
    return collections.Counter((f"{event['provider']}:{event['name']}", tuple(map(frame_name, event["frames"][::-1])))
                               for event in events if "frames" in event)


def export(args, to, file, *options):
    out = args.out / f"{file.stem}.{to}"
    command = [args.nettrace, "export", "--to", to, file, "-o", out, *options]
    ran = subprocess.run(command, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
    return out


def read_folded(path):
    stacks = collections.Counter()
    for line in path.read_text().splitlines():
        stack, number = line.rsplit(" ", 1)
        frames = tuple(stack.split(";"))
        assert frames not in stacks and int(number) > 0, line
        stacks[frames] = int(number)
    return stacks


def read_speedscope(path):
    """Returns the sum of each stack, by the name of the profile."""
    file = json.loads(path.read_text())
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert set(file) <= {"$schema", "shared", "profiles", "name", "activeProfileIndex", "exporter"}, set(file)
    frames = file["shared"]["frames"]
    for frame in frames:
        assert set(frame) <= {"name", "file", "line", "col"} and isinstance(frame["name"], str), frame
    stacks = collections.Counter()
    for profile in file["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}, set(profile)
        assert profile["type"] == "sampled" and profile["unit"] in UNITS
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["endValue"] - profile["startValue"] == sum(profile["weights"])
        for sample, weight in zip(profile["samples"], profile["weights"]):
            stacks[profile["name"], tuple(frames[number]["name"] for number in sample)] += weight
    return stacks


@functools.cache
def find_speedscope(folder):
    """Returns the path of speedscope's program, which npm installs below `folder`; None if npm cannot install it."""
    release = folder / SPEEDSCOPE / "package/dist/release"
    if not release.exists() and shutil.which("npm") and shutil.which("node"):
        (folder / SPEEDSCOPE).mkdir(exist_ok=True)
        packed = subprocess.run(["timeout", "120", "npm", "pack", SPEEDSCOPE.replace("-", "@")], cwd=folder / SPEEDSCOPE,
                                capture_output=True, check=False)
        if packed.returncode == 0:
            subprocess.run(["tar", "-xzf", f"{SPEEDSCOPE}.tgz"], cwd=folder / SPEEDSCOPE, check=True)
    return next(release.glob("speedscope-*.js"), None)


def import_into_speedscope(program, path):
    """Returns the sum of each stack that speedscope reads, by the name of the profile."""
    importer = pathlib.Path(__file__).parent / "speedscope/import_profiles.js"
    ran = subprocess.run(["node", importer, program, path], stdout=subprocess.PIPE, text=True, check=True)
    stacks = collections.Counter()
    for profile in map(json.loads, ran.stdout.splitlines()):
        assert profile["total"] == sum(profile["stacks"].values()), path
        for stack, weight in profile["stacks"].items():
            stacks[profile["name"], tuple(json.loads(stack))] += weight
    return stacks


def flame_graph(path):
    """Returns for each name the sum of samples in the boxes that flamegraph.pl draws for it."""
    ran = subprocess.run(["perl", FLAMEGRAPH, "--minwidth", "0", path], stdout=subprocess.PIPE, text=True, check=True)
    boxes = re.findall(r"<title>(.*) \(([0-9,]+) samples, [^(]*</title>", ran.stdout)
    return summed((html.unescape(name), int(number.replace(",", ""))) for name, number in boxes)


def boxes_of(folded):
    """Returns what flame_graph() must return. The lowest box, `all`, has all stacks. flamegraph.pl shows the angle brackets
    of a template as parentheses."""
    return summed((name.translate(str.maketrans("<>", "()")), number)
                  for stack, number in folded.items() for name in ("all", *stack))


def coarse(frame):
    """Returns module!function, or only the module, or "" for code without a module."""
    return "" if frame.startswith("0x") else frame if "!" in frame else frame.rsplit("+", 1)[0]


def coarse_of(frame):
    module = frame.file.rsplit("/", 1)[-1]
    return f"{module}!{frame.function}" if frame.function else module


def summed(pairs):
    sums = collections.Counter()
    for key, number in pairs:
        sums[key] += number
    return sums


def check_pprof(args, file, wanted, options):
    path = export(args, "pprof", file, *options)
    profile = pprof.read(path)
    found = summed(((sample.labels["event"], tuple(map(coarse_of, sample.frames[::-1]))), sample.values[0])
                   for sample in profile.samples)
    assert found == summed(((kind, tuple(map(coarse, stack))), number) for (kind, stack), number in wanted.items())
    assert profile.types[0] == "samples/count" and len(profile.comments) == 1
    command = pprof.find_program()
    if command:
        values = collections.Counter((tuple(sample.values), len(sample.frames)) for sample in profile.samples)
        assert pprof.raw(command, path) == values, file
    return profile


def check(args, file, *options):
    """Compares the exports of a file with its events. Returns the numbers of events and different stacks."""
    wanted = wanted_stacks(args, file, *options)
    speedscope_file = export(args, "speedscope", file, "--weight", "events", *options)
    speedscope = read_speedscope(speedscope_file)
    assert summed(((kind, stack[1:]), number) for (kind, stack), number in speedscope.items()) == wanted, file
    folded_file = export(args, "folded", file, "--weight", "events", *options)
    folded = read_folded(folded_file)
    assert folded == summed((stack, number) for (_, stack), number in speedscope.items()), file
    assert flame_graph(folded_file) == boxes_of(folded), file
    program = find_speedscope(args.out)
    if program:
        assert import_into_speedscope(program, speedscope_file) == speedscope, file
        read = import_into_speedscope(program, folded_file)
        assert summed((stack, number) for (_, stack), number in read.items()) == folded, file
    check_pprof(args, file, wanted, ("--weight", "events", *options))
    return sum(wanted.values()), len(wanted)


def check_random(args):
    subprocess.run([args.random, args.out, "2000", *map(str, range(1, 4))], check=True)
    for seed in range(1, 4):
        file = args.out / f"random-{seed}.nettrace"
        print(f"{file.name}: %d events with stacks, %d different" % check(args, file))


def check_recorded(args):
    tracepoints.require(EXEC)
    file = args.out / "recorded.nettrace"
    subprocess.run([args.nettrace, "record", "-o", file, "-e", EXEC, "--stacks", "-e", EXIT, "--stacks=user", "--",
                    "sh", "-c", f"for i in $(seq {PROGRAMS}); do /bin/true; done"], check=True)
    events, different = check(args, file)
    assert events >= 2 * PROGRAMS, events
    print(f"recorded: {events} events with stacks, {different} different")
    check(args, file, "--event", "sched_process_exec")
    profile = pprof.read(args.out / "recorded.pprof")
    assert {sample.labels["event"] for sample in profile.samples} == {"sched:sched_process_exec"}
    frames = {frame for sample in profile.samples for frame in sample.frames}
    assert all(frame.address >> 63 for frame in frames if frame.file == "vmlinux")
    modules = {frame for frame in frames if frame.file.startswith("/")}
    assert modules and all(re.fullmatch("[0-9a-f]{40}", frame.build_id) for frame in modules), modules


def main():
    args = script.parser(__doc__, "nettrace", "random", "out").parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    check_random(args)
    if not find_speedscope(args.out):
        print("speedscope does not read folded and speedscope, because npm cannot install it")
    if not pprof.find_program():
        print("Google's pprof does not read pprof, because neither pprof nor go is installed")
    check_recorded(args)
    return True


if __name__ == "__main__":
    script.main(main)
