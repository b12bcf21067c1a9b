#!/usr/bin/python3
"""Tests patterns of kernel tracepoints: what they select, what they leave out, and patterns that select nothing. Needs
root and tracefs."""

import json
import os
import pathlib
import struct
import subprocess
import tempfile
import time
import unittest

from support import commands
from support import failures
from support import script
from support.kernel import tracepoints

ARGS = script.options(__doc__, "nettrace")
EVENTS = tracepoints.EVENTS
# Messages name at most this many tracepoints one by one.
MAX_NAMED = 20


def there_are(system):
    return {entry.name for entry in (EVENTS / system).iterdir() if (entry / "enable").exists()}


def entry_point(path):
    """Returns the file offset at which a 64-bit ELF program begins to run."""
    data = pathlib.Path(path).read_bytes()
    entry, headers = struct.unpack_from("=QQ", data, 24)
    size, count = struct.unpack_from("=HH", data, 54)
    for header in range(headers, headers + size * count, size):
        kind, _, offset, address, _, length = struct.unpack_from("=IIQQQQ", data, header)
        if kind == 1 and address <= entry < address + length:
            return entry - address + offset
    raise ValueError(f"{path} has no entry point")


class PatternsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="patterns-")
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "trace.nettrace"

    def record(self, *selectors, command=("/bin/true",), status=0):
        """Records; returns the summary from JSON, and the messages."""
        chosen = [word for selector in selectors for word in ("-e", selector)]
        done = subprocess.run([ARGS.nettrace, "record", "-o", self.file, "--json", *chosen, "--", *command],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=800, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        subprocess.run([ARGS.nettrace, "verify", "--strict", self.file], stdout=subprocess.DEVNULL, check=True)
        return json.loads(done.stdout.splitlines()[-1]), done.stderr

    def names(self):
        return {(event["provider"], event["name"]) for event in commands.dump(ARGS.nettrace, self.file)}

    def test_a_pattern_of_a_whole_system(self):
        summary, _ = self.record("sched:*", command=("sh", "-c", "/bin/true; /bin/true"))
        self.assertEqual(summary["tracepoints"], len(there_are("sched")))
        self.assertEqual((summary["leftOut"], summary["unmatched"]), ([], []))
        names = self.names()
        self.assertEqual({provider for provider, _ in names}, {"sched"})
        self.assertLessEqual({("sched", "sched_switch"), ("sched", "sched_process_fork"), ("sched", "sched_wakeup")},
                             names)

    def test_parts_of_names(self):
        summary, _ = self.record("s?hed:sched_process_*", "*:sys_ente[r]", command=("sh", "-c", "/bin/true; /bin/true"))
        wanted = {name for name in there_are("sched") if name.startswith("sched_process_")}
        self.assertEqual(summary["tracepoints"], len(wanted) + 1)
        names = self.names()
        self.assertLessEqual({("sched", "sched_process_exec"), ("raw_syscalls", "sys_enter")}, names)
        self.assertLessEqual({name for provider, name in names if provider == "sched"}, wanted)

    def test_a_tracepoint_that_several_selectors_name_is_recorded_once(self):
        summary, _ = self.record("sched:sched_process_exec", "sched:*_exec", "sched:sched_process_ex*",
                                 command=("sh", "-c", "/bin/true; /bin/true"))
        self.assertEqual(summary["unmatched"], [])
        execs = [event["payload"]["filename"] for event in commands.dump(ARGS.nettrace, self.file)
                 if event["name"] == "sched_process_exec"]
        self.assertGreaterEqual(execs.count("/bin/true"), 2)
        timestamps = [event["timestamp"] for event in commands.dump(ARGS.nettrace, self.file)]
        self.assertEqual(len(timestamps), len(set(timestamps)))

    def test_names_and_leaves_out_unrecordable_tracepoints(self):
        summary, said = self.record("ftrace:*", "sched:sched_process_exec", status=3)
        left_out = {f"ftrace:{entry.name}" for entry in (EVENTS / "ftrace").iterdir() if entry.is_dir()}
        self.assertEqual(set(summary["leftOut"]), left_out)
        self.assertEqual(summary["tracepoints"], 1)
        self.assertEqual(said.count("left out: tracepoint ftrace:"), min(len(left_out), MAX_NAMED))

    def test_many_that_cannot_be_recorded_are_counted(self):
        # With few descriptors, most tracepoints cannot be recorded.
        summary, said = self.record_with_limit(100, "-e", "syscalls:sys_enter_*")
        self.assertEqual(said.count("of 100 are left for tracepoints; raise the limit of open files"), MAX_NAMED)
        self.assertRegex(said, rf"left out: {len(summary['leftOut']) - MAX_NAMED} more tracepoints")
        self.assertEqual(len(summary["leftOut"]) + summary["tracepoints"],
                         len([name for name in there_are("syscalls") if name.startswith("sys_enter_")]))
        self.assertGreater(summary["tracepoints"], 0)

    def test_named_tracepoints_get_descriptors_before_patterns(self):
        summary, _ = self.record_with_limit(100, "-e", "syscalls:sys_enter_*", "-e", "sched:sched_process_exec",
                                            "-e", "sched:sched_process_exit")
        self.assertEqual(summary["unmatched"], [])
        self.assertGreater(len(summary["leftOut"]), 0)
        self.assertLessEqual({"sched_process_exec", "sched_process_exit"}, {name for _, name in self.names()})

    def test_systems_take_turns_where_descriptors_are_short(self):
        summary, _ = self.record_with_limit(150, "-e", "syscalls:sys_enter_*", "-e", "sched:*", "-e", "irq:*")
        self.assertEqual(summary["unmatched"], [])
        left_out = {system: sum(name.startswith(system) for name in summary["leftOut"])
                    for system in ("syscalls:", "sched:", "irq:")}
        attached = {system: len(there_are(system[:-1])) - count for system, count in left_out.items()}
        attached["syscalls:"] = summary["tracepoints"] - attached["sched:"] - attached["irq:"]
        self.assertGreater(attached["syscalls:"], 0)
        for system, count in attached.items():
            # Each system gets as many tracepoints as any other, unless it has fewer.
            self.assertGreaterEqual(count, min(max(attached.values()) - 1, len(there_are(system[:-1]))), attached)

    def test_too_few_descriptors_for_a_named_tracepoint(self):
        # The limit is eight descriptors, plus two for the rings and one for the tracepoint on each CPU, and at most 14. The
        # recorder needs more.
        command = self.with_limit(min(14, 8 + 3 * os.cpu_count()), "-e", "sched:sched_process_exec")
        failures.check_failure(self, command, "Too many open files.*ulimit -Hn")
        self.assertFalse(self.file.exists())

    def test_records_skipped_tracepoints_when_descriptors_become_free(self):
        # The first limit of open files is sufficient for half of the tracepoints, besides the descriptors that the
        # recorder has open or reserves. The test raises the limit while the recorder runs.
        cpus = os.cpu_count()
        limit = (13 + 2 * cpus + len(there_are("sched")) * cpus // 2) * 4 // 3
        if subprocess.run(["prlimit", f"--nofile={limit}", "prlimit", "--nofile=4096:4096", "true"],
                          stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("this user may not raise a limit (CAP_SYS_RESOURCE)")
        with subprocess.Popen(self.with_limit(limit, "-e", "sched:*", until="--", command=("sleep", "10")),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recorder:
            while not self.file.exists() or self.file.stat().st_size == 0:
                self.assertIsNone(recorder.poll())
                time.sleep(0.05)
            subprocess.run(["prlimit", f"--pid={recorder.pid}", "--nofile=4096:4096"], check=True)
            printed, said = recorder.communicate(timeout=60)
        self.assertRegex(said, f"left out: tracepoint sched:.*of {limit} are left")
        self.assertEqual(json.loads(printed)["tracepoints"], len(there_are("sched")), said)

    def with_limit(self, limit, *options, until="--duration", command=("100ms",)):
        """Returns the command line of a recording with this limit on descriptors."""
        return ["setpriv", "--bounding-set=-sys_resource", "--inh-caps=-sys_resource", "prlimit", f"--nofile={limit}",
                ARGS.nettrace, "record", "-o", self.file, "--json", *options, until, *command]

    def record_with_limit(self, limit, *options):
        command = self.with_limit(limit, *options, until="--", command=("sh", "-c", "/bin/true; /bin/true; sleep 0.1"))
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        return json.loads(done.stdout), done.stderr

    def test_selectors_without_matches_have_an_exit_code(self):
        summary, said = self.record("nosuchsystem:*", "sched:sched_process_exec", status=3)
        self.assertEqual(summary["unmatched"], ["nosuchsystem:*"])
        self.assertIn("selector 'nosuchsystem:*' matched no tracepoint", said)
        self.record("sched:nosuch*", status=3)
        # If the command fails, its exit status is returned instead of that of an unmatched selector.
        self.record("sched:nosuch*", command=("sh", "-c", "exit 42"), status=42)

    def test_finds_a_tracepoint_that_appears_later(self):
        control = pathlib.Path("/sys/kernel/tracing/uprobe_events")
        if not control.exists():
            self.skipTest("this kernel has no uprobe events")
        cat = os.path.realpath("/bin/cat")
        probe = f"nettraced_test_{os.getpid()}/start"
        commands_of_load = (f"sleep 0.3; echo 'p:{probe} {cat}:{entry_point(cat):#x}' >> {control}; sleep 4; "
                            f"{cat} /dev/null")
        self.addCleanup(subprocess.run, ["sh", "-c", f"echo '-:{probe}' >> {control}"], check=True)
        summary, _ = self.record("nettraced_test_*:*", command=("sh", "-c", commands_of_load))
        self.assertEqual((summary["tracepoints"], summary["unmatched"]), (1, []))
        self.assertIn(tuple(probe.split("/")), self.names())

    def test_tracepoints_that_disappear_while_they_are_opened_are_reported_as_removed(self):
        control = pathlib.Path("/sys/kernel/tracing/uprobe_events")
        if not control.exists():
            self.skipTest("this kernel has no uprobe events")
        cat = os.path.realpath("/bin/cat")
        group = f"nettraced_gone_{os.getpid()}"
        # Each second, the recorder searches for new tracepoints. It finds some tracepoints of this load, although each
        # exists only briefly.
        make = f"for i in $(seq 20); do echo 'p:{group}/e'$i' {cat}:{entry_point(cat):#x}'; done >> {control} 2>/dev/null"
        remove = f"for i in $(seq 20); do echo '-:{group}/e'$i; done >> {control} 2>/dev/null"
        load = f"for round in $(seq 20); do {make}; {remove}; done; true"
        self.addCleanup(subprocess.run, ["bash", "-c", remove], check=False)
        done = subprocess.run([ARGS.nettrace, "record", "-o", self.file, "-e", "nettraced_gone_*:*", "--", "bash", "-c", load],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=800, check=False)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        for line in done.stderr.splitlines():
            if "left out: tracepoint" in line:
                self.assertRegex(line, r"tracepoint nettraced_gone_\S+ was removed while it was being opened$")

    @script.more
    def test_a_pattern_of_all_tracepoints(self):
        # The system calls of the recorder must not be recorded, because each would cause more of them.
        pid_file = self.file.with_name("pid")
        summary, said = self.record("*:*", command=("sh", "-c", f"/bin/true; sleep 0.5; echo $PPID > {pid_file}"))
        systems = [entry.name for entry in EVENTS.iterdir() if entry.is_dir()]
        self.assertEqual(summary["tracepoints"] + len(summary["leftOut"]),
                         sum(len([entry for entry in (EVENTS / system).iterdir() if entry.is_dir()]) for system in systems))
        self.assertGreater(summary["tracepoints"], 500)
        self.assertIn("left out: tracepoint ftrace:function cannot be enabled", said)
        self.assertEqual(summary["unmatched"], [])
        recorder = int(pid_file.read_text())
        self.assertEqual([event for event in commands.dump(ARGS.nettrace, self.file)
                          if event["tid"] == recorder and event["provider"] == "raw_syscalls"][:1], [])


if __name__ == "__main__":
    script.run_cases(lambda: tracepoints.require("sched:sched_switch"))
