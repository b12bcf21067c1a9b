#!/usr/bin/python3
"""Tests how a recording ends, and what it leaves: signals, files with a size limit, full disks, and a file that is
already being recorded into. Needs root and tracefs; the events come from the kernel."""

import datetime
import fcntl
import json
import os
import pathlib
import re
import resource
import select
import signal
import subprocess
import tempfile
import time
import unittest

from support import script
from support.kernel import tracepoints

ARGS = script.options(__doc__, "nettrace")
SELECTOR = "sched:sched_switch"
# Starts and ends processes, which causes context switches. Ends by itself after minutes, because a recorder that a
# failed test kills leaves its command running.
LOAD = ["sh", "-c", "i=0; while [ $((i += 1)) -le 200000 ]; do /bin/true; done"]
SHORT_LOAD = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do /bin/true; done; sleep 1.5"]


class RecordOutputTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="record-output-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "trace.nettrace"
        self.selector = SELECTOR

    def start(self, *options, output=None, command=(), **popen):
        words = ["record", "-o", output or self.file, "-e", self.selector, *options]
        if command:
            words += ["--", *command]
        return subprocess.Popen([ARGS.nettrace, *words], stderr=subprocess.PIPE, text=True, **popen)

    def finish(self, recorder, expect=0):
        """Waits until the recorder ends, with status `expect`; returns its messages."""
        try:
            _, said = recorder.communicate(timeout=60)
        finally:
            recorder.kill()
        self.assertEqual(recorder.returncode, expect, said)
        return said

    def wait_for_events(self, file=None):
        until(lambda: (file or self.file).exists() and (file or self.file).stat().st_size > 0)

    def info(self, file, expect=0):
        ran = subprocess.run([ARGS.nettrace, "info", "--json", file], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, check=False)
        self.assertEqual(ran.returncode, expect)
        return json.loads(ran.stdout)

    def test_termination_signals_complete_the_file(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            with self.subTest(number.name):
                recorder = self.start(command=LOAD)
                self.wait_for_events()
                time.sleep(0.1)
                recorder.send_signal(number)
                said = self.finish(recorder)
                info = self.info(self.file)
                self.assertTrue(info["complete"])
                self.assertIn(f"{info['events']} events", said)
                self.file.unlink()

    def test_nohup_keeps_it_from_ending(self):
        with self.start("--duration", "30s", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as recorder:
            self.wait_for_events()
            recorder.send_signal(signal.SIGHUP)
            time.sleep(0.5)
            self.assertIsNone(recorder.poll())
            recorder.send_signal(signal.SIGTERM)
            self.finish(recorder)

    def check_account(self, said, reason, compressed=False):
        """Checks that the recorder has printed the reason of its end, and the number of events that the file has."""
        self.assertRegex(said, reason)
        account = re.search(r"(\d+) events are in the file, (?:at most )?(\d+) more are not", said)
        self.assertIsNotNone(account, said)
        self.assertGreater(int(account[2]), 0)
        whole = self.folder / "whole.nettrace"
        subprocess.run([ARGS.nettrace, "repair", self.file, "-o", whole], stderr=subprocess.DEVNULL, check=True)
        info = self.info(whole)
        self.assertGreater(info["events"], 0)
        there_are = info["events"] + info["processEvents"] + info["collectorEvents"] - 1  # repair adds one event
        if compressed:
            # The recorder prints a minimum and a maximum: part of the last compressed chunk may be in the file.
            self.assertRegex(said, "at least .* are in the file, at most")
            self.assertGreaterEqual(there_are, int(account[1]), said)
            self.assertLessEqual(there_are, int(account[1]) + int(account[2]), said)
        else:
            self.assertEqual(there_are, int(account[1]), said)

    def test_a_file_that_may_not_grow_is_an_error_with_an_account(self):
        limit = 100_000
        for options in ([], ["--compress"]):
            with self.subTest(options):
                recorder = self.start(*options, command=LOAD,
                                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
                said = self.finish(recorder, expect=1)
                self.check_account(said, "File too large", compressed=bool(options))

    def test_a_full_disk_is_an_error_with_an_account(self):
        disk = self.folder / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", disk], check=True)
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        self.file = disk / "trace.nettrace"
        said = self.finish(self.start(command=LOAD), expect=1)
        self.check_account(said, "No space left")

    def fill_disk(self, *options, **popen):
        """Records onto a disk that is nearly full until the recorder prints that it waits. Returns the recorder, and a
        file whose removal makes space."""
        disk = pathlib.Path(tempfile.mkdtemp(prefix="disk-", dir=self.folder))
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", disk], check=True)
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        filler = disk / "filler"
        with open(filler, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, (40 << 20) - (150 << 10))
        self.file = disk / "trace.nettrace"
        self.selector = "raw_syscalls:sys_enter"
        # Small rings, so that they become full while the recorder waits.
        recorder = self.start("--when-full", "wait", "--ring-size", "16K", *options, start_new_session=True, **popen)
        self.addCleanup(end_group, recorder)
        self.expect_line(recorder, f"{self.file}: the disk is full: waiting")
        return recorder, filler

    def expect_line(self, recorder, text):
        self.assertIn(text, recorder.stderr.readline())

    def check_losses(self, out, said):
        """Checks that events were lost, and that summary, file and kernel agree on the number."""
        summary = json.loads(out)
        self.assertGreater(summary["lost"], 0, said)
        self.assertEqual(summary["events"] + summary["lost"], summary["hits"], said)
        info = self.info(self.file)
        self.assertEqual((info["events"], info["lost"], info["complete"]), (summary["events"], summary["lost"], True))
        self.assertEqual(info["losses"], summary["losses"])
        self.assertEqual(sum(loss["count"] for loss in info["losses"]), info["lost"])

    def check_waiting_for_space(self, *options, seconds):
        load = subprocess.Popen(LOAD)
        self.addCleanup(load.wait)
        self.addCleanup(load.kill)
        recorder, filler = self.fill_disk("--json", *options, stdout=subprocess.PIPE)
        time.sleep(seconds)
        filler.unlink()
        self.expect_line(recorder, f"{self.file}: there is space again")
        time.sleep(0.3)
        recorder.send_signal(signal.SIGINT)
        out, said = recorder.communicate(timeout=60)
        self.assertEqual(recorder.returncode, 0, said)
        self.check_losses(out, said)
        self.assertIn("  lost: the rings were full, because the disk was full for ", said)
        subprocess.run([ARGS.nettrace, "verify", "--strict", self.file], stdout=subprocess.DEVNULL, check=True)

    def test_recording_waits_for_space_and_continues(self):
        self.check_waiting_for_space(seconds=1)

    @script.more
    def test_compressed_recording_waits_for_space_and_continues(self):
        # Events are lost later than without compression, because 4 MB can wait for the compressing thread.
        self.check_waiting_for_space("--compress", seconds=20)

    @script.more
    def test_waiting_for_space_ends_with_the_recording(self):
        for compressed in ((), ("--compress",)):
            for name, options, command in (("request", (), LOAD), ("duration", ("--duration", "8s"), LOAD),
                                           ("command", (), ["timeout", "8", *LOAD])):
                with self.subTest((name, *compressed)):
                    recorder, _ = self.fill_disk(*options, *compressed, command=command)
                    if name == "request":
                        time.sleep(0.5)
                        self.assertIsNone(recorder.poll())
                        recorder.send_signal(signal.SIGTERM)
                    said = self.finish(recorder, expect=1)
                    self.check_account(said, "No space left", compressed=bool(compressed))

    def test_events_lost_by_a_paused_reader_are_counted(self):
        load = subprocess.Popen(LOAD)
        self.addCleanup(load.wait)
        self.addCleanup(load.kill)
        self.selector = "raw_syscalls:sys_enter"
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with open(self.file, "wb") as file:
            reader = subprocess.Popen(["cat", pipe], stdout=file)
        self.addCleanup(reader.wait)
        self.addCleanup(reader.kill)
        recorder = self.start("--json", "--ring-size", "16K", output=pipe, stdout=subprocess.PIPE, start_new_session=True)
        self.addCleanup(end_group, recorder)
        self.wait_for_events()
        reader.send_signal(signal.SIGSTOP)
        time.sleep(3)
        reader.send_signal(signal.SIGCONT)
        time.sleep(0.3)
        recorder.send_signal(signal.SIGINT)
        out, said = recorder.communicate(timeout=60)
        self.assertEqual(recorder.returncode, 0, said)
        reader.wait()
        self.check_losses(out, said)

    def test_two_recordings_into_one_file_are_one_too_many(self):
        first = self.start(command=LOAD)
        self.wait_for_events()
        said = self.finish(self.start("--duration", "200ms"), expect=1)
        self.assertIn(f"{self.file}: another recording", said)
        first.send_signal(signal.SIGINT)
        self.finish(first)
        self.assertTrue(self.info(self.file)["complete"])
        # The first recording has ended, so another one may start, which replaces the file.
        self.finish(self.start("--duration", "200ms"))

    def test_reader_that_locks_the_file_does_not_stop_a_recording(self):
        self.file.touch()
        with open(self.file, "rb") as reader:
            fcntl.flock(reader, fcntl.LOCK_EX)
            self.finish(self.start("--duration", "200ms"))
        self.assertTrue(self.info(self.file)["complete"])

    def test_compressed_recordings_hold_all_events(self):
        compressed = self.folder / "trace.nettrace.zst"
        for options, output in (((), compressed), (("--compress",), self.file)):
            done = subprocess.run([ARGS.nettrace, "record", "-o", output, "--json", "-e", SELECTOR, *options,
                                   "--", *SHORT_LOAD],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
            summary = json.loads(done.stdout)
            self.assertEqual(output.read_bytes()[:4], b"\x28\xb5\x2f\xfd")
            self.assertEqual(summary["bytes"], output.stat().st_size)
            self.assertLess(summary["bytes"], summary["uncompressedBytes"])
            info = self.info(output)
            self.assertEqual((info["events"], info["complete"]), (summary["events"], True))
            subprocess.run([ARGS.nettrace, "verify", "--strict", output], stdout=subprocess.DEVNULL, check=True)

    def test_a_compressed_recording_does_not_record_its_own_work(self):
        recorder = subprocess.Popen([ARGS.nettrace, "record", "-o", self.file, "--compress", "-e", "raw_syscalls:sys_enter",
                                     "--", *SHORT_LOAD], stderr=subprocess.PIPE)
        _, said = recorder.communicate()
        self.assertEqual(recorder.returncode, 0, said)
        out = subprocess.run([ARGS.nettrace, "dump", "--json", self.file], stdout=subprocess.PIPE, check=True).stdout
        pids = {event["pid"] for event in map(json.loads, out.splitlines())}
        self.assertGreater(len(pids), 0, said)
        # Other recordings may run on this machine, so threads are not identified by their names.
        self.assertNotIn(recorder.pid, pids)

    def test_killed_recording_is_intact_to_its_last_second_and_records_the_unknown_time(self):
        for options in ((), ("--compress",)):
            with self.subTest(options):
                recorder = self.start(*options, command=LOAD, start_new_session=True)
                self.wait_for_events()
                time.sleep(3.5)
                os.killpg(recorder.pid, signal.SIGKILL)  # Kills the load, too.
                recorder.communicate()
                killed = time.time_ns()
                whole = self.folder / "whole.nettrace"
                done = subprocess.run([ARGS.nettrace, "repair", self.file, "-o", whole], stderr=subprocess.PIPE, text=True,
                                      check=True)
                info = self.info(whole)
                self.assertGreaterEqual(info["sequencePoints"], 2)
                self.assertGreater(info["lastTimestamp"] - info["firstTimestamp"], 1.5 * info["ticksPerSecond"])
                # Usually, at most the last two seconds of the recording are unknown. On a busy machine, more may be.
                unknown = info["unknown"]
                self.assertEqual(unknown, self.info(self.file, expect=1)["unknown"])
                since, until = (nanoseconds(unknown[key]) for key in ("since", "until"))
                self.assertEqual(until, self.file.stat().st_mtime_ns)
                self.assertLess(killed - 3_500_000_000, since)
                self.assertLess(since, until)
                self.assertLessEqual(until, killed)
                self.assertIn(f"losses are unknown from {unknown['since']} to at least {unknown['until']}",
                              done.stderr)

    def test_the_file_is_private_unless_asked_otherwise(self):
        for options, mode in (((), 0o600), (("--mode", "0644"), 0o644), ((), 0o600)):
            self.finish(self.start("--duration", "100ms", *options, umask=0))
            self.assertEqual(self.file.stat().st_mode & 0o7777, mode)

    def test_a_second_sigint_gives_up_waiting(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        # After the first SIGINT, the recorder waits up to a second for a reader of the pipe. The second SIGINT must end
        # the wait. On a busy machine, most tries take longer for other reasons, so one of 12 must end within 0.9 s.
        for _ in range(12):
            recorder = self.start(command=LOAD, output="-", stdout=writer)
            self.assertTrue(select.select([reader], [], [], 60)[0], "the recorder wrote nothing to the pipe within 60 s")
            time.sleep(3)  # The pipe is full by now.
            first = time.monotonic()
            recorder.send_signal(signal.SIGINT)
            time.sleep(0.15)
            recorder.send_signal(signal.SIGINT)
            said = self.finish(recorder, expect=1)
            took = time.monotonic() - first
            self.assertRegex(said, "reader has stopped reading.*events are in the file")
            os.set_blocking(reader, False)
            while read_or_none(reader):
                pass
            os.set_blocking(reader, True)
            if took < 0.9:
                break
        os.close(writer)
        self.assertLess(took, 0.9)


def nanoseconds(text):
    """Returns the nanoseconds since 1970 of a time such as 2026-11-21T10:00:00.123456789Z."""
    seconds, fraction = text.removesuffix("Z").split(".")
    return int(datetime.datetime.fromisoformat(seconds + "+00:00").timestamp()) * 10**9 + int(fraction)


def end_group(process):
    """Ends the process, which leads its process group, and all other processes of the group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.communicate()


def read_or_none(fd):
    try:
        return os.read(fd, 65536)
    except BlockingIOError:
        return None


def until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "never happens"
        time.sleep(0.01)


if __name__ == "__main__":
    script.run_cases(lambda: tracepoints.require(SELECTOR))
