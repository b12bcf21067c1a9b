#!/usr/bin/python3
"""Tests recordings of some processes, threads or cgroups, and of events that pass a filter. Each event of the load must
be there once or be counted as lost, and no event may come from another process. Needs root and tracefs."""

import collections
import contextlib
import json
import os
import pathlib
import re
import subprocess
import tempfile
import threading
import time
import unittest

from support import commands
from support import failures
from support import script
from support.kernel import cgroups
from support.kernel import tracepoints

ARGS = script.options(__doc__, "nettrace", "load")
TRACEFS = tracepoints.TRACEFS
CALL = "syscalls:sys_enter_getppid"
LARGE_RINGS = ("--ring-size", "8M")
SMALL_RINGS = ("--ring-size", "4K")


class Load:
    """The program thread_load, which waits for a command to begin."""

    def __init__(self, test, rounds=20, calls=100, cgroup=None):
        enter = (lambda: (cgroup / "cgroup.procs").write_text("0")) if cgroup else None
        self.process = subprocess.Popen([ARGS.load, str(rounds), str(calls)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, preexec_fn=enter)
        test.addCleanup(self.end)
        there = json.loads(self.process.stdout.readline())
        self.pid, self.worker = there["pid"], there["worker"]
        self.calls = None

    def end(self):
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def run(self):
        """Lets the program make its calls, and waits until it has ended. Sets `calls` to the number of calls by pid and tid."""
        printed, _ = self.process.communicate("\n", timeout=120)
        done = json.loads(printed)
        self.calls = {(self.pid, int(tid)): count for tid, count in done["threads"].items()}
        self.child = {(done["child"], done["child"]): done["childCalls"]}

    def total(self):
        return sum(self.calls.values())


class TargetsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="targets-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "trace.nettrace"

    def record(self, options, loads, selectors=("-e", CALL), ends_itself=False, status=0):
        """Records while the loads run one after the other; returns the summary and the messages. The recording is stopped after
        the loads, or must end by itself."""
        go = self.folder / "go"
        with contextlib.suppress(FileExistsError):
            os.mkfifo(go)
        # The recorder starts the command after the recording has begun, and the command then opens the pipe.
        command = ["sh", "-c", f"echo > {go}; exec sleep 1000"]
        with subprocess.Popen([ARGS.nettrace, "record", "-o", self.file, "--json", *selectors, *options, "--", *command],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as recorder:
            # If the recorder fails, it never starts the command that opens the pipe. This thread then opens the pipe, so that
            # read_text() ends.
            watch = threading.Thread(target=lambda: recorder.wait() and os.close(os.open(go, os.O_RDWR | os.O_NONBLOCK)))
            watch.start()
            go.read_text()
            for load in loads:
                load.run()
            if not ends_itself:
                recorder.terminate()
            printed, said = recorder.communicate(timeout=120)
            watch.join()
        self.assertEqual(recorder.returncode, status, said)
        self.assertNotIn("the kernel counted", said)
        subprocess.run([ARGS.nettrace, "verify", "--strict", self.file], stdout=subprocess.DEVNULL, check=True)
        return json.loads(printed), said

    def events(self):
        """Returns the number of events of each pid and tid."""
        return dict(collections.Counter((event["pid"], event["tid"])
                                        for event in commands.dump(ARGS.nettrace, self.file)))

    def check_exact(self, options, loads, wanted, **recording):
        summary, _ = self.record([*options, *LARGE_RINGS], loads, **recording)
        self.assertEqual(summary["lost"], 0)
        self.assertEqual(self.events(), wanted())
        self.assertEqual(summary["events"], sum(wanted().values()))

    def test_a_process_with_threads_that_come_and_go(self):
        for _ in range(5):
            mine, other = Load(self), Load(self)
            self.check_exact(["--pid", str(mine.pid)], [other, mine], lambda: mine.calls, ends_itself=True)

    def test_a_process_and_rings_that_are_too_small(self):
        for _ in range(5):
            mine, other = Load(self, calls=5000), Load(self, calls=5000)
            summary, _ = self.record(["--pid", str(mine.pid), *SMALL_RINGS], [other, mine])
            self.assertGreater(summary["lost"], 0)
            self.assertEqual(summary["events"] + summary["lost"], mine.total())
            self.assertLessEqual(set(self.events()), set(mine.calls))

    def test_several_processes_of_which_one_ends_earlier(self):
        first, other, last = Load(self), Load(self), Load(self)
        self.check_exact(["--pid", f"{first.pid},{last.pid}"], [first, other, last],
                         lambda: first.calls | last.calls, ends_itself=True)
        first, last = Load(self), Load(self)
        self.check_exact(["--pid", str(first.pid), "--pid", str(last.pid)], [first, last],
                         lambda: first.calls | last.calls, ends_itself=True)

    def test_many_tracepoints_of_a_process(self):
        mine = Load(self)
        summary, _ = self.record(["--pid", str(mine.pid), *LARGE_RINGS], [mine], ends_itself=True,
                                 selectors=["-e", "syscalls:sys_enter_get*"])
        self.assertGreater(summary["tracepoints"], 10)
        self.assertEqual(summary["lost"], 0)
        calls = collections.Counter((event["pid"], event["tid"]) for event in commands.dump(ARGS.nettrace, self.file)
                                    if event["name"] == "sys_enter_getppid")
        self.assertEqual(dict(calls), mine.calls)

    def test_threads(self):
        mine = Load(self)
        def wanted():
            return {(mine.pid, tid): mine.calls[mine.pid, tid] for tid in (mine.pid, mine.worker)}
        self.check_exact(["--tid", f"{mine.pid},{mine.worker}"], [mine], wanted, ends_itself=True)
        mine = Load(self)
        self.check_exact(["--tid", str(mine.worker)], [mine], lambda: {
            (mine.pid, mine.worker): mine.calls[mine.pid, mine.worker]}, ends_itself=True)

    def test_recording_of_a_thread_ends_with_the_thread(self):
        mine = Load(self)
        with subprocess.Popen([ARGS.nettrace, "record", "-o", self.file, "-e", CALL, "--tid", str(mine.pid)],
                              stderr=subprocess.PIPE, text=True) as recorder:
            while not self.file.exists() or self.file.stat().st_size == 0:
                self.assertIsNone(recorder.poll())
                time.sleep(0.05)
            mine.process.kill()
            _, said = recorder.communicate(timeout=60)
        self.assertEqual(recorder.returncode, 0, said)

    @contextlib.contextmanager
    def cgroups(self, *names):
        mount = cgroups.mount()
        if mount is None or not os.access(mount / "cgroup.procs", os.W_OK):
            self.skipTest("no cgroup v2 is mounted that can be written to")
        folders = [mount / name for name in names]
        try:
            for folder in folders:
                folder.mkdir()
            yield folders
        finally:
            for folder in reversed(folders):
                with contextlib.suppress(FileNotFoundError):
                    folder.rmdir()

    def test_a_cgroup_and_those_below_it(self):
        top = f"nettraced-test-{os.getpid()}.slice"
        with self.cgroups(top, f"{top}/a.service", f"{top}/a.service/below", f"{top}/b.service") as groups:
            for options in (["--cgroup", f"{top}/a.service"], ["--cgroup", str(groups[1])],
                            # A cgroup below another selected one is recorded once.
                            ["--cgroup", f"/{top}/a.service/below", "--cgroup", f"{top}/a.service"]):
                with self.subTest(options):
                    inside, below = Load(self, cgroup=groups[1]), Load(self, cgroup=groups[2])
                    other, outside = Load(self, cgroup=groups[3]), Load(self)
                    # Processes that a target starts belong to the target.
                    self.check_exact(options, [outside, inside, other, below],
                                     lambda i=inside, b=below: i.calls | i.child | b.calls | b.child)

    def test_a_cgroup_by_its_name(self):
        top = f"nettraced-test-{os.getpid()}.slice"
        name = f"nettraced-test-{os.getpid()}.service"
        with self.cgroups(top, f"{top}/{name}", f"{top}/other", f"{top}/other/sub") as groups:
            inside, outside = Load(self, cgroup=groups[1]), Load(self)
            self.check_exact(["--cgroup", name], [inside, outside], lambda: inside.calls | inside.child)
            self.file.unlink()
            (groups[3] / name).mkdir()
            try:
                self.check_failure(["--cgroup", name], "2 cgroups have that name.*use the path")
            finally:
                (groups[3] / name).rmdir()

    def test_a_cgroup_that_a_process_enters_and_leaves(self):
        with self.cgroups(f"nettraced-test-{os.getpid()}") as (group,):
            outside = Load(self)
            inside = Load(self)
            (group / "cgroup.procs").write_text(str(inside.pid))
            moved = Load(self, cgroup=group)
            (group.parent / "cgroup.procs").write_text(str(moved.pid))
            self.check_exact(["--cgroup", group.name], [moved, outside, inside], lambda: inside.calls | inside.child)

    def test_a_cgroup_and_rings_that_are_too_small(self):
        with self.cgroups(f"nettraced-test-{os.getpid()}") as (group,):
            for _ in range(3):
                inside, outside = Load(self, calls=5000, cgroup=group), Load(self, calls=5000)
                summary, _ = self.record(["--cgroup", group.name, *SMALL_RINGS], [outside, inside])
                self.assertGreater(summary["lost"], 0)
                self.assertEqual(summary["events"] + summary["lost"], inside.total() + sum(inside.child.values()))

    def test_a_unit_that_starts_stops_and_starts_again(self):
        # This program makes numbered calls three times, each time in a new cgroup of the same name, and prints their times.
        load = '''if 1:
            import json, os, pathlib, sys, time
            folder = pathlib.Path(sys.argv[1])
            times = []
            for _ in range(3):
                folder.mkdir()
                child = os.fork()
                if child == 0:
                    (folder / "cgroup.procs").write_text("0")
                    for number in range(len(times), len(times) + 2000):
                        # No process has such a pid, so the call fails. Its argument contains the number of the call.
                        began = time.time_ns()
                        try:
                            os.getpgid(1000000000 + number)
                        except ProcessLookupError:
                            print(number, began, flush=True)
                        time.sleep(0.0005)
                    os._exit(0)
                os.waitpid(child, 0)
                times += [0] * 2000
                folder.rmdir()
                time.sleep(0.1)
        '''
        with self.cgroups(f"nettraced-test-{os.getpid()}.slice") as (top,):
            name = f"nettraced-test-{os.getpid()}.service"
            for text in (name, f"{top.name}/{name}"):
                with self.subTest(text):
                    done = commands.record(ARGS.nettrace, self.file, ["syscalls:sys_enter_getpgid"],
                                           ["python3", "-c", load, str(top / name)],
                                           ["--cgroup", text, "--follow", "--filter", "pid >= 1000000000"])
                    self.check_followed(dict(map(int, line.split()) for line in done.splitlines()))
                    self.file.unlink()

    def check_followed(self, times):
        subprocess.run([ARGS.nettrace, "verify", "--strict", self.file], stdout=subprocess.DEVNULL, check=True)
        shown, told = collections.Counter(), []
        for event in commands.dump(ARGS.nettrace, self.file, "--account"):
            payload = event["payload"]
            if event["name"] == "sys_enter_getpgid":
                shown[int(payload["pid"], 0) - 1000000000] += 1
            elif event["name"] == "TargetCame":
                self.assertEqual(payload["Reason"], "")
                told.append((int(payload["NotRecordedSince"]), int(payload["NotRecordedUntil"])))
        self.assertEqual(len(told), 3)
        self.assertEqual(set(shown.values()), {1})
        # The clock of the account is not adjusted after the recording begins; the clock of the calls may be.
        slack = 5_000_000
        missing = set(times) - set(shown)
        not_told = [number for number in missing
                    if not any(since - slack <= times[number] <= until + slack for since, until in told)]
        self.assertEqual(not_told, [])
        for start in range(0, 6000, 2000):
            self.assertGreater(len([number for number in shown if start <= number < start + 2000]), 0)

    def test_filters(self):
        def of(load, *tids):
            return {(load.pid, tid): load.calls[load.pid, tid] for tid in tids}
        mine, other = Load(self), Load(self)
        main, worker = f"common_pid == {mine.pid}", f"common_pid == {mine.worker}"
        mine.end()
        other.end()
        every = ["-e", CALL]
        for selectors, wanted in (
                ([*every, "--filter", main], lambda m: of(m, m.pid)),
                # Two filters of one selector, and two selectors of one tracepoint.
                ([*every, "--filter", "common_pid != 1", "--filter", "common_pid != {pid}", "--filter", worker],
                 lambda m: of(m, m.worker)),
                ([*every, "--filter", main, *every, "--filter", worker], lambda m: of(m, m.pid, m.worker)),
                ([*every, "--filter", main, "-e", "syscalls:*_enter_getppi[d]", "--filter", worker],
                 lambda m: of(m, m.pid, m.worker)),
                # Filters by the number of the system call.
                (["-e", "raw_syscalls:sys_enter", "--filter", f"id == 110 && {main}"], lambda m: of(m, m.pid))):
            mine, other = Load(self), Load(self)
            words = [word.replace("{pid}", str(mine.pid)) for word in selectors]
            # Replaces the ids in the filters with those of `mine`.
            words = [re.sub(r"common_pid == \d+", lambda found, text=word: f"common_pid == "
                            f"{mine.pid if found[0] == main else mine.worker}", word) for word in words]
            with self.subTest(words):
                self.check_exact([], [other, mine], lambda w=wanted, m=mine: w(m), selectors=words)

    def test_one_selector_without_a_filter_takes_all(self):
        mine, other = Load(self), Load(self)
        self.check_exact(["--pid", f"{mine.pid},{other.pid}"], [mine, other], lambda: mine.calls | other.calls,
                         selectors=["-e", CALL, "--filter", "common_pid == 1", "-e", CALL], ends_itself=True)

    def test_events_of_the_recorder_pass_no_filter(self):
        pid_file = self.folder / "pid"
        subprocess.run([ARGS.nettrace, "record", "-o", self.file, "-e", "raw_syscalls:sys_enter", "--filter",
                        "id >= 0 || id < 0", "--", "sh", "-c", f"echo $PPID > {pid_file}; /bin/true; sleep 0.5"], check=True)
        recorder = int(pid_file.read_text())
        tids = {event["tid"] for event in commands.dump(ARGS.nettrace, self.file)}
        self.assertGreater(len(tids), 0)
        self.assertNotIn(recorder, tids)

    def test_pattern_leaves_out_tracepoints_without_the_field(self):
        summary, said = self.record([], [], selectors=["-e", "sched:*", "--filter", "prev_prio < 1000"])
        self.assertEqual(summary["tracepoints"], 1)
        self.assertEqual(summary["unmatched"], [])
        self.assertNotIn("sched:sched_switch", summary["leftOut"])
        self.assertIn("sched:sched_process_fork", summary["leftOut"])
        self.assertRegex(said, "left out: tracepoint sched:sched_process_exit: the kernel refuses the filter "
                               "'prev_prio < 1000': Field not found, at '< 1000'; a filter of this tracepoint can use .*pid")
        self.assertEqual({event["name"] for event in commands.dump(ARGS.nettrace, self.file)}, {"sched_switch"})
        # The second selector has no filter, so it still selects sched:sched_process_fork.
        summary, _ = self.record([], [], selectors=["-e", "sched:*", "--filter", "prev_prio < 1000", "-e", "sched:*_fork"])
        self.assertEqual(summary["tracepoints"], 2)
        self.assertNotIn("sched:sched_process_fork", summary["leftOut"])

    def test_a_filter_that_fits_nothing_matched_nothing(self):
        summary, _ = self.record([], [], selectors=["-e", "sched:sched_process_f*", "--filter", "nosuch == 1"],
                                 status=3)
        self.assertEqual(summary["unmatched"], ["sched:sched_process_f*"])

    def check_failure(self, options, pattern, status=1, selectors=("-e", CALL)):
        failures.check_failure(self, [ARGS.nettrace, "record", "-o", self.file, *selectors, *options,
                                      "--duration", "100ms"], pattern, status)
        self.assertFalse(self.file.exists(), "nettrace record left an output file behind")

    def test_filters_that_are_wrong(self):
        switch = ("-e", "sched:sched_switch")
        for expression, message in (("nosuch == 1", "Field not found.*a filter of this tracepoint can use prev_comm, prev_pid"),
                                    ("prev_comm ~ 1", "Expecting string"), ("prev_pid ==", "sched_switch.*refuses"),
                                    ("((prev_pid == 1)", "sched_switch.*refuses"),
                                    ("prev_pid == 1 &&& 2", "sched_switch.*refuses.*(permitted|argument)")):
            with self.subTest(expression):
                self.check_failure(["--filter", expression], message, selectors=switch)
        self.check_failure([], "--filter 'a == 1': --filter must follow the -e", 2,
                           selectors=["--filter", "a == 1", *switch])
        self.check_failure(["--filter", ""], "--filter: the expression is empty", 2)
        self.assertEqual([name for name in os.listdir(TRACEFS / "instances") if name.startswith("nettrace-")], [])

    def test_targets_that_are_wrong(self):
        gone = subprocess.Popen(["/bin/true"])
        gone.wait()
        mine = Load(self)
        for option, kind in (("--pid", "process"), ("--tid", "thread")):
            self.check_failure([option, str(gone.pid)], f"{kind} {gone.pid}: there is no such {kind}; ")
            for text in ("0", "-1", "x", "1,,2", "1 2"):
                self.check_failure([f"{option}={text}"], f"{option} '{text}'.*12,34,56", 2)
        self.check_failure(["--pid", str(mine.worker)], f"a thread of process {mine.pid}; select process {mine.pid} or thread")
        if cgroups.mount() is not None:
            self.check_failure(["--cgroup", "no-such.service"], "no cgroup of that name below /.*check that the unit is running")
            self.check_failure(["--cgroup", "/no/such"], "no such cgroup below /")
            self.check_failure(["--cgroup", "/tmp"], "not a cgroup v2")

    def test_targets_exclude_each_other(self):
        for options in (("--pid", "1", "--tid", "1"), ("--pid", "1", "--cgroup", "a"), ("--tid", "1", "--cgroup", "a")):
            done = subprocess.run([ARGS.nettrace, "record", "-o", self.file, "-e", CALL, *options],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, "excludes")

    def test_no_cgroup_v2(self):
        mounts = [line.split()[1] for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()
                  if line.split()[2] == "cgroup2"]
        umount = "; ".join(f"umount -l {mount}" for mount in mounts) or "true"
        failures.check_failure(self, ["unshare", "--mount", "sh", "-c", f'{umount}; exec "$@"', "sh", ARGS.nettrace,
                                      "record", "-o", self.file, "-e", CALL, "--cgroup", "a", "--duration", "1s"],
                               "no cgroup v2 is mounted.*mount -t cgroup2.*by their ids")


if __name__ == "__main__":
    script.run_cases(lambda: tracepoints.require(CALL))
