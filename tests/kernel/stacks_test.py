#!/usr/bin/python3
"""Tests the stacks of events: their depth, the module of each frame after dlopen, fork and exec, the functions of the
kernel, and the maximum of frames. Needs root, tracefs, and a C compiler for programs with frame pointers."""

import collections
import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from support import commands
from support import script
from support.kernel import fuse_file
from support.kernel import tracepoints

ARGS = script.options(__doc__, "nettrace")
CALL = "syscalls:sys_enter_getppid"
DEPTH = 20
FLAGS = ["-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"]

# Calls getppid below DEPTH + 1 frames of one function.
RECURSION = r"""
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((noinline)) int recurse(int n) {
  int below = n == 0 ? (int)syscall(SYS_getppid) : recurse(n - 1);
  __asm__ volatile("" : "+r"(below));
  return below;
}
int main(void) {
  for (int i = 0; i < 3; ++i) recurse(%d);
  return 0;
}
"""

# Calls getppid from a function that qsort calls.
SORTER = r"""
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static int compare(const void* a, const void* b) {
  syscall(SYS_getppid);
  return *(const int*)a - *(const int*)b;
}
int main(void) {
  int numbers[4] = {4, 3, 2, 1};
  qsort(numbers, 4, sizeof numbers[0], compare);
  return numbers[0] - 1;
}
"""

# Uses CPU time below DEPTH + 1 frames of one function.
SPINNER = r"""
#include <time.h>
__attribute__((noinline)) int spin(void) {
  while (clock() < CLOCKS_PER_SEC) {
    for (volatile int i = 0; i < 1000000; ++i) {
    }
  }
  return 0;
}
__attribute__((noinline)) int recurse(int n) {
  int below = n == 0 ? spin() : recurse(n - 1);
  __asm__ volatile("" : "+r"(below));
  return below;
}
int main(void) { return recurse(%d); }
"""

# Calls getppid from a signal handler. The signals interrupt a loop that calls a small function.
INTERRUPTED = r"""
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
static volatile int signals;
static void handle(int signal) {
  (void)signal;
  if (signals == 100) return; /* The timer runs until the program ends. */
  syscall(SYS_getppid);
  ++signals;
}
__attribute__((noinline)) int leaf(int n) { return n + signals; }
__attribute__((noinline)) int spin(void) {
  int sum = 0;
  while (signals < 100) sum += leaf(sum);
  return sum;
}
int main(void) {
  struct itimerval every = {{0, 2000}, {0, 2000}};
  signal(SIGALRM, handle);
  setitimer(ITIMER_REAL, &every, 0);
  return spin() == 1;
}
"""

# Calls getppid from a handler of SIGILL, which the first instruction of trap() causes. No byte is between trap() and the
# function before it, so the address before trap() belongs to that function.
TRAPPED = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#if defined(__x86_64__)
#define TRAP "ud2"
#define NEXT(context) ((context)->uc_mcontext.gregs[REG_RIP] += 2)
#elif defined(__aarch64__)
#define TRAP "udf #0"
#define NEXT(context) ((context)->uc_mcontext.pc += 4)
#endif
void trap(void);
__asm__(".text\n"
        ".type before, %function\n"
        "before: .cfi_startproc\n nop\n nop\n nop\n ret\n .cfi_endproc\n"
        ".size before, . - before\n"
        ".globl trap\n"
        ".type trap, %function\n"
        "trap: .cfi_startproc\n" TRAP "\n ret\n .cfi_endproc\n"
        ".size trap, . - trap\n");
