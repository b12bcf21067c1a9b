#!/usr/bin/python3
"""Tests samples of CPU time and times without a CPU: their stacks, how they agree with the CPU time that the kernel counts,
and what the file and the summary state about them. Needs root, perf, and a C compiler for programs with frame pointers."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from support import commands
from support import script

ARGS = script.options(__doc__, "nettrace")
DEPTH = 20
RATE = 997
FLAGS = ["-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"]

# Uses CPU time and sleeps in turn, both below the same number of frames. Prints when it started and ended, and its CPU
# time, in ns.
WORK = r"""
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static long now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}
static void spin(void) {
  // The loop ends by CPU time: on a busy machine, the thread may get little CPU time in 20 ms.
  long end = now(CLOCK_THREAD_CPUTIME_ID) + 20000000;
  do {
    for (volatile int i = 0; i < 1000000; ++i) {
    }
  } while (now(CLOCK_THREAD_CPUTIME_ID) < end);
}
static void rest(void) {
  struct timespec time = {0, 20000000};
  syscall(SYS_nanosleep, &time, 0);
}
__attribute__((noinline)) int recurse(int n, int rests) {
  int below = n == 0 ? 0 : recurse(n - 1, rests);
  if (n == 0) (rests ? rest : spin)();
  __asm__ volatile("" : "+r"(below));
  return below;
}
int main(void) {
  long start = now(CLOCK_MONOTONIC), cpu = now(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < 50; ++i) recurse(DEPTH, i % 2);
  printf("{\"start\": %ld, \"end\": %ld, \"cpu\": %ld}\n", start, now(CLOCK_MONOTONIC), now(CLOCK_THREAD_CPUTIME_ID) - cpu);
  return 0;
}
"""


def steal():
    """Returns the time, in ns, for which virtual CPUs had no CPU of the host since the last call of this function."""
    ticks = int(pathlib.Path("/proc/stat").read_text(encoding="ascii").split()[8])
    before, steal.last = getattr(steal, "last", ticks), ticks
    return (ticks - before) * 10**9 // os.sysconf("SC_CLK_TCK")


class SamplesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory(prefix="nettrace-samples-")
        cls.folder = pathlib.Path(cls._folder.name)
        cls.work = cls.folder / "work"
        cls.compile(cls.work)
        (cls.folder / "dwarf").mkdir()
        cls.compile(cls.folder / "dwarf" / "work", "-fomit-frame-pointer")

    @classmethod
    def compile(cls, program, *flags):
        subprocess.run(["cc", *FLAGS, *flags, f"-DDEPTH={DEPTH}", "-x", "c", "-o", program, "-"], input=WORK.encode(),
                       check=True)

    @classmethod
    def tearDownClass(cls):
        cls._folder.cleanup()

    def setUp(self):
        steal()

    def record(self, *arguments):
        """Records, and returns the events with their stacks."""
        file = self.folder / "trace.nettrace"
        ran = subprocess.run([ARGS.nettrace, "record", "-o", file, "--json", *arguments], cwd=self.folder,
                             capture_output=True, check=False)
        self.assertEqual(ran.returncode, 0, ran.stderr.decode())
        *self.printed, summary = ran.stdout.decode().splitlines()
        self.summary = json.loads(summary)
        verified = subprocess.run([ARGS.nettrace, "verify", file], capture_output=True, check=False)
        self.assertEqual(verified.returncode, 0, verified.stdout.decode())
        return list(commands.dump(ARGS.nettrace, file, "--stacks"))

    def start(self, command):
        """Starts a program; ensures that it ends with the test."""
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def samples_of(self, events, name="work"):
        return [event for event in events if event["provider"] == "Universal.Events" and event["name"] == "cpu"
                and event["thread"] == name]

    def check_stacks(self, events):
        """Checks that nearly all samples of the function that uses the CPU have all callers of that function."""
        stacks = [[frame for frame in event["frames"] if not frame.startswith("vmlinux")]
                  for event in events if event["frames"][0].startswith(("work+", "work!"))]
        self.assertGreater(len(stacks), 100)
        # A whole stack has spin(), recurse() DEPTH + 1 times, and main().
        whole = [stack for stack in stacks if sum(frame.startswith(("work+", "work!")) for frame in stack) == DEPTH + 3
                 and stack[-1].startswith("libc.so.6")]
        self.assertGreaterEqual(len(whole), 0.99 * len(stacks), stacks[:3])

    def check_samples(self, events, of_machine):
        samples = self.samples_of(events)
        work = json.loads(self.printed[0])
        expected = work["cpu"] * RATE / 1e9
        self.assertGreater(len(samples), 0.8 * expected)
        self.assertLess(len(samples), 1.2 * expected + 20)
        self.assertTrue(all(event["payload"] == {"Value": 1} for event in samples))
        self.assertEqual(of_machine, any(event["pid"] != samples[0]["pid"] for event in events))
        self.assertNotIn(0, {event["tid"] for event in events})
        self.assertEqual((self.summary["tracepoints"], self.summary["lost"]), (0, 0))
        self.assertEqual(self.summary["events"], len(events))
        self.check_stacks(samples)

    def test_samples_of_the_machine_have_whole_stacks(self):
        self.check_samples(self.record("--cpu", "--", "./work"), of_machine=True)
        info = commands.info(ARGS.nettrace, self.folder / "trace.nettrace")
        self.assertEqual(info["keyValues"]["ExpectedCPUSamplingRate"], str(10**9 // RATE))

    def test_samples_of_a_process_have_whole_stacks(self):
        work = self.start(self.work)
        events = self.record("--cpu", "--pid", str(work.pid))
        samples = self.samples_of(events)
        self.assertEqual({event["pid"] for event in events}, {work.pid})
        self.check_stacks(samples)

    def test_samples_can_be_recorded_beside_tracepoints(self):
        if not os.path.exists("/sys/kernel/tracing/events/sched"):
            self.skipTest("tracefs is not mounted")
        events = self.record("--cpu=99Hz", "-e", "sched:sched_process_exit", "--", "./work")
        self.assertEqual({event["name"] for event in events}, {"cpu", "sched_process_exit"})
        self.assertTrue(all(("frames" in event) == (event["name"] == "cpu") for event in events))
        self.assertEqual(self.summary["tracepoints"], 1)
        samples = self.samples_of(events)
        self.assertLess(len(samples), 1.2 * json.loads(self.printed[0])["cpu"] * 99 / 1e9 + 5)

    def check_off_cpu(self, events, work, frames=(DEPTH + 2, DEPTH + 3)):
        """Checks the times without a CPU of the program that printed `work`, and that it has no samples in these times.
        `frames`: the numbers of the program's frames that the stack of a sleep may have."""
        switches = [event for event in events if event["name"] == "cswitch" and event["thread"] == "work"]
        times = sorted((event["timestamp"] - event["payload"]["Value"], event["timestamp"]) for event in switches)
        self.assertGreaterEqual(len(times), 25)
        self.assertTrue(all(end <= start for (_, end), (start, _) in zip(times, times[1:])))
        inside = [sample["timestamp"] for sample in self.samples_of(events)
                  if any(start < sample["timestamp"] < end for start, end in times)]
        self.assertEqual(inside, [])
        within = sum(max(0, min(end, work["end"]) - max(start, work["start"])) for start, end in times)
        life = work["end"] - work["start"]
        # The kernel's CPU time does not contain times in which a virtual CPU had no CPU of the host.
        self.assertLess(abs(within + work["cpu"] - life), 0.02 * life + steal(), (within, work))
        sleeps = [event for event in switches if event["payload"]["Value"] >= 20_000_000
                  and any("nanosleep" in frame for frame in event["frames"])]
        self.assertGreaterEqual(len(sleeps), 25)
        for event in sleeps:
            count = sum(frame.startswith(("work+", "work!")) for frame in event["frames"])
            # syscall() itself may have no frame pointer, so the frame that calls it may be missing.
            self.assertIn(count, frames, event["frames"])

    def test_times_without_a_cpu_and_samples_exclude_each_other(self):
        events = self.record("--cpu", "--off-cpu", "--", "./work")
        work = json.loads(self.printed[0])
        self.check_off_cpu(events, work)
        self.assertTrue(any(event["name"] == "cswitch" and event["thread"] != "work" for event in events))
        self.assertEqual((self.summary["tracepoints"], self.summary["lost"]), (0, 0))
        self.assertEqual(self.summary["events"], len(events))
        switches = [event["timestamp"] for event in events if event["name"] == "cswitch"]
        self.assertEqual(switches, sorted(switches))

    def record_times_of_process(self, program, *options):
        """Records the samples and the times without a CPU of one program. Returns its events, and what it printed."""
        start = self.folder / "start"
        start.unlink(missing_ok=True)
        os.mkfifo(start)
        work = self.start(["sh", "-c", f"read line <{start}; exec {program}"])
        events = self.record("--cpu", "--off-cpu", *options, "--pid", str(work.pid), "--", "sh", "-c",
                             f"echo >{start}; exec sleep 20")
        self.assertEqual({event["pid"] for event in events}, {work.pid})
        return events, json.loads(work.stdout.read().decode())

    def test_times_without_a_cpu_of_a_process_are_recorded(self):
        self.check_off_cpu(*self.record_times_of_process(self.work))

    def test_times_without_a_cpu_have_whole_dwarf_stacks(self):
        events, work = self.record_times_of_process(self.folder / "dwarf" / "work", "--stacks=dwarf")
        # The stack of a sleep has rest(), recurse() DEPTH + 1 times, main() and _start().
        self.check_off_cpu(events, work, frames=(DEPTH + 4,))
        switches = [event for event in events if event["name"] == "cswitch" and event["thread"] == "work"]
        whole = [event for event in switches if "StackCut" not in event.get("labels", {})]
        # One stack may be cut: that of a thread which is switched out in execve(), when the shell's code is no longer mapped.
        self.assertGreaterEqual(len(whole), len(switches) - 1)
        # A stack may end in the loader, which runs before _start() of the program. Its code may have no symbol.
        ends = {event["frames"][-1].split("+")[0] for event in whole}
        self.assertLessEqual(ends - {"work!_start"}, {"ld-linux-x86-64.so.2!_start", "ld-linux-x86-64.so.2"})

    def test_lost_switches_cause_no_times_without_a_cpu(self):
        pause = "./work & sleep 0.2; kill -STOP $PPID; sleep 0.3; kill -CONT $PPID; wait"
        events = self.record("--cpu", "--off-cpu", "--ring-size", "16K", "--", "sh", "-c", pause)
        switches = [event for event in events if event["name"] == "cswitch"]
        self.assertGreater(self.summary["lost"], 0)
        self.assertGreater(len([event for event in switches if event["thread"] == "work"]), 10)
        samples = {}
        for event in events:
            if event["name"] == "cpu":
                samples.setdefault(event["tid"], []).append(event["timestamp"])
        for event in switches:
            start, end = event["timestamp"] - event["payload"]["Value"], event["timestamp"]
            self.assertEqual([time for time in samples.get(event["tid"], []) if start < time < end], [])

    def test_wrong_options_are_usage(self):
        for arguments, message in ([["--cpu=0"], b"--cpu"], [["--cpu=fast"], b"for example 997Hz"],
                                   [["--cpu=99999999"], b"perf_event_max_sample_rate"], [[], b"--cpu"]):
            ran = subprocess.run([ARGS.nettrace, "record", "-o", "/dev/null", *arguments], capture_output=True, check=False)
            self.assertEqual(ran.returncode, 2, ran.stderr)
            self.assertIn(message, ran.stderr)


if __name__ == "__main__":
    script.run_cases(lambda: None)
