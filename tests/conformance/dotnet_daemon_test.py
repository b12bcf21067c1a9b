#!/usr/bin/python3
"""Tests that nettraced records the events of .NET programs, with the setting `dotnet`. In the VM, two sessions record the
same programs, files rotate, nettraced is killed and started again, and programs run in another mount and pid namespace, for
a moment only, without a diagnostics socket, or behind the socket of another user. The events must be those that the
programs printed, and the status must count each program. With --here, two sessions record programs on this machine without
user_events (EventPipe), beside a process that claims to be a runtime and never ends its stream.

The test starts itself in the VM with --inside."""

import contextlib
import json
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import sys
import time

from support import commands
from support import script
from support.daemon import nettraced

import reader

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PROJECT = pathlib.Path(__file__).resolve().parent / "dotnet_events" / "dotnet_events.csproj"
PROVIDER = "NetTrace-Test-Events"
RUNTIME = "Microsoft-Windows-DotNETRuntime"
COUNT = 10
SETTINGS = f"""
[session.all]
dotnet = ["{PROVIDER}:info", "{RUNTIME}:info:0x1"]
interval = "100ms"
[session.work]
dotnet = ["{PROVIDER}:4:2"]
interval = "100ms"
"""
# A process that claims to be a runtime. It accepts every request, and sends no stream.
SILENT = """
import os, socket
stat = open("/proc/self/stat").read().rsplit(")", 1)[1].split()
path = f"/tmp/dotnet-diagnostic-{os.getpid()}-{stat[19]}-socket"
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen()
print(path, flush=True)
peers = []
while True:
    peers.append(listener.accept()[0])
    peers[-1].recv(65536)
    peers[-1].sendall(b"DOTNET_IPC_V1\\0" + bytes([28, 0, 255, 0, 0, 0]) + bytes(8))
"""
PIDS = """
[session.{name}]
dotnet = ["{provider}"]
target.pids = [{pid}]
"""


class Program:
    """A program that writes events in rounds."""

    def __init__(self, args, name, rounds=1, prefix=(), **environment):
        self.out, self.err = args.out / f"{name}.out", args.out / f"{name}.err"
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen([*prefix, *args.program, "60", str(COUNT), str(rounds)], stdin=subprocess.PIPE,
                                            stdout=out, stderr=err, env={**os.environ, **environment})
        self.rounds = 1
        self.wait_for("ready")

    def wait_for(self, text, count=1):
        nettraced.until(lambda: self.err.read_text().count(text) >= count or self.process.poll() is not None, 90,
                        lambda: f"{text} {count}: {self.err.read_text()}")
        if self.err.read_text().count(text) < count:
            raise AssertionError(f"the program ended with {self.process.poll()} before it printed '{text}': "
                                 f"{self.err.read_text()}")

    def wait_for_round(self):
        self.wait_for("written", self.rounds)

    def next_round(self):
        self.rounds += 1
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        self.wait_for_round()

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def printed(self):
        return [(event["name"], event["payload"]) for event in map(json.loads, self.out.read_text().splitlines())]


class Checks:
    def __init__(self, args):
        self.args = args
        self.problems = []

    def equal(self, got, wanted, what):
        if got != wanted:
            self.problems.append(f"{what}: {str(got)[:300]} instead of {str(wanted)[:300]}")

    def events(self, files, provider=PROVIDER):
        """Returns the events of a provider in these files. Each file must be valid, and account for every event."""
        events = []
        for file in files:
            verified = subprocess.run([self.args.nettrace, "verify", file], stdout=subprocess.PIPE, text=True, check=False)
            self.equal(verified.returncode, 0, f"verify {file}: {verified.stdout}")
            events += [event for event in commands.dump(self.args.nettrace, file) if event["provider"] == provider]
        return events

    def texts(self, events):
        return [(event["name"], event["payload"]) for event in events]


def wait_for_process(daemon, pid, ended=False):
    """Waits until the events of a process are enabled for both sessions or, with `ended`, until both sessions have also
    read its last event and report that it has ended."""
    def states():
        return [(each["state"], each["ended"]) for name in ("all", "work")
                for each in daemon.status(name)["dotnetProcesses"] if each["pid"] == pid]
    nettraced.until(lambda: states() == [("enabled", ended)] * 2, 60, lambda: daemon.ctl("status", "--json").stdout)


def wait_for_events(daemon, program, before=0):
    """Waits until the session `all` has the events of a round, because events of a stream arrive some time after the
    program has written them. `before` is the number of the session's events before the round."""
    count = len(program.printed()) // program.rounds
    nettraced.until(lambda: daemon.status("all")["events"] >= before + count, 20, lambda: daemon.status("all"))


