#!/usr/bin/python3
"""Tests recordings of EventHeader events of one service, thread, cgroup or filter, recordings by an unprivileged user
with the necessary capabilities, and recordings with too few descriptors for everything that patterns select. Needs root
and a kernel with user_events (./run vm)."""

import collections
import ctypes
import fcntl
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

ARGS = script.options(__doc__, "nettrace", "service")
TRACEFS = pathlib.Path("/sys/kernel/tracing")
CGROUPS = pathlib.Path("/sys/fs/cgroup")
EVENTS = 9000
LARGE_RINGS = ("--ring-size", "4M")
# Event `number` of the service is of TRACEPOINTS[number % 3].
TRACEPOINTS = ("Load_L4K1", "Load_L5K2", "Load_L3K4")
CAPABILITIES = ("perfmon", "dac_read_search")


def as_user(*capabilities, also=()):
    """Returns the words that run a command as a user other than root, with these ambient capabilities."""
    # The rings are larger than the kernel's default limit for such a user.
    words = ["prlimit", "--memlock=unlimited", "setpriv", f"--reuid={failures.NOBODY}", f"--regid={failures.NOBODY}", "--clear-groups"]
    if capabilities:
        chosen = ",".join(f"+{name}" for name in capabilities)
        words += [f"--inh-caps=-all,{chosen}", f"--ambient-caps=-all,{chosen}"]
    return [*words, *also]


class Names:
    """Tracepoints that this process has registered with user_events."""

    # The kernel keeps the addresses for the lifetime of the process, so they must not be reused.
    _words = []

    def __init__(self):
        self.data = os.open(TRACEFS / "user_events_data", os.O_RDWR)
        self.enabled = (ctypes.c_uint64 * 1024)()
        self._words.append(self.enabled)
        self.count = 0

    def register(self, name):
        text = ctypes.create_string_buffer(f"{name} u8 eventheader_flags; u8 version; u16 id; u16 tag; u8 opcode; u8 level"
                                           .encode())
        address = ctypes.addressof(self.enabled) + 8 * self.count
        registration = bytearray(struct.pack("=IBBHQQI", 28, 0, 8, 0, address, ctypes.addressof(text), 0))
        fcntl.ioctl(self.data, 0xC0082A00, registration)  # DIAG_IOCSREG
        self.count += 1

    def close(self):
        os.close(self.data)


class TargetsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="targets-")
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o777)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "trace.nettrace"

    def waiting_service(self, cgroup=None):
        """Starts a service whose threads exist, and which continues on SIGCONT."""
        enter = (lambda: (cgroup / "cgroup.procs").write_text("0")) if cgroup else None
        process = subprocess.Popen([ARGS.service, "--events", str(EVENTS), "--wait"], stdout=subprocess.PIPE, text=True,
                                   preexec_fn=enter)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        _, state = os.waitpid(process.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(state))
        return process

    def record(self, *options, services=(), prefix=(), status=0):
        """Records while the services run, one after the other; returns the summary and what each service printed."""
        # The recorder runs the command, which makes this file, once it records.
        go = self.folder / "go"
        go.unlink(missing_ok=True)
        words = [*prefix, ARGS.nettrace, "record", "-o", self.file, "--json", *LARGE_RINGS, *options, "--",
                 "sh", "-c", f": > {go}; exec sleep 1000"]
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as recorder:
            while not go.exists():
                self.assertIsNone(recorder.poll(), recorder.stderr.read() if recorder.poll() else None)
                time.sleep(0.02)
            printed = []
            for service in services:
                service.send_signal(18)  # SIGCONT
                printed.append(json.loads(service.communicate(timeout=100)[0]))
            recorder.terminate()
            out, said = recorder.communicate(timeout=100)
        self.assertEqual(recorder.returncode, status, said)
        self.assertNotIn("the kernel counted", said)
        subprocess.run([ARGS.nettrace, "verify", "--strict", self.file], stdout=subprocess.DEVNULL, check=True)
        return json.loads(out), printed, said

    def events(self):
        """Returns the number of events of each pid and tid."""
        return collections.Counter((event["pid"], event["tid"]) for event in commands.dump(ARGS.nettrace, self.file))

    @staticmethod
    def written(service):
        return {(service["pid"], thread["tid"]): thread["written"] for thread in service["threads"]}

    def test_one_of_two_services(self):
        mine, other = self.waiting_service(), self.waiting_service()
        summary, printed, _ = self.record("-e", "Load", "--pid", str(mine.pid), services=(other, mine))
        self.assertEqual((summary["lost"], summary["events"]), (0, EVENTS))
        self.assertEqual(self.events(), self.written(printed[1]))

    def test_one_thread(self):
        mine = self.waiting_service()
        tids = sorted(int(name) for name in os.listdir(f"/proc/{mine.pid}/task"))
        summary, printed, _ = self.record("-e", "Load", "--tid", str(tids[-1]), services=(mine,))
        self.assertEqual(self.events(), {(mine.pid, tids[-1]): self.written(printed[0])[mine.pid, tids[-1]]})
        self.assertEqual(summary["lost"], 0)

    def test_a_cgroup(self):
        group = CGROUPS / "nettraced-test.slice/load.service"
        group.mkdir(parents=True)
        # On a fresh machine, on which no init has delegated controllers, only the root cgroup has perf_event.
        failures.check_failure(self, [ARGS.nettrace, "record", "-o", self.file, "-e", "Load", "--cgroup", "load.service",
                                      "--duration", "1s"], "perf_event controller.*cgroup.subtree_control")
        (CGROUPS / "cgroup.subtree_control").write_text("+pids")
        mine, other = self.waiting_service(group), self.waiting_service()
        summary, printed, _ = self.record("-e", "Load", "--cgroup", "load.service", services=(other, mine))
        self.assertEqual((summary["lost"], summary["events"]), (0, EVENTS))
        self.assertEqual(self.events(), self.written(printed[1]))

    def test_filters_on_fields_of_events(self):
        for selectors, shapes in ((["-e", "Load", "--filter", "opcode == 9 && version == 2"], [2]),
                                  (["-e", "Load", "--filter", "level <= 4"], [0, 2]),
                                  (["-e", "Load:3", "-e", "Load:verbose:2", "--filter", "level == 5"], [1, 2]),
                                  (["-e", "Load_L4K1", "-e", "Load_L3K4", "--filter", "opcode != 9"], [0]),
                                  (["-e", "Load_L4K1", "--filter", "level == 1", "-e", "Load", "--filter", "level == 4"],
                                   [0])):
            with self.subTest(selectors):
                service = self.waiting_service()
                summary, printed, _ = self.record(*selectors, services=(service,))
                self.assertEqual(summary["lost"], 0)
                numbers = {(event["tid"], event["payload"]["number"]) for event in commands.dump(ARGS.nettrace, self.file)}
                threads = printed[0]["threads"]
                wanted = {(thread["tid"], number) for thread in threads
                          for number in range(EVENTS // len(threads)) if number % 3 in shapes}
                self.assertEqual(numbers, wanted)
        with self.subTest("thread"):
            service = self.waiting_service()
            tid = max(int(name) for name in os.listdir(f"/proc/{service.pid}/task"))
            _, printed, _ = self.record("-e", "Load", "--filter", f"common_pid == {tid}", services=(service,))
            self.assertEqual(self.events(), {(service.pid, tid): self.written(printed[0])[service.pid, tid]})

    def test_wrong_filter_names_the_fields_of_events(self):
        failures.check_failure(self, [ARGS.nettrace, "record", "-o", self.file, "-e", "Load_L4K1", "--filter", "number == 3"],
                               "Load_L4K1.*refuses.*Field not found.*eventheader_flags, version, id, tag, opcode, level")
        self.assertEqual(os.listdir(TRACEFS / "instances"), [])

    @script.more
    def test_user_with_capabilities(self):
        user = as_user(*CAPABILITIES)
        service = self.waiting_service()
        # This name takes three lines in the kernel's list. The recorder joins lines, and checks whether that name exists.
        lines = Names()
        self.addCleanup(lines.close)
        lines.register("Z\n\nB")
        # Load_L4K1 is named exactly; the pattern Load selects the others. Only perf can evaluate the filter.
        summary, printed, _ = self.record("-e", "Load_L4K1", "-e", "Load", "-e", "sched:sched_process_exec", "--filter",
                                          "pid > 0", prefix=user, services=(service,))
        self.assertEqual((summary["lost"], summary["unmatched"]), (0, []))
        self.assertNotIn("user_events_status", summary["leftOut"])
        events = list(commands.dump(ARGS.nettrace, self.file))
        self.assertEqual(sum(event["provider"] == "Load" for event in events), EVENTS)
        self.assertEqual({event["thread"] for event in events if event["provider"] == "Load"},
                         {thread["name"] for thread in printed[0]["threads"]})
        self.assertIn("sched_process_exec", {event["name"] for event in events})
        self.file.unlink()
        mine, other = self.waiting_service(), self.waiting_service()
        summary, printed, _ = self.record("-e", "Load", "--pid", str(mine.pid), prefix=user, services=(other, mine))
        self.assertEqual(self.events(), self.written(printed[1]))

    def check_user_failure(self, capabilities, pattern, *options, also=()):
        # The recording must fail at its start, with a message that matches `pattern`.
        failures.check_failure(self, [*as_user(*capabilities, also=also), ARGS.nettrace, "record", "-o", self.file, *options,
                                      "--duration", "100ms"], pattern)
        self.assertFalse(self.file.exists())

    def test_user_without_the_capabilities(self):
        some = ("-e", "sched:sched_switch")
        self.check_user_failure([], "tracefs at /sys/kernel/tracing.*root.*CAP_DAC_READ_SEARCH", *some)
        self.check_user_failure(["perfmon"], "tracefs at /sys/kernel/tracing.*root.*CAP_DAC_READ_SEARCH", *some)
        self.check_user_failure(["dac_read_search"], "opening perf events.*root.*CAP_PERFMON", *some)
        self.check_user_failure(CAPABILITIES, "registering tracepoint New_L4K1.*user_events_data: Permission denied; run as "
                                "root, or add your user to group user_events.*or first start the program", "-e", "New_L4K1")
        self.check_user_failure(CAPABILITIES, "sched_switch.*refuses the filter 'nosuch == 1': Invalid argument; a filter of "
                                "this tracepoint can use prev_comm", *some, "--filter", "nosuch == 1")
        self.check_user_failure(CAPABILITIES, "perf ring.*perf_event_mlock_kb.*ulimit -l.*CAP_IPC_LOCK.*--ring-size", *some,
                                "--ring-size", "8M", also=["prlimit", "--memlock=65536"])

    def few_descriptors(self):
        # The user is not root, because root would raise the limit.
        return as_user(*CAPABILITIES, also=["prlimit", "--nofile=1024:1024"])

    @script.more
    def test_tracepoints_of_others_do_not_use_up_the_descriptors(self):
        loud = Names()
        self.addCleanup(loud.close)
        for number in range(700):
            loud.register(f"Loud{number // 100}_{number}_L4K1")
        for selectors in (["-e", "Load_L4K1", "-e", "Load_L5K2", "-e", "Load_L3K4", "-e", "*:5"], ["-e", "*:5"]):
            with self.subTest(selectors):
                service = self.waiting_service()
                summary, printed, said = self.record(*selectors, prefix=self.few_descriptors(), services=(service,))
                self.assertEqual((summary["lost"], summary["unmatched"]), (0, []))
                self.assertEqual(self.events(), self.written(printed[0]))
                # More than 100 tracepoints are recorded. The message about the others, which are left out, names the
                # limit and the remedy.
                self.assertGreater(summary["tracepoints"], 100)
                self.assertEqual(summary["leftOutCount"] + summary["tracepoints"], 703)
                self.assertRegex(said, "left out: tracepoint user_events:Loud.* needs 4 descriptors.*limit of 1024; raise the "
                                       "limit of open files")
                self.file.unlink()

    @script.more
    def test_later_services_get_descriptors_too(self):
        loud = Names()
        self.addCleanup(loud.close)
        for number in range(700):
            loud.register(f"Loud_{number}_L4K1")
        with subprocess.Popen([*self.few_descriptors(), ARGS.nettrace, "record", "-o", self.file, "--json", *LARGE_RINGS, "-e",
                               "*:5", "--", "sleep", "1000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recorder:
            while not self.file.exists() or self.file.stat().st_size == 0:
                self.assertIsNone(recorder.poll())
            service = self.waiting_service()
            status = TRACEFS / "user_events_status"
            while sum(line.startswith("Load_") and "perf" in line for line in status.read_text().splitlines()) < 3:
                self.assertIsNone(recorder.poll())
            service.send_signal(18)
            printed = json.loads(service.communicate(timeout=100)[0])
            recorder.terminate()
            out, said = recorder.communicate(timeout=100)
        self.assertEqual(recorder.returncode, 0, said)
        self.assertEqual(json.loads(out)["lost"], 0)
        self.assertEqual(self.events(), self.written(printed))


if __name__ == "__main__":
    script.run_cases()
