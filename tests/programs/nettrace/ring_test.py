#!/usr/bin/python3
"""Tests `nettrace record` with services that pass their events through rings in user space: every event and value arrives, and
what is lost is counted."""

import collections
import json
import os
import pathlib
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import unittest.mock

from support import failures
from support import script
from support import transport
from support.daemon import nettraced
from support.kernel import cgroups

ARGS = script.options(__doc__, "nettrace", "nettraced", "service", "example")
# "ring", or "ring-inline": the services send their events over the socket.
TRANSPORT = os.environ.get("EVENTHEADER_TRANSPORT", "ring")
DEADLINE = 60
NOBODY = 65534
# The namespaces of a container.
NAMESPACES = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child", "--mount-proc"]
HAS_NAMESPACES = subprocess.run([*NAMESPACES, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
# Programs with ThreadSanitizer and a running thread would wait for 1 s before they end.
os.environ["TSAN_OPTIONS"] = os.environ.get("TSAN_OPTIONS", "") + " atexit_sleep_ms=0"


class Service:
    """A process of ring_service. Its tracepoints may not be enabled yet."""

    def __init__(self, threads, events, command=None, **options):
        self.process = subprocess.Popen(command or [ARGS.service, str(threads), str(events)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, **options)
        self.enabled = False

    def is_enabled(self):
        self.enabled = self.enabled or bool(select.select([self.process.stdout], [], [], 0)[0])
        return self.enabled

    def write(self):
        """Waits until the tracepoints are enabled, and lets the service write. Returns the numbers of events written
        and lost."""
        assert self.process.stdout.readline() == "enabled\n"
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return tuple(map(int, self.process.stdout.readline().split()))

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(DEADLINE) == 0

    def kill(self):
        self.process.kill()
        self.process.wait(DEADLINE)
        self.process.stdin.close()
        self.process.stdout.close()


class RingTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="nettrace-ring-")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.socket = self.folder / "events"
        self.env = dict(os.environ, EVENTHEADER_TRANSPORT=TRANSPORT, EVENTHEADER_SOCKET=str(self.socket))
        self.trace = self.folder / "trace.nettrace"
        self.messages = self.folder / "messages"

    def service(self, threads, events, **options):
        service = Service(threads, events, env=self.env, **options)
        self.addCleanup(service.kill)
        return service

    def without_rights(self):
        """Gives the test's folder to another user. Returns the options of processes of this user, and the paths of
        copies of nettrace and the service, because the build may be in a folder that only root may enter."""
        os.chown(self.folder, NOBODY, NOBODY)
        programs = [shutil.copy(program, self.folder) for program in (ARGS.nettrace, ARGS.service)]
        return {"user": NOBODY, "group": NOBODY, "extra_groups": []}, *programs

    def start(self, *arguments, nettrace=ARGS.nettrace, prefix=(), **options):
        """Starts to record, and waits until all selected tracepoints are recorded. Services can connect before."""
        with self.messages.open("w") as messages:
            process = subprocess.Popen([*prefix, nettrace, "record", "-o", self.trace, "--json", *arguments], env=self.env,
                                       stdout=subprocess.PIPE, stderr=messages, text=True, **options)
        end = time.monotonic() + DEADLINE
        self.addCleanup(process.kill)
        while "services use shared memory" not in self.messages.read_text() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        return process

    def stop(self, process, expect=0):
        """Ends the recording. Returns its summary and its messages."""
        process.send_signal(signal.SIGINT)
        return self.finish(process, expect)

    def finish(self, process, expect=0):
        output, _ = process.communicate(timeout=DEADLINE)
        errors = self.messages.read_text()
        self.assertEqual(process.returncode, expect, errors)
        self.assertFalse(self.socket.exists())
        verified = subprocess.run([ARGS.nettrace, "verify", "--strict", self.trace], stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual(verified.returncode, 0, verified.stdout)
        return json.loads(output), errors

    def events(self):
        ran = subprocess.run([ARGS.nettrace, "dump", "--json", self.trace], stdout=subprocess.PIPE, text=True, check=True)
        return [json.loads(line) for line in ran.stdout.splitlines()]

    def count_arrived(self):
        """Returns the number of events of services in the file of a recording that is running."""
        ran = subprocess.run([ARGS.nettrace, "dump", "--json", self.trace], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             text=True, check=False)
        return sum('"provider":"Ring_Service"' in line for line in ran.stdout.splitlines())

    def check_values(self, events, services, threads, count, named=transport.HAS_KERNEL):
        """Compares all events of the services with those that were written. None may be lost. If the kernel reports no
        threads, a thread that has ended has the name of its process."""
        by_thread = collections.defaultdict(list)
        for event in events:
            if event["provider"] == "Ring_Service":
                by_thread[event["pid"], event["tid"]].append(event)
        self.assertEqual(collections.Counter(pid for pid, tid in by_thread),
                         {service.process.pid: threads for service in services})
        for written in by_thread.values():
            number = written[0]["payload"]["thread"]
            self.assertIn(written[0]["thread"], [f"writer-{number}", *([] if named else ["ring_service"])])
            self.assertEqual([event["timestamp"] for event in written], sorted(event["timestamp"] for event in written))
            self.assertEqual(len(written), count)
            for i, event in enumerate(written):
                if i % 10 == 9:
                    expected = ("Failed", 2, {"number": i, "error": 2})
                else:
                    expected = ("Numbers", 4, {"thread": number, "number": i, "half": i / 2, "even": i % 2 == 0, "text": f"text {i}"})
                self.assertEqual((event["name"], event["level"], event["payload"]), expected)

    def test_services_before_and_after_the_start_of_the_recording(self):
        count = 500  # fits into the memory that a service may use before the recorder has answered
        before = self.service(3, count)
        time.sleep(0.1)
        recording = self.start("-e", "Ring_Service", "--ring-size", "4M")
        after = self.service(3, count)
        self.assertEqual([before.write(), after.write()], [(3 * count, 0)] * 2)
        summary, errors = self.stop(recording)
        self.assertEqual((summary["events"], summary["lost"], summary["tracepoints"]), (6 * count, 0, 2))
        self.assertEqual(summary["unmatched"], [])
        self.assertIn(f"nettrace record: EVENTHEADER_TRANSPORT is {TRANSPORT}: services use shared memory, and connect to {self.socket}\n", errors)
        self.assertEqual(summary["unknownServices"], [])
        self.check_values(self.events(), [before, after], 3, count)
        before.end()
        after.end()

    def test_counts_are_exact_when_events_are_lost(self):
        recording = self.start("-e", "Ring_Service:error", "-e", "Ring_Service_L4K1", "--ring-size", "64K")
        service = self.service(4, 100_000)
        written, lost = service.write()
        self.assertEqual(written + lost, 400_000)
        summary, errors = self.stop(recording)
        self.assertEqual((summary["events"], summary["lost"]), (written, lost))
        self.assertEqual(sum(loss["count"] for loss in summary["losses"]), lost)
        for loss in summary["losses"]:
            self.assertRegex(loss["tracepoint"], rf"^ring:{service.process.pid}/\d+$")
        if lost != 0:
            self.assertIn("  lost: the memory of services was full; use a larger --ring-size", errors)
            self.assertNotIn("lost: the rings were full", errors)
        service.end()

    def record_command(self, selector, *command):
        """Records a command until it ends. Returns the lines of standard output. The last line is the summary."""
        recording = self.start("-e", selector, "--", *command)
        output, _ = recording.communicate(timeout=DEADLINE)
        self.assertEqual(recording.returncode, 0, self.messages.read_text())
        return output

    def test_recording_without_a_name_keeps_the_one_before(self):
        previous = self.folder / "trace.1.nettrace"
        contents = []
        for count in ("20", "30", "40"):
            ran = subprocess.run([ARGS.nettrace, "record", "-e", "Ring_Service", "--", ARGS.service, count], cwd=self.folder,
                                 env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=DEADLINE)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertIn("\ntrace.nettrace: ", f"\n{ran.stderr}")
            kept = "nettrace record: the previous recording was renamed to trace.1.nettrace\n"
            self.assertEqual(kept in ran.stderr, bool(contents), ran.stderr)
            if contents:
                self.assertEqual(previous.read_bytes(), contents[-1])
            contents.append(self.trace.read_bytes())
        # A recording that cannot start must neither replace nor rename a file.
        ran = subprocess.run([ARGS.nettrace, "record", "-e", ":"], cwd=self.folder, env=self.env, capture_output=True, check=False)
        self.assertNotEqual(ran.returncode, 0)
        self.assertEqual((self.trace.read_bytes(), previous.read_bytes()), (contents[-1], contents[-2]))
        # If the output is a directory, the recorder does not rename it.
        self.trace.unlink()
        self.trace.mkdir()
        ran = subprocess.run([ARGS.nettrace, "record", "-e", "Ring_Service", "--", "true"], cwd=self.folder, env=self.env,
                             capture_output=True, check=False, timeout=DEADLINE)
        self.assertEqual((ran.returncode, self.trace.is_dir()), (1, True), ran.stderr)
        self.trace.rmdir()

    def test_short_services(self):
        """Tests that all events of services that end at once are recorded, with the pids and names of the services."""
        for _ in range(20):
            summary = json.loads(self.record_command("Ring_Service", ARGS.service, "20"))
            self.assertEqual((summary["events"], summary["lost"], summary["undecoded"]), (20, 0, 0))
        events = [event for event in self.events() if event["provider"] == "Ring_Service"]
        self.assertEqual(len({event["pid"] for event in events}), 1)
        numbers = [event["payload"]["number"] for event in events]
        self.assertEqual(numbers, list(range(20)))
        if transport.HAS_KERNEL:
            self.assertEqual({event["thread"] for event in events}, {"writer-0"})

    def test_many_short_services(self):
        count = 200
        for end, begin in ((";", "one after the other"), (" &", "all at once")):
            with self.subTest(begin):
                script_text = f"i=0; while [ $i -lt {count} ]; do {ARGS.service} 20{end} i=$((i + 1)); done; wait"
                summary = json.loads(self.record_command("Ring_Service", "sh", "-c", script_text))
                self.assertEqual((summary["events"], summary["lost"], summary["unknownServices"]), (20 * count, 0, []))
                by_process = collections.defaultdict(list)
                for event in self.events():
                    if event["provider"] == "Ring_Service":
                        by_process[event["pid"]].append(event["payload"]["number"])
                self.assertEqual(len(by_process), count)
                self.assertEqual({tuple(numbers) for numbers in by_process.values()}, {tuple(range(20))})

    def test_command_and_its_end(self):
        """Tests that all events of a command are recorded, and that the recording ends with the command."""
        output = self.record_command("ExampleService", ARGS.example, "--events", "1000000", "--threads", "2")
        written, failed = map(int, re.search(r"(\d+) events written, (\d+) failed", output).groups())
        summary = json.loads(output.splitlines()[-1])
        self.assertEqual((summary["events"] + summary["lost"], summary["unknownServices"]), (written + failed, []))
        self.assertGreater(summary["events"], 0)
        # An inline service that ends waits for a collector that takes no data, but only for 1 s. The rest of its events is
        # then lost. On a busy machine, this may happen.
        if TRANSPORT == "ring":
            self.assertEqual(summary["lost"], failed)
        else:
            self.assertGreaterEqual(summary["lost"], failed)

    def test_service_that_is_killed(self):
        recording = self.start("-e", "Ring_Service")
        service = self.service(2, 100)
        self.assertEqual(service.write(), (200, 0))
        if TRANSPORT == "ring-inline":
            # The service sends its events every 50 ms. Events that it has not sent are lost when it is killed.
            nettraced.until(lambda: self.count_arrived() == 200, DEADLINE, self.messages.read_text)
        service.kill()
        summary, _ = self.stop(recording)
        self.assertEqual((summary["events"], summary["lost"]), (200, 0))
        # Only the service knows whether it has sent all events.
        self.assertEqual([each["tracepoint"] for each in summary["unknownServices"]],
                         [f"ring:{service.process.pid}"] if TRANSPORT == "ring-inline" else [])
        self.check_values(self.events(), [service], 2, 100)

    def record_while_stopped(self, end):
        """Lets a service write and end while the recorder is stopped. Returns the service, the number of its events,
        the summary and the messages."""
        recording = self.start("-e", "Ring_Service", "--ring-size", "4M")
        # The recorder may be stopped before it has answered the service. The memory that the service may use until then has
        # room for 1,000 events. Inline, the queue of the socket and this memory together have no room for 16,000.
        service = self.service(2, 8_000 if TRANSPORT == "ring-inline" else 500)
        nettraced.until(service.is_enabled, DEADLINE, self.messages.read_text)
        recording.send_signal(signal.SIGSTOP)
        count = sum(service.write())
        end(service)
        recording.send_signal(signal.SIGCONT)
        return service, count, *self.stop(recording)

    def test_service_that_ends_while_the_recorder_is_stopped(self):
        """Tests that an inline service that cannot send all events before it exits states how many it has not sent."""
        _, count, summary, errors = self.record_while_stopped(Service.end)
        self.assertEqual(summary["events"] + summary["lost"], count)
        self.assertEqual(summary["lost"] > 0, TRANSPORT == "ring-inline")
        self.assertEqual(summary["unknownServices"], [])
        self.assertNotIn("losses are unknown", errors)

    def test_service_that_is_killed_while_the_recorder_is_stopped(self):
        """Tests that the file states when a killed inline service may have lost events."""
        service, count, summary, errors = self.record_while_stopped(Service.kill)
        if TRANSPORT == "ring":
            self.assertEqual((summary["events"] + summary["lost"], summary["unknownServices"]), (count, []))
            return
        self.assertLess(summary["events"] + summary["lost"], count)
        [unknown] = summary["unknownServices"]
        reason = "its connection ended before it had sent all events"
        self.assertEqual((unknown["tracepoint"], unknown["reason"]), (f"ring:{service.process.pid}", reason))
        self.assertLess(unknown["since"], unknown["until"])
        text = f"ring:{service.process.pid} from {unknown['since']} to {unknown['until']}: {reason}\n"
        self.assertIn(f"  losses are unknown: {text}", errors)
        shown = subprocess.run([ARGS.nettrace, "info", self.trace], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertRegex(shown, rf"(?m)^losses unknown +{re.escape(text)}")
        shown = subprocess.run([ARGS.nettrace, "info", "--json", self.trace], stdout=subprocess.PIPE, check=True).stdout
        self.assertEqual(json.loads(shown)["unknownServices"], summary["unknownServices"])

    def test_next_recording_gets_only_new_events(self):
        for _ in range(2):
            recording = self.start("-e", "Ring_Service")
            service = self.service(1, 50)
            self.assertEqual(service.write(), (50, 0))
            summary, _ = self.stop(recording)
            self.assertEqual((summary["events"], summary["late"]), (50, 0))
            self.check_values(self.events(), [service], 1, 50, named=transport.HAS_KERNEL)
            service.end()
            self.trace.unlink()

    def test_one_process(self):
        wanted = self.service(1, 50)
        other = self.service(1, 50)
        recording = self.start("-e", "Ring_Service", "--pid", str(wanted.process.pid))
        self.assertEqual(wanted.write(), (50, 0))
        wanted.end()
        # A recording of one process ends when the process ends.
        summary, _ = self.finish(recording)
        self.assertEqual(summary["events"], 50)
        self.check_values(self.events(), [wanted], 1, 50)
        other.kill()

    @unittest.skipUnless(HAS_NAMESPACES, "user namespaces are not permitted here")
    def test_service_in_a_container(self):
        """Tests a service in a container that has only the folder of the socket, mounted elsewhere and read-only. The
        recording must have the pid that the service has on the host."""
        inside = self.folder / "inside"
        (inside / "nettraced").mkdir(parents=True)
        outside = self.folder / "outside"
        outside.mkdir()
        self.socket = outside / "events"
        self.env["EVENTHEADER_SOCKET"] = str(self.socket)
        enter = (f"mount --bind {outside} {inside}/nettraced && mount -o remount,ro,bind {inside}/nettraced && "
                 f"! touch {inside}/nettraced/file 2>/dev/null && EVENTHEADER_SOCKET={inside}/nettraced/events exec {ARGS.service} 2 100")
        service = Service(2, 100, command=[*NAMESPACES, "sh", "-c", enter], env=self.env)
        self.addCleanup(service.kill)
        recording = self.start("-e", "Ring_Service")
        self.assertEqual(service.write(), (200, 0))
        [pid] = map(int, pathlib.Path(f"/proc/{service.process.pid}/task/{service.process.pid}/children").read_text().split())
        service.end()
        summary, _ = self.stop(recording)
        self.assertEqual((summary["events"], summary["lost"]), (200, 0))
        events = self.events()
        self.assertEqual({event["pid"] for event in events}, {pid})
        # The service reports tids as its pid namespace numbers them. On the host, these are other threads.
        by_thread = collections.defaultdict(list)
        for event in events:
            by_thread[event["tid"]].append(event)
        self.assertEqual(sorted(map(len, by_thread.values())), [100, 100])
        self.assertNotIn("kthreadd", {event["thread"] for event in events})
        for written in by_thread.values():
            self.assertEqual([event["payload"]["number"] for event in written], list(range(100)))

    def test_second_recorder_is_refused(self):
        recording = self.start("-e", "Ring_Service")
        second = subprocess.run([ARGS.nettrace, "record", "-o", self.folder / "second", "-e", "Ring_Service", "--duration", "1s"],
                                env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(second.returncode, 1)
        self.assertIn(f"{self.socket}: another collector receives events at this socket; stop it, or set EVENTHEADER_SOCKET",
                      second.stderr)
        self.assertFalse((self.folder / "second").exists())
        self.stop(recording, expect=3)

    def test_command_is_recorded_beside_another_collector(self):
        """Tests that the services of a command use a separate socket if another collector has the default one."""
        (self.folder / "nettraced").mkdir()
        self.socket = self.folder / "nettraced/events"
        prefix, nettrace, program = (), ARGS.nettrace, ARGS.service
        if os.geteuid() == 0:
            _, nettrace, program = self.without_rights()
            os.chown(self.socket.parent, NOBODY, NOBODY)
            # Services would connect to a collector of the machine before that of the user, so the test hides the socket
            # of the machine's collector.
            prefix = ("unshare", "--mount", "sh", "-c", f"""
                if [ -d /run/nettraced ]; then mount -t tmpfs -o mode=755 tmpfs /run/nettraced; fi
                exec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups "$@"
                """, "sh")
        self.env["EVENTHEADER_SOCKET"] = ""  # means the default socket, as if the variable were not set
        self.env["XDG_RUNTIME_DIR"] = str(self.folder)
        other = self.start("-e", "Ring_Service", nettrace=nettrace, prefix=prefix)
        second = subprocess.run([*prefix, nettrace, "record", "-o", self.folder / "second", "-e", "Ring_Service", "--",
                                 "bash", "-c", f"echo | {program} 2 100; echo $EVENTHEADER_SOCKET"],
                                env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(second.returncode, 0, second.stderr)
        enabled, counts, socket = second.stdout.splitlines()
        self.assertEqual((enabled, counts), ("enabled", "200 0"))
        self.assertIn(f"another collector receives events at {self.socket}; recording only the services that the command starts\n",
                      second.stderr)
        self.assertIn(": 200 events, 0 lost", second.stderr)
        self.assertFalse(pathlib.Path(socket).parent.exists())
        summary, _ = self.stop(other, expect=3)
        self.assertEqual(summary["events"], 0)

    def test_command_is_recorded_beside_a_collector_of_the_machine(self):
        """Tests recordings of users while another collector has the socket of the machine, to which services connect
        first. A command is recorded. Without a command, the recording fails, because it would record nothing."""
        if os.geteuid() != 0:
            self.skipTest("needs root, to have another /run/nettraced")
        options, nettrace, program = self.without_rights()
        del self.env["EVENTHEADER_SOCKET"]
        other = self.folder / "other.nettrace"
        script_text = f"""set -e
            mkdir -p /run/nettraced
            mount -t tmpfs -o mode=755 tmpfs /run/nettraced
            {ARGS.nettrace} record -o {other} --json -e Ring_Service --duration 60s > {self.folder}/other.json &
            until [ -S /run/nettraced/services/events ]; do sleep 0.05; done
            as_user() {{ setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups env XDG_RUNTIME_DIR={self.folder}/user "$@"; }}
            as_user {nettrace} record -o {self.folder}/second -e Ring_Service -- bash -c "echo | {program} 2 100"
            as_user env -u XDG_RUNTIME_DIR {nettrace} record -o {self.folder}/third -e Ring_Service -- bash -c "echo | {program} 2 100"
            as_user {nettrace} record -o {self.folder}/fourth -e Ring_Service --duration 1s || echo "exit status $?"
            kill -INT %1
            wait %1 || true
            """
        (self.folder / "user").mkdir()
        for folder in (self.folder, self.folder / "user"):
            os.chown(folder, NOBODY, NOBODY)
        done = subprocess.run(["unshare", "--mount", "bash", "-mc", script_text], env=self.env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False, timeout=DEADLINE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines(), ["enabled", "200 0", "enabled", "200 0", "exit status 1"], done.stderr)
        self.assertEqual(done.stderr.count("another collector receives events at /run/nettraced/events; recording only the "
                                           "services that the command starts\n"), 2, done.stderr)
        self.assertEqual(done.stderr.count(": 200 events, 0 lost"), 2, done.stderr)
        self.assertIn("/run/nettraced/events: another collector receives events at this socket; stop it", done.stderr)
        self.assertFalse((self.folder / "fourth").exists())
        self.assertEqual(json.loads((self.folder / "other.json").read_text())["events"], 0)

    def test_filter(self):
        recording = self.start("-e", "Ring_Service", "--filter", "level < 3 && common_pid != 1")
        service = self.service(2, 100)
        self.assertEqual(service.write(), (200, 0))
        service.end()
        summary, _ = self.stop(recording)
        self.assertEqual((summary["events"], summary["lost"], summary["unmatched"], summary["leftOut"]), (20, 0, [], []))
        self.assertEqual({(event["name"], event["level"]) for event in self.events() if event["provider"] == "Ring_Service"},
                         {("Failed", 2)})

    def test_filter_of_other_fields_is_left_out(self):
        service = self.service(1, 1)
        recording = self.start("-e", "Ring_Service", "--filter", 'comm ~ "ring*"')
        time.sleep(0.5)
        summary, errors = self.stop(recording, expect=3)
        self.assertEqual(summary["leftOut"], ["user_events:Ring_Service_L4K1", "user_events:Ring_Service_L2K2"])
        self.assertIn("left out: tracepoint user_events:Ring_Service_L4K1: its events come through shared memory, and the filter 'comm ~ \"ring*\"' cannot be "
                      "used: at character 5: use a field of the tracepoint", errors)
        service.kill()

    @unittest.skipUnless(transport.HAS_KERNEL, "needs root and a mounted tracefs")
    def test_kernel_tracepoints_in_the_same_file(self):
        recording = self.start("-e", "Ring_Service", "-e", "sched:sched_process_exit")
        service = self.service(2, 100)
        self.assertEqual(service.write(), (200, 0))
        service.end()
        summary, _ = self.stop(recording)
        self.assertEqual(summary["lost"], 0)
        events = self.events()
        self.check_values(events, [service], 2, 100)
        exits = [event for event in events if event["provider"] == "sched" and event["pid"] == service.process.pid]
        # The service has at least four threads: two writers, the library's thread and the main thread. A sanitizer may
        # add threads.
        self.assertGreaterEqual(len({event["tid"] for event in exits}), 4)
        self.assertLessEqual({"writer-0", "writer-1"}, {event["payload"]["comm"] for event in exits})
        # Both kinds of events use one clock, so no event of the process is later than its end.
        written = [int(event["timestamp"]) for event in events if event["provider"] == "Ring_Service"]
        self.assertLess(max(written), max(int(event["timestamp"]) for event in exits))

    @unittest.skipIf(os.geteuid() != 0, "needs root to become another user")
    def test_user_without_rights(self):
        options, nettrace, program = self.without_rights()
        environments = [self.env]
        if not pathlib.Path("/proc/sys/kernel/user_events_max").exists():
            # Without the variable, the collector itself must find out that the kernel has no user_events, although this user
            # cannot read tracefs.
            environments.append({name: value for name, value in self.env.items() if name != "EVENTHEADER_TRANSPORT"})
        for self.env in environments:
            with self.subTest(transport=self.env.get("EVENTHEADER_TRANSPORT")):
                recording = self.start("-e", "Ring_Service", nettrace=nettrace, **options)
                service = self.service(2, 100, command=[program, "2", "100"], **options)
                self.assertEqual(service.write(), (200, 0))
                service.end()
                summary, errors = self.stop(recording)
                self.assertEqual((summary["events"], summary["lost"]), (200, 0))
                self.assertIn("nettrace record: the kernel's events are not available: ", errors)
                self.check_values(self.events(), [service], 2, 100, named=False)
                self.trace.unlink()

    @unittest.skipIf(os.geteuid() != 0, "needs root to unmount tracefs")
    def test_patterns_record_services_without_tracefs(self):
        """Tests that a pattern that may match services and tracepoints of the kernel records the services, and warns
        once."""
        for pattern in ("Ring_*:*", "*:*"):
            with self.subTest(pattern):
                recording = self.start("-e", pattern, prefix=failures.WITHOUT_TRACEFS)
                service = self.service(2, 100)
                self.assertEqual(service.write(), (200, 0))
                service.end()
                summary, errors = self.stop(recording)
                self.assertEqual((summary["events"], summary["lost"], summary["unmatched"]), (200, 0, []))
                self.assertEqual(errors.count("nettrace record: the kernel's events are not available: tracefs is not mounted"), 1)
                self.trace.unlink()

    @unittest.skipIf(os.geteuid() != 0, "needs root to unmount tracefs")
    def test_systems_of_the_kernel_need_tracefs(self):
        """Tests that a pattern for a system of the kernel, such as sched:*, fails without tracefs and names a remedy,
        alone and beside a provider."""
        for selectors in (("sched:*",), ("Ring_Service", "sched:*")):
            options = [word for selector in selectors for word in ("-e", selector)]
            with self.subTest(selectors):
                ran = subprocess.run([*failures.WITHOUT_TRACEFS, ARGS.nettrace, "record", "-o", self.trace, *options], env=self.env,
                                     stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=DEADLINE)
                self.assertEqual(ran.returncode, 1, ran.stderr)
                self.assertRegex(ran.stderr.splitlines()[-1],
                                 r"^nettrace record: selector 'sched:\*' needs the kernel's events: tracefs is not mounted; .*"
                                 "; to record a service's provider of this name, use 'sched'$")
                self.assertFalse(self.trace.exists())

    @unittest.skipIf(os.geteuid() != 0, "needs root to unmount tracefs")
    def test_daemon_without_tracefs(self):
        """Tests that sessions that select tracepoints of the kernel fail, while sessions that select services run."""
        with unittest.mock.patch.dict(os.environ, self.env):
            daemon = nettraced.Daemon(ARGS.nettraced, ARGS.nettrace, {
                name: f'[session.{name}]\nselect = ["{pattern}"]\n'
                for name, pattern in (("service", "Ring_*:*"), ("kernel", "sched:*"), ("other", "irq:*"))})
            self.addCleanup(daemon.close)
            daemon.start(prefix=failures.WITHOUT_TRACEFS)
            for session, state in (("service", "running"), ("kernel", "failed"), ("other", "failed")):
                daemon.wait_for_state(session, state)
            for session, selector in (("kernel", "sched:*"), ("other", "irq:*")):
                self.assertRegex(daemon.log(), rf"session {session} cannot start: selector '{re.escape(selector)}' needs the kernel's events: "
                                 rf"tracefs is not mounted.*use '{selector[:-2]}'")
            service = self.service(1, 50)
            self.assertEqual(service.write(), (50, 0))
            service.end()
            nettraced.until(lambda: daemon.status("service")["events"] == 50, DEADLINE, lambda: daemon.status("service"))
            self.assertEqual(daemon.stop(), 0, daemon.log())

    def test_daemon_stops_without_a_new_thread(self):
        """Tests that the daemon ends with all events in its file even if it cannot create a thread for the stop."""
        program = pathlib.Path(ARGS.nettraced).read_bytes()
        if b"__asan_" in program or b"__tsan_" in program:
            self.skipTest("a sanitizer needs address space for other purposes")
        with unittest.mock.patch.dict(os.environ, self.env):
            daemon = nettraced.Daemon(ARGS.nettraced, ARGS.nettrace, {"first": '[session.first]\nselect = ["Ring_Service"]\n'})
            self.addCleanup(daemon.close)
            # The stack of each thread takes this address space. The limit below has room for everything but a thread.
            stack = 1 << 30
            daemon.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (stack, resource.RLIM_INFINITY)))
            daemon.wait_for_state("first", "running")
            service = self.service(1, 50)
            self.assertEqual(service.write(), (50, 0))
            service.end()
            nettraced.until(lambda: daemon.status("first")["events"] == 50, DEADLINE, lambda: daemon.status("first"))
            # Waits until the stack of the thread that started the sessions is freed, so that the size no longer changes.
            sizes = []
            while len(sizes) < 5 or len(set(sizes[-5:])) > 1:
                status = pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text()
                sizes.append(int(re.search(r"^VmSize:\s+(\d+)", status, re.MULTILINE)[1]) << 10)
                time.sleep(0.1)
            used = sizes[-1]
            resource.prlimit(daemon.process.pid, resource.RLIMIT_AS, (used + stack // 2,) * 2)
            daemon.process.send_signal(signal.SIGHUP)
            daemon.wait_for_log("the thread that starts, reloads, rotates or stops sessions cannot be created")
            daemon.wait_for_said("READY=1")
            self.assertEqual(daemon.stop(), 0, daemon.log())
            self.assertIn("stopping on the main thread", daemon.log())

    def check_list(self, daemon, service):
        """Checks that the daemon lists the service with its sessions, and a process that it has refused, with the
        reason."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as wrong:
            wrong.connect(str(self.socket))
            wrong.send(b"wrong")
            self.assertEqual(wrong.recv(1), b"")
        listed = json.loads(daemon.ask("services", "--json"))
        self.assertEqual((listed["socket"], listed["whyNone"]), (str(self.socket), ""))
        self.assertEqual([(each["pid"], each["uid"], each["name"], each["executable"], each["events"], each["lost"], each["transport"])
                          for each in listed["services"]],
                         [(service.process.pid, os.geteuid(), "ring_service", os.path.realpath(ARGS.service), 200, 0, "memfd" if TRANSPORT == "ring" else "inline")])
        self.assertEqual(listed["services"][0]["inlineReason"], "" if TRANSPORT == "ring" else "EVENTHEADER_TRANSPORT is ring-inline")
        self.assertEqual(listed["services"][0]["tracepoints"],
                         [{"name": "Ring_Service_L2K2", "sessions": ["first", "second"]}, {"name": "Ring_Service_L4K1", "sessions": ["first"]}])
        self.assertEqual([(each["uid"], each["pid"], each["reason"], each["count"]) for each in listed["refused"]],
                         [(os.geteuid(), os.getpid(), "badMessage", 1)])
        self.assertIn("ring_service", daemon.ask("services"))

    def test_daemon(self):
        """Tests that two sessions of nettraced get the events of a service, beside a session of the kernel, which fails
        without tracefs. After the daemon is killed, the next daemon must get the events that the service has kept."""
        with unittest.mock.patch.dict(os.environ, self.env):
            daemon = nettraced.Daemon(ARGS.nettraced, ARGS.nettrace, {
                "first": '[session.first]\nselect = ["Ring_Service"]\nring_size = "4M"\n', "second": '[session.second]\nselect = ["Ring_*:error"]\n',
                "kernel": '[session.kernel]\nselect = ["sched:sched_process_exit"]\n'})
            self.addCleanup(daemon.close)
            daemon.start()
            for session, state in (("first", "running"), ("second", "running"), ("kernel", "running" if transport.HAS_KERNEL else "failed")):
                daemon.wait_for_state(session, state)
            if not transport.HAS_KERNEL:
                self.assertIn("nettraced: the kernel's events are not available, so only streams of .NET and services", daemon.log())
                self.assertRegex(daemon.log(), "session kernel cannot start: .*tracefs")
            service = self.service(2, 100)
            self.assertEqual(service.write(), (200, 0))
            for session, count in (("first", 200), ("second", 20)):
                nettraced.until(lambda: daemon.status(session)["events"] == count, DEADLINE, lambda: daemon.status(session))
                self.assertEqual(daemon.status(session)["lost"], 0)
            self.check_list(daemon, service)
            later = self.service(2, 100)
            nettraced.until(lambda: later.is_enabled(), DEADLINE, daemon.log)
            os.kill(daemon.process.pid, signal.SIGSTOP)
            self.assertEqual(later.write(), (200, 0))
            daemon.kill()
            daemon.start()
            nettraced.until(lambda: daemon.status("first")["events"] == 200, DEADLINE, lambda: daemon.status("first"))
            killed = self.service(1, 50)
            nettraced.until(killed.is_enabled, DEADLINE, daemon.log)
            killed.kill()
            self.assertEqual(daemon.stop(), 0, daemon.log())
            self.assertFalse(self.socket.exists())
            self.check_unknown(daemon, killed)

    def check_unknown(self, daemon, killed):
        """Checks that the log and the files of both sessions state that the losses of the killed service are unknown, if
        it was inline. Nothing may be stated about the services that were connected when the daemon ended."""
        for session in ("first", "second"):
            shown = subprocess.run([ARGS.nettrace, "info", "--json", daemon.files(session)[-1]], stdout=subprocess.PIPE, check=True)
            stated = json.loads(shown.stdout)["unknownServices"]
            logged = re.findall(rf"session {session} (does not know the losses.*)", daemon.log())
            if TRANSPORT == "ring":
                self.assertEqual((stated, logged), ([], []))
                continue
            self.assertEqual([each["tracepoint"] for each in stated], [f"ring:{killed.process.pid}"], daemon.log())
            self.assertEqual(logged, [f"does not know the losses of 1 service, the first: ring:{killed.process.pid} from {stated[0]['since']} "
                                      f"to {stated[0]['until']}: its connection ended before it had sent all events"])

    def test_daemon_with_targets_and_filters(self):
        """Tests that sessions of nettraced with a target or a filter get only the events that the target or filter selects."""
        mount = cgroups.mount()
        own = f"nettrace-ring-{os.getpid()}.service"
        wanted, other = self.service(2, 100), self.service(1, 30)
        targets = {"whole": "", "process": f"target.pids = [{wanted.process.pid}]", "command": 'target.command = "writer-1"',
                   "filter": "", "cgroup": f'target.unit = "{own}"'}
        select = dict.fromkeys(targets, '"Ring_Service"') | {"filter": '{provider = "Ring_Service", filter = "level == 2"}'}
        text = {name: f"[session.{name}]\nselect = [{select[name]}]\n{target}\n" for name, target in targets.items()
                if name != "cgroup" or mount}
        for name, first in (("mixed", "Ring_Service"), ("pattern", "*:sched_process_exec")):
            text[name] = f'[session.{name}]\nselect = ["{first}", "sched:sched_process_exit"]\n{targets["process"]}\n'
        with unittest.mock.patch.dict(os.environ, self.env):
            daemon = nettraced.Daemon(ARGS.nettraced, ARGS.nettrace, text)
            self.addCleanup(daemon.close)
            daemon.start()
            for name in text:
                if name not in ("mixed", "pattern"):
                    daemon.wait_for_state(name, "running")
            expected = {"whole": 230, "process": 200, "filter": 23}
            # Without the kernel's events, the name of a thread that ends before its events are read is unknown. Then the
            # session "command", which selects threads by name, has no fixed number of events.
            if transport.HAS_KERNEL:
                expected["command"] = 100
            if mount:
                # The cgroup appears after the session has started.
                folder = mount / own
                folder.mkdir()
                self.addCleanup(folder.rmdir)
                inside = self.service(1, 50, command=["sh", "-c", f'echo $$ > {folder}/cgroup.procs && exec {ARGS.service} 1 50'])
                self.addCleanup(inside.kill)
                expected["cgroup"] = 50
                expected["whole"] += 50
                expected["filter"] += 5
                self.assertEqual(inside.write(), (50, 0))
            self.assertEqual(wanted.write(), (200, 0))
            self.assertEqual(other.write(), (30, 0))
            for name, count in expected.items():
                nettraced.until(lambda name=name, count=count: daemon.status(name)["events"] == count, DEADLINE,
                                lambda name=name: (name, daemon.status(name)))
                self.assertEqual(daemon.status(name)["lost"], 0)
            daemon.wait_for_state("mixed", "failed")
            self.assertIn("select the services in another session", daemon.status("mixed")["error"])
            if transport.HAS_KERNEL:
                daemon.wait_for_state("pattern", "running")
                self.assertIn("select the services in another session", daemon.status("pattern")["leftOut"][0])
            sessions = {each["pid"]: {name for tracepoint in each["tracepoints"] for name in tracepoint["sessions"]}
                        for each in json.loads(daemon.ask("services", "--json"))["services"]}
            self.assertIn("process", sessions[wanted.process.pid])
            self.assertNotIn("process", sessions[other.process.pid])
            metrics = daemon.ask("metrics")
            self.assertIn(f"\nnettraced_services_events_total {expected['whole']}\n", metrics)
            self.assertIn('\nnettraced_services_lost_events_total{reason="ringFull"} 0\n', metrics)
            self.assertEqual(daemon.stop(), 0, daemon.log())

    @unittest.skipUnless(HAS_NAMESPACES, "user namespaces are not permitted here")
    def test_container_reaches_the_next_daemon(self):
        """Tests that a service in a container that has only the folder of the socket is recorded, also after a restart
        of nettraced."""
        environment = {name: value for name, value in self.env.items() if name != "EVENTHEADER_SOCKET"}
        with unittest.mock.patch.dict(os.environ, environment, clear=True):
            daemon = nettraced.Daemon(ARGS.nettraced, ARGS.nettrace, {"first": '[session.first]\nselect = ["Ring_Service"]\n'})
            self.addCleanup(daemon.close)
            daemon.start()
            daemon.wait_for_state("first", "running")
            run = daemon.path / "run"
            self.assertEqual(os.readlink(run / "events"), "services/events")
            self.assertEqual(sorted(os.listdir(run / "services")), ["events"])
            inside = self.folder / "inside"
            inside.mkdir()
            enter = (f"mount --bind {run}/services {inside} && mount -o remount,ro,bind {inside} && "
                     f"EVENTHEADER_SOCKET={inside}/events exec {ARGS.service} 2 100")
            service = Service(2, 100, command=[*NAMESPACES, "sh", "-c", enter], env=environment)
            self.addCleanup(service.kill)
            nettraced.until(service.is_enabled, DEADLINE, daemon.log)
            self.assertEqual(daemon.stop(), 0, daemon.log())
            self.assertFalse(os.path.lexists(run / "events"))
            daemon.start()
            nettraced.until(lambda: json.loads(daemon.ask("services", "--json"))["services"], DEADLINE, daemon.log)
            self.assertEqual(service.write(), (200, 0))
            service.end()
            nettraced.until(lambda: daemon.status("first")["events"] == 200, DEADLINE, lambda: daemon.status("first"))
            self.assertEqual(daemon.stop(), 0, daemon.log())

    def test_refused_services_are_reported(self):
        """Tests that the recorder reports each reason once, with the user, the process and a remedy."""
        recording = self.start("-e", "Ring_*")
        for _ in range(3):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as wrong:
                wrong.connect(str(self.socket))
                wrong.send(b"wrong")
                self.assertEqual(wrong.recv(1), b"")
        _, errors = self.stop(recording, 3)
        line = f"nettrace record: warning: refused the service with the process id {os.getpid()} of user {os.geteuid()}: the service sent a malformed message; use a"
        self.assertEqual(errors.count(line), 1, errors)
        self.assertIn("\n  3 connections of services refused\n", errors)

    def test_socket_of_systemd(self):
        """Tests a socket that systemd opens: services can connect before nettraced starts, and while it does not run."""
        environment = {name: value for name, value in self.env.items() if name != "EVENTHEADER_SOCKET"}
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener, \
                unittest.mock.patch.dict(os.environ, environment, clear=True):
            listener.bind(str(self.socket))
            listener.listen()
            service = self.service(2, 100)
            daemon = nettraced.Daemon(ARGS.nettraced, ARGS.nettrace, {"first": '[session.first]\nselect = ["Ring_Service"]\n'})
            self.addCleanup(daemon.close)
            fd = listener.fileno()
            start = {"pass_fds": [fd], "prefix": ["bash", "-c", f'exec 3<&{fd}; LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"', "bash"]}
            daemon.start(**start)
            daemon.wait_for_state("first", "running")
            self.assertEqual(service.write(), (200, 0))
            nettraced.until(lambda: daemon.status("first")["events"] == 200, DEADLINE, lambda: daemon.status("first"))
            later = self.service(2, 100)
            nettraced.until(later.is_enabled, DEADLINE, daemon.log)
            os.kill(daemon.process.pid, signal.SIGSTOP)
            self.assertEqual(later.write(), (200, 0))
            daemon.kill()
            last = self.service(1, 100)
            daemon.start(**start)
            nettraced.until(lambda: daemon.status("first")["events"] == 200, DEADLINE, lambda: daemon.status("first"))
            self.assertEqual(last.write(), (100, 0))
            nettraced.until(lambda: daemon.status("first")["events"] == 300, DEADLINE, lambda: daemon.status("first"))
            self.assertEqual(daemon.stop(), 0, daemon.log())
            self.assertTrue(self.socket.exists())
            self.assertNotIn("is ignored", daemon.log())


if __name__ == "__main__":
    script.run_cases()
