#!/usr/bin/python3
"""Tests that `nettrace record --dotnet` records the events of .NET programs on a machine without user_events (EventPipe).
One program runs before the recording and one starts during it. The file must have the events that the programs printed, and
the events of a C++ service (rings in user space) that runs before and after the second program, in the order of time.
TraceEvent must show the same values in a stream that the runtime writes without our programs. Other processes claim to be
runtimes and send no stream: they must be reported, cost little memory, and not delay the end of the recording."""

import itertools
import json
import os
import pathlib
import resource
import socket
import struct
import subprocess
import sys
import time

from support import commands
from support import script

import check_files
import dotnet_recorded_test
import reader

PROVIDER, COUNT = dotnet_recorded_test.PROVIDER, dotnet_recorded_test.COUNT
SERVICE = "Vm_EveryType"
PROVIDERS = (PROVIDER, dotnet_recorded_test.DESCRIBED)
MAGIC = b"DOTNET_IPC_V1\0"
REPLY = MAGIC + struct.pack("<HBBHQ", 28, 0xFF, 0, 0, 1)
# For each fake runtime, the code that runs after its reply, and the reason that the recording must report. The first 102
# bytes of `start` are the header and the Trace object of a stream.
FAKES = {
    "garbage": ("send(b'x' * 100000)", "its stream cannot be read: not a NetTrace file"),
    "endless": ("\nwhile True: send(b'\\0' * 65536)", "its stream cannot be read: not a NetTrace file"),
    "damaged": ("send(start[:102] + b'x' * 1000)", "its stream cannot be read: "),
    "truncated": ("send(start[:300]); peer.close()", "its stream was cut"),
    "silent": ("send(start[:300])", "its stream did not end within 5 s"),
}
FAKE = """
import os, socket, sys, time
start = bytearray(open({stream!r}, "rb").read())
start[69:77] = time.monotonic_ns().to_bytes(8, "little")
stat = open("/proc/self/stat").read().rsplit(")", 1)[1].split()
path = f"/tmp/dotnet-diagnostic-{{os.getpid()}}-{{stat[19]}}-socket"
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen()
print(path, flush=True)
peer, _ = listener.accept()
peer.recv(65536)
def send(data):
    try:
        peer.sendall(data)
    except OSError:
        time.sleep(60)
        sys.exit()
send({reply!r})
{action}
time.sleep(60)
"""
LONGEST = 30  # maximum time, in s, that a recording of 3 s takes on a busy machine
MAX_MEMORY = 200 << 10  # maximum memory of the collector, in KiB


def text(value):
    return struct.pack("<I", len(value) + 1) + (value + "\0").encode("utf-16le")


def collect(program, out):
    """Runs the program, and writes the stream of its runtime to a file. Returns the file and what the program printed."""
    file, printed = out / "stream.nettrace", out / "stream.out"
    with open(printed, "wb") as output, subprocess.Popen([*program, "60", str(COUNT)], stdout=output,
                                                        stderr=subprocess.PIPE, text=True) as process:
        pid = int(process.stderr.readline().split()[1])
        path = next(pathlib.Path("/tmp").glob(f"dotnet-diagnostic-{pid}-*-socket"))
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(path))
            payload = struct.pack("<IIBBI", 64, 1, 0, 0, len(PROVIDERS))
            for name in PROVIDERS:
                payload += struct.pack("<QI", (1 << 64) - 1, 4) + text(name) + struct.pack("<I", 0)
            peer.sendall(MAGIC + struct.pack("<HBBH", 20 + len(payload), 2, 4, 0) + payload)
            assert peer.recv(28, socket.MSG_WAITALL)[16:18] == b"\xff\0"
            with open(file, "wb") as stream:
                while data := peer.recv(65536):
                    stream.write(data)
    return file, dotnet_recorded_test.printed(printed)


def record(args, program):
    """Records two programs; returns the file."""
    early = args.out / "early.out"
    with open(early, "wb") as output, subprocess.Popen([*program, "60", str(COUNT)], stdout=output,
                                                      stderr=subprocess.PIPE, text=True) as process:
        process.stderr.readline()
        late, service = " ".join(map(str, program)), f"{args.service} > {args.out}/service.out"
        file = args.out / "dotnet.nettrace"
        ran = subprocess.run([args.nettrace, "record", "--json", "-o", file,
                              f"--dotnet={dotnet_recorded_test.PROVIDERS}",
                              "-e", "sched:sched_process_exec", "-e", f"{SERVICE}_L4K1", "--", "sh", "-c",
                              f"{service}; {late} 60 {COUNT} > {args.out}/late.out; {service}; sleep 1"],
                             stdout=subprocess.PIPE, text=True, check=False,
                             env={**os.environ, "EVENTHEADER_TRANSPORT": "ring", "EVENTHEADER_SOCKET": f"{args.out}/events"})
    (args.out / "summary.json").write_text(ran.stdout)
    (args.out / "status").write_text(str(ran.returncode))
    return file


def problems_of_order(events):
    """Returns messages about events of the service and of the second program that are not in the order in which they were
    written. `events` are in the order of the file."""
    late = next((event["pid"] for event in reversed(events) if event["provider"] == PROVIDER), None)
    order = ["service" if event["provider"] == SERVICE else "program" for event in events
             if event["provider"] == SERVICE or event["pid"] == late and event["provider"] in PROVIDERS]
    runs = [(name, len(list(run))) for name, run in itertools.groupby(order)]
    count = order.count("service") // 2
    wanted = [("service", count), ("program", dotnet_recorded_test.EVENTS * COUNT), ("service", count)]
    problems = [] if count and runs == wanted else [f"the events in the file are by {runs} instead of {wanted}"]
    for before, after in itertools.pairwise(events):
        if after["timestamp"] < before["timestamp"]:
            problems.append(f"{after['name']} follows {before['name']}, which is later")
            break
    return problems