def check_sessions(args, daemon, checks):
    """Checks the files of two sessions, with a rotation between two rounds of events, and a crash before the third
    round."""
    program = Program(args, "rounds", rounds=3)
    program.wait_for_round()
    wait_for_events(daemon, program)
    first = daemon.ask("rotate", "all").splitlines()[-1].split()[-1]
    before = daemon.status("all")["events"]
    program.next_round()
    wait_for_events(daemon, program, before)
    second = daemon.ask("rotate", "all").splitlines()[-1].split()[-1]
    half = len(program.printed()) // 2
    parts = [checks.texts(checks.events([file])) for file in (first, second)]
    checks.equal(parts[0], program.printed()[:half], "events before the rotation")
    checks.equal(parts[1], program.printed()[half:], "events after the rotation")
    status = daemon.status("all")
    if not args.here:
        checks.equal([status[key] for key in ("dotnetEnabled", "dotnetNotEnabled", "dotnetNotAsked")], [1, 0, 0],
                     "processes enabled, not enabled and not asked")
    checks.equal([(each["state"], each["reason"], each["ended"], each["by"]) for each in status["dotnetProcesses"]
                  if each["pid"] == program.process.pid],
                 [("enabled", "", False, "eventPipe" if args.here else "userEvents")], "state of the program in the status")
    daemon.kill()
    time.sleep(0.5)
    daemon.start()
    wait_for_process(daemon, program.process.pid)
    program.next_round()
    program.end()
    wait_for_process(daemon, program.process.pid, ended=True)
    third = daemon.ask("rotate", "all").splitlines()[-1].split()[-1]
    checks.equal(checks.texts(checks.events([third])), program.printed()[2 * half:], "events after the crash")
    collections = {event["name"] for event in checks.events([third], RUNTIME)}
    checks.equal(collections >= {"GC/Start", "GC/Stop"}, True,
                 f"whether GC/Start and GC/Stop are among the runtime's events {collections}")
    daemon.ask("rotate", "work")
    wanted = [event for event in program.printed() if event[0].startswith("Work")]
    checks.equal(checks.texts(checks.events(daemon.files("work"))), wanted, "events of the second session")


def check_silent(args, daemon, checks):
    """Checks that a tail of a session has the events of its streams. A stream that does not end delays the end of its
    session by 5 s, and no other session."""
    program = Program(args, "beside", rounds=3)
    program.wait_for_round()
    tail, reported = args.out / "tail.nettrace", daemon.status("all")["events"]
    with subprocess.Popen([sys.executable, "-c", SILENT], stdout=subprocess.PIPE, text=True) as silent, \
            open(tail, "wb") as out, \
            subprocess.Popen([args.nettrace, "ctl", "--socket", daemon.path / "run/control", "tail", "all"], stdout=out) as tailing:
        path = silent.stdout.readline().strip()
        wait_for_process(daemon, silent.pid)
        nettraced.until(lambda: tail.stat().st_size > 0, 20, lambda: "the tail has written nothing")
        half = len(program.printed())
        program.next_round()
        wait_for_events(daemon, program, reported)
        tailing.send_signal(signal.SIGINT)
        tailing.wait(20)
        checks.equal(checks.texts(checks.events([tail])), program.printed()[half:], "events of the tail")
        began = time.monotonic()
        with subprocess.Popen([args.nettrace, "ctl", "--socket", daemon.path / "run/control", "stop", "work"]) as stopping:
            reported = daemon.status("all")["events"]
            program.next_round()
            wait_for_events(daemon, program, reported)
            file = daemon.ask("rotate", "all").splitlines()[-1].split()[-1]
            checks.equal(stopping.poll(), None, "exit status of `ctl stop` while the silent stream still delays it")
            program.end()
        checks.equal(4 < time.monotonic() - began < 20, True,
                     f"whether session `work` ended after 4 s to 20 s: {time.monotonic() - began} s")
        checks.equal(checks.texts(checks.events([file]))[-half:], program.printed()[-half:], "events beside the silent stream")
        reasons = [each["reason"] for each in daemon.status("work")["dotnetProcesses"] if each["pid"] == silent.pid]
        checks.equal(["did not end within 5 s" in each for each in reasons], [True],
                     f"whether each reason is a stream that did not end: {reasons}")
        silent.kill()
        os.unlink(path)


def check_container(args, daemon, checks):
    """Checks the events of a program with a separate mount and pid namespace."""
    prefix = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "sh", "-c",
              'mount -t tmpfs tmpfs /tmp && exec "$@"', "sh"]
    program = Program(args, "container", prefix=prefix)
    program.wait_for_round()
    program.end()
    file = daemon.ask("rotate", "all").splitlines()[-1].split()[-1]
    checks.equal(checks.texts(checks.events([file])), program.printed(), "events of a container")


