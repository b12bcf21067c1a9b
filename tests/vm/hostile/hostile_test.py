#!/usr/bin/python3
"""Tests that an attack by one process affects only that process. During each attack a well-behaved producer runs, whose
events must all be in the recording, decoded, or be counted as lost. The recorder's memory must stay bounded, each item
that cannot be recorded must be named once, and no control character may reach a terminal. Needs root and a kernel with
user_events (./run vm)."""

import collections
import contextlib
import json
import pathlib
import re
import resource
import signal
import subprocess
import tempfile
import threading
import time
import unittest

from support import commands
from support import failures
from support import script

ARGS = script.options(__doc__, "nettrace", "eventheader", "attacker", "producer")

FIELDS = "u8 eventheader_flags; u8 version; u16 id; u16 tag; u8 opcode; u8 level"
MAX_MEMORY_KIB = 64 * 1024
WITHOUT_RESOURCES = ["setpriv", "--bounding-set=-sys_resource"]
# Number of events that the producer needs at least 200 ms to write. After that time, its events are recorded on all CPUs.
SETTLED = 400
# Names that the kernel accepts unchanged: with line feeds, which end names in the kernel's list; with characters that a
# file name cannot have; and others.
LINE_FEEDS = (b"Z\n\nB", b"\nEvil_L1K1", b"Evil_L1K1\n", b"\n\n\n", b"X\nGood_L4K1\n\nActive")
NO_FOLDERS = (b"Evil/Good_L1K1", b"../sched/sched_switch", b"..", b".")
CONTROLS = (b"Evil\x1b[2J\xc2\x9b31m_L1K1", b"Evil\xe2\x80\xae_L1K1", b"Evil\xff\xfe_L1K1", b"Evil\x07\x08\r_L1K1")
HARMLESS = (b"enable", b"x" * 400)


def is_harmless(text):
    """Returns whether `text`, which is bytes, can be written to a terminal safely."""
    return all((c == "\n" or ord(c) >= 0x20) and not 0x7f <= ord(c) < 0xa0 and ord(c) not in range(0x202a, 0x202f)
               and ord(c) not in range(0x2066, 0x206a) for c in text.decode())


@contextlib.contextmanager
def user_events_for_all():
    """Lets every user register tracepoints and write to them."""
    data = pathlib.Path("/sys/kernel/tracing/user_events_data")
    subprocess.run(["mount", "-o", "remount,mode=755", "/sys/kernel/tracing"], check=True)
    data.chmod(0o666)
    try:
        yield
    finally:
        subprocess.run(["mount", "-o", "remount,mode=700", "/sys/kernel/tracing"], check=True)
        data.chmod(0o640)


