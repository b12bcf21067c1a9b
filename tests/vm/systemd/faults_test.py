#!/usr/bin/python3
"""Tests nettraced as a service when disks, administrators and the kernel cause faults: it reports the fault, resumes
collection without intervention, does not disturb other sessions, and keeps an exact account. Runs in the same VM as
service_test.py."""

import json
import pathlib
import shutil
import subprocess
import time
import unittest

import daemon
from support import commands
from support import script

TRACEFS = pathlib.Path("/sys/kernel/tracing")
# The smallest queue, which few events fill, and rings that hold all events of the tests.
SMALL = 'queue_bytes = "128K"\nring_size = "8M"\nfiles.keep_free_bytes = "off"'


def status(session):
    return json.loads(daemon.run(daemon.NETTRACE, "ctl", "status", "--json", session))


def wait_for_state(session, state):
    daemon.until(lambda: status(session)["state"] == state)


def before(file):
    """Returns the number of events, recorded and lost, that `file` states for all earlier files of its session."""
    continues = commands.info(daemon.NETTRACE, file)["continues"] or {"eventsBefore": 0, "lostBefore": 0}
    return continues["eventsBefore"] + continues["lostBefore"]


class FaultsTest(unittest.TestCase):
    def setUp(self):
        self.began = daemon.mark()
        self.loads = []
        shutil.rmtree(daemon.STATE / "steady", ignore_errors=True)  # Another test may have left it.
        self.addCleanup(daemon.reset)

    def mounted(self, session, *mount):
        """Replaces a session's folder with another file system during the test."""
        folder = daemon.STATE / session
        folder.mkdir(exist_ok=True)
        daemon.run("mount", *mount, folder)
        shutil.chown(folder, "nettraced", "tracing")

        def unmount():
            daemon.systemctl("stop", daemon.UNIT)  # A file system that nettraced uses cannot be unmounted.
            daemon.run("umount", folder)

        self.addCleanup(unmount)
        return folder

    def add(self, *sessions):
        """Reloads the daemon with these sessions. The last one is new; the others are running."""
        since = daemon.mark()
        daemon.configure("".join(map(daemon.session, sessions)))
        daemon.systemctl("reload", daemon.UNIT)
        daemon.until(lambda: daemon.said(since, sessions[-1], "collects"))

    def load(self, events=400):
        """Writes this many events without pauses."""
        load = daemon.Load("--events", str(events))
        self.assertEqual((load.written(), load.not_written()), (events, 0))
        self.loads.append(load.wait())
        return load.wait()["pid"]

    def stop(self, restarts=0):
        """Stops the daemon, so that all files are complete."""
        self.assertEqual(daemon.restarts(), restarts)
        daemon.systemctl("stop", daemon.UNIT)
        self.assertEqual(daemon.show("Result"), "success")

    def check_exact(self, session, lossy):
        """Checks that the shown and lost events, including those of deleted files, are exactly the events that were
        written."""
        recorded = daemon.Recorded(self, session, *self.loads)
        earlier = min(map(before, recorded.files))
        shown = sum(map(len, recorded.by_pid.values()))
        written = sum(thread["written"] for load in self.loads for thread in load["threads"])
        self.assertEqual(earlier + shown + recorded.lost, written)
        self.assertEqual(recorded.lost > 0, lossy, recorded.lost)
        return recorded

    def check_suspended(self, session, error):
        """Checks what status and log report about a session whose output accepts no data."""
        wait_for_state(session, "suspended")
        self.assertRegex(status(session)["error"], f"{error}$")
        self.assertEqual(status("steady")["state"], "running")
        [message] = [entry["MESSAGE"] for entry in daemon.entries(self.began, session) if entry["PRIORITY"] == "3"]
        self.assertRegex(message, f"^session {session} cannot write and retries; events wait in memory, and are "
                                  "counted as lost when the queue is full: "
                                  f"cannot write /var/lib/nettraced/{session}/.*: {error}$")
        daemon.until(lambda: daemon.show("StatusText").startswith("sessions: 2 running, 1 suspended; "))
        self.assertIn('Status: "sessions: 2 running, 1 suspended; ', daemon.systemctl("status", daemon.UNIT))

    def check_suspends_and_goes_on(self, session, fault, mend, error):
        daemon.start(daemon.session(session, SMALL), daemon.session("steady", SMALL.partition("\n")[2]))
        self.load()
        daemon.until(lambda: status(session)["bytes"] > 0)
        fault()
        self.load(5000)
        self.check_suspended(session, error)
        # Once the queue is full, the session counts further events as lost. All events of the next load must therefore
        # be lost.
        daemon.until(lambda: status(session)["queueBytes"] >= status(session)["queueLimit"])
        during = self.load()
        mend()
        daemon.until(lambda: daemon.said(self.began, session, f"session {session} writes again"))
        wait_for_state(session, "running")
        after = self.load()
        self.assertTrue(daemon.said(self.began, session, " lost; 'nettrace ctl status"))
        self.stop()
        shown = self.check_exact(session, lossy=True).by_pid
        self.assertEqual((len(shown[during]), len(shown[after])), (0, 400))
        self.check_exact("steady", lossy=False)

    def test_a_full_disk(self):
        filler = self.mounted("full", "-t", "tmpfs", "-o", "size=4m", "tmpfs") / "filler"

        def fill():
            subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=4k"], capture_output=True, check=False)

        self.check_suspends_and_goes_on("full", fill, filler.unlink, "No space left on device")

    @script.more
    def test_a_disk_fails(self):
        disk = Disk("flaky")
        self.addCleanup(disk.remove)
        disk.fill(self.mounted("flaky", "-o", "sync", disk.device))
        self.check_suspends_and_goes_on("flaky", disk.fail, disk.mend, "Input/output error")

    @script.more
    def test_the_folder_of_a_session_is_removed(self):
        daemon.start(daemon.session("gone"), daemon.session("steady"))
        self.load()
        daemon.until(lambda: status("gone")["events"] == 400)
        daemon.run(daemon.NETTRACE, "ctl", "rotate", "gone")
        self.load()
        daemon.until(lambda: len(daemon.partial_files("gone")) == 1)
        shutil.rmtree(daemon.STATE / "gone")
        daemon.until(lambda: "was removed, renamed or unmounted" in status("gone")["error"])
        self.load()
        self.assertEqual(status("gone")["state"], "running")
        self.stop()
        # Only the events of the complete file are missing, because the session has copied the file that it was writing.
        recorded = self.check_exact("gone", lossy=False)
        self.assertEqual([len(shown) for shown in recorded.by_pid.values()], [0, 400, 400])
        self.check_exact("steady", lossy=False)

    @script.more
    def test_tracefs_is_unmounted(self):
        daemon.start(daemon.session("steady"))
        self.load()
        daemon.run("umount", "--lazy", TRACEFS)
        try:
            self.assertFalse((TRACEFS / "events").exists())
            self.add("steady", "later")
            self.assertEqual(status("steady")["state"], "running")
        finally:
            daemon.systemctl("start", "sys-kernel-tracing.mount")
            daemon.run("systemd-tmpfiles", "--create", f"--prefix={TRACEFS}")
        between = self.load()
        self.add("steady", "later", "last")
        after = self.load()
        self.stop()
        self.check_exact("steady", lossy=False)
        for session, pids in (("later", {between, after}), ("last", {after})):
            recorded = daemon.Recorded(self, session, *self.loads)
            self.assertEqual({pid: len(shown) for pid, shown in recorded.by_pid.items() if shown},
                             {pid: 400 for pid in pids})

    @script.more
    def test_the_clock_is_set(self):
        daemon.start(daemon.session("steady", 'files.rotate_every = "1s"'))
        began = time.monotonic()
        for step in (3600, -7200, 3600):
            time.clock_settime(time.CLOCK_REALTIME, time.time() + step)
            known = len(daemon.files("steady"))
            self.load()
            # The next file must begin within seconds, also if the clock was set back.
            daemon.until(lambda known=known: len(daemon.files("steady")) > known + 1)
        self.stop()
        recorded = self.check_exact("steady", lossy=False)
        self.assertLess(len(recorded.files), time.monotonic() - began + 2)

    @script.more
    def test_memory_is_short(self):
        daemon.start(daemon.session("starved"))
        self.load()
        daemon.until(lambda: daemon.events_written("starved") == 400)
        daemon.systemctl("set-property", "--runtime", daemon.UNIT, "MemoryMax=1M")
        try:
            daemon.until(lambda: f"{daemon.UNIT}: Failed with result 'oom-kill'." in daemon.systemd_said(self.began))
        finally:
            daemon.systemctl("set-property", "--runtime", daemon.UNIT, "MemoryMax=infinity")
        daemon.until(lambda: daemon.is_active() and daemon.said(self.began, "starved", "repaired, "))
        self.assertTrue(daemon.said(self.began, "starved", " events; losses are unknown from 20"))
        self.load()
        restarts = daemon.restarts()
        self.assertGreater(restarts, 0)
        self.stop(restarts)
        self.check_exact("starved", lossy=False)
        self.assertEqual(daemon.partial_files("starved"), [])
        unknown = [bool(commands.info(daemon.NETTRACE, file)["unknown"]) for file in daemon.files("starved")]
        self.assertEqual(unknown, [True, False])


