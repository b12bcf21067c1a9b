#!/usr/bin/python3
"""Tests nettraced under systemd: from boot to stop, with errors in its settings, reloads and hangs. Runs in a VM that
has booted systemd with the tree of lay_out.sh (./run vm --systemd --files)."""

import json
import os
import pathlib
import signal
import stat
import subprocess
import time
import unittest
import unittest.mock

import daemon
from support import commands
from support import otlp_server
from support import script
from support import threads

THREADS = 4  # of load_service
SHIP = "nettrace-ship.service"


def printed_by(unit, since=0):
    """Waits until load_service, run by this unit, has printed its line of JSON since `since` (a daemon.mark()). Returns
    the object."""
    def lines():
        return [line for line in daemon.journal(since, unit).splitlines() if line.startswith("{")]
    daemon.until(lines)
    [line] = lines()
    return json.loads(line)


class ServiceTest(unittest.TestCase):
    def setUp(self):
        self.began = daemon.mark()
        self.addCleanup(daemon.reset)

    # Boot

    def first_events_after_boot(self, unit):
        daemon.until(lambda: daemon.show("ActiveState", unit) == "inactive")
        service = printed_by(unit)
        daemon.systemctl("restart", daemon.UNIT)  # Completes the file.
        recorded = daemon.Recorded(self, "boot", service)
        self.assertEqual(sum(thread["notWritten"] for thread in service["threads"]), 0)
        self.assertEqual(len(recorded.shown), 400)
        self.assertIn((0, 0), recorded.shown)

    def test_boot_traces_services_from_their_first_event(self):
        for unit in ("first-event.service", "hardened-event.service"):
            with self.subTest(unit):
                self.first_events_after_boot(unit)

    @script.more
    def test_boot_lets_a_group_register_tracepoints_and_no_more(self):
        folder = os.stat("/sys/kernel/tracing")
        data = os.stat("/sys/kernel/tracing/user_events_data")
        self.assertEqual(stat.S_IMODE(folder.st_mode), 0o711)
        self.assertEqual(stat.S_IMODE(data.st_mode), 0o660)
        stranger, service = daemon.as_user("stranger"), daemon.as_user("service", "user_events")
        for prefix, may in ((stranger, False), (service, True)):
            opened = subprocess.run([*prefix, "sh", "-c", "exec 3<>/sys/kernel/tracing/user_events_data"],
                                    capture_output=True, check=False)
            self.assertEqual(opened.returncode == 0, may, opened)
            for name in ("", "trace", "user_events_status", "events/enable"):
                self.assertFalse(daemon.readable(prefix, f"/sys/kernel/tracing/{name}"), name)

    @script.more
    def test_security(self):
        daemon.run("systemd-analyze", "security", "--no-pager", "--threshold=12", daemon.UNIT)

    # The journal

    @script.more
    def test_record_has_the_entries_that_the_journal_has_of_a_unit(self):
        """Also compares the messages that journald drops because the unit writes too many."""
        unit, file = "journal-test.service", "/tmp/journal-test.nettrace"
        pathlib.Path(f"/run/systemd/system/{unit}").write_text(
            # journald keeps a few messages in each 3 s, and drops the others. It reports the number of dropped messages
            # before the next message of the same priority that it keeps. This message is "after".
            # logger must live until journald has found its unit, so it gets its standard input for 2 s longer.
            "[Service]\nType=oneshot\nLogRateLimitIntervalSec=3s\nLogRateLimitBurst=1\n"
            "ExecStart=sh -c 'i=0; while [ $$((i += 1)) -le 1000 ]; do echo line $$i; done; sleep 4; echo after; "
            "(echo done; sleep 2) | logger -p user.err -t last'\n", encoding="utf-8")
        daemon.systemctl("daemon-reload")
        said = daemon.run(daemon.NETTRACE, "record", f"--journal={unit}", "--identity", "--json", "-o", file, "--",
                          "systemctl", "start", unit)
        [summary] = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        shown = daemon.journal_entries(self.began, "--unit", unit)
        events = [json.loads(line) for line in daemon.run(daemon.NETTRACE, "dump", "--json", file).splitlines()]
        events = [event for event in events if event.get("provider") == "Journal"]
        self.assertEqual([event["payload"]["message"] for event in events], [entry["MESSAGE"] for entry in shown])
        # On a busy machine, some entries arrive late. The label OriginalTimestamp of such an event has its original time.
        self.assertEqual([int(event["labels"].get("OriginalTimestamp", event["timestamp"])) for event in events],
                         [int(entry["__MONOTONIC_TIMESTAMP"]) * 1000 for entry in shown])
        [last] = [event for event in events if event["payload"]["identifier"] == "last"]
        self.assertEqual((last["level"], last["payload"]["unit"], last["payload"]["message"]), (2, unit, "done"))
        dropped = sum(int(entry.get("N_DROPPED", 0)) for entry in shown)
        self.assertGreater(dropped, 0)
        self.assertEqual((summary["events"], summary["lost"]), (len(shown), dropped))
        lines = sum(entry["MESSAGE"].startswith("line ") for entry in shown)
        self.assertEqual(lines + dropped, 1000)

    # Settings

    def test_ready_is_when_it_collects(self):
        daemon.systemctl("stop", daemon.UNIT)
        daemon.configure(daemon.session("ready"))
        daemon.systemctl("start", daemon.UNIT)
        load = daemon.Load("--events", "400")
        self.assertEqual(load.not_written(), 0)
        daemon.systemctl("stop", daemon.UNIT)
        self.assertEqual(len(daemon.Recorded(self, "ready", load.wait()).shown), 400)

    def test_wrong_settings_affect_only_their_sessions_and_are_shown_by_status(self):
        daemon.configure("[session.wrong]\nselect = [\"Load\"]\ninterfal = \"1s\"\n")
        daemon.systemctl("restart", daemon.UNIT, check=False)
        time.sleep(2)  # RestartSec=1s
        # The daemon runs, because the session of the other file is valid.
        self.assertEqual(daemon.show("ActiveState"), "active")
        self.assertEqual(daemon.restarts(), 0)
        status = daemon.systemctl("status", daemon.UNIT, check=False)
        self.assertRegex(status, r"/etc/nettraced/test\.toml:3\b.*interfal")

    def test_reload_keeps_unchanged_sessions(self):
        daemon.start(daemon.session("kept"))
        load = daemon.Load("--events", "4000", "--pause", "20000")
        pid = daemon.main_pid()
        daemon.configure(daemon.session("kept") + daemon.session("added"))
        daemon.systemctl("reload", daemon.UNIT)
        daemon.until(lambda: daemon.said(self.began, "added", "collects"))
        daemon.configure("[session.kept]\nwrong")
        daemon.systemctl("reload", daemon.UNIT, check=False)
        daemon.until(lambda: "/etc/nettraced/test.toml:2" in daemon.journal(self.began))
        self.assertTrue(daemon.is_active())
        daemon.configure(daemon.session("kept"))
        daemon.systemctl("reload", daemon.UNIT)
        daemon.until(lambda: daemon.said(self.began, "added", "has stopped"))
        self.assertEqual(load.not_written(), 0)
        self.assertEqual(daemon.main_pid(), pid)
        daemon.systemctl("stop", daemon.UNIT)
        recorded = daemon.Recorded(self, "kept", load.wait())
        self.assertEqual((len(recorded.shown), recorded.lost), (4000, 0))
        self.assertTrue(daemon.Recorded(self, "added", load.wait()).files)

    # Stopping

    def test_stop_writes_the_last_events(self):
        daemon.start(daemon.session("stopped", 'interval = "20s"'))
        load = daemon.Load("--events", "1000")
        load.wait()
        daemon.systemctl("stop", daemon.UNIT)
        self.assertEqual(daemon.show("Result"), "success")
        self.assertEqual(daemon.partial_files("stopped"), [])
        recorded = daemon.Recorded(self, "stopped", load.wait())
        self.assertEqual((len(recorded.shown), recorded.lost), (load.written(), 0))

    def check_hang(self, session, hang):
        """Calls `hang()`, which makes the daemon hang. Checks that all events from before the hang are in a file, and
        returns these events."""
        daemon.configure(daemon.session(session))
        # The limit is 20 s, because on a busy machine the daemon may get no CPU time for several seconds.
        with daemon.service_settings("WatchdogSec=20s\nTimeoutAbortSec=1s"):
            load = daemon.Load("--events", "400")
            daemon.until(lambda: daemon.events_written(session) == load.written())
            hang()
            daemon.until(lambda: daemon.restarts() == 1 and daemon.is_active())
            daemon.until(lambda: len(daemon.partial_files(session)) == 1)
            recorded = daemon.Recorded(self, session, load.wait())
            self.assertEqual(len(recorded.shown), load.written())
        return recorded

    @script.more
    def test_a_hang_is_noticed_and_its_file_repaired(self):
        recorded = self.check_hang("hung", lambda: daemon.kill(signal.SIGSTOP))
        self.assertTrue(commands.info(daemon.NETTRACE, recorded.files[0])["complete"])

    @script.slow
    def test_one_drain_that_hangs_is_noticed(self):
        def stop_one():
            with threads.stopped(daemon.main_pid(), "capture"):
                daemon.until(lambda: "Watchdog timeout" in daemon.systemd_said(self.began))

        self.check_hang("stuck", stop_one)

    # Shipping

    def start_ship(self, url):
        """Starts nettrace-ship.service with credentials."""
        headers = pathlib.Path("/etc/nettraced/ship-headers")
        headers.write_text("Authorization: Bearer secret\n")
        headers.chmod(0o600)
        drop_in = pathlib.Path("/run/systemd/system/nettrace-ship.service.d/test.conf")
        drop_in.parent.mkdir(parents=True, exist_ok=True)
        drop_in.write_text("[Service]\nLoadCredential=headers:/etc/nettraced/ship-headers\nRestartSec=100ms\n"
                           f'Environment="NETTRACE_SHIP_OPTIONS=--to {url} --header-file %d/headers --encoding json '
                           f'--retry-wait 100ms --metrics /var/lib/nettrace-ship/ship.prom {daemon.STATE}/shipped"\n')
        for undo in (lambda: daemon.systemctl("daemon-reload"), drop_in.unlink, headers.unlink,
                     lambda: daemon.systemctl("stop", SHIP)):
            self.addCleanup(undo)
        daemon.systemctl("daemon-reload")
        daemon.systemctl("start", SHIP)

    def complete_file(self):
        """Writes events, completes their file, and returns their number."""
        load = daemon.Load("--events", "400")
        self.assertEqual(load.not_written(), 0)
        daemon.run(daemon.NETTRACE, "ctl", "rotate", "shipped")
        return load.written()

    @script.more
    def test_ship_service_sends_files_without_rights_and_continues_after_a_kill(self):
        receiver = otlp_server.Receiver()
        self.addCleanup(receiver.close)
        daemon.start(daemon.session("shipped"))
        written = self.complete_file()
        self.start_ship(receiver.url)
        daemon.until(lambda: len(set(receiver.stored)) == written)
        self.assertEqual(receiver.requests[0][1]["Authorization"], "Bearer secret")
        pid = int(daemon.show("MainPID", SHIP))
        status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
                      if ":\t" in line)
        self.assertNotIn("0", status["Uid"].split())
        self.assertEqual({int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}, {0})
        os.kill(pid, signal.SIGKILL)
        daemon.until(lambda: daemon.show("ActiveState", SHIP) == "active" and int(daemon.show("MainPID", SHIP)) not in (0, pid))
        receiver.choose = lambda number, body: otlp_server.Reply(503) if number % 2 == 0 else None
        written += self.complete_file()
        daemon.until(lambda: len(set(receiver.stored)) == written)
        self.assertEqual(len(receiver.stored), written)
        daemon.systemctl("stop", SHIP)
        self.assertEqual(daemon.show("Result", SHIP), "success")
        totals = json.loads(pathlib.Path("/var/lib/nettrace-ship/state.json").read_text())["totals"]
        self.assertEqual((totals["accepted"], totals["missingEvents"], totals["lostFiles"]), (written, 0, 0))
        self.assertIn(f"nettrace_ship_accepted_records_total {written}\n",
                      pathlib.Path("/var/lib/nettrace-ship/ship.prom").read_text())
        said = daemon.journal(self.began, SHIP)
        self.assertIn("sent ", said)
        self.assertNotIn("secret", said)

    # Selection

    @script.more
    def test_names_that_patterns_met_are_registered_before_a_service_starts(self):
        boot = pathlib.Path("/etc/nettraced/boot.toml")  # The session in this file would register the names, too.
        self.addCleanup(boot.write_text, boot.read_text())
        boot.unlink()
        daemon.configure('[session.pattern]\nselect = ["Load:verbose"]\n')
        daemon.systemctl("restart", daemon.UNIT)
        daemon.Load("--events", "400", "--pause", "300000").wait()
        daemon.systemctl("restart", daemon.UNIT)
        self.assertIn("Load_L4K1", (daemon.STATE / "remembered-names").read_text())
        load = daemon.Load("--events", "400")
        self.assertEqual(load.not_written(), 0)
        daemon.systemctl("stop", daemon.UNIT)
        self.assertEqual(len(daemon.Recorded(self, "pattern", load.wait()).shown), 400)

    @script.slow
    def test_a_unit_is_recorded_whenever_it_runs(self):
        unit = pathlib.Path("/run/systemd/system/target.service")
        unit.write_text("[Service]\nType=oneshot\nDynamicUser=yes\nSupplementaryGroups=user_events\n"
                        "ExecStart=/usr/local/bin/load_service --events 1600 --pause 300000\n")
        self.addCleanup(daemon.systemctl, "daemon-reload")
        self.addCleanup(unit.unlink)
        daemon.systemctl("daemon-reload")
        daemon.start(daemon.session("target", 'target.unit = "target.service"'))
        outside = daemon.Load("--events", "4000000000", "--pause", "300000")
        self.addCleanup(outside.end)
        inside = []
        for _ in range(2):
            since = daemon.mark()
            daemon.systemctl("start", unit.name)
            inside.append(printed_by(unit.name, since))
        self.assertTrue(outside.runs())
        outside.end()
        daemon.systemctl("stop", daemon.UNIT)
        recorded = daemon.Recorded(self, "target", *inside, outside.wait())
        *shown, of_others = recorded.by_pid.values()
        self.assertEqual(of_others, set())
        for one in shown:
            # nettraced finds the service while it runs, and must record all events from then on.
            for thread in range(THREADS):
                numbers = sorted(number for of, number in one if of == thread)
                self.assertEqual(numbers, list(range(numbers[0], 400)))

    # Services with rings

    @script.slow
    def test_socket_unit_stays_while_nettraced_restarts(self):
        drop_in = pathlib.Path("/run/systemd/system/nettraced.socket.d/test.conf")
        drop_in.parent.mkdir(parents=True)
        # Removes the condition of the unit, because the kernel of this VM has user_events.
        drop_in.write_text("[Unit]\nConditionPathExists=\n")
        self.addCleanup(daemon.systemctl, "stop", "nettraced.socket")
        self.addCleanup(daemon.systemctl, "daemon-reload")
        self.addCleanup(drop_in.unlink)
        daemon.systemctl("daemon-reload")
        daemon.systemctl("stop", daemon.UNIT)
        daemon.systemctl("start", "nettraced.socket")
        daemon.configure(daemon.session("rings"))
        with daemon.service_settings("Environment=EVENTHEADER_TRANSPORT=ring"), \
                unittest.mock.patch.dict(os.environ, EVENTHEADER_TRANSPORT="ring"):
            socket = os.stat("/run/nettraced/events")
            self.assertEqual(stat.S_IMODE(socket.st_mode), 0o666)
            load = daemon.Load("--events", "4000", "--pause", "300000")
            daemon.until(lambda: daemon.events_written("rings") > 0)
            daemon.kill(signal.SIGKILL)
            daemon.until(lambda: daemon.restarts() == 1 and daemon.is_active())
            written = load.written()
            self.assertGreater(written, 0)
            daemon.systemctl("stop", daemon.UNIT)
            self.assertEqual(os.stat("/run/nettraced/events").st_ino, socket.st_ino)
            recorded = daemon.Recorded(self, "rings", load.wait())
            self.assertEqual((len(recorded.shown), recorded.lost), (written, 0))

    # Access rights

    @script.slow
    def test_rights_of_the_guide_give_names_to_kernel_functions(self):
        def record():
            """Records samples of CPU time. Returns the warnings of the status, and the frames in the kernel."""
            daemon.configure('[session.samples]\ncpu = "499Hz"\n')
            since = daemon.mark()
            daemon.systemctl("reload", daemon.UNIT)
            daemon.until(lambda: daemon.said(since, "samples", "collects"))
            daemon.run("/usr/bin/python3", "-c", "import os\nfor i in range(20000): os.stat('/')")
            status = json.loads(daemon.run(daemon.NETTRACE, "ctl", "status", "--json", "samples"))
            daemon.SETTINGS.unlink()
            daemon.systemctl("reload", daemon.UNIT)
            daemon.until(lambda: not daemon.partial_files("samples"))
            [*_, file] = daemon.files("samples")
            return " ".join(status["warnings"]), [
                frame for event in commands.dump(daemon.NETTRACE, file, "--stacks")
                for address, frame in zip(event.get("stack", []), event.get("frames", [])) if int(address, 16) >> 63]

        warnings, frames = record()
        self.assertIn("the kernel's functions in stacks have no names", warnings)
        self.assertGreater(len(frames), 20)
        self.assertEqual([frame for frame in frames if frame.startswith("vmlinux!")], [])
        guide = pathlib.Path(__file__).resolve().parents[3] / "docs/guides/operating-nettraced.md"
        _, _, rest = guide.read_text(encoding="utf-8").partition("without the next drop-in")
        drop_in = rest.partition("[Service]\n")[2].partition("```")[0]
        self.assertIn("CAP_SYSLOG", drop_in)
        with daemon.service_settings(drop_in):
            warnings, frames = record()
        self.assertNotIn("names", warnings)
        self.assertGreater(len(frames), 20)
        self.assertGreater(sum(frame.startswith("vmlinux!") for frame in frames), 0.9 * len(frames), frames[:20])

    @script.more
    def test_files_are_for_the_group(self):
        daemon.start(daemon.session("private"))
        daemon.systemctl("stop", daemon.UNIT)
        [file] = daemon.files("private")
        self.assertFalse(daemon.readable(daemon.as_user("stranger"), file))
        self.assertTrue(daemon.readable(daemon.as_user("looker", "tracing"), file))
        written = subprocess.run([*daemon.as_user("looker", "tracing"), "sh", "-c", f"echo >>{file}"],
                                 capture_output=True, check=False)
        self.assertNotEqual(written.returncode, 0)

    def check_control(self, prefix, verbs, may):
        for verb in verbs:
            with self.subTest(user=prefix, verb=verb):
                # Only tail runs until the signal.
                command = [*prefix, "timeout", "--preserve-status", "5" if verb[0] == "tail" else "100",
                           daemon.NETTRACE, "ctl", *verb]
                done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
                self.assertEqual(done.returncode == 0, may, done)
                self.assertEqual(bool(done.stderr), not may, done)

    @script.slow
    def test_control_is_for_groups(self):
        look = (["list"], ["status"], ["status", "boot", "--json"], ["metrics"], ["wait", "boot"], ["tail", "boot"])
        change = (["rotate", "boot"], ["stop", "boot"], ["start", "boot"], ["reload"])
        refused = (["snapshot", "boot"], ["start", "--from", "/etc/nettraced/boot.toml"])
        pid, files = daemon.main_pid(), daemon.files("boot")
        stranger, looker = daemon.as_user("stranger"), daemon.as_user("looker", "tracing")
        self.check_control(stranger, look + change + refused, False)
        self.check_control(looker, look, True)
        self.check_control(looker, change + refused, False)
        self.assertEqual((daemon.main_pid(), daemon.files("boot")), (pid, files))
        self.check_control(daemon.as_user("changer", "adm"), look + change, True)
        self.check_control([], look + change, True)


if __name__ == "__main__":
    script.run_cases()