class Recording:
    """A running `nettrace record` and the well-behaved producer. The constructor waits until events of the producer are
    recorded."""

    def __init__(self, test, selectors, *, options=(), files=None, prefix=()):
        self.test = test
        folder = tempfile.TemporaryDirectory(prefix="hostile-")
        test.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "trace.nettrace"
        self.producer = subprocess.Popen([ARGS.producer], stdout=subprocess.PIPE, text=True)
        test.addCleanup(self.producer.wait)
        test.addCleanup(self.producer.kill)
        test.addCleanup(self.producer.stdout.close)
        chosen = [word for selector in selectors for word in ("-e", selector)]
        limit = None if files is None else (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)))
        self.recorder = subprocess.Popen([*prefix, ARGS.nettrace, "record", "-o", self.file, "--json", *chosen, *options],
                                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                         preexec_fn=limit)
        test.addCleanup(self.recorder.kill)
        self.peak = 0
        watcher = threading.Thread(target=self._watch_memory)
        watcher.start()
        self.said = {}
        self.readers = [watcher]
        for name in ("stdout", "stderr"):
            reader = threading.Thread(target=self._read, args=(name,))
            reader.start()
            self.readers.append(reader)
        # If the recorder has ended, the producer would never print its line. The comparison then fails with an empty line.
        test.assertEqual(self.producer.stdout.readline() if self._begins() else "", "enabled\n", self.said)

    def _begins(self):
        """Returns whether the recorder still runs when the producer's events are enabled."""
        status = pathlib.Path("/sys/kernel/tracing/user_events_status")
        for _ in range(600):
            if re.search(rb"^Good_L4K1 # Used by.* perf", status.read_bytes(), re.MULTILINE):
                return True
            if self.recorder.poll() is not None:
                return False
            time.sleep(0.1)
        return False

    def _read(self, name):
        with getattr(self.recorder, name) as pipe:
            self.said[name] = pipe.read()

    def _watch_memory(self):
        status = pathlib.Path(f"/proc/{self.recorder.pid}/status")
        with contextlib.suppress(OSError):
            while peak := re.search(r"VmHWM:\s*(\d+)", status.read_text()):
                self.peak = max(self.peak, int(peak[1]))
                time.sleep(0.02)

    def end(self, exit_status=0):
        """Ends both programs and checks what must hold in every attack; returns the recorder's summary."""
        time.sleep(2)  # The producer also writes events after the attack.
        self.producer.send_signal(signal.SIGTERM)
        good = json.loads(self.producer.communicate()[0])
        time.sleep(0.2)
        self.recorder.send_signal(signal.SIGINT)
        for reader in self.readers:
            reader.join(timeout=300)
        test = self.test
        test.assertEqual(self.recorder.wait(timeout=60), exit_status, self.said)
        for said in self.said.values():
            test.assertTrue(is_harmless(said), said)
        test.assertNotIn(b"please report", self.said["stderr"])
        test.assertLess(self.peak, MAX_MEMORY_KIB)
        test.assertEqual(good["notWritten"], 0)
        summary = json.loads(self.said["stdout"])
        self.check_good_events(good["written"], summary["lost"])
        self.check_file()
        print(f"{test.id()}: peak {self.peak} KiB, {good['written']} good events, "
              f"{ {key: summary[key] for key in ('events', 'lost', 'undecoded', 'tracepoints', 'bytes')} }", flush=True)
        return summary

    def check_good_events(self, written, lost):
        """Checks that each event of the producer occurs once and unchanged, or was lost."""
        test = self.test
        names = collections.Counter()
        seen = set()
        for event in commands.dump(ARGS.nettrace, self.file, "--provider", "Good", "--pid", str(self.producer.pid)):
            names[event["name"]] += 1
            number = event["payload"].get("number")
            test.assertIn(number, range(written), event)
            test.assertNotIn(number, seen, "the recording has this event twice")
            seen.add(number)
            wanted = "Rare" if number % 500 == 0 else f"Kind{number % 4}"
            test.assertEqual(event["name"], wanted)
        test.assertGreater(written, 500, "the producer wrote too few events to check the recording")
        # The first SETTLED events may be missing: the kernel enables events a moment before it records them on all CPUs.
        settled = sum(number >= SETTLED for number in seen)
        test.assertLessEqual(written - SETTLED - settled, lost, names)
        test.assertGreater(len(seen), written / 2, "too few events of the producer are recorded for a meaningful test")

    def check_file(self):
        for command in (["verify", "--strict"], ["info"]):
            done = subprocess.run([ARGS.nettrace, *command, self.file], capture_output=True, check=False)
            self.test.assertEqual(done.returncode, 0, (done.stdout + done.stderr)[-2000:])
            self.test.assertTrue(is_harmless(done.stdout + done.stderr))


