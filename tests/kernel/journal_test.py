#!/usr/bin/python3
"""Tests `nettrace record --journal` with a separate systemd-journald in a mount namespace. Needs root and
systemd-journald."""

import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

from support import script

ARGS = script.options(__doc__, "nettrace")
JOURNALD = pathlib.Path("/lib/systemd/systemd-journald")
SOCKET = "/run/systemd/journal/socket"
CLONE_NEWNS = 0x20000
NOBODY = 65534
LEVELS = [1, 1, 1, 2, 3, 4, 4, 5]  # by PRIORITY
CUT = " [cut]"


def require():
    if os.geteuid() != 0:
        raise script.Skipped("needs root")
    if not JOURNALD.exists():
        raise script.Skipped("needs systemd-journald (package systemd)")
    if ctypes.CDLL(None).unshare(CLONE_NEWNS) != 0:
        raise script.Skipped("needs the right to create a mount namespace")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    for folder in ("/run", "/var/log"):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True)


def send(**fields):
    """Writes an entry by the native protocol, in which values may have any bytes. A large entry is sent as a memory file."""
    data = b"".join(name.encode() + b"\n" + struct.pack("<Q", len(value)) + value + b"\n"
                    for name, value in ((name, value if isinstance(value, bytes) else str(value).encode())
                                        for name, value in fields.items()))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        if len(data) < 100_000:
            sender.sendto(data, SOCKET)
            return
        memory = os.memfd_create("entry", os.MFD_ALLOW_SEALING)
        with open(memory, "wb") as file:
            file.write(data)
            file.flush()
            # journald accepts only a file that is sealed against changes.
            f_add_seals, seals = 1033, 0xF
            ctypes.CDLL(None).fcntl(memory, f_add_seals, seals)
            sender.connect(SOCKET)
            sender.sendmsg([], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", memory))])


class JournalTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="journal-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.folder.chmod(0o755)
        self.file = self.folder / "trace.nettrace"
        shutil.rmtree("/run/log", ignore_errors=True)

    @contextlib.contextmanager
    def journald(self, *settings):
        """Runs journald with an empty journal. `settings` have the form "Key=value"."""
        os.makedirs("/run/log", exist_ok=True)
        os.makedirs("/run/systemd/journald.conf.d", exist_ok=True)
        pathlib.Path("/run/systemd/journald.conf.d/test.conf").write_text(
            "\n".join(["[Journal]", "ReadKMsg=no", "Audit=no", *settings, ""]), encoding="utf-8")
        pathlib.Path(SOCKET).unlink(missing_ok=True)
        with subprocess.Popen([JOURNALD], stderr=subprocess.DEVNULL) as daemon:
            try:
                until(lambda: os.path.exists(SOCKET) and list(pathlib.Path("/run/log/journal").glob("*/*.journal")))
                yield
            finally:
                daemon.terminate()

    @contextlib.contextmanager
    def recorded(self, *options):
        """Records while the body runs. The recorder is in `self.recorder`; `self.said` has its messages afterwards."""
        ready, ready_write = os.pipe()
        words = [ARGS.nettrace, "record", "-o", self.file, *options, "--json", "--", "sh", "-c",
                 f"echo >&{ready_write}; exec sleep 60"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              pass_fds=[ready_write]) as self.recorder:
            os.close(ready_write)
            with open(ready, "rb") as began:
                self.assertTrue(began.readline())
            yield
            self.recorder.send_signal(signal.SIGINT)
            out, self.said = self.recorder.communicate(timeout=30)
        self.assertEqual(self.recorder.returncode, 0, self.said)
        self.summary = json.loads(out)
        verify = subprocess.run([ARGS.nettrace, "verify", self.file], capture_output=True, text=True, check=False)
        self.assertEqual(verify.returncode, 0, verify.stdout)

    def events(self, *options):
        shown = subprocess.run([ARGS.nettrace, "dump", "--json", *options, self.file], stdout=subprocess.PIPE, check=True)
        return [json.loads(line) for line in shown.stdout.splitlines()]

    def entries(self):
        return [event for event in self.events() if event.get("provider") == "Journal"]

    def refused(self, *options, **popen):
        ran = subprocess.run([self.program, "record", "-o", self.file, *options], capture_output=True, text=True,
                             check=False, **popen)
        self.assertNotEqual(ran.returncode, 0)
        self.assertFalse(self.file.exists())
        return ran.returncode, ran.stderr

    program = ARGS.nettrace

    def test_records_what_journalctl_shows(self):
        with self.journald():
            send(MESSAGE="before the recording", PRIORITY=6)
            with self.recorded("--journal", "--journal-fields=NUMBER,TAG"):
                for number in range(200):
                    place = {"CODE_FILE": "a.cc", "CODE_LINE": number, "CODE_FUNC": "Run"} if number % 2 else {}
                    send(MESSAGE=f"line {number}", PRIORITY=number % 8, SYSLOG_IDENTIFIER="numbers", NUMBER=number, **place)
                subprocess.run(["systemd-cat", "-t", "other", "-p", "err", "echo", "from another process"], check=True)
            shown = subprocess.run(["journalctl", "-o", "json", "--no-pager", "--all"], stdout=subprocess.PIPE, check=True)
        expected = [entry for entry in map(json.loads, shown.stdout.splitlines())
                    if entry.get("SYSLOG_IDENTIFIER") in ("numbers", "other")]
        recorded = self.entries()
        self.assertEqual(len(recorded), 201)
        self.assertEqual((self.summary["events"], self.summary["lost"]), (201, 0))
        for event, entry in zip(recorded, expected, strict=True):
            payload = event["payload"]
            self.assertEqual(event["name"], "Entry")
            self.assertEqual(event["timestamp"], int(entry["__MONOTONIC_TIMESTAMP"]) * 1000)
            self.assertEqual(event["pid"], int(entry["_PID"]))
            self.assertEqual(event["level"], LEVELS[int(entry["PRIORITY"])])
            self.assertEqual(event["threadInfo"]["Transport"], "journal")
            self.assertEqual(payload["message"], entry["MESSAGE"])
            self.assertEqual(payload["identifier"], entry["SYSLOG_IDENTIFIER"])
            self.assertEqual(payload["pid"], int(entry["_PID"]))
            self.assertEqual(payload["priority"], int(entry["PRIORITY"]))
            self.assertEqual(payload["NUMBER"], entry.get("NUMBER", ""))
            self.assertEqual(payload["TAG"], "")
            self.assertEqual(payload.get("codeFile"), entry.get("CODE_FILE"))
            self.assertEqual(payload.get("codeLine"), int(entry["CODE_LINE"]) if "CODE_LINE" in entry else None)
            self.assertEqual(payload.get("codeFunction"), entry.get("CODE_FUNC"))

    def test_is_in_order_with_events_of_the_kernel(self):
        program = self.folder / f"true-{os.getpid()}"  # a name that no other process of this machine has
        program.symlink_to("/bin/true")
        with self.journald(), self.recorded("--journal", "-e", "sched:sched_process_exit"):
            for number in range(20):
                send(MESSAGE=f"line {number}", PRIORITY=6)
                time.sleep(0.01)
                subprocess.run([program], check=True)
        order = [event for event in self.events() if event.get("provider") == "Journal" or
                 (event.get("name") == "sched_process_exit" and event["payload"]["comm"] == program.name)]
        self.assertEqual([event["name"] for event in order], ["Entry", "sched_process_exit"] * 20)
        self.assertEqual([event["payload"]["message"] for event in order[::2]], [f"line {i}" for i in range(20)])

    def test_bounds_hostile_entries(self):
        noise = os.urandom(3 << 20)
        with self.journald(), self.recorded("--journal", "--journal-fields=BIG"):
            send(MESSAGE=noise, BIG=noise, SYSLOG_IDENTIFIER=b"\x1b[2J\0\xff", CODE_FILE=b"/" * 100_000,
                 CODE_LINE="-1", PRIORITY="99", N_DROPPED=1_000_000)
            send(MESSAGE="\u20ac" * 10_000, PRIORITY=5)
            send(NO_MESSAGE="x", **{f"F{i}": i for i in range(1000)})
        self.assertEqual(self.summary["lost"], 0)
        self.assertEqual(self.summary["undecoded"], 0)
        first, second, third = [event["payload"] for event in self.entries()]
        for text, limit in ((first["message"], 16384), (first["BIG"], 1024), (first["codeFile"], 512),
                            (second["message"], 16384)):
            self.assertTrue(text.endswith(CUT))
            self.assertLessEqual(len(text), limit + len(CUT))
        self.assertEqual(second["message"], "\u20ac" * (16384 // 3) + CUT)
        self.assertEqual((first["codeLine"], first["priority"]), (0, 99))
        self.assertEqual((third["message"], third["priority"]), ("", 6))
        text = subprocess.run([ARGS.nettrace, "dump", self.file], stdout=subprocess.PIPE, check=True).stdout
        self.assertNotIn(b"\x1b", text)

    def test_counts_entries_that_were_deleted_before_they_were_read(self):
        total = 1200
        with self.journald("RuntimeMaxUse=16M", "RuntimeMaxFileSize=4M", "Compress=no"), self.recorded("--journal"):
            send(MESSAGE="first", NUMBER=0)
            time.sleep(0.2)
            self.recorder.send_signal(signal.SIGSTOP)
            for _ in range(total):
                send(MESSAGE=os.urandom(24_000).hex())
            time.sleep(0.2)
            self.recorder.send_signal(signal.SIGCONT)
        others = sum(1 for event in self.entries() if event["payload"]["identifier"] == "systemd-journald")
        lost = self.summary["lost"]
        self.assertGreater(lost, 0)
        # The test has sent `total` + 1 entries. journald adds entries when it deletes files; some of them may be among
        # the lost entries.
        self.assertGreaterEqual(self.summary["events"] - others + lost, total + 1)
        self.assertLessEqual(self.summary["events"] - others + lost, total + 50)
        self.assertIn("of tracepoint journal:deleted", self.said)

    def test_reads_a_journal_in_another_folder(self):
        with self.journald():
            [folder] = pathlib.Path("/run/log/journal").iterdir()
            with self.recorded("--journal", "--journal-dir", folder):
                send(MESSAGE="by its folder", PRIORITY=4)
        [entry] = self.entries()
        self.assertEqual((entry["payload"]["message"], entry["level"]), ("by its folder", 3))

    def test_selects_processes(self):
        with self.journald(), self.recorded("--journal", "--pid", str(os.getpid())):
            send(MESSAGE="of this process")
            subprocess.run(["systemd-cat", "echo", "of another process"], check=True)
        self.assertEqual([entry["payload"]["message"] for entry in self.entries()], ["of this process"])

    def test_errors_have_remedies(self):
        program = self.folder / "nettrace"
        shutil.copy(ARGS.nettrace, program)
        self.program = program
        status, said = self.refused("--journal")
        self.assertEqual(status, 1)
        self.assertIn("systemd-journald does not run", said)
        status, said = self.refused("--journal=a/b")
        self.assertEqual(status, 2)
        self.assertIn("invalid unit 'a/b'; examples:", said)
        self.assertEqual(self.refused("--journal", "--journal-fields=lower")[0], 2)
        _, said = self.refused("--journal", "--journal-dir", self.folder / "none")
        self.assertIn("not a directory; name a directory with the files of a journal", said)
        with self.journald():
            self.file = pathlib.Path("/tmp/never.nettrace")
            _, said = self.refused("--journal", user=NOBODY, group=NOBODY, extra_groups=[])
            self.assertIn("may not read the journal; run as root, or as a user in the group systemd-journal", said)
            library = next(path for folder in ("/lib", "/usr/lib") for path in pathlib.Path(folder).rglob("libsystemd.so.0"))
            subprocess.run(["mount", "--bind", "/dev/null", library.resolve()], check=True)
            try:
                _, said = self.refused("--journal")
            finally:
                subprocess.run(["umount", library.resolve()], check=True)
            self.assertIn("install the package libsystemd0", said)


def until(check):
    end = time.monotonic() + 20
    while not check():
        if time.monotonic() > end:
            raise AssertionError("the condition was not met within 20 s")
        time.sleep(0.01)


if __name__ == "__main__":
    script.run_cases(require)
