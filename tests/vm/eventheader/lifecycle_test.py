#!/usr/bin/python3
"""Tests a service from its start to its end: processes of the same name, exec, static objects, and with user_events also
tracefs or permission that become available later. Needs root and a kernel with user_events (./run vm), or
EVENTHEADER_TRANSPORT=ring."""

import contextlib
import errno
import os
import pathlib
import re
import subprocess
import unittest

from support import failures
from support import script
from support import transport

ARGS = script.options(__doc__, "puppet", "nettrace")
TRACEFS = pathlib.Path("/sys/kernel/tracing")
DATA = TRACEFS / "user_events_data"
MODES = pathlib.Path(__file__).parents[3] / "tools/eventheader/systemd/tmpfiles.conf"
TRACEPOINT = "Vm_Puppet_L4K1"
NEEDS_KERNEL = unittest.skipIf(transport.RINGS, "tests user_events only, and this run tests rings")
FIELDS = "u8 eventheader_flags; u8 version; u16 id; u16 tag; u8 opcode; u8 level"


class Puppet:
    """Runs puppet.cc, with the words of `prefix` before its command."""

    def __init__(self, *prefix):
        self.process = subprocess.Popen([*prefix, ARGS.puppet], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, bufsize=1)
        self.answer()

    def answer(self):
        return self.process.stdout.readline().rstrip("\n")

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        return self.answer()

    def status(self):
        return int(self.ask("status"))

    def end(self):
        """Ends the program; returns its exit status."""
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait()


@contextlib.contextmanager
def following(remedy):
    """Sets the modes and owners of tracefs as the file that `remedy` names does at boot, but gives the rights of group
    user_events to the group of user `nobody`. Restores them at the end of the block. `remedy` is the library's advice
    after the error EACCES."""
    installed = re.search(r"/usr/lib/tmpfiles\.d/(\S+)", remedy).group(1)
    assert installed == "user_events.conf", remedy
    try:
        for line in MODES.read_text().splitlines():
            if not line.startswith("#"):
                _, path, mode, _, group = line.split()
                os.chown(path, 0, failures.NOBODY if group == "user_events" else 0)
                os.chmod(path, int(mode, 8))
        yield
    finally:
        os.chmod(TRACEFS, 0o700)
        os.chown(DATA, 0, 0)
        os.chmod(DATA, 0o640)