class Held:
    """The tracepoints of an attacker, with names and fields as bytes or text, until they are unregistered."""

    def __init__(self, test, tracepoints):
        self.process = subprocess.Popen([ARGS.attacker, "hold", *tracepoints], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        test.addCleanup(self.release)
        test.assertEqual(self.process.stdout.readline(), "ready\n")

    def release(self):
        if self.process.poll() is None:
            self.process.communicate()
        self.process.stdout.close()


class Hostile(unittest.TestCase):
    def attack(self, *arguments):
        """Runs the attack to its end; returns how many events it wrote."""
        done = subprocess.run([ARGS.attacker, *arguments], stdout=subprocess.PIPE, text=True, check=True)
        return json.loads(done.stdout)["written"]

    def check_named_once(self, recording, summary, names):
        """Checks that each of the names, in the form that the tools show, is in the summary and in one line of
        warnings."""
        warnings = recording.said["stderr"].decode().splitlines()
        for name in names:
            with self.subTest(name):
                self.assertEqual(summary["leftOut"].count(f"user_events:{name}"), 1, summary["leftOut"])
                shown = json.dumps(name)[1:-1]
                self.assertEqual(sum("left out" in line and f"user_events:{shown}" in line for line in warnings), 1,
                                 warnings)

    def test_fields_that_no_file_can_hold(self):
        Held(self, [b"GoodEvil_L1K1 struct foo x 70000"])
        recording = Recording(self, ["*"])
        Held(self, [b"GoodEvil_L2K1 struct foo x 70000"])
        time.sleep(2)
        summary = recording.end()
        self.check_named_once(recording, summary, ["GoodEvil_L1K1", "GoodEvil_L2K1"])

    def test_a_valid_definition_replaces_an_invalid_one(self):
        bad = Held(self, [b"Evil_L1K1 struct foo x 70000"])
        recording = Recording(self, ["*"])
        time.sleep(1)
        bad.release()
        written = self.attack("kinds", "100", "0", "Evil_L1K1")
        summary = recording.end()
        self.assertEqual(written, 100)
        self.check_named_once(recording, summary, ["Evil_L1K1"])
        shown = sum(1 for _ in commands.dump(ARGS.nettrace, recording.file, "--provider", "Evil"))
        self.assertEqual(shown, written)

    def check_names(self, before, during, left_out):
        """Checks that all other tracepoints are recorded although tracepoints with these names are registered before
        and during the recording. The messages and the summary must name exactly the tracepoints `left_out` as not
        recorded."""
        if before:
            Held(self, [name + b" u8 x" for name in before])
        recording = Recording(self, ["*", "user_events:*"])
        if during:
            Held(self, [name + b" u8 x" for name in during])
        time.sleep(2)
        lists = [subprocess.run([ARGS.eventheader, "list", *options], capture_output=True, check=False)
                 for options in ((), ("--json",))]
        for listed in lists:
            self.assertEqual(listed.returncode, 0, listed)
            self.assertTrue(is_harmless(listed.stdout + listed.stderr))
        self.assertRegex(lists[0].stdout.decode(), r"(?m)^Good_L4K1 .* perf$")
        self.assertIn("Good_L4K1", [json.loads(line)["name"] for line in lists[1].stdout.splitlines()])
        summary = recording.end()
        wanted = [name.decode(errors="replace") for name in left_out]
        self.assertEqual(sorted(name.removeprefix("user_events:") for name in summary["leftOut"]), sorted(wanted))
        self.assertEqual(summary["leftOutCount"], len(wanted))
        said = recording.said["stderr"].decode()
        self.assertEqual(len(re.findall("^nettrace record: left out: ", said, re.MULTILINE)), len(wanted), said)
        # A name with line feeds must not begin a new line of a warning.
        for line in said.splitlines():
            self.assertRegex(line, r"^(nettrace record: |  |/)", said)

    @script.more
    def test_names_with_line_feeds(self):
        self.check_names(LINE_FEEDS + CONTROLS, HARMLESS, LINE_FEEDS + CONTROLS)
        self.doCleanups()
        self.check_names(HARMLESS, LINE_FEEDS + CONTROLS, LINE_FEEDS + CONTROLS)

    @script.more
    def test_names_that_no_folder_can_have(self):
        self.check_names(NO_FOLDERS + CONTROLS, (), NO_FOLDERS + CONTROLS)
        self.doCleanups()
        self.check_names((), NO_FOLDERS + CONTROLS, NO_FOLDERS + CONTROLS)

    def test_ambiguous_names(self):
        self.check_names(LINE_FEEDS + (b"/\nGood_L4K1",), NO_FOLDERS, (*LINE_FEEDS, b"user_events_status"))

    def test_many_foreign_tracepoints(self):
        """Tests that the recorder drains the rings also while it attaches many other tracepoints."""
        Held(self, [f"Evil{number}_L1K1 {FIELDS}" for number in range(250)])
        recording = Recording(self, ["Good_L4K1", "*"], options=["--ring-size", "64K"])
        Held(self, [f"Evil{number}_L2K1 {FIELDS}" for number in range(150)])
        time.sleep(5)
        # If the host gives this machine little time, the recorder may wait longer than a small ring lasts. If it did not
        # drain the rings while it attaches tracepoints, most events would be lost.
        summary = recording.end()
        self.assertLess(summary["lost"], summary["events"] / 10)

    @script.more
    def test_many_foreign_tracepoints_with_few_descriptors(self):
        Held(self, [f"Evil{number}_L1K1 {FIELDS}" for number in range(700)])
        # Without CAP_SYS_RESOURCE, the recorder cannot raise its limit of descriptors.
        recording = Recording(self, ["Good_L4K1", "*"], files=1024, prefix=WITHOUT_RESOURCES)
        time.sleep(5)
        summary = recording.end()
        self.assertIn("left out", recording.said["stderr"].decode())
        self.assertGreater(summary["tracepoints"], 50)

    @script.more
    def test_many_providers_with_many_kinds(self):
        recording = Recording(self, ["*"])
        names = [f"Evil{'x' * 190}{number}_L1K1" for number in range(80)]
        written = self.attack("kinds", "2200", "0", *names)
        summary = recording.end()
        self.assertEqual(written, 80 * 2200)
        self.assertLess(summary["events"], written + 1_000_000)

    @script.more
    def test_many_processes_of_another_user(self):
        """Tests processes of one user. Each makes at most as many kinds of events as a process may, and together they make more
        than a user may."""
        recording = Recording(self, ["*"])
        with user_events_for_all():
            attackers = [subprocess.Popen([*failures.AS_NOBODY, ARGS.attacker, "kinds", "3000", "0", f"Evil{number}_L1K1"],
                                          stdout=subprocess.PIPE, text=True) for number in range(10)]
            written = sum(json.loads(attacker.communicate()[0])["written"] for attacker in attackers)
        summary = recording.end()
        self.assertEqual(written, 30_000)
        decoded = sum(1 for number in range(10) for event in
                      commands.dump(ARGS.nettrace, recording.file, "--provider", f"Evil{number}")
                      if event["name"] != "Undecoded")
        self.assertLess(decoded, 20_000, summary)

    def test_junk_kinds_in_the_producers_own_tracepoint(self):
        recording = Recording(self, ["*"])
        written = self.attack("kinds", "4200", "0", "Good_L4K1")
        written += self.attack("kinds", "4200", "0", "Good_L4K1")
        recording.end()
        self.assertEqual(written, 8400)

    @script.more
    def test_ever_new_kinds(self):
        recording = Recording(self, ["*"])
        self.attack("kinds", "1000", "12", "Evil_L1K1")
        recording.end()

    @script.more
    def test_ever_new_activities(self):
        recording = Recording(self, ["*"])
        self.attack("activities", "5", "Evil_L1K1")
        recording.end()

    @script.more
    def test_short_lived_threads(self):
        recording = Recording(self, ["*"])
        self.attack("threads", "40000", "Evil_L1K1")
        recording.end()

    @script.more
    def test_threads_that_change_their_names(self):
        recording = Recording(self, ["*"])
        self.attack("renames", "500", "5", "Evil_L1K1")
        recording.end()

    @script.more
    def test_tracepoints_that_come_and_go(self):
        recording = Recording(self, ["*"])
        self.attack("churn", "10", "Evil_L1K1")
        recording.end()


if __name__ == "__main__":
    script.run_cases()
