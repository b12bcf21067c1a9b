#!/usr/bin/python3
"""Tests nettraced on the running kernel: the contents of its files, its notifications to systemd, its control
interface, and its behavior when directories, disks and processes disappear. Needs root and the tracepoints of system
calls."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from support import commands
from support import script
from support import threads
from support.daemon import nettraced
from support.kernel import tracepoints
from support.load import load

ARGS = script.options(__doc__, "nettrace", "nettraced", "load")
# Rings of 8 MiB hold everything that a load writes, so that nothing is lost on a busy machine.
SELECT = f'select = ["{load.CALL_TRACEPOINT}"]\nring_size = "8M"\n'


class NettracedTest(unittest.TestCase):
    def daemon(self, **settings):
        daemon = nettraced.Daemon(ARGS.nettraced, ARGS.nettrace, settings)
        self.addCleanup(daemon.close)
        return daemon

    def pipe(self):
        """Makes a named pipe; returns its path."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / "pipe"
        os.mkfifo(path)
        return path

    def bytes_in(self, folder):
        """Returns the bytes of disk space that the files in the folder use. The partial file, which grows, is read
        first. The files therefore used at least this much space at some moment of the call."""
        block, total = os.statvfs(folder).f_frsize, 0
        for name in sorted(os.listdir(folder), key=lambda name: not name.endswith(".partial")):
            try:
                total += -(-os.stat(folder / name).st_size // block) * block
            except FileNotFoundError:
                if name.endswith(".partial"):
                    return 0  # The file was renamed just now; the next call counts it.
        return total

    def names(self, daemon):
        return [nettraced.json.loads(line)["name"] for line in daemon.ask("list", "--json").splitlines()]

    def load(self, events=20_000, threads=2, pause=0):
        """Runs load_service, which makes the traced calls. Returns its output, parsed."""
        command = [ARGS.load, "--calls", "--events", str(events), "--threads", str(threads)]
        if pause:
            command += ["--pause", str(pause)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        return nettraced.json.loads(done.stdout)

    def background_load(self, **options):
        """Runs load() in a thread. Returns a function that waits for the thread and returns the result of load()."""
        said = []
        thread = threading.Thread(target=lambda: said.append(self.load(**options)))
        thread.start()

        def finish():
            thread.join()
            return said[0]

        return finish

    def check_files(self, files, services, lossy=None):
        """Checks that every file passes `nettrace verify` and states the events and losses of the files before it.
        `files` are all files of one run of the daemon. Each call of `services` must be in exactly one file, or be
        counted as lost. `lossy` states whether there must be losses; None allows both."""
        calls = sum(thread["written"] for service in services for thread in service["threads"])
        seen, lost = set(), 0
        for file in files:
            done = subprocess.run([ARGS.nettrace, "verify", "--strict", file], stdout=subprocess.PIPE, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 0, done.stdout)
            info = commands.info(ARGS.nettrace, file)
            before = info["continues"] or {"eventsBefore": 0, "lostBefore": 0}
            self.assertEqual((before["eventsBefore"], before["lostBefore"]), (len(seen), lost), file)
            lost += info["lost"]
            for event in commands.dump(ARGS.nettrace, file):
                if event["provider"] != "syscalls":
                    continue
                key = (event["pid"], load.key_of(event, {"calls": True}))
                self.assertNotIn(key, seen, file)
                seen.add(key)
        self.assertLessEqual({pid for pid, _ in seen}, {service["pid"] for service in services})
        self.assertEqual(len(seen) + lost, calls)
        if lossy is not None:
            self.assertEqual(lost != 0, lossy)

    def test_is_ready_when_it_collects_and_stops_with_all_events_in_the_file(self):
        daemon = self.daemon(one="[session.one]\n" + SELECT)
        daemon.start(watchdog=1)
        service = self.load()
        # Rings that are less than a quarter full are drained each second, so the status counts the events after a
        # second.
        nettraced.until(lambda: daemon.status("one")["events"] == 20_000, 60, daemon.log)
        status = daemon.status("one")
        self.assertEqual((status["state"], status["events"], status["tracepoints"]), ("running", 20_000, 1))
        for _ in range(30):
            daemon.hear(0.1)
        self.assertGreater(daemon.said.count("WATCHDOG=1"), 4)
        # On a slow machine, the daemon may have sent only the status of its start so far.
        if not any(line.startswith("STATUS=sessions: 1 running") for line in daemon.said):
            daemon.wait_for_said("STATUS=sessions: 1 running")
        self.assertEqual(daemon.stop(), 0)
        self.check_files(daemon.files("one"), [service], lossy=False)

    def test_threads_have_their_executable(self):
        daemon = self.daemon(one="[session.one]\n" + SELECT)
        daemon.start()
        service = self.load(events=100)
        self.assertEqual(daemon.stop(), 0)
        events = [event for event in commands.dump(ARGS.nettrace, daemon.files("one")[0])
                  if event["provider"] == "syscalls"]
        self.assertEqual(len(events), sum(thread["written"] for thread in service["threads"]))
        self.assertEqual({event["threadInfo"]["Executable"] for event in events}, {os.path.realpath(ARGS.load)})

    def test_a_supervisor_that_does_not_read_blocks_nothing(self):
        daemon = self.daemon(one="[session.one]\n" + SELECT)
        path = daemon.path / "unread"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
            supervisor.bind(str(path))
            self.fill(path)
            daemon.start(watchdog=1, prefix=("env", f"NOTIFY_SOCKET={path}"), ready=False)
            nettraced.until(lambda: daemon.ctl("list").returncode == 0, 60, daemon.log)
            daemon.wait_for_state("one", "running")
            daemon.process.send_signal(signal.SIGHUP)
            daemon.wait_for_log("the settings have been reloaded")
            # From now on, the supervisor reads. It must receive READY=1 and the last status.
            supervisor.settimeout(10)
            received = []
            while "READY=1" not in received or not any(line.startswith("STATUS=sessions: 1 running") for line in received):
                received += supervisor.recv(4096).decode().splitlines()
            self.assertLessEqual(received.count("READY=1"), 2)
            self.fill(path)
            service = self.load()
            self.assertEqual(daemon.stop(), 0)
        self.check_files(daemon.files("one"), [service], lossy=False)

    def fill(self, path):
        """Sends to the socket until its queue is full."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            with self.assertRaises(BlockingIOError):
                for _ in range(100_000):
                    sender.sendto(b"FILL=1", str(path))

    def test_wrong_settings_stop_the_daemon_and_name_the_place(self):
        daemon = self.daemon(wrong="[session.one]\nselct = []\n")
        daemon.start(ready=False)
        self.assertEqual(daemon.process.wait(60), 78)
        self.assertRegex(daemon.log(), r"wrong\.toml:2:1: ")
        check = subprocess.run([ARGS.nettraced, "--check-config", "--config", daemon.path / "conf"],
                               stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(check.returncode, 78)
        # Only lines for the journal begin with a priority, such as "<3>".
        self.assertRegex(check.stderr, r"(?m)^nettraced: .*wrong\.toml:2:1: ")
        # This error must reach the journal through standard error, because the process ends at once (LogBeforeExit).
        with tempfile.TemporaryFile("w+") as stream:
            facts = os.fstat(stream.fileno())
            subprocess.run([ARGS.nettraced, "--check-config", "--config", daemon.path / "conf"], stderr=stream, check=False,
                           env={**os.environ, "JOURNAL_STREAM": f"{facts.st_dev}:{facts.st_ino}"})
            stream.seek(0)
            self.assertRegex(stream.read(), r"(?m)^<3>.*wrong\.toml:2:1: ")

    def test_wrong_file_affects_only_its_sessions_at_start_and_reload(self):
        wrong = "[session.wrong]\nselct = []\n"
        daemon = self.daemon(good="[session.good]\n" + SELECT, wrong=wrong)
        daemon.start()
        self.assertIn("invalid settings; the sessions of these files are left out", daemon.log())
        self.assertRegex(daemon.log(), r"wrong\.toml:2:1: ")
        self.assertEqual(self.names(daemon), ["good"])
        daemon.set(wrong="[session.wrong]\n" + SELECT)
        daemon.ask("reload")
        self.assertEqual(self.names(daemon), ["good", "wrong"])
        daemon.set(wrong=wrong, more="[session.more]\n" + SELECT)
        failed = daemon.ctl("reload")
        self.assertEqual(failed.returncode, 1)
        self.assertRegex(failed.stderr, r"wrong\.toml:2:1: ")
        self.assertEqual(self.names(daemon), ["good", "more", "wrong"])
        self.assertEqual(daemon.status("wrong")["state"], "running")
        (daemon.path / "conf/wrong.toml").unlink()
        daemon.ask("reload")
        self.assertEqual(self.names(daemon), ["good", "more"])
        self.assertEqual(daemon.stop(), 0)

    def test_a_second_daemon_on_the_state_directory_ends_with_an_error(self):
        first, second = self.daemon(), self.daemon()
        state = first.path / "state"
        (second.path / "state").rmdir()
        (second.path / "state").symlink_to(state)
        first.start()
        self.assertEqual(os.stat(state / ".lock").st_mode & 0o777, 0o600)
        second.start(ready=False)
        self.assertEqual(second.process.wait(60), 1)
        self.assertIn("another nettraced uses this state directory; stop it, or choose another directory with "
                      "--state-directory", second.log())
        first.kill()
        second.start()
        self.assertEqual(second.stop(), 0)

    def test_rotated_files_have_each_event_once_within_their_bounds(self):
        bound = 256 << 10
        daemon = self.daemon(
            all="[session.all]\n" + SELECT + 'interval = "100ms"\nfiles = { rotate_every = "1s" }\n',
            few="[session.few]\n" + SELECT + 'interval = "100ms"\ncompression = 1\n'
                f'files = {{ rotate_bytes = "16K", keep_bytes = {bound} }}\n')
        daemon.start()
        finish = self.background_load(events=40_000, pause=3000)
        largest = 0
        time.sleep(0.5)
        path = daemon.ask("rotate", "all")
        self.assertIn(pathlib.Path(path), daemon.files("all"))
        for _ in range(20):
            largest = max(largest, self.bytes_in(daemon.path / "state/few"))
            time.sleep(0.2)
        service = finish()
        os.kill(daemon.process.pid, signal.SIGUSR1)
        nettraced.until(lambda: daemon.status("all")["files"] >= 4, 60, lambda: daemon.status("all"))
        self.assertEqual(daemon.stop(), 0)
        self.assertGreater(len(daemon.files("all")), 4)
        self.check_files(daemon.files("all"), [service])
        self.assertLessEqual(largest, bound)
        self.assertGreater(len(daemon.files("few")), 1)
        for file in daemon.files("few"):
            self.assertTrue(commands.info(ARGS.nettrace, file)["complete"], file)

    def test_reload_loses_no_event_of_an_unchanged_session(self):
        daemon = self.daemon(stays="[session.stays]\n" + SELECT, changes="[session.changes]\n" + SELECT,
                             goes="[session.goes]\n" + SELECT)
        daemon.start()
        started = daemon.status("stays")["started"]
        finish = self.background_load(events=30_000, pause=3000)
        daemon.set(changes="[session.changes]\n" + SELECT + 'interval = "50ms"\n',
                   comes="[session.comes]\n" + SELECT)
        (daemon.path / "conf/goes.toml").unlink()
        os.kill(daemon.process.pid, signal.SIGHUP)
        daemon.wait_for_said("RELOADING=1")
        daemon.wait_for_said("READY=1")
        self.assertEqual(self.names(daemon), ["changes", "comes", "stays"])
        daemon.set(comes="[session.comes]\nselect = 5\n")
        failed = daemon.ctl("reload")
        self.assertEqual(failed.returncode, 1)
        self.assertRegex(failed.stderr, r"comes\.toml:2:")
        self.assertEqual(daemon.status("comes")["state"], "running")
        self.assertEqual(daemon.status("stays")["started"], started)
        daemon.wait_for_said("STATUS=sessions: 3 running; ")
        service = finish()
        self.assertEqual(daemon.stop(), 0)
        self.check_files(daemon.files("stays"), [service], lossy=False)
        self.assertEqual(len(daemon.files("changes")), 2)

    def test_a_session_is_started_and_stopped_on_request(self):
        daemon = self.daemon(one="[session.one]\nstart = false\n" + SELECT)
        daemon.start()
        self.assertEqual(daemon.status("one")["state"], "stopped")
        daemon.ask("start", "one")
        text = daemon.path / "more.toml"
        text.write_text("[session.more]\n" + SELECT)
        daemon.ask("start", "--from", str(text))
        service = self.load()
        daemon.ask("stop", "one")
        daemon.ask("stop", "more")
        self.assertEqual(self.names(daemon), ["one"])
        self.assertEqual(daemon.status("one")["events"], 20_000)
        self.check_files(daemon.files("one"), [service], lossy=False)
        self.check_files(daemon.files("more"), [service], lossy=False)
        self.assertEqual(daemon.ctl("start", "none").returncode, 1)
        shared = f'[session.other.files]\ndirectory = "{daemon.path}/conf/../state/one"\nname = "one-{{time}}"\n'
        text.write_text("[session.other]\n" + SELECT + shared)
        refused = daemon.ctl("start", "--from", str(text))
        self.assertEqual(refused.returncode, 1)
        self.assertIn("session 'other' writes files with the same names into the same directory as session 'one'; ",
                      refused.stderr)
        text.write_text("[session.wrong]\nselect = 5\ninterval = 5\n")
        self.assertEqual(daemon.ctl("start", "--from", str(text)).returncode, 1)
        # Each error is a separate log message.
        self.assertRegex(daemon.log(), r"(?m)^nettraced: .*the request:2:10: .*\nnettraced: the request:3:12: ")

    @script.more
    def test_slow_tail_loses_only_its_events(self):
        daemon = self.daemon(one="[session.one]\n" + SELECT)
        daemon.start()
        tail = subprocess.Popen([ARGS.nettrace, "ctl", "--socket", daemon.path / "run/control", "tail", "one"],
                                stdout=subprocess.PIPE)
        with open(daemon.path / "tail.nettrace", "wb") as file:
            file.write(tail.stdout.read(4))  # wait until tail has begun
            service = self.load(events=800_000, pause=1000)
            time.sleep(1.5)
            # From now on, the output of tail is read: when the session ends, tail has 2 s to write the rest.
            copy = threading.Thread(target=shutil.copyfileobj, args=(tail.stdout, file))
            copy.start()
            daemon.ask("stop", "one")
            copy.join()
        tail.stdout.close()
        self.assertEqual(tail.wait(20), 0)
        self.assertEqual(daemon.stop(), 0)
        calls = sum(thread["written"] for thread in service["threads"])
        kept = commands.info(ARGS.nettrace, daemon.files("one")[0])
        self.assertEqual(kept["events"] + kept["lost"], calls)
        tailed = commands.info(ARGS.nettrace, daemon.path / "tail.nettrace")
        self.assertEqual(tailed["events"] + tailed["lost"], calls)
        self.assertGreater(tailed["lost"], kept["lost"])

    def test_a_flight_recorder_writes_its_file_on_request_and_on_a_trigger(self):
        daemon = self.daemon(
            box="[session.box]\n" + SELECT + 'interval = "100ms"\n[session.box.flight]\nkeep_bytes = "4M"\n'
                f"triggers = ['syscalls:{load.CALL} where pid == {1 << load.NUMBER_BITS}']\n"
                'after = "300ms"\nlimit_count = 2\nlimit_time = "1h"\n')
        daemon.start()

        def counts():
            status = daemon.status("box")
            return status["snapshots"], status["snapshotsRefused"]

        # Each load is one trigger. The loop waits until the trigger is counted, because triggers that are drained
        # together count as one, and triggers within 10 ms of the last one are ignored.
        for expected in ((1, 0), (2, 0), (2, 1), (2, 2)):
            time.sleep(0.02)
            self.load(events=1000, threads=1)
            nettraced.until(lambda want=expected: counts() == want, 60, daemon.log)
        path = daemon.ask("snapshot", "box", "--after", "100ms")
        self.assertEqual(commands.info(ARGS.nettrace, path)["events"], 4000)
        os.kill(daemon.process.pid, signal.SIGUSR2)
        nettraced.until(lambda: len(daemon.files("box")) == 4, 60, lambda: daemon.files("box"))
        self.assertEqual(daemon.stop(), 0)
        first = commands.info(ARGS.nettrace, daemon.files("box")[0])
        self.assertEqual((first["events"], first["complete"]), (1000, True))

    def test_after_a_crash_the_next_start_repairs_the_file(self):
        daemon = self.daemon(one="[session.one]\n" + SELECT + 'interval = "100ms"\n')
        daemon.start()
        service = self.load()

        def events_in_file():
            partial = [*(daemon.path / "state/one").glob("*.partial")]
            info = subprocess.run([ARGS.nettrace, "info", "--json", *partial], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, check=False).stdout
            return nettraced.json.loads(info)["events"] if info else 0

        nettraced.until(lambda: events_in_file() == 20_000, 60, daemon.log)
        daemon.kill()
        self.assertEqual(len(list((daemon.path / "state/one").glob("*.partial"))), 1)
        daemon.start()
        self.assertIn("repaired", daemon.log())
        self.check_files(daemon.files("one"), [service])
        self.assertEqual(daemon.stop(), 0)

    def test_removed_directory_and_full_disk_lose_exactly_the_counted_events(self):
        daemon = self.daemon(
            gone="[session.gone]\n" + SELECT + 'interval = "100ms"\n',
            full="[session.full]\n" + SELECT + 'interval = "100ms"\nqueue_bytes = "256K"\n')
        disk = daemon.path / "state/full"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "tmpfs", disk], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=False)
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(900 << 10))
        daemon.start()
        shutil.rmtree(daemon.path / "state/gone")
        services = [self.load(pause=1000)]
        daemon.wait_for_state("full", "suspended")
        self.assertEqual(daemon.status("gone")["state"], "running")
        daemon.wait_for_log("session full cannot write")
        subprocess.run(["mount", "-o", "remount,size=64M", disk], check=True)
        daemon.wait_for_state("full", "running")
        daemon.wait_for_log("session full writes again")
        services.append(self.load())
        self.assertEqual(daemon.stop(), 0)
        self.check_files(daemon.files("full"), services, lossy=True)
        self.check_files(daemon.files("gone"), services, lossy=False)

    def test_a_disk_below_its_reserve_suspends_the_session_at_once_and_a_stop_counts_what_it_discards(self):
        daemon = self.daemon(low="[session.low]\n" + SELECT + 'interval = "50ms"\n'
                             '[session.low.files]\nkeep_free_bytes = "1M"\n')
        disk = daemon.path / "state/low"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "tmpfs", disk], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=False)
        daemon.start()
        self.load(events=100)
        daemon.wait_for_state("low", "suspended", seconds=3)
        self.assertEqual(daemon.status("low")["files"], 0)
        for name in ("one", "two", "three"):  # Each file changes the free space, and so the text of the error.
            (disk / name).write_bytes(bytes(4096))
            time.sleep(1.2)
        self.assertEqual(daemon.log().count("session low cannot write"), 1, daemon.log())
        self.assertIn("keep_free_bytes", daemon.status("low")["error"])
        daemon.ctl("stop", "low")
        status = daemon.status("low")
        self.assertGreaterEqual(status["discarded"], 100)
        self.assertEqual(status["discarded"], status["events"])
        self.assertIn(f"{status['discarded']} events were discarded", daemon.log())
        self.assertIn(f'nettraced_session_discarded_events_total{{session="low"}} {status["discarded"]}',
                      daemon.ask("metrics"))

    def test_session_that_cannot_start_is_retried_without_affecting_others(self):
        daemon = self.daemon(
            one="[session.one]\n" + SELECT,
            bad='[session.bad]\nselect = ["nonesuch:nonesuch"]\n')
        daemon.start()
        self.assertEqual(daemon.status("bad")["state"], "failed")
        self.assertIn("nonesuch", daemon.status("bad")["error"])
        # The start is retried and fails again for the same reason. The reason must be logged only once.
        since, failed = daemon.status("bad")["stateSince"], {daemon.status("bad")["errorTime"]}
        nettraced.until(lambda: failed.add(daemon.status("bad")["errorTime"]) or len(failed) > 2, 30, daemon.log)
        self.assertEqual(daemon.status("bad")["stateSince"], since)
        self.assertEqual(daemon.log().count("session bad "), 1, daemon.log())
        self.assertIn("; retrying in 1s, later retries are at most 30s apart; the same error is not logged again\n", daemon.log())
        # A start by a user logs the error again.
        self.assertEqual(daemon.ctl("start", "bad").returncode, 1)
        self.assertEqual(daemon.log().count("session bad "), 2, daemon.log())
        service = self.load()
        self.assertEqual(daemon.stop(), 0)
        self.check_files(daemon.files("one"), [service], lossy=False)

    def test_failed_session_records_once_its_cause_is_gone(self):
        daemon = self.daemon(late="[session.late]\n" + SELECT)
        (daemon.path / "state/late").write_text("not a directory")
        daemon.start()
        self.assertEqual(daemon.status("late")["state"], "failed")
        (daemon.path / "state/late").unlink()
        daemon.wait_for_state("late", "running")
        self.assertEqual(daemon.log().count("session late cannot start"), 1, daemon.log())
        service = self.load()
        self.assertEqual(daemon.stop(), 0)
        self.check_files(daemon.files("late"), [service], lossy=False)

    def test_a_pipe_has_every_event(self):
        pipe = self.pipe()
        daemon = self.daemon(piped="[session.piped]\n" + SELECT + f'pipe.path = "{pipe}"\n')
        daemon.start()
        with open(pipe, "rb") as reader, open(daemon.path / "piped.nettrace", "wb") as file:
            copy = threading.Thread(target=shutil.copyfileobj, args=(reader, file))
            copy.start()
            service = self.load()
            self.assertEqual(daemon.stop(), 0)
            copy.join()
        self.check_files([daemon.path / "piped.nettrace"], [service], lossy=False)

    def test_a_second_signal_does_not_wait_for_an_output_that_takes_nothing(self):
        pipe = self.pipe()
        daemon = self.daemon(piped="[session.piped]\n" + SELECT + f'pipe.path = "{pipe}"\n',
                             one="[session.one]\n" + SELECT)
        daemon.start()
        with open(pipe, "rb"):  # This reader reads nothing.
            service = self.load()
            time.sleep(1.5)
            began = time.monotonic()
            daemon.process.send_signal(signal.SIGTERM)
            daemon.wait_for_said("STOPPING=1")
            time.sleep(1)
            self.assertIsNone(daemon.process.poll())
            daemon.process.send_signal(signal.SIGTERM)
            self.assertEqual(daemon.process.wait(60), 0)
            self.assertLess(time.monotonic() - began, 5)  # OutputChain::kStuck
        self.assertIn("second stop signal", daemon.log())
        self.assertRegex(daemon.log(), r"session piped has stopped: the last \d+ bytes could not be written")
        self.check_files(daemon.files("one"), [service], lossy=False)

    def test_names_tracepoints_without_descriptors(self):
        daemon = self.daemon(one="[session.one]\n" + SELECT, many='[session.many]\nselect = ["syscalls:*"]\n')
        # With CAP_SYS_RESOURCE, the daemon would raise the limit of open files.
        daemon.start(prefix=("setpriv", "--bounding-set=-sys_resource", "--inh-caps=-sys_resource",
                             "prlimit", "--nofile=100:100"))
        service = self.load(events=1000)
        self.assertEqual(daemon.status("one")["state"], "running")
        many = daemon.status("many")
        self.assertEqual(many["state"], "running")
        self.assertGreater(many["tracepoints"], 0)
        self.assertRegex(many["leftOut"][0],
                         r"^tracepoint syscalls:\w+ needs \d+ descriptors, but only \d+ of 100 are left for tracepoints; raise")
        self.assertEqual(daemon.stop(), 0)
        self.check_files(daemon.files("one"), [service], lossy=False)

    @script.more
    def test_a_capture_thread_that_hangs_stops_the_watchdog_notifications(self):
        daemon = self.daemon(one="[session.one]\n" + SELECT)
        daemon.start(watchdog=2)
        time.sleep(1.5)  # By then, the capture thread has started, and only drains rings.
        with threads.stopped(daemon.process.pid, "capture"):
            time.sleep(2.5)
            while daemon.hear(0.1):
                pass
            daemon.said.clear()
            # The status shows the last state that the stopped thread reported.
            self.assertEqual(daemon.status("one")["state"], "running")
            for _ in range(20):
                daemon.hear(0.1)
            self.assertNotIn("WATCHDOG=1", daemon.said)
        daemon.wait_for_said("WATCHDOG=1")
        service = self.load()
        self.assertEqual(daemon.stop(), 0)
        self.check_files(daemon.files("one"), [service], lossy=False)

    @script.more
    def test_session_with_a_hanging_disk_does_not_delay_others(self):
        daemon = self.daemon(hangs="[session.hangs]\n" + SELECT, one="[session.one]\n" + SELECT)
        daemon.start()
        with threads.stopped(daemon.process.pid, "o:hangs"):
            service = self.load()
            rotated = daemon.ctl("rotate", "hangs")
            self.assertEqual(rotated.returncode, 1)
            self.assertRegex(rotated.stderr, "session hangs: no answer for 15s; its disk may hang")
            path = daemon.ask("rotate", "one")
        nettraced.until(lambda: daemon.files("hangs"), 60, lambda: daemon.log())
        self.assertEqual(daemon.stop(), 0)
        self.assertEqual(str(daemon.files("one")[0]), path)
        self.check_files(daemon.files("one"), [service], lossy=False)
        self.check_files(daemon.files("hangs"), [service], lossy=False)

    def recorded_or_lost(self, daemon, session):
        status = daemon.status(session)
        return status["events"] + status["lost"]

    @script.more
    def test_sessions_start_and_record_while_another_attaches_everything(self):
        daemon = self.daemon(one="[session.one]\n" + SELECT, late="[session.late]\nstart = false\n" + SELECT,
                             all='[session.all]\nstart = false\nselect = ["*:*"]\n')
        daemon.start()
        daemon.ask("start", "all")
        # From now on, the capture may get events faster than it drains them. The daemon must still answer requests, which
        # fail after 15 s without an answer.
        daemon.ask("start", "late")
        service = self.load(events=1000)
        # Events may be lost, because the events of the session `all` may fill the rings.
        for name in ("one", "late"):
            nettraced.until(lambda name=name: self.recorded_or_lost(daemon, name) == 1000, 60, daemon.log)
        daemon.ask("stop", "one")
        daemon.ask("stop", "late")
        self.check_files(daemon.files("one"), [service])
        daemon.kill()

    def test_targets_and_filters_have_separate_captures(self):
        pid = 1 << load.NUMBER_BITS
        daemon = self.daemon(
            all="[session.all]\n" + SELECT,
            some=f'[session.some]\nselect = [{{ tracepoint = "{load.CALL_TRACEPOINT}", filter = "pid < {pid + 10}" }}]\n')
        daemon.start()
        self.load(events=1000, threads=1)
        # Events just after the end of an interval stay in the rings until the interval is closed.
        for session, events in (("all", 1000), ("some", 10)):
            nettraced.until(lambda name=session, least=events: daemon.status(name)["events"] >= least, 60, daemon.log)
            self.assertEqual(daemon.status(session)["events"], events)
        self.assertEqual(daemon.stop(), 0)


if __name__ == "__main__":
    script.run_cases(lambda: tracepoints.require(load.CALL_TRACEPOINT))