class Disk:
    """A disk of 32 MB with ext4, through the device mapper, on which writes of file data can be made to fail. Writes of
    ext4's journal and metadata, which are all before DATA, do not fail, because ext4 would then refuse all further
    writes."""

    SECTORS = (32 << 20) // 512
    DATA = (8 << 20) // 512

    def __init__(self, name):
        self._name = name
        self._image = pathlib.Path("/run") / name
        with open(self._image, "wb") as file:
            file.truncate(self.SECTORS * 512)
        self._loop = daemon.run("losetup", "--find", "--show", self._image).strip()
        self._dmsetup("create", self._table(15, 0))
        daemon.run("dmsetup", "mknodes", name)
        self.device = f"/dev/mapper/{name}"
        daemon.run("mkfs.ext4", "-q", "-E", "packed_meta_blocks=1", "-J", "size=4", "-N", "64", self.device)

    def _dmsetup(self, verb, table):
        subprocess.run(["dmsetup", verb, self._name], input=table, text=True, check=True)

    def _table(self, up, down):
        """Returns a table for the device mapper with which writes of file data succeed for `up` seconds and fail for
        `down` seconds, in turns."""
        return (f"0 {self.DATA} linear {self._loop} 0\n"
                f"{self.DATA} {self.SECTORS - self.DATA} flakey {self._loop} {self.DATA} {up} {down} 1 error_writes\n")

    def _change(self, table):
        daemon.run("dmsetup", "suspend", "--nolockfs", "--noflush", self._name)
        self._dmsetup("load", table)
        daemon.run("dmsetup", "resume", self._name)

    def fill(self, folder):
        """Fills the space before DATA in the file system that is mounted at `folder`, so that later data is after
        DATA."""
        subprocess.run(["dd", "if=/dev/zero", f"of={folder}/filler", "bs=1M", f"count={self.DATA * 512 >> 20}"],
                       capture_output=True, check=True)

    def fail(self):
        self._change(self._table(0, 15))

    def mend(self):
        self._change(self._table(15, 0))

    def remove(self):
        daemon.run("dmsetup", "remove", "--retry", self._name)
        daemon.run("losetup", "--detach", self._loop)
        self._image.unlink()


if __name__ == "__main__":
    script.run_cases()