static void handle(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info;
  syscall(SYS_getppid);
  NEXT((ucontext_t*)context);
}
int main(void) {
  struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
  sigaction(SIGILL, &action, 0);
  for (int i = 0; i < 10; ++i) trap();
  return 0;
}
"""

# Reads a clock, which runs code of the vdso.
CLOCK = r"""
#include <time.h>
__attribute__((noinline)) static long ask(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}
int main(void) {
  while (clock() < CLOCKS_PER_SEC) {
    for (int i = 0; i < 1000000; ++i) ask();
  }
  return 0;
}
"""

# Calls getppid until it is killed.
CALLER = r"""
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((noinline)) static int call(void) {
  int result = (int)syscall(SYS_getppid);
  __asm__ volatile("" : "+r"(result));
  return result;
}
int main(void) {
  for (;;) {
    call();
    usleep(1000);
  }
}
"""

LIBRARY = r"""
int call(int (*leaf)(void)) {
  int result = leaf();
  __asm__ volatile("" : "+r"(result));
  return result;
}
"""

# Loads two libraries in turn, usually at the same address; then does so in a child and after exec.
LOADER = r"""
#include <dlfcn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) static int leaf(void) {
  int result = (int)syscall(SYS_getppid);
  __asm__ volatile("" : "+r"(result));
  return result;
}
static void load(const char* path) {
  void* library = dlopen(path, RTLD_NOW);
  int (*call)(int (*)(void)) = (int (*)(int (*)(void)))dlsym(library, "call");
  call(leaf);
  dlclose(library);
}
int main(int argc, char** argv) {
  for (int i = 0; i < 4; ++i) load(i % 2 == 0 ? "./first.so" : "./second.so");
  if (argc > 1) return 0;
  if (fork() == 0) {
    load("./second.so");
    load("./first.so");
    _exit(0);
  }
  wait(0);
  execl(argv[0], argv[0], "again", (char*)0);
  return 1;
}
"""


class StacksTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory(prefix="nettrace-stacks-")
        cls.folder = pathlib.Path(cls._folder.name)
        cls.compile("recursion", RECURSION % DEPTH)
        cls.compile("loader", LOADER)
        cls.compile("first.so", LIBRARY, "-shared", "-fPIC")
        cls.compile("second.so", LIBRARY, "-shared", "-fPIC")

    @classmethod
    def tearDownClass(cls):
        cls._folder.cleanup()

    @classmethod
    def compile(cls, name, source, *flags, folder="."):
        (cls.folder / folder).mkdir(exist_ok=True)
        subprocess.run(["cc", *FLAGS, *flags, "-x", "c", "-o", cls.folder / folder / name, "-", "-x", "none", "-ldl"],
                       input=source.encode(), check=True)

    def record(self, *arguments, folder="."):
        """Records a command in a folder, and returns the events with their stacks."""
        file = self.folder / "trace.nettrace"
        ran = subprocess.run([ARGS.nettrace, "record", "-o", file, *arguments], cwd=self.folder / folder, capture_output=True,
                             check=False)
        self.assertEqual(ran.returncode, 0, ran.stderr.decode())
        verified = subprocess.run([ARGS.nettrace, "verify", file], capture_output=True, check=False)
        self.assertEqual(verified.returncode, 0, verified.stdout.decode())
        self.said = ran.stderr.decode()
        return list(commands.dump(ARGS.nettrace, file, "--stacks"))

    def calls_of(self, events, name):
        return [event for event in events if event["name"] == "sys_enter_getppid" and event["thread"] == name]

    def test_a_stack_has_every_frame_of_a_recursion(self):
        events = self.calls_of(self.record("-e", CALL, "--stacks", "--", "./recursion"), "recursion")
        self.assertEqual(len(events), 3)
        for event in events:
            modules = [frame.split("+")[0].split("!")[0] for frame in event["frames"]]
            # syscall() itself may have no frame pointer, so the frame that calls it may be missing.
            self.assertIn(modules.count("recursion") - 1, (DEPTH, DEPTH + 1), event["frames"])
            self.assertEqual(modules[0], "libc.so.6")
            self.assertEqual(modules[-1], "libc.so.6")
            self.assertNotIn("StackCut", event["labels"])

    def check_libraries(self, events):
        """Checks that each stack of the program `loader` has the library that was loaded at that time, also in the child
        and after exec."""
        wanted = ["first.so", "second.so"] * 2 + ["second.so", "first.so"] + ["first.so", "second.so"] * 2
        found = [[module for module in ("first.so", "second.so") if any(frame.startswith(module) for frame in
                                                                        event["frames"])] for event in events]
        # Where syscall() has no frame pointer, the frame of leaf() is missing, so only the frame of the library is checked.
        self.assertEqual(found, [[name] for name in wanted], [event["frames"] for event in events])
        self.assertEqual(len({event["pid"] for event in events}), 2)

    def test_frames_have_the_library_that_was_loaded_at_the_time(self):
        self.check_libraries(self.calls_of(self.record("-e", CALL, "--stacks", "--", "./loader"), "loader"))

    def test_kernel_frames_have_functions(self):
        shutil.copy("/bin/true", self.folder / "our-true")  # Other processes may run /bin/true.
        events = self.record("-e", "sched:sched_process_exec", "--stacks", "-e", "sched:sched_process_exit",
                             "--stacks=kernel", "--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do ./our-true; done")
        names = {"our-true"}
        execs = [event for event in events if event["name"] == "sched_process_exec" and event["thread"] in names]
        exits = [event for event in events if event["name"] == "sched_process_exit" and event["thread"] in names]
        self.assertEqual((len(execs), len(exits)), (9, 9))
        if "kallsyms" in self.said:
            self.skipTest("this kernel hides the addresses of its functions")
        for event in execs + exits:
            kernel = [frame for frame in event["frames"] if frame.startswith("vmlinux!")]
            self.assertGreaterEqual(len(kernel), 3, event["frames"])
            self.assertTrue(any("exec" in frame or "exit" in frame for frame in kernel), kernel)
        for event in exits:
            self.assertTrue(all(int(address, 16) >> 63 for address in event["stack"]), event["stack"])

    def check_marks(self, frames, program, stacks):
        """Checks that the program's stacks have this number of frames and are marked as cut, and that all readers show this."""
        file = self.folder / "trace.nettrace"
        events = self.record("-e", CALL, stacks, "--", f"./{program}")
        calls = self.calls_of(events, program)
        self.assertEqual([(len(event["frames"]), event["labels"].get("StackCut")) for event in calls],
                         [(frames, frames)] * 3)
        cut = sum("StackCut" in event.get("labels", {}) for event in events)

        def run(*arguments):
            return subprocess.run([ARGS.nettrace, *arguments, file], capture_output=True, check=True, text=True)

        text = run("dump", "--stacks").stdout.splitlines()
        self.assertEqual(text.count("    ... callers may be missing"), cut)
        marks = [line for line, before in zip(text[frames + 1:], text)
                 if program in before and "sys_enter_getppid" in before]
        self.assertEqual(marks, ["    ... callers may be missing"] * 3)
        subprocess.run([ARGS.nettrace, "report", file, "-o", self.folder / "report.html"], check=True)
        report = (self.folder / "report.html").read_text(encoding="utf-8")
        # assertIn is not used, because its message would contain the whole page.
        self.assertTrue(f"{cut} events have an incomplete stack" in report,
                        f"the report does not state {cut} events with an incomplete stack")
        self.assertIn(f"{cut} events with a stack that lacks callers", run("export", "--to", "folded", "-o", "-").stderr)

    def test_a_stack_with_the_maximum_of_frames_is_marked(self):
        self.check_marks(5, "recursion", "--stacks=user,max=5")

    def test_a_stack_with_the_maximum_of_the_kernel_is_marked(self):
        limit = int(pathlib.Path("/proc/sys/kernel/perf_event_max_stack").read_text(encoding="ascii"))
        self.compile("deep", RECURSION % (2 * limit))
        self.check_marks(limit, "deep", "--stacks")

    def test_other_selectors_have_no_stacks(self):
        events = self.record("-e", CALL, "-e", "sched:sched_process_exit", "--stacks", "--", "./recursion")
        self.assertEqual([event for event in self.calls_of(events, "recursion") if "stack" in event], [])
        exits = [event for event in events if event["name"] == "sched_process_exit"]
        self.assertTrue(exits and all("stack" in event for event in exits))

    def test_mappings_without_a_stack_are_not_in_the_file(self):
        self.record("-e", CALL, "--stacks", "--", "./recursion")
        shown = subprocess.run([ARGS.nettrace, "dump", "--json", "--processes", self.folder / "trace.nettrace"],
                               stdout=subprocess.PIPE, check=True).stdout.splitlines()
        mappings = [event["payload"]["FileName"] for event in map(json.loads, shown)
                    if event["name"] == "ProcessMapping" and event["thread"] == "recursion"]
        self.assertEqual(len(mappings), 2, mappings)

    def test_dwarf_stacks_need_no_frame_pointers(self):
        self.compile("sorter", SORTER, "-fomit-frame-pointer")
        events = self.calls_of(self.record("-e", CALL, "--stacks=dwarf", "--", "./sorter"), "sorter")
        self.assertGreaterEqual(len(events), 3)
        for event in events:
            modules = [frame.split("!")[0] for frame in event["frames"]]
            # The program's frames are compare(), main() and _start(). The frames of qsort() are between the first two.
            own = [index for index, module in enumerate(modules) if module == "sorter"]
            self.assertEqual(len(own), 3, event["frames"])
            self.assertIn("sorter!compare+", event["frames"][own[0]])
            self.assertIn("sorter!main+", event["frames"][own[1]])
            self.assertIn("sorter!_start+", event["frames"][-1])
            self.assertTrue(all(module.startswith("libc") for module in modules[own[0] + 1:own[1]]), event["frames"])
            self.assertGreater(own[1] - own[0], 1)
            self.assertNotIn("StackCut", event.get("labels", {}))

    def check_whole(self, stacks, is_right):
        """Checks that `is_right(frames)` is true for nearly all stacks, and that they end in _start()."""
        bad = [frames for frames in stacks if not (is_right(frames) and "!_start+" in frames[-1])]
        # On a busy machine, the recorder may have no time to unwind some stacks. The file has their number.
        skipped = commands.info(ARGS.nettrace, self.folder / "trace.nettrace")["stacksSkipped"]
        self.assertGreater(len(stacks) - len(bad), 100)
        self.assertLessEqual(len(bad) - skipped, 0.01 * len(stacks), bad[:3])

    def test_dwarf_stacks_of_samples_are_whole(self):
        self.compile("spinner", SPINNER % DEPTH, "-fomit-frame-pointer")
        events = self.record("--cpu=199Hz", "--stacks=dwarf", "--ring-size", "16M", "-e", CALL, "--", "./spinner")
        self.assertIn(" 0 lost", self.said)
        stacks = [event["frames"] for event in events if event["name"] == "cpu" and event["thread"] == "spinner" and
                  any("spinner!spin+" in frame for frame in event["frames"])]
        self.check_whole(stacks, lambda frames: sum("spinner!recurse+" in frame for frame in frames) == DEPTH + 1)

    def test_dwarf_stacks_have_the_library_that_was_loaded_at_the_time(self):
        for name, source, flags in (("loader", LOADER, []), ("first.so", LIBRARY, ["-shared", "-fPIC"]),
                                    ("second.so", LIBRARY, ["-shared", "-fPIC"])):
            self.compile(name, source, "-fomit-frame-pointer", *flags, folder="dwarf")
        events = self.calls_of(self.record("-e", CALL, "--stacks=dwarf", "--", "./loader", folder="dwarf"), "loader")
        self.check_libraries(events)
        for event in events:
            self.assertIn("loader!_start+", event["frames"][-1])
            self.assertNotIn("StackCut", event["labels"])

    def test_dwarf_stacks_of_signal_handlers_include_what_they_interrupt(self):
        self.compile("interrupted", INTERRUPTED, "-fomit-frame-pointer")
        events = self.calls_of(self.record("-e", CALL, "--stacks=dwarf", "--", "./interrupted"), "interrupted")
        self.assertEqual(len(events), 100)
        # The functions of each stack, with "libc" for those of libc.
        stacks = collections.Counter(" ".join("libc" if frame.startswith("libc.") else re.sub(r"interrupted!|\+.*", "", frame)
                                              for frame in event["frames"]) for event in events)
        for stack in stacks:
            # The frame after handle() is the function of libc to which a signal handler returns.
            self.assertRegex(stack, r"^libc handle libc (leaf )?spin main( libc)+ _start$", stacks)
        self.assertTrue(any(" leaf " in stack for stack in stacks), stacks)

    def test_dwarf_stacks_name_a_function_that_was_interrupted_at_its_first_instruction(self):
        self.compile("trapped", TRAPPED, "-fomit-frame-pointer")
        events = self.calls_of(self.record("-e", CALL, "--stacks=dwarf", "--", "./trapped"), "trapped")
        self.assertEqual(len(events), 10)
        for event in events:
            own = [frame for frame in event["frames"] if frame.startswith("trapped!")]
            self.assertEqual([re.sub(r"trapped!|\+.*", "", frame) for frame in own], ["handle", "trap", "main", "_start"])
            # Readers subtract 1 from the address of each caller. The recorder adds 1 to an interrupted address for
            # this.
            self.assertEqual(own[1], "trapped!trap+0x1")

    def test_dwarf_stacks_go_through_the_vdso(self):
        self.compile("clock", CLOCK, "-fomit-frame-pointer")
        events = self.record("--cpu=499Hz", "--stacks=dwarf", "--ring-size", "16M", "-e", CALL, "--", "./clock")
        stacks = [event["frames"] for event in events if event["name"] == "cpu" and event["thread"] == "clock"
                  and event["frames"][0].startswith("[vdso]")]
        self.check_whole(stacks, lambda frames: "clock!ask+" in " ".join(frames))

    @contextlib.contextmanager
    def programs_on_fuse(self, count, *flags):
        """Compiles CALLER, and runs it from a file on FUSE. Yields the server of the file, and the programs."""
        self.compile("caller", CALLER, *flags)
        with tempfile.TemporaryDirectory(dir=self.folder) as name, \
                fuse_file.FuseFile(pathlib.Path(name), "caller", (self.folder / "caller").read_bytes()) as server:
            # A shell executes the file. Popen would hold Python's global lock while it waits for the file, but the
            # thread of the file's server needs this lock.
            programs = [subprocess.Popen(["sh", "-c", 'exec "$0"', server.path]) for _ in range(count)]
            try:
                yield server, programs
            finally:
                for program in programs:
                    program.kill()
                    program.wait()

    def test_dwarf_stacks_do_not_wait_for_file_systems_of_users(self):
        with self.programs_on_fuse(2, "-fomit-frame-pointer") as (server, programs):
            options = ["-e", CALL, "--stacks=dwarf", "--no-symbols", "--pid", ",".join(str(each.pid) for each in programs)]
            self.record(*options, "--", "sleep", "0.2")  # From now on, the programs need no more pages of their file.
            server.stop_answering()
            events = self.record(*options, "--", "sleep", "0.5")
            self.assertEqual(server.waiting, 0)
        self.assertEqual({event["pid"] for event in events}, {each.pid for each in programs})
        # The message counts one file, because both programs run the same file.
        self.assertRegex(self.said, r"the table of call frames \(\.eh_frame\) was not read from 1 file, .*\(FUSE\)")
        self.assertGreater(len(events), 20)
        for event in events:
            # The recorder has read the call frames of libc, but not those of the program.
            self.assertGreaterEqual(len(event["stack"]), 2)
            self.assertIn("StackCut", event["labels"])

    def test_names_do_not_wait_for_file_systems_of_users(self):
        trace = self.folder / "trace.nettrace"
        with self.programs_on_fuse(1, "-Wl,--build-id") as (server, programs):
            notes = subprocess.run(["readelf", "-n", self.folder / "caller"], capture_output=True, text=True, check=True).stdout
            build_id = re.search(r"Build ID: (\w+)", notes)[1]
            options = ["-e", CALL, "--stacks=user", "--pid", str(programs[0].pid)]
            self.record(*options, "--", "sleep", "0.2")  # From now on, the program needs no more pages of its file.
            server.stop_answering()
            events = self.record(*options, "--", "sleep", "0.5")
            self.assertEqual(server.waiting, 0)
            self.assertGreater(len(events), 20)
            self.assertIn(f"{server.path}: ", self.said)
            self.assertIn("(FUSE); 'nettrace symbolize' reads it", self.said)
            self.assertFalse(any("caller!main" in frame for event in events for frame in event["frames"]))
            server.answer()
            subprocess.run([ARGS.nettrace, "symbolize", trace], check=True, capture_output=True)
        events = list(commands.dump(ARGS.nettrace, trace, "--stacks"))
        self.assertTrue(any("caller!main+" in frame for event in events for frame in event.get("frames", [])), events[:1])
        # The recorder does not ask the kernel for build ids of files on FUSE. symbolize reads the build id, because the file is
        # still the mapped one.
        code = [event["payload"] for event in commands.dump(ARGS.nettrace, trace, "--processes")]
        self.assertTrue(any(build_id in payload.get("SymbolMetadata", "") for payload in code), code)

    def test_a_short_copy_cuts_dwarf_stacks_and_marks_them(self):
        self.compile("deep", RECURSION % 500, "-fomit-frame-pointer")
        events = self.calls_of(self.record("-e", CALL, "--stacks=dwarf,stack=1KiB", "--", "./deep"), "deep")
        self.assertEqual(len(events), 3)
        for event in events:
            self.assertGreater(len(event["frames"]), 10)
            self.assertIn("StackCut", event["labels"])

    def rewrite(self, command, *arguments):
        """Runs a command that writes a file, and returns the events of the file with their stacks."""
        out = self.folder / "rewritten.nettrace"
        ran = subprocess.run([ARGS.nettrace, command, *arguments, "-o", out], capture_output=True, check=False)
        self.assertEqual(ran.returncode, 0, ran.stderr.decode())
        verified = subprocess.run([ARGS.nettrace, "verify", out], capture_output=True, check=False)
        self.assertEqual(verified.returncode, 0, verified.stdout.decode())
        return list(commands.dump(ARGS.nettrace, out, "--stacks"))

    def stacks_of(self, events):
        return sorted((event["time"], event["name"], event["tid"], event["frames"]) for event in events
                      if "frames" in event)

    def test_cut_and_repair_keep_the_code_of_stacks(self):
        before = self.record("-e", CALL, "--stacks", "-e", "sched:sched_process_exit", "--stacks", "--", "./loader")
        wanted = self.stacks_of(before)
        self.assertTrue(any("first.so" in str(stack) for stack in wanted))
        file = self.folder / "trace.nettrace"
        self.assertEqual(self.stacks_of(self.rewrite("repair", file)), wanted)
        cut = self.folder / "cut.nettrace"
        cut.write_bytes(file.read_bytes()[:-4])
        self.assertEqual(self.stacks_of(self.rewrite("repair", cut)), wanted)
        self.assertEqual(self.stacks_of(self.rewrite("cut", file)), wanted)
        calls = [event for event in before if event["name"] == "sys_enter_getppid" and "frames" in event]
        pid = calls[-1]["pid"]
        of_pid = self.rewrite("cut", file, "--pid", str(pid))
        self.assertEqual(self.stacks_of(of_pid), self.stacks_of(event for event in before if event["pid"] == pid))
        since = calls[len(calls) // 2]["time"]
        later = self.rewrite("cut", file, "--since", since, "--event", "sys_enter_getppid")
        self.assertEqual(self.stacks_of(later), self.stacks_of(event for event in calls if event["time"] >= since))

    def test_merge_keeps_the_code_of_each_file(self):
        files, wanted = [], []
        for program in ("loader", "recursion", "loader"):
            wanted += [stack[1:] for stack in self.stacks_of(self.record("-e", CALL, "--stacks", "--", f"./{program}"))]
            files.append(self.folder / f"part{len(files)}.nettrace")
            (self.folder / "trace.nettrace").rename(files[-1])
        merged = [stack[1:] for stack in self.stacks_of(self.rewrite("merge", *files))]
        self.assertEqual(sorted(merged), sorted(wanted))

    def test_wrong_options_are_usage(self):
        for arguments in (["--stacks", "-e", CALL], ["-e", CALL, "--stacks=x"], ["-e", CALL, "--stacks=max=0"],
                          ["-e", CALL, "--stacks=max=100000"], ["-e", CALL, "--stacks=dwarf,stack=1"]):
            ran = subprocess.run([ARGS.nettrace, "record", "-o", "/dev/null", *arguments], capture_output=True, check=False)
            self.assertEqual(ran.returncode, 2, ran.stderr)
            self.assertIn(b"--stacks", ran.stderr)


if __name__ == "__main__":
    script.run_cases(lambda: tracepoints.require(CALL))
