#!/usr/bin/python3
"""Tests CPU samples of many processes that live for some ms, and of processes that execute one program after the other:
each sample must have the process, program and function that had the CPU then. Needs root, perf, and a C compiler for
programs with frame pointers."""

import collections
import json
import pathlib
import subprocess
import tempfile
import unittest

from support import commands
from support import script

ARGS = script.options(__doc__, "nettrace", processes=200)
RATE = 997
PROGRAMS = 4
FLAGS = ["-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"]

# Uses the CPU for 4 ms, prints its process id, its number, and when it began and ended, and executes its arguments.
# Functions of the programs have the same addresses, so a sample with the mappings of another program gets a wrong name.
SOURCE = r"""
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static long now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}
__attribute__((noinline)) void SPIN(void) {
  long end = now(CLOCK_THREAD_CPUTIME_ID) + 4000000;
  do {
    for (volatile int i = 0; i < 100000; ++i) {
    }
  } while (now(CLOCK_THREAD_CPUTIME_ID) < end);
  __asm__ volatile("");
}
int main(int count, char** arguments) {
  char line[100];
  long start = now(CLOCK_MONOTONIC);
  SPIN();
  int size = snprintf(line, sizeof line, "%d %d %ld %ld\n", getpid(), NUMBER, start, now(CLOCK_MONOTONIC));
  if (write(1, line, size) != size) return 1;
  if (count > 1) execv(arguments[1], arguments + 1);
  return 0;
}
"""

Run = collections.namedtuple("Run", "pid number start end")


class ShortProcessesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory(prefix="nettrace-short-")
        cls.addClassCleanup(cls._folder.cleanup)
        cls.folder = pathlib.Path(cls._folder.name)
        for number in range(PROGRAMS):
            flags = [*FLAGS, "-no-pie", "-fno-PIE", f"-DSPIN=spin_{number}", f"-DNUMBER={number}"]
            subprocess.run(["cc", *flags, "-x", "c", "-o", cls.folder / f"short-{number}", "-"], input=SOURCE.encode(),
                           check=True)

    def record(self, shell):
        """Records while a shell runs. Returns the runs of the programs, the samples, and the summary."""
        file = self.folder / "trace.nettrace"
        ran = subprocess.run([ARGS.nettrace, "record", "-o", file, "--json", f"--cpu={RATE}Hz", "--", "sh", "-c", shell],
                             cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        *lines, summary = ran.stdout.splitlines()
        runs = [Run(*map(int, line.split())) for line in lines]
        samples = [event for event in commands.dump(ARGS.nettrace, file, "--stacks", "--event", "cpu")]
        return runs, samples, json.loads(summary)

    def check(self, runs, samples, summary):
        by_pid = collections.defaultdict(list)
        for sample in samples:
            by_pid[sample["pid"]].append(sample)
        checked, unknown, wrong = 0, [], []
        for run in runs:
            for sample in by_pid[run.pid]:
                frames = [frame for frame in sample.get("frames", []) if not frame.startswith("vmlinux")]
                if not run.start < sample["timestamp"] < run.end or not frames:
                    continue
                checked += 1
                functions = {frame.rsplit("+", 1)[0] for frame in frames}
                spins = {function for function in functions if "!spin_" in function}
                if spins - {f"short-{run.number}!spin_{run.number}"} or sample["thread"] != f"short-{run.number}":
                    wrong.append((run, sample["thread"], frames))
                elif not spins:
                    unknown.append((run, frames))
        self.assertEqual(wrong[:5], [])
        # Each run spins for about 4 ms. The limits allow for missing samples, and for samples in libc, which has no
        # frame pointers.
        self.assertGreater(checked, 0.7 * len(runs) * 0.004 * RATE - 20)
        self.assertLessEqual(len(unknown), 0.02 * checked + summary["lost"], unknown[:5])
        print(f"{len(runs)} runs, {checked} samples, {len(unknown)} without the function, {summary['lost']} lost")

    def test_samples_of_short_processes_have_their_function(self):
        program = f"for i in $(seq {ARGS.processes // PROGRAMS}); do " + "".join(
            f"./short-{number} & " for number in range(PROGRAMS)) + "wait; done"
        runs, samples, summary = self.record(program)
        self.assertEqual(len({run.pid for run in runs}), ARGS.processes // PROGRAMS * PROGRAMS)
        self.check(runs, samples, summary)

    def test_samples_of_processes_that_execute_programs_have_their_function(self):
        chain = " ".join(f"./short-{number % PROGRAMS}" for number in range(20))
        rounds = max(1, ARGS.processes // 40)
        runs, samples, summary = self.record(f"for i in $(seq {rounds}); do {chain} & {chain}; wait; done")
        self.assertEqual(len(runs), rounds * 40)
        self.check(runs, samples, summary)


if __name__ == "__main__":
    script.run_cases(lambda: None)