def counted(daemon):
    status = daemon.status("all")
    return status["dotnetEnabled"] + status["dotnetNotEnabled"]


def check_short(args, daemon, checks):
    """Checks that programs that end at once are counted, and that each program whose events were not enabled is listed
    with the reason."""
    before = counted(daemon)
    running = set()
    for _ in range(args.short):
        while len(running) >= 4:
            running = {each for each in running if each.poll() is None}
            time.sleep(0.01)
        running.add(subprocess.Popen(args.program, stderr=subprocess.DEVNULL))
    for each in running:
        each.wait()
    with contextlib.suppress(AssertionError):
        nettraced.until(lambda: counted(daemon) >= before + args.short, 20, lambda: "")
    checks.equal(counted(daemon) - before, args.short, "number of programs that ended at once and were counted")
    status = daemon.status("all")
    reasons = {each["reason"] for each in status["dotnetProcesses"] if each["ended"] and each["name"] != "sleep"}
    print(f"of {args.short} short programs: {reasons}, {status['dotnetEnabled']} enabled in all")
    checks.equal(reasons <= {"", "it ended before it replied", "it ended before the request was sent"}, True,
                 f"whether all reasons are known: {reasons}")


def check_no_socket(args, daemon, checks):
    program = Program(args, "none", DOTNET_EnableDiagnostics="0")
    daemon.set(none=PIDS.format(name="none", provider=PROVIDER, pid=program.process.pid))
    daemon.ask("reload")
    process = {}

    def has_process():
        processes = daemon.status("none")["dotnetProcesses"]
        process.update(processes[0] if processes else {})
        return bool(process)
    nettraced.until(has_process, 20, lambda: daemon.status("none"))
    checks.equal((process["pid"], process["state"]), (program.process.pid, "noSocket"),
                 "pid and state of a program without a socket")
    checks.equal("DOTNET_EnableDiagnostics=0" in process["reason"], True,
                 f"whether the reason names the variable: {process['reason']}")
    daemon.ask("stop", "none")
    left_out = [commands.info(args.nettrace, file)["tracepointsLeftOut"] for file in daemon.files("none")]
    checks.equal(left_out, [1], "tracepoints that each file states as left out")
    program.kill()


def check_other_user(daemon, checks):
    """Checks that a socket of another user is refused if its name is that of a process of root."""
    with subprocess.Popen(["sleep", "1000"]) as sleeper:
        start = pathlib.Path(f"/proc/{sleeper.pid}/stat").read_text().rpartition(")")[2].split()[19]
        path = f"/tmp/dotnet-diagnostic-{sleeper.pid}-{start}-socket"
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path)
            server.listen(8)
            os.chown(path, 65534, 65534)
            found = []

            def is_refused():
                found[:] = [each for each in daemon.status("all")["dotnetProcesses"] if each["pid"] == sleeper.pid]
                return bool(found)
            nettraced.until(is_refused, 20, lambda: daemon.status("all"))
            checks.equal(found[0]["state"], "refused", "state of a process whose socket belongs to another user")
            checks.equal("does not belong to process" in found[0]["reason"], True,
                         f"whether the reason is that the socket does not belong to the process: {found[0]['reason']}")
            server.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                checks.equal(server.accept(), None, "connections to the socket of another user")
        os.unlink(path)
        sleeper.kill()
        sleeper.wait()

        # Waits until the daemon has counted the end of this process, so that later tests do not count it.
        def has_ended():
            is_refused()
            return found[0]["ended"]
        nettraced.until(has_ended, 20, lambda: daemon.status("all"))


