#!/usr/bin/python3
"""Tests that nettraced records samples of CPU time, times without a CPU and stacks of a tracepoint: each rotated file,
each snapshot, each stream of a pipe and each stream of a tail is complete, the status has the same counts as the files,
and a session that does not select stacks gets none. Needs root, perf, tracefs, and a C compiler for programs with frame
pointers."""

import collections
import os
import pathlib
import subprocess
import tempfile
import threading
import time
import unittest

from support import commands
from support import script
from support.daemon import nettraced
from support.kernel import tracepoints

ARGS = script.options(__doc__, "nettrace", "nettraced")
CALL = "syscalls:sys_enter_getppid"
DEPTH = 20
RATE = 499
FLAGS = ["-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"]

# Uses CPU time, sleeps and calls getppid in turn, each below the same number of frames, until its input ends. Prints
# the number of calls.
WORK = r"""
#include <poll.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static long cpu_time(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}
__attribute__((noinline)) static void spin(void) {
  long end = cpu_time() + 10000000;
  do {
    for (volatile int i = 0; i < 1000000; ++i) {
    }
  } while (cpu_time() < end);
}
__attribute__((noinline)) static void rest(void) {
  struct timespec time = {0, 5000000};
  syscall(SYS_nanosleep, &time, 0);
}
__attribute__((noinline)) static void call(void) { syscall(SYS_getppid); }
__attribute__((noinline)) int recurse(int n, void (*leaf)(void)) {
  int below = n == 0 ? 0 : recurse(n - 1, leaf);
  if (n == 0) leaf();
  __asm__ volatile("" : "+r"(below));
  return below;
}
int main(void) {
  void (*leaves[])(void) = {spin, rest, call};
  struct pollfd input = {0, POLLIN, 0};
  long calls = 0;
  while (poll(&input, 1, 0) == 0) {
    for (int i = 0; i < 3; ++i) recurse(DEPTH, leaves[i]);
    ++calls;
  }
  printf("%ld\n", calls);
  return 0;
}
"""


class DaemonStacksTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory(prefix="nettraced-stacks-")
        cls.folder = pathlib.Path(cls._folder.name)
        cls.program = cls.folder / "work"
        subprocess.run(["cc", *FLAGS, f"-DDEPTH={DEPTH}", "-x", "c", "-o", cls.program, "-"], input=WORK.encode(),
                       check=True)

    @classmethod
    def tearDownClass(cls):
        cls._folder.cleanup()

    def daemon(self, **settings):
        daemon = nettraced.Daemon(ARGS.nettraced, ARGS.nettrace, settings)
        self.addCleanup(daemon.close)
        return daemon

    def start_work(self):
        """Starts the program; ensures that it ends with the test."""
        work = subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for clean_up in (work.stdin.close, work.stdout.close, work.wait, work.kill):
            self.addCleanup(clean_up)
        return work

    def read(self, file):
        """Verifies the file. Returns its events with their stacks, and those that describe code."""
        verified = subprocess.run([ARGS.nettrace, "verify", file], capture_output=True, text=True, check=False)
        self.assertEqual(verified.returncode, 0, verified.stdout)
        events, code = [], []
        for event in commands.dump(ARGS.nettrace, file, "--stacks", "--processes"):
            (code if event["provider"] == "Universal.System" else events).append(event)
        return [event for event in events if event["provider"] != "NetTrace.Collector"], code

    def check_stacks(self, events, pid, names):
        """Checks that nearly all events of the process have each frame of the recursion and the module of each frame."""
        stacks = collections.defaultdict(list)
        for event in events:
            if event["pid"] == pid:
                stacks[event["name"]].append(event.get("frames", []))
        self.assertLessEqual(set(names), set(stacks))
        for name in names:
            # Samples and switches may also hit the program between two recursions, when it has fewer frames.
            whole = [stack for stack in stacks[name] if sum(frame.startswith(("work+", "work!")) for frame in stack) > DEPTH
                     and stack[-1].startswith("libc.so.6")]
            self.assertGreaterEqual(len(whole), 0.8 * len(stacks[name]), (name, stacks[name][:3]))
            unknown = [frame for stack in whole for frame in stack if frame.startswith("0x")]
            self.assertEqual(unknown, [], name)

    def test_rotated_files_are_complete_beside_a_session_without_stacks(self):
        fast = 'interval = "100ms"\nring_size = "8M"\n'
        daemon = self.daemon(all=f'[session.all]\nselect = [{{ tracepoint = "{CALL}", stacks = "user,max=40" }}]\n'
                             f'cpu = {RATE}\noff_cpu = true\n{fast}', plain=f'[session.plain]\nselect = ["{CALL}"]\n{fast}',
                             only=f'[session.only]\ncpu = "99Hz"\n{fast}')
        daemon.start()
        # The program runs during both files, so the second file must repeat the description of the program's code.
        work = self.start_work()
        time.sleep(0.7)
        daemon.ask("rotate", "all")
        time.sleep(0.7)
        calls = int(work.communicate()[0])
        shown = daemon.ask("status", "all")
        for text in (f"{RATE} per second", "the times in which threads have no CPU", f"{CALL}: user,max=40"):
            self.assertIn(text, shown)
        for session in ("all", "plain", "only"):
            daemon.ask("stop", session)
        status = {session: daemon.status(session) for session in ("all", "plain", "only")}
        self.assertEqual([[status[session][key] for key in ("cpuRate", "offCpu", "stacks")] for session in status],
                         [[RATE, True, [f"{CALL}: user,max=40"]], [0, False, []], [99, False, []]])
        self.assertEqual(daemon.stop(), 0)

        files = daemon.files("all")
        self.assertEqual(len(files), 2)
        counts, call_events = [], 0
        for file in files:
            events, code = self.read(file)
            self.check_stacks(events, work.pid, ["cpu", "cswitch", "sys_enter_getppid"])
            mapped = {event["payload"]["FileName"].rsplit("/", 1)[-1] for event in code
                      if event["name"] == "ProcessMapping" and event["pid"] == work.pid}
            self.assertLessEqual({"work", "libc.so.6"}, mapped)
            kernel = [frame for event in events if event["name"] == "cswitch" and event["pid"] == work.pid
                      for frame in event["frames"] if frame.startswith("vmlinux")]
            self.assertTrue(kernel)
            if not any("kallsyms" in warning for warning in status["all"]["warnings"]):
                self.assertTrue(any("nanosleep" in frame for frame in kernel), kernel[:10])
            call_events += sum(event["name"] == "sys_enter_getppid" and event["pid"] == work.pid for event in events)
            info = commands.info(ARGS.nettrace, file)
            self.assertEqual(len(events), info["events"])
            counts.append((info["events"], info["lost"]))
        self.assertEqual([sum(column) for column in zip(*counts)], [status["all"]["events"], status["all"]["lost"]])
        if status["all"]["lost"] == 0:
            self.assertEqual(call_events, calls)

        [file] = daemon.files("plain")
        events, code = self.read(file)
        self.assertEqual(sum(event["pid"] == work.pid for event in events) + status["plain"]["lost"], calls)
        self.assertEqual(len(events), status["plain"]["events"])
        self.assertEqual({event["name"] for event in events}, {"sys_enter_getppid"})
        self.assertFalse(any("stack" in event for event in events))
        self.assertFalse({event["name"] for event in code} & {"ProcessMapping", "ProcessSymbol", "ProcessMappingMetadata"})

        [file] = daemon.files("only")
        events, _ = self.read(file)
        self.assertEqual({event["name"] for event in events}, {"cpu"})
        self.assertEqual(len(events), status["only"]["events"])
        self.check_stacks(events, work.pid, ["cpu"])

    def test_snapshots_pipes_and_tails_have_the_code_of_their_stacks(self):
        work = self.start_work()
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        wanted = (f'select = ["{CALL}"]\nstacks = true\ncpu = {RATE}\noff_cpu = true\ninterval = "100ms"\n'
                  f'target = {{ pids = [{work.pid}] }}\n')
        daemon = self.daemon(box=f"[session.box]\n{wanted}[session.box.flight]\nkeep_bytes = \"4M\"\n",
                             stream=f'[session.stream]\n{wanted}pipe = {{ path = "{pipe}" }}\n')
        streams = {name: self.folder / f"{name}.nettrace" for name in ("pipe", "tail")}
        reader = threading.Thread(target=lambda: streams["pipe"].write_bytes(pipe.read_bytes()))
        reader.start()
        daemon.start()
        with open(streams["tail"], "wb") as out:
            tail = subprocess.Popen([ARGS.nettrace, "ctl", "--socket", daemon.path / "run/control", "tail", "box"], stdout=out)
        self.addCleanup(tail.wait)
        self.addCleanup(tail.kill)
        time.sleep(0.7)
        snapshots = [daemon.ask("snapshot", "box")]
        time.sleep(0.5)
        snapshots.append(daemon.ask("snapshot", "box"))
        for session in ("box", "stream"):
            daemon.ask("stop", session)
        tail.wait(20)
        reader.join(20)
        for file in [*snapshots, *streams.values()]:
            with self.subTest(file=pathlib.Path(file).name):
                events, _ = self.read(file)
                self.check_stacks(events, work.pid, ["cpu", "cswitch", "sys_enter_getppid"])
        self.assertEqual(daemon.stop(), 0)

    def test_the_status_says_which_right_the_names_of_frames_need(self):
        daemon = self.daemon(one='[session.one]\ncpu = true\n')
        daemon.start(prefix=("setpriv", "--bounding-set=-syslog,-sys_ptrace", "--inh-caps=-syslog,-sys_ptrace"))
        warnings = "\n".join(daemon.status("one")["warnings"])
        sysctl = {name: int(pathlib.Path("/proc/sys/kernel", name).read_text(encoding="ascii"))
                  for name in ("kptr_restrict", "perf_event_paranoid")}
        shows_all = sysctl["kptr_restrict"] == 0 and sysctl["perf_event_paranoid"] <= 1
        self.assertEqual("CAP_SYSLOG" in warnings, not shows_all, warnings)
        release = tuple(map(int, os.uname().release.split("-")[0].split(".")[:2]))
        if release < (6, 15):
            self.assertIn("CAP_SYS_PTRACE", warnings)
        for warning in warnings.splitlines():
            self.assertIn(warning, daemon.ask("status", "one"))
            daemon.wait_for_log(warning)
        self.assertEqual(daemon.stop(), 0)

    def test_stacks_that_the_kernel_does_not_permit_are_an_error_of_the_session(self):
        limit = int(pathlib.Path("/proc/sys/kernel/perf_event_max_stack").read_text(encoding="ascii"))
        daemon = self.daemon(one=f'[session.one]\nselect = ["{CALL}"]\nstacks = "max={limit + 1}"\n',
                             two=f'[session.two]\nselect = ["{CALL}"]\nstacks = "max={limit}"\n')
        daemon.start()
        daemon.wait_for_state("one", "failed")
        self.assertIn(f"stacks: invalid stacks \"max={limit + 1}\": max= takes 1 to {limit}", daemon.status("one")["error"])
        self.assertEqual(daemon.status("two")["state"], "running")
        self.assertEqual(daemon.stop(), 0)


if __name__ == "__main__":
    script.run_cases(lambda: tracepoints.require(CALL))
