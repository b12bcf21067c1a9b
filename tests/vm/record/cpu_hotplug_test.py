#!/usr/bin/python3
"""Tests CPUs that go offline and return while threads write events on all of them. Each event must be in the file once,
be counted as lost, or have been written after its CPU returned and before it was recorded again, which the recorder
reports. Needs root, a kernel with user_events, and at least 4 CPUs that can go offline (./run vm)."""

import collections
import ctypes
import datetime
import errno
import json
import os
import pathlib
import signal
import struct
import subprocess
import tempfile
import time
import unittest

from support import commands
from support import script

ARGS = script.options(__doc__, "nettrace", "load")
CPUS = pathlib.Path("/sys/devices/system/cpu")
LARGE, SMALL = "1M", "4K"


def nanoseconds(text):
    """Returns the nanoseconds since 1970 of a time such as 2026-11-21T10:00:00.123456789Z."""
    seconds, fraction = text.removesuffix("Z").split(".")
    return int(datetime.datetime.fromisoformat(seconds + "+00:00").timestamp()) * 10**9 + int(fraction)


def set_online(cpu, online):
    (CPUS / f"cpu{cpu}/online").write_text("1" if online else "0")


def without_netlink():
    """Prevents this process and its children from opening a netlink socket, on x86-64 and arm64."""
    pr_set_no_new_privs, pr_set_seccomp, seccomp_mode_filter, af_netlink = 38, 22, 2, 16
    socket_call = {"x86_64": 41, "aarch64": 198}[os.uname().machine]
    program = b"".join(struct.pack("=HBBI", *instruction) for instruction in (
        (0x20, 0, 0, 0),                # load the system call's number
        (0x15, 0, 3, socket_call),
        (0x20, 0, 0, 16),               # load its first argument
        (0x15, 0, 1, af_netlink),
        (0x06, 0, 0, 0x00050000 | errno.EPERM),
        (0x06, 0, 0, 0x7FFF0000)))      # allow
    code = ctypes.create_string_buffer(program)
    filter_ = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(pr_set_no_new_privs, 1, 0, 0, 0) != 0 or \
       libc.prctl(pr_set_seccomp, seccomp_mode_filter, filter_, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


class CpuHotplugTest(unittest.TestCase):
    def setUp(self):
        if not (CPUS / "cpu3/online").exists():
            self.skipTest("there are no 4 CPUs that can go offline")
        folder = tempfile.TemporaryDirectory(prefix="cpu-hotplug-")
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "trace.nettrace"
        for cpu in (1, 2, 3):
            self.addCleanup(set_online, cpu, True)

    def start(self, ring, preexec=None, of_load_only=False, with_stacks=False):
        """Starts the load and the recorder. The load begins when everything is recorded. `preexec` is called in the
        recorder's process. With `with_stacks`, also records samples of CPU time, and the stacks of both kinds of events."""
        load = subprocess.Popen([ARGS.load], stdout=subprocess.PIPE, text=True)
        self.addCleanup(load.kill)
        os.waitpid(load.pid, os.WUNTRACED)
        # The recorder starts the command once everything is recorded.
        stacks = ["--stacks"] if with_stacks else []
        samples = ["--no-symbols", "--cpu=199Hz", *stacks] if with_stacks else []
        command = [ARGS.nettrace, "record", "--json", "-o", self.file, *samples,
                   "-e", "Moving_L4K1", *stacks, "--ring-size", ring,
                   *(("--pid", str(load.pid)) if of_load_only else ()), "--", "sh", "-c", f"kill -CONT {load.pid} && exec sleep 1000"]
        recorder = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                    preexec_fn=preexec)
        self.addCleanup(recorder.kill)
        os.waitpid(load.pid, os.WCONTINUED)
        return load, recorder

    def finish(self, load, recorder):
        """Returns what the load wrote, the recorder's summary, and its messages."""
        load.terminate()
        written = json.loads(load.communicate()[0])
        recorder.send_signal(signal.SIGINT)
        stdout, stderr = recorder.communicate()
        self.assertEqual(recorder.returncode, 0, stderr)
        # The recorder prints this if events + lost differ from the kernel's count, which includes hits on CPUs that went
        # offline.
        self.assertNotIn("please report", stderr)
        subprocess.run([ARGS.nettrace, "verify", "--strict", self.file], check=True, stdout=subprocess.DEVNULL)
        return written, json.loads(stdout), stderr

    def windows(self, summary):
        """Returns the times, by the file's clock, in which a CPU was online but not recorded."""
        info = commands.info(ARGS.nettrace, self.file)

        def ticks(text):
            return info["syncTicks"] + nanoseconds(text) - nanoseconds(info["syncTime"])

        return [(ticks(change["since"]), ticks(change["until"])) for change in summary["cpuChanges"] if change["online"]]

    def check_account(self, written, summary):
        """Checks that every event occurs once, was lost, or was written while its CPU was not recorded. Returns the
        times in which a CPU was not recorded."""
        names = collections.Counter()
        shown = collections.Counter()
        self.events = []
        for event in commands.dump(ARGS.nettrace, self.file):
            names[event["name"]] += 1
            self.events.append((event["name"], event["pid"], event["cpu"], event["timestamp"], "stack" in event))
            if event["name"] == "Step":
                shown[event["payload"]["thread"], event["payload"]["number"]] += 1
        self.assertEqual([event for event, times in shown.items() if times != 1], [], "events that the file has twice")
        self.assertEqual(sum(names.values()), summary["events"])
        self.assertLessEqual(names.keys(), {"Step", "cpu"})
        windows = self.windows(summary)
        # The file must state the same CPU changes and losses as the summary.
        info = commands.info(ARGS.nettrace, self.file)
        self.assertEqual(info["cpuChanges"], summary["cpuChanges"])
        self.assertEqual(info["losses"], summary["losses"])
        self.assertEqual(sum(loss["count"] for loss in info["losses"]), summary["lost"])
        missing = [times for thread, events in enumerate(written) for number, times in enumerate(events)
                   if (thread, number) not in shown]
        outside = [times for times in missing
                   if not any(since <= times[1] and times[0] <= until for since, until in windows)]
        total = sum(map(len, written))
        print(f"{total} events, {len(shown)} shown, {summary['lost']} lost, {len(missing)} missing, "
              f"{len(outside)} of them outside of the {len(windows)} times that were not recorded", flush=True)
        self.assertGreater(total, 1000)
        self.assertLessEqual(len(outside), summary["lost"], outside[:20])
        self.assertLessEqual(summary["lost"], len(missing))
        return windows

    @script.more
    def test_off_and_on_ten_times(self):
        load, recorder = self.start(LARGE)
        for turn in range(10):
            cpu = 1 + turn % 3
            set_online(cpu, False)
            time.sleep(0.2)
            set_online(cpu, True)
            time.sleep(0.3)
        time.sleep(2)  # After this time, the last CPU is recorded again.
        written, summary, stderr = self.finish(load, recorder)
        windows = self.check_account(written, summary)
        self.assertEqual(summary["lost"], 0)
        self.assertEqual(len(windows), 10)
        self.assertEqual(stderr.count(" came online; its events between "), 10)
        # Each CPU must be recorded again within 2 s of its return.
        self.assertLess(max(until - since for since, until in windows), 2_000_000_000)
        # Events from after the last return must be in the file.
        last = max(until for _, until in windows)
        cpus = {event["cpu"] for event in commands.dump(ARGS.nettrace, self.file) if event["timestamp"] > last}
        self.assertEqual(cpus, {0, 1, 2, 3})

    @script.more
    def test_with_stacks(self):
        """Tests the stacks of events and of samples of CPU time. When a CPU goes offline, its perf event for samples
        ends, so the recorder must open another one when the CPU returns."""
        load, recorder = self.start(LARGE, with_stacks=True)
        for cpu in (1, 3):
            set_online(cpu, False)
            time.sleep(0.1)
            set_online(cpu, True)
            time.sleep(0.2)
        time.sleep(2)  # After this time, the last CPU is recorded again.
        written, summary, _ = self.finish(load, recorder)
        windows = self.check_account(written, summary)
        self.assertEqual(summary["lost"], 0)
        self.assertEqual(len(windows), 2)
        last = max(until for _, until in windows)
        cpus = collections.defaultdict(set)
        for name, pid, cpu, timestamp, has_stack in self.events:
            if pid != load.pid:
                continue
            self.assertTrue(has_stack, (name, cpu, timestamp))
            if timestamp > last:
                cpus[name].add(cpu)
        self.assertEqual(cpus, {"Step": {0, 1, 2, 3}, "cpu": {0, 1, 2, 3}})

    def test_rings_of_a_page(self):
        load, recorder = self.start(SMALL)
        for turn in range(6):
            cpu = 1 + turn % 3
            set_online(cpu, False)
            set_online(cpu, True)
            time.sleep(0.2)
        self.check_account(*self.finish(load, recorder)[:2])

    @script.more
    def test_events_of_one_process(self):
        """Tests a recording of one process. When a CPU returns, the recorder must open the perf events of the process's
        threads again for this CPU."""
        for ring in (LARGE, SMALL):
            with self.subTest(ring):
                load, recorder = self.start(ring, of_load_only=True)
                for cpu in (1, 2, 3):
                    set_online(cpu, False)
                    time.sleep(0.1)
                    set_online(cpu, True)
                    time.sleep(0.2)
                time.sleep(2)
                written, summary, _ = self.finish(load, recorder)
                windows = self.check_account(written, summary)
                self.assertEqual(len(windows), 3)
                last = max(until for _, until in windows)
                cpus = {event["cpu"] for event in commands.dump(ARGS.nettrace, self.file) if event["timestamp"] > last}
                if ring == LARGE:
                    self.assertEqual(summary["lost"], 0)
                    self.assertEqual(cpus, {0, 1, 2, 3})

    def test_recorder_that_is_stopped_during_the_change(self):
        """Tests a CPU that goes offline and returns while the recorder is stopped."""
        load, recorder = self.start(LARGE)
        time.sleep(0.5)
        os.kill(recorder.pid, signal.SIGSTOP)
        set_online(1, False)
        set_online(1, True)
        time.sleep(0.5)
        os.kill(recorder.pid, signal.SIGCONT)
        time.sleep(1)
        written, summary, _ = self.finish(load, recorder)
        windows = self.check_account(written, summary)
        self.assertEqual(len(windows), 1)

    @script.more
    def test_without_uevents(self):
        """Tests a CPU that is offline for less than the time between two searches, without notifications."""
        load, recorder = self.start(LARGE, without_netlink)
        time.sleep(0.5)
        set_online(3, False)
        set_online(3, True)
        time.sleep(2.5)
        written, summary, _ = self.finish(load, recorder)
        self.assertEqual(len(self.check_account(written, summary)), 1)

    def test_offline_from_the_start(self):
        set_online(2, False)
        load, recorder = self.start(LARGE)
        time.sleep(1.5)
        set_online(2, True)
        time.sleep(1)
        written, summary, _ = self.finish(load, recorder)
        windows = self.check_account(written, summary)
        self.assertEqual([change["cpu"] for change in summary["cpuChanges"]], [2])
        self.assertEqual(len(windows), 1)
        self.assertIn("HardwareThreadCount = 4", subprocess.run(
            [ARGS.nettrace, "info", self.file], stdout=subprocess.PIPE, text=True, check=True).stdout)


if __name__ == "__main__":
    script.run_cases()
