#!/usr/bin/python3
"""Tests that `nettrace import --from ctf` shows what babeltrace2 shows of traces that LTTng itself has written in user
space: all types of fields, buffers of each user and of each process, losses in both modes (discard and overwrite),
rotations, snapshots, a pause longer than the header's timestamps can express, and a truncated stream."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from support import commands
from support import lttng
from support import script

import ctf

CONTEXTS = ("vpid", "vtid", "procname", "pthread_id", "ip", "vuid", "cgroup_ns")
OF_THREADS = {"vpid": "pid", "vtid": "tid", "procname": "thread"}
LEVELS = (1, 1, 1, 2, 3, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5)  # by LTTng's log level
# Small buffers make many packets. Little is lost in sessions in which the service may wait for buffers.
PACKET = 4096
SMALL = ("--subbuf-size", str(PACKET), "--num-subbuf", "4")
BLOCKING = (*SMALL, "--blocking-timeout", "inf")
TINY = ("--subbuf-size", str(PACKET), "--num-subbuf", "2")
VALUES = ("conformance:*", "--exclude", "conformance:flood,conformance:large")
FLOOD = ("conformance:flood",)
LOST = ("conformance:flood,conformance:large",)
# The events that LTTng itself writes about a process: its libraries, with paths and build ids.
STATE = ("lttng_ust_statedump:*",)
FLOODED = 3000
HEADER_NANOSECONDS = 2**32  # range of the timestamps in the event's header


class Daemon(lttng.Daemon):
    """A session daemon with the sessions and services of the test."""

    def __init__(self, home, stack):
        super().__init__(home, stack)
        self._stack = stack

    def session(self, name, buffers, channel, events, snapshot=False):
        folder = self.home / name
        self.lttng("create", name, "--output", str(folder), *(["--snapshot"] if snapshot else []))
        self.lttng("enable-channel", "--userspace", "--session", name, f"--buffers-{buffers}", *channel, "channel")
        self.lttng("enable-event", "--userspace", "--session", name, "--channel", "channel", *events)
        self.lttng("add-context", "--userspace", "--session", name, "--channel", "channel",
                   *(word for context in CONTEXTS for word in ("--type", context)))
        self.lttng("start", name)
        return folder

    def service(self, program):
        return self._stack.enter_context(Service(self.start([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)))

    @contextlib.contextmanager
    def buffers_not_read(self):
        """Stops the consumers during the block, so that nothing reads the buffers and events are lost."""
        consumers = self.consumers()
        try:
            for process in consumers:
                os.kill(process, signal.SIGSTOP)
            while not all(map(_is_stopped, consumers)):
                time.sleep(0.001)
            yield
        finally:
            for process in consumers:
                os.kill(process, signal.SIGCONT)


def _is_stopped(process):
    threads = pathlib.Path(f"/proc/{process}/task").iterdir()
    return all((thread / "stat").read_text().rpartition(")")[2].split()[0] == "T" for thread in threads)


class Service:
    """The instrumented program. write() returns the number of events that it has written."""

    def __init__(self, process):
        self._process = process

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()

    def write(self, line):
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def stay(self):
        os.sched_setaffinity(self._process.pid, {min(os.sched_getaffinity(0))})

    def end(self):
        self._process.stdin.close()
        if self._process.wait(lttng.SECONDS) != 0:
            raise RuntimeError(f"the service ended with {self._process.returncode}")


def record(args, home, stack):
    """Records the services. Returns the sessions' directories, the number of events that were written to sessions of
    values, and the number that were written to `discard`."""
    program = home / "service"
    shutil.copy(args.service, program)  # The user of the service may have no access to the build folder.
    daemon = Daemon(home, stack)
    folders = {"uid": daemon.session("uid", "uid", BLOCKING, VALUES),
               "pid": daemon.session("pid", "pid", BLOCKING, VALUES),
               "rotated": daemon.session("rotated", "uid", BLOCKING, VALUES),
               "discard": daemon.session("discard", "uid", ("--discard", *TINY), LOST),
               "overwrite": daemon.session("overwrite", "uid", ("--overwrite", *TINY), FLOOD),
               "state": daemon.session("state", "pid", SMALL, STATE),
               "snapshot": daemon.session("snapshot", "uid", SMALL, VALUES, snapshot=True)}
    one, other = daemon.service(program), daemon.service(program)
    count = one.write("values 60") + other.write("values 30") + one.write("numbered")
    daemon.lttng("rotate", "rotated")
    # From here on, only one service writes at a time. LTTng loses events of all writers while one writing process is
    # interrupted, even if the writers may wait for buffers.
    count += other.write("values 20") + one.write("sleep")
    daemon.lttng("rotate", "rotated")
    count += one.write("values 10")
    # When the session stops, LTTng reads the first packet of the CPU on which the service stays. The packets that are
    # overwritten later are therefore missing after a packet that was read.
    one.stay()
    lost = one.write("flood 10")
    daemon.lttng("stop", "overwrite")
    daemon.lttng("start", "overwrite")
    with daemon.buffers_not_read():
        lost += one.write(f"flood {FLOODED}")
    lost += one.write("flood 10")
    # LTTng loses an event that is larger than the buffers, and counts the loss in the first packet of a chunk.
    for _ in range(2):
        daemon.lttng("rotate", "discard")
        lost += one.write("large 5") + one.write("flood 10")
    daemon.lttng("snapshot", "record", "--session", "snapshot")
    one.end()
    other.end()
    for name in folders:
        daemon.lttng("stop", name)
        daemon.lttng("destroy", name)
    return folders, count, lost


def imported(args, folder, expect=0):
    """Imports the folder. Returns the events of the file with values as numbers and as they are shown, what `info` says
    about the file, and the messages."""
    file = args.out / f"{folder.name}.nettrace"
    done = subprocess.run([args.nettrace, "import", "--from", "ctf", folder, "-o", file], stderr=subprocess.PIPE,
                          text=True, check=False)
    if done.returncode != expect:
        raise RuntimeError(f"import of {folder.name} ended with {done.returncode}: {done.stderr}")
    subprocess.run([args.nettrace, "verify", "--strict", file], check=True, stdout=subprocess.DEVNULL)
    shown = ({**event["payload"], **event.get("symbols", {})} for event in commands.dump(args.nettrace, file))
    events = [{**event, "shown": payload, "time": ctf.nanoseconds(event["time"])}
              for event, payload in zip(commands.dump(args.nettrace, file, "--raw"), shown)]
    return events, commands.info(args.nettrace, file), done.stderr


def sort_key(event):
    return event["time"], event["cpu"], event["name"]


class Comparison(ctf.Comparison):
    def session(self, found, lost, trace):
        self._same("number of events", len(found), len(trace.events))
        self._same("events lost", lost, sum(number for *_, number in trace.discarded))
        found = [{**event, "name": f"{event['provider']}:{event['name']}"} for event in found]
        for number, (one, other) in enumerate(zip(sorted(found, key=sort_key), sorted(trace.events, key=sort_key)), 1):
            where = f"event {number} ({one['name']!r} at {one['time']})"
            for key in ("time", "name", "cpu"):
                self._same(f"{where}: {key}", one[key], other[key])
            self._same(f"{where}: level", one["level"], LEVELS[other["log_level"]])
            self._same(f"{where}: contexts", set(other["context"]), set(CONTEXTS))
            theirs = dict(other["payload"])
            for name, value in other["context"].items():
                if name in OF_THREADS:
                    self._same(f"{where}: {name}", one[OF_THREADS[name]], value)
                else:
                    theirs[f"context.{name}"] = value
            self._same(f"{where}: names", list(one["payload"]), list(theirs))
            for name, value in theirs.items():
                self.value(f"{where}: {name}", one["payload"].get(name), value)
                if isinstance(value, ctf.Named):
                    # The import does not keep names of ranges of values. Only MANY is such a name.
                    names = [label for label in value.names if label != "MANY"]
                    if names:
                        self._same(f"{where}: {name} as shown", one["shown"][name], names[0])
            for name in {"hex", "address"} & set(theirs):
                self._same(f"{where}: {name} as shown", one["shown"][name], hex(theirs[name]))

    def fact(self, what, is_so):
        """Checks that the statement `what` is true. Most such statements ensure that the comparison is meaningful."""
        if not is_so:
            self._differ(f"{what}: this must be true, but is false")


def packets(folder):
    """Returns the number of packets that babeltrace2 reads in the streams, and the number that it reports missing."""
    bt2 = ctf.babeltrace()
    seen, missing = 0, 0
    for message in bt2.TraceCollectionMessageIterator(str(folder)):
        seen += type(message) is bt2._PacketBeginningMessageConst
        if type(message) is bt2._DiscardedPacketsMessageConst:
            missing += message.count
    return seen, missing


def traces(folder):
    return len(list(folder.rglob("metadata")))


def check_sessions(args, folders, count, lost):
    passed = True
    for name, folder in folders.items():
        found, info, told = imported(args, folder)
        trace = ctf.read(folder)
        seen, missing = packets(folder)
        comparison = Comparison()
        comparison.session(found, info["lost"], trace)
        comparison.fact("the trace has more than 2 packets", seen > 2 or name == "state")
        comparison.fact(f"a message states the {missing} missing packets if there are any: {told}",
                        (f"missing packets: {missing};" in told) if missing else "packets" not in told)
        if name in ("uid", "pid", "rotated"):
            comparison.fact(f"each of the {count} events of `values` is there or counted as lost",
                            len(found) + info["lost"] == count)
            comparison.fact("the events are from two processes", len({event["pid"] for event in found}) == 2)
            comparison.fact("the events are from more than 4 threads", len({event["tid"] for event in found}) > 4)
            comparison.fact("the trace has more than 31 event classes, which 5 bits cannot number",
                            len({event["name"] for event in found}) > 31)
        if name in ("uid", "pid"):
            alone = sorted(event["time"] for event in found
                           if event["name"] == "nothing" and event["tid"] == event["pid"])
            comparison.fact("a pause is longer than the header's timestamp can express",
                            len(alone) == 2 and alone[1] - alone[0] > HEADER_NANOSECONDS)
        if name == "pid":
            comparison.fact("each of the two processes has a trace", traces(folder) == 2)
        if name in ("rotated", "discard"):
            comparison.fact("rotations have made three chunks", traces(folder) == 3)
        if name == "discard":
            comparison.fact(f"more than 10 events are lost, and each of {lost} is there or counted as lost",
                            info["lost"] > 10 and len(found) + info["lost"] == lost)
        if name == "overwrite":
            comparison.fact("packets are missing", missing > 0)
        if name == "snapshot":
            comparison.fact("the snapshot has some of the events, and not all", 0 < len(found) < count)
        print(f"{name}: {len(found)} events, {info['lost']} lost, {seen} packets, {missing} missing, "
              f"{comparison.count} differences")
        for text in comparison.differences:
            print(f"  {text}")
        passed &= comparison.count == 0
    return passed


def identity(event):
    return event["time"], event["cpu"], event["name"], repr(event["payload"])


def check_cut(args, folder):
    """Checks a stream that is truncated within a packet: the part before is imported, and the exit status is 1."""
    whole, _, _ = imported(args, folder)
    copy = args.out / "cut"
    shutil.copytree(folder, copy)
    longest = max(copy.rglob("channel_*[0-9]"), key=lambda path: path.stat().st_size)
    os.truncate(longest, longest.stat().st_size // (2 * PACKET) * PACKET + 1000)
    found, _, told = imported(args, copy, expect=1)
    passed = 0 < len(found) < len(whole) and longest.name in told and \
        set(map(identity, found)) < set(map(identity, whole))
    print(f"cut: imported {len(found)} of {len(whole)} events, with the message: {told.strip()}")
    return passed


def main():
    parser = script.parser(__doc__, "nettrace", "out")
    parser.add_argument("--service", type=pathlib.Path, help="the instrumented program, if it could be built")
    args = parser.parse_args()
    if args.service is None:
        raise script.Skipped("liblttng-ust-dev was not there when this was built")
    if not shutil.which("lttng") or not shutil.which("lttng-sessiond"):
        raise script.Skipped("lttng-tools are not installed")
    ctf.babeltrace()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # Also ends the daemon.
    shutil.rmtree(args.out, ignore_errors=True)
    args.out.mkdir(parents=True)
    # LTTng makes sockets in its home folder, and the path of a socket must be short.
    with tempfile.TemporaryDirectory(prefix="lttng-") as home:
        with contextlib.ExitStack() as stack:
            folders, count, lost = record(args, pathlib.Path(home), stack)
        return all([check_sessions(args, folders, count, lost), check_cut(args, folders["uid"])])


if __name__ == "__main__":
    script.main(main)