class KernelRecorder:
    """Records the tracepoint in a tracefs instance."""

    def __init__(self, case):
        # The tracepoint is persistent, so that it can be enabled before a service starts.
        if not (TRACEFS / f"events/user_events/{TRACEPOINT}").exists():
            definitions = os.open(TRACEFS / "dynamic_events", os.O_WRONLY | os.O_APPEND)
            os.write(definitions, f"u:{TRACEPOINT} {FIELDS}\n".encode())
            os.close(definitions)
        self.instance = TRACEFS / "instances/lifecycle"
        self.instance.mkdir()
        case.addCleanup(self.instance.rmdir)

    def start(self):
        self.enable("1")

    def stop(self):
        self.enable("0")

    def enable(self, value):
        (self.instance / f"events/user_events/{TRACEPOINT}/enable").write_text(value)

    def count(self, text):
        """Returns how often the text is in the rings of the instance, and empties the rings."""
        pages = []
        for cpu in (self.instance / "per_cpu").iterdir():
            ring = os.open(cpu / "trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK)
            with contextlib.suppress(BlockingIOError):
                while page := os.read(ring, 65536):
                    pages.append(page)
            os.close(ring)
        return b"".join(pages).count(text.encode())


class RingRecorder(transport.RingRecorder):
    def count(self, text):
        """Returns how many events with the text were recorded since the last call."""
        return sum(event["payload"].get("text") == text for event in self.take() if event["provider"] == "Vm_Puppet")


class Lifecycle(unittest.TestCase):
    def setUp(self):
        transport.give_socket(self)
        self.recorder = RingRecorder(self, ARGS.nettrace, TRACEPOINT) if transport.RINGS else KernelRecorder(self)
        self.recorder.start()

    def puppet(self, *prefix):
        puppet = Puppet(*prefix)
        self.addCleanup(puppet.process.wait)
        self.addCleanup(puppet.process.stdin.close)
        self.addCleanup(puppet.process.stdout.close)
        return puppet

    def wait_for(self, puppet, answer, line):
        """Requires that the puppet answers `answer` to `line`. If it must answer "written", its event must be enabled,
        else disabled. The kernel changes this at once. With rings, a message changes it, so the test waits for the
        change."""
        if transport.RINGS:
            transport.until(lambda: puppet.ask("enabled") == ("yes" if answer == "written" else "no"))
        self.assertEqual(puppet.ask(line), answer)

    def assert_arrives(self, puppet, text):
        self.wait_for(puppet, "written", f"write {text}")
        self.assertEqual(self.recorder.count(text), 1)

    def test_two_processes_have_the_same_provider(self):
        first, second = self.puppet(), self.puppet()
        self.assertEqual([first.status(), second.status()], [0, 0])
        self.assert_arrives(first, "from the first")
        self.assert_arrives(second, "from the second")
        self.recorder.stop()
        for puppet in (first, second):
            self.wait_for(puppet, "disabled", "write x")
        self.recorder.start()
        self.assertEqual(first.end(), 0)
        self.assert_arrives(second, "the second goes on")
        third = self.puppet()
        self.assert_arrives(third, "a third joins")
        second.process.kill()
        second.process.wait()
        self.assert_arrives(third, "the third goes on")

    def test_exec_closes_the_descriptor_and_the_next_program_registers_again(self):
        count = "0" if transport.RINGS else "1"  # number of descriptors of user_events_data
        puppet = self.puppet()
        self.assertEqual(puppet.ask("descriptors"), count)
        self.assert_arrives(puppet, "before exec")
        self.assertEqual(puppet.ask("exec"), "ready")
        self.assertEqual(puppet.ask("descriptors"), count)
        self.assertEqual(puppet.status(), 0)
        self.assert_arrives(puppet, "after exec")
        descriptors = puppet.ask("list")
        for name in ("user_events_data", "memfd:", "inotify"):
            self.assertNotIn(name, descriptors)
        self.assertIn("pipe:", descriptors)

    @NEEDS_KERNEL
    def test_tracefs_mounted_after_the_start(self):
        for retry in ("retry", "retry all"):
            with self.subTest(retry):
                puppet = self.puppet(*failures.WITHOUT_TRACEFS, "env", "EVENTHEADER_TRANSPORT=user_events")
                self.assertEqual(puppet.status(), errno.ENOENT)
                self.assertRegex(puppet.ask("remedy"), "mount tracefs at /sys/kernel/tracing")
                self.assertEqual(puppet.ask("write x"), "disabled")
                self.assertEqual(puppet.ask(retry), str(errno.ENOENT))
                self.mount_for(puppet, "/sys/kernel/tracing")
                self.assertEqual(puppet.status(), errno.ENOENT)
                self.assertEqual(puppet.ask(retry), "0")
                self.assertEqual(puppet.status(), 0)
                self.assert_arrives(puppet, f"after {retry}")

    @NEEDS_KERNEL
    def test_retry_moves_from_rings_to_a_tracefs_mounted_elsewhere(self):
        puppet = self.puppet(*failures.WITHOUT_TRACEFS)
        self.assertEqual(puppet.status(), 0)
        elsewhere = pathlib.Path("/tmp/trace fs")
        elsewhere.mkdir()
        self.addCleanup(elsewhere.rmdir)
        self.mount_for(puppet, elsewhere)
        self.assertEqual(puppet.ask("retry"), "0")
        self.assert_arrives(puppet, "found elsewhere")

    def mount_for(self, puppet, where):
        """Mounts tracefs where only the puppet sees it."""
        subprocess.run(["nsenter", f"--mount=/proc/{puppet.process.pid}/ns/mnt", "mount", "-t", "tracefs", "tracefs",
                        where], check=True)

    @NEEDS_KERNEL
    def test_permission_granted_later(self):
        for retry in ("retry", "retry all"):
            with self.subTest(retry):
                puppet = self.puppet(*failures.AS_NOBODY)
                self.assertEqual(puppet.status(), errno.EACCES)
                remedy = puppet.ask("remedy")
                self.assertRegex(remedy, "no permission")
                self.assertEqual(puppet.ask("write x"), "disabled")
                self.assertEqual(puppet.ask(retry), str(errno.EACCES))
                with following(remedy):
                    self.assertEqual(puppet.status(), errno.EACCES)
                    self.assertEqual(puppet.ask(retry), "0")
                self.assertEqual(puppet.status(), 0)
                self.assert_arrives(puppet, f"with permission, {retry}")

    @NEEDS_KERNEL
    def test_descriptor_outlives_the_permission(self):
        puppet = self.puppet()
        self.assertEqual(puppet.ask(f"user {failures.NOBODY}"), "done")
        self.assertEqual(puppet.ask("retry"), "0")
        self.assert_arrives(puppet, "as nobody")

    def test_static_objects_may_write(self):
        puppet = self.puppet()
        early = puppet.ask("early")
        self.assertIn(early, ("written", "disabled"))
        arrived = self.recorder.count("from a static constructor")
        self.assertEqual(arrived, 1 if early == "written" else 0)
        self.assertEqual(puppet.status(), 0)
        self.assert_arrives(puppet, "from main")
        self.assertEqual(puppet.end(), 0)


if __name__ == "__main__":
    script.run_cases()