def problems_of_fakes(args, stream):
    """Returns messages about a recording of processes that send something other than a stream."""
    fakes = {}
    try:
        for name, (action, reason) in FAKES.items():
            source = FAKE.format(stream=str(stream), reply=REPLY, action=action)
            process = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)
            fakes[process.pid] = (name, reason, process, process.stdout.readline().strip())
        file, start = args.out / "fakes.nettrace", time.monotonic()
        ran = subprocess.run([args.nettrace, "record", "--json", "-o", file, f"--dotnet={PROVIDER}", "--duration", "3s",
                              "--pid", ",".join(map(str, fakes))], stdout=subprocess.PIPE, text=True, check=False)
        seconds = time.monotonic() - start
    finally:
        for _, _, process, path in fakes.values():
            process.kill()
            process.wait()
            process.stdout.close()
            os.unlink(path)
    problems = [] if seconds < LONGEST else [f"the recording of fake runtimes lasted {seconds} s; the limit is {LONGEST} s"]
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    if memory > MAX_MEMORY:
        problems.append(f"a recording used {memory} KiB, more than {MAX_MEMORY} KiB")
    for process in json.loads(ran.stdout)["dotnet"]:
        name, reason, *_ = fakes.pop(process["pid"])
        if reason not in process["reason"]:
            problems.append(f"{name}: the reason is '{process['reason']}', without '{reason}'")
    problems += [f"the summary does not report the fake runtime {name}" for name, *_ in fakes.values()]
    verified = subprocess.run([args.nettrace, "verify", file], stdout=subprocess.PIPE, text=True, check=False)
    return problems if verified.returncode == 0 else [*problems, verified.stdout]


def problems_of_stream(args, command, program):
    """Returns messages about events in the runtime's stream that dump shows otherwise than the program printed them, or
    otherwise than TraceEvent shows them."""
    file, printed = collect(program, args.out)
    shown = [(event["name"], dotnet_recorded_test.with_ticks(event["payload"])) for event in commands.dump(args.nettrace, file)
             if event["provider"] in PROVIDERS]
    problems = [f"stream: dump shows {other} instead of {event}" for event, other in zip(printed, shown) if event != other][:3]
    if len(shown) != len(printed):
        problems.append(f"stream: dump shows {len(shown)} events; the program printed {len(printed)}")
    result = check_files.check(args.nettrace, command, file, log=False)
    return problems if check_files.report(file, result) else [*problems, "TraceEvent shows the stream differently from dump"]


def problems_of_perf_map(args, program):
    """Returns messages about a recording of CPU samples whose stacks must have the name of a method from a perf map."""
    file = args.out / "cpu.nettrace"
    with subprocess.Popen([*program, "spin", "60"], stderr=subprocess.PIPE, text=True) as process:
        process.stderr.readline()
        try:
            ran = subprocess.run([args.nettrace, "record", "--json", "-o", file, "--cpu", "--dotnet=gc", "--dotnet-perf-maps",
                                  "--pid", str(process.pid), "--duration", "2s"], stdout=subprocess.PIPE, text=True, check=False)
        finally:
            process.kill()
        pathlib.Path(f"/tmp/perf-{process.pid}.map").unlink(missing_ok=True)
    has_map = [each["perfMap"] for each in json.loads(ran.stdout)["dotnet"]]
    problems = [] if has_map == [True] else [f"whether the processes have a perf map: {has_map} instead of [True]"]
    samples = [event for event in commands.dump(args.nettrace, file, "--stacks") if event["name"] == "cpu"]
    named = [event for event in samples if "PriceOfBasket" in json.dumps(event["frames"])]
    if len(named) < len(samples) / 2 or not samples:
        problems.append(f"{len(named)} of {len(samples)} samples have the method PriceOfBasket; at least half must have it")
    return problems


def main():
    args = script.parser(__doc__, "nettrace", "reader", "service", "out").parse_args()
    if os.path.exists("/sys/kernel/tracing/user_events_data"):
        raise script.Skipped("needs a kernel without user_events, on which .NET programs are recorded by EventPipe")
    args.out = args.out.absolute()
    args.out.mkdir(parents=True, exist_ok=True)
    program = reader.build_project(args.reader, dotnet_recorded_test.PROJECT)
    command = reader.build(args.reader)
    file = record(args, program)
    events = list(commands.dump(args.nettrace, file))
    problems = (dotnet_recorded_test.problems_of_events(events, args) + dotnet_recorded_test.problems_of_rows(events)
                + dotnet_recorded_test.problems_of_summary(events, args, file))
    problems += problems_of_order(events)
    summary = json.loads((args.out / "summary.json").read_text())
    ways = [process["by"] for process in dotnet_recorded_test.processes(events, summary)]
    problems += [] if ways == ["eventPipe"] * 2 else [f"the events of the two programs came by {ways} instead of eventPipe"]
    problems += dotnet_recorded_test.problems_of_traceevent(command, file)
    problems += problems_of_stream(args, command, program)
    problems += problems_of_perf_map(args, program)
    problems += problems_of_fakes(args, args.out / "stream.nettrace")
    print("\n".join(problems), end="\n" if problems else "")
    result = check_files.check(args.nettrace, command, file, own_ids=True, log=False)
    return all([check_files.report(file, result), dotnet_recorded_test.is_shown_by_perfetto(args, file)]) and not problems


if __name__ == "__main__":
    script.main(main)