def check_cgroup(args, checks):
    """Checks that `nettrace record --dotnet --cgroup` asks and records only the processes of the cgroup."""
    root = pathlib.Path("/sys/fs/cgroup")
    if not (root / "cgroup.procs").exists():
        subprocess.run(["mount", "-t", "cgroup2", "none", root], check=True)
    # perf needs the controller perf_event, which the kernel enables in each cgroup that has any controller.
    (root / "cgroup.subtree_control").write_text("+pids")
    (root / "shop").mkdir()
    inside = ["sh", "-c", f'echo $$ > {root}/shop/cgroup.procs && exec "$@"', "sh"]
    programs = [Program(args, "within", prefix=inside), Program(args, "beside")]
    file = args.out / "cgroup.nettrace"
    with subprocess.Popen([args.nettrace, "record", "--json", "-o", file, f"--dotnet={PROVIDER}:info,gc", "--cgroup", "shop",
                           "--duration", "60s"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as recording:
        programs[0].wait_for_round()
        recording.send_signal(signal.SIGINT)
        summary = json.load(recording.stdout)
    checks.equal([(each["pid"], each["state"]) for each in summary["dotnet"]], [(programs[0].process.pid, "enabled")],
                 "processes in the summary of the recording")
    checks.equal(checks.texts(checks.events([file])), programs[0].printed(), "events of the program in the cgroup")
    checks.equal(programs[1].printed(), [], "events of the program outside of the cgroup, which must not be enabled")
    for program in programs:
        program.kill()


def check_stop(args, daemon, checks):
    """Checks that no tracepoint is left when the settings have removed all sessions and the program has ended. The
    runtime keeps the tracepoints until then."""
    program = Program(args, "stopped", rounds=2)
    program.wait_for_round()
    daemon.set(settings="", none="")
    daemon.ask("reload")
    program.kill()
    nettraced.until(lambda: subprocess.run(["sh", "-c", "grep -c ^nettrace_dotnet /sys/kernel/tracing/user_events_status"],
                                           stdout=subprocess.PIPE, check=False).stdout.strip() == b"0", 20,
                    lambda: pathlib.Path("/sys/kernel/tracing/user_events_status").read_text())
    checks.equal(daemon.ask("status", "--json"), "", "sessions after the reload, which must be none")


def inside(args):
    """Runs the checks that are possible in the VM, and returns whether they passed."""
    checks = Checks(args)
    daemon = nettraced.Daemon(args.nettraced, args.nettrace, {"settings": SETTINGS})
    try:
        daemon.start()
        check_sessions(args, daemon, checks)
        check_container(args, daemon, checks)
        check_no_socket(args, daemon, checks)
        check_other_user(daemon, checks)
        check_short(args, daemon, checks)
        metrics = daemon.ask("metrics")
        enabled = daemon.status("all")["dotnetEnabled"]
        checks.equal(f'nettraced_session_dotnet_processes_total{{session="all"}} {enabled}' in metrics, True,
                     f"whether the metrics have {enabled} processes")
        check_stop(args, daemon, checks)
        daemon.stop()
        check_cgroup(args, checks)
    except AssertionError as error:
        checks.problems.append(str(error))
    finally:
        if checks.problems:
            print(daemon.log(), daemon.ctl("status", "--json").stdout)
        daemon.process.send_signal(signal.SIGKILL)
    print("\n".join(checks.problems))
    return not checks.problems


def here(args):
    """Runs the checks that are possible on this machine, and returns whether they passed."""
    checks = Checks(args)
    daemon = nettraced.Daemon(args.nettraced, args.nettrace, {"settings": SETTINGS})
    try:
        daemon.start()
        check_sessions(args, daemon, checks)
        check_no_socket(args, daemon, checks)
        check_silent(args, daemon, checks)
        enabled = daemon.status("all")["dotnetEnabled"]
        checks.equal(f'nettraced_session_dotnet_processes_total{{session="all"}} {enabled}' in daemon.ask("metrics"), True,
                     f"whether the metrics have {enabled} processes")
        checks.equal(daemon.stop(), 0, "exit status of the daemon")
    except AssertionError as error:
        checks.problems.append(str(error))
    finally:
        if checks.problems:
            print(daemon.log())
        daemon.close()
    print("\n".join(checks.problems))
    return not checks.problems


def main():
    parser = script.parser(__doc__, "nettrace", "nettraced", "reader", "out")
    parser.add_argument("--short", type=int, default=8, metavar="N", help="number of programs that end at once")
    parser.add_argument("--inside", nargs="+", metavar="WORD", help="run in the VM, with this program of .NET")
    parser.add_argument("--here", action="store_true", help="run on this machine, which has no user_events")
    args = parser.parse_args()
    if args.inside:
        args.program = args.inside
        return inside(args)
    args.out = args.out.absolute()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.here and os.path.exists("/sys/kernel/tracing/user_events_data"):
        raise script.Skipped("needs a kernel without user_events, on which .NET programs are recorded by EventPipe")
    program = [str(word) for word in reader.build_project(args.reader, PROJECT)]
    if args.here:
        args.program = program
        return here(args)
    command = [sys.executable, __file__, "--nettrace", args.nettrace, "--nettraced", args.nettraced, "--reader", args.reader,
               "--out", "/out", "--short", args.short, "--inside", *program]
    path = os.environ.get("PYTHONPATH", "")
    ran = subprocess.run([REPOSITORY / "scripts/vm.py", "--cpus", "2", "--out", args.out, "--env", f"PYTHONPATH={path}", "--",
                          "sh", "-c", shlex.join(map(str, command))], stdin=subprocess.DEVNULL, check=False)
    return ran.returncode == 0


if __name__ == "__main__":
    script.main(main)
