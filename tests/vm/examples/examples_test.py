#!/usr/bin/python3
"""Records every example with `nettrace record`, and tests that the file and its exports to CTF have exactly the events
that the example writes. Needs root and a kernel with user_events (./run vm), or EVENTHEADER_TRANSPORT=ring."""

import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from support import commands
from support import script
from support import transport

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "conformance"))
import ctf_exports

ARGS = script.options(__doc__, "source", "nettrace", "eventheader", "service", "c-service", "cxx17-service", "http-service", "logger-bridge", "plugin-host", "plugin",
                      "spdlog-service")

STATUS = pathlib.Path("/sys/kernel/tracing/user_events_status")
# The parts of an event that an example determines. `activity` and `related` are ids, or None; `labels` are the trace
# labels.
Event = collections.namedtuple("Event", "name level keywords opcode activity related payload labels", defaults=[{}])

LEVELS = {"CRITICAL_ERROR": 1, "ERROR": 2, "WARNING": 3, "INFORMATION": 4, "VERBOSE": 5}
INFO, START, STOP = 0, 1, 2  # Opcodes.


class ExampleTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        transport.give_socket(self)

    def recorded(self, provider, tracepoints, *command, program=None, exports=True):
        """Returns the output of `command`, and all events of the recording as `nettrace dump --json` shows them, in the
        order of time. `tracepoints` are all tracepoints that `program` may write, which must match its catalogue. Tests
        the exports of the recording, if `exports` is set: once for each example, because babeltrace2 takes long in the
        VM."""
        if program is not None:
            self.check_catalogue(provider, tracepoints, program)
        with tempfile.TemporaryDirectory(prefix="examples-") as folder:
            file = pathlib.Path(folder) / "trace.nettrace"
            selectors = [f"{provider}_{suffix}" for suffix in tracepoints]
            printed = commands.record(ARGS.nettrace, file, selectors, command)
            info = commands.info(ARGS.nettrace, file)
            events = list(commands.dump(ARGS.nettrace, file))
            if exports:
                _, compared = ctf_exports.compare(ARGS.nettrace, file, file.parent)
                self.assertEqual({form: export.differences for form, export in compared.items()}, {"ctf": [], "ctf2": []})
        self.assertEqual((info["events"], info["lost"], info["complete"]), (len(events), 0, True))
        self.assertEqual({event["provider"] for event in events} - {provider}, set())
        self.assertEqual({(event["id"], event["version"]) for event in events} - {(0, 0)}, set())
        return printed.splitlines(), sorted(events, key=lambda event: event["timestamp"])

    def check_catalogue(self, provider, tracepoints, program):
        """Checks the program's catalogue. With user_events, registers its tracepoints before the program runs."""
        listed = subprocess.run([ARGS.eventheader, "catalog", "--json", program], stdout=subprocess.PIPE, text=True, check=True).stdout
        expected = sorted(f"{provider}_{suffix}" for suffix in tracepoints)
        self.assertEqual(sorted(json.loads(line)["tracepoint"] for line in listed.splitlines()), expected)
        if transport.RINGS:
            return
        subprocess.run([ARGS.eventheader, "register", "--from", program], check=True)
        listed = subprocess.run([ARGS.eventheader, "list", "--json", f"{provider}_*"], stdout=subprocess.PIPE, text=True,
                                check=True).stdout
        names = [json.loads(line)["name"] for line in listed.splitlines()]
        # Registered tracepoints are persistent, so the test unregisters them. Other tests check that the kernel deletes
        # the tracepoints of a program.
        self.addCleanup(subprocess.run, [ARGS.eventheader, "unregister", *names], check=True)
        self.assertEqual(sorted(names), expected)

    def check_counted(self, line, events):
        self.assertRegex(line, rf"^{len(events)} events written,.* 0 failed; registered$")


def as_events(events):
    return [Event(event["name"], event["level"], event["keywords"], event["opcode"], event["activityId"],
                  event["relatedActivityId"], event["payload"], trace_labels(event)) for event in events]


def trace_labels(event):
    return {name: value for name, value in event["labels"].items() if name in ("TraceId", "SpanId")}


def with_numbered_activities(events):
    """Returns the events with activity ids replaced by 0, 1, … in the order in which they appear."""
    numbers = {None: None}
    return [event._replace(activity=numbers.setdefault(event.activity, len(numbers) - 1),
                           related=numbers.setdefault(event.related, len(numbers) - 1)) for event in events]


class ServiceTest(ExampleTest):
    def test_events_of_both_threads(self):
        [line], events = self.recorded("ExampleService", ["L4K1", "L4K2", "L2K2"],
                                       ARGS.service, "--events", "6", "--threads", "2", program=ARGS.service)
        self.assertTrue(line.startswith("12 events written, 0 failed"), line)
        by_thread = collections.defaultdict(list)
        for event in events:
            by_thread[event["tid"]].append(event)
        if transport.HAS_KERNEL:
            self.assertEqual(sorted({event["thread"] for event in events}), ["worker-0", "worker-1"])
        threads = sorted((as_events(written) for written in by_thread.values()), key=lambda written: written[0].activity)
        self.assertEqual(threads, [[self.expected(number, i) for i in range(6)] for number in range(2)])

    @staticmethod
    def expected(thread, i):
        file = f"/var/data/{i}"
        if i % 3 == 0:
            # An activity id consists of two little-endian numbers: the thread and the round.
            activity = f"0{thread}000000-0000-0000-0{i}00-000000000000"
            return Event("RequestDone", 4, "0x1", INFO, activity, None,
                         {"path": f"/items/{i}", "status": 200, "seconds": 0.001 * i})
        if i % 3 == 1:
            return Event("BytesRead", 4, "0x2", INFO, None, None, {"file": file, "bytes": 4096 * i, "cached": i % 2 == 0})
        return Event("ReadFailed", 2, "0x2", INFO, None, None, {"file": file, "error": 2})


class CServiceTest(ExampleTest):
    def test_events_of_every_round(self):
        [line], events = self.recorded("ExampleC", ["L4K1", "L3K1"], ARGS.c_service, "--rounds", "3",
                                       program=ARGS.c_service)
        expected = []
        for number in range(3):
            celsius = [18.5 + 0.25 * number + 2 * room for room in range(4)]
            expected.append(Event("Round", 4, "0x1", START, number, number - 1 if number > 0 else None, {}))
            expected += [Event("Measured", 4, "0x1", INFO, number, None,
                               {"room": room, "flags": hex(0x100 << room), "celsius": celsius[room]}) for room in range(4)]
            if number > 0:
                expected.append(Event("TooWarm", 3, "0x1", INFO, number, None,
                                      {"building": "Nordflügel", "range": {"least": celsius[0], "greatest": celsius[3]},
                                       "rooms": celsius}))
            expected.append(Event("Round", 4, "0x1", STOP, number, None, {}))
        self.assertEqual(with_numbered_activities(as_events(events)), expected)
        self.check_counted(line, events)


class Cxx17ServiceTest(ExampleTest):
    def test_events_of_every_order(self):
        [line], events = self.recorded("ExampleOrders", ["L4K1", "L2K1"], ARGS.cxx17_service, "--orders", "3",
                                       program=ARGS.cxx17_service)
        expected = []
        for number in range(3):
            expected.append(Event("Order", 4, "0x1", START, number, None,
                                  {"number": number, "customer": "123e4567-e89b-12d3-a456-426614174000",
                                   "due": f"1970-01-0{1 + number}T00:00:00Z",
                                   "items": [{"name": "bolt", "pieces": number}, {"name": "nut", "pieces": 2}]}))
            if number % 2 == 1:
                expected.append(Event("PrintFailed", 2, "0x1", INFO, number, None,
                                      {"printer": f"lp{number}", "error": 2}))
            expected.append(Event("Order", 4, "0x1", STOP, number, None, {}))
        self.assertEqual(with_numbered_activities(as_events(events)), expected)
        self.check_counted(line, events)


class LoggerBridgeTest(ExampleTest):
    # The events that ten log lines write, by level.
    LINES = {
        "INFORMATION": [{"category": "http", "message": "done", "request": n, "path": "/index.html"} for n in (0, 5)],
        "VERBOSE": [{"category": "cache", "message": "asked", "request": n, "hit": n > 5} for n in (1, 6)],
        "WARNING": 2 * [{"category": "disk", "message": "nearly full", "percent": 97.5, "disk": "sda"}],
        "ERROR": 2 * [{"category": "database", "message": "größer als erlaubt", "error": -27}],
        "CRITICAL_ERROR": 2 * [{"category": "main", "message": "giving up"}],
    }

    def test_each_level_has_a_tracepoint(self):
        for name, payloads in self.LINES.items():
            with self.subTest(name):
                printed, events = self.recorded("ExampleLogger", [f"L{LEVELS[name]}K1"],
                                                ARGS.logger_bridge, "--lines", "10", exports=False)
                self.assertEqual(with_numbered_activities(as_events(events)),
                                 [Event("Log", LEVELS[name], "0x1", INFO, 0, None, payload) for payload in payloads])
                # The types are compared, too, because the comparison above would accept True for 1.
                self.assertEqual([[type(value) for value in event["payload"].values()] for event in events],
                                 [[type(value) for value in payload.values()] for payload in payloads])
                # With rings, the number that the example prints also counts events that it wrote before it knew which
                # tracepoints are selected.
                if not transport.RINGS:
                    self.check_counted(printed[-1], events)

    def test_all_levels_in_the_order_of_the_lines(self):
        printed, events = self.recorded("ExampleLogger", [f"L{level}K1" for level in LEVELS.values()],
                                        ARGS.logger_bridge, "--lines", "100")
        self.assertEqual([event["level"] for event in events], 20 * [4, 5, 3, 2, 1])
        self.assertEqual([line.split(" ")[1] for line in printed[:-1]],
                         [event["payload"]["category"] + ":" for event in events])
        self.check_counted(printed[-1], events)


@unittest.skipUnless(ARGS.spdlog_service.is_file(), "the example needs libspdlog-dev, and a build without sanitizers")
class SpdlogServiceTest(ExampleTest):
    SPDLOG_LEVELS = [5, 5, 4, 3, 2, 1]

    def check_lines(self, events, numbers, lines):
        source = (ARGS.source / "examples/spdlog_service.cc").read_text(encoding="utf-8").splitlines()
        [where] = [n for n, line in enumerate(source, 1) if "SPDLOG_LOGGER_CALL" in line]
        for event in events:
            self.assertTrue(event["payload"].pop("file").endswith("examples/spdlog_service.cc"), event)
        expected = [Event("shop", self.SPDLOG_LEVELS[n % 6], "0x1", INFO, 0, None,
                          {"message": f"line {n} of {lines}", "logger": "shop", "line": where, "function": "main"})
                    for n in numbers]
        self.assertEqual(with_numbered_activities(as_events(events)), expected)

    def test_lines_of_all_levels(self):
        printed, events = self.recorded("ExampleSpdlog", [f"L{level}K1" for level in LEVELS.values()],
                                        ARGS.spdlog_service, "--lines", "12", exports=False)
        self.check_lines(events, range(12), 12)
        self.check_counted(printed[-1], events)

    def test_lines_of_selected_levels(self):
        _, events = self.recorded("ExampleSpdlog", ["L2K1", "L5K1"], ARGS.spdlog_service, "--lines", "12", exports=False)
        self.check_lines(events, [0, 1, 4, 6, 7, 10], 12)


class PluginTest(ExampleTest):
    def test_events_of_every_round(self):
        printed, events = self.recorded("ExamplePlugin", ["L4K1"], ARGS.plugin_host, "--rounds", "20", ARGS.plugin,
                                        program=ARGS.plugin)
        self.assertEqual(printed, [f"round {n}: {what}" for n in range(20) for what in ("loaded; registered", "unloaded")])
        self.assertEqual(as_events(events), [Event("WorkDone", 4, "0x1", INFO, None, None, {"round": n, "step": step})
                                             for n in range(20) for step in range(3)])

    def test_leaves_neither_tracepoint_nor_descriptor_nor_code_behind(self):
        with subprocess.Popen([ARGS.plugin_host, "--step", "--rounds", "3", ARGS.plugin], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as host:
            try:
                for number in range(3):
                    self.assertEqual(host.stdout.readline(), f"round {number}: loaded; registered\n")
                    self.assertTrue(transport.RINGS or self.is_registered())
                    # With rings, the test finds the plugin by the name of its thread, which the thread sets after its
                    # start.
                    self.assertTrue(became_true(lambda: self.traces_of_plugin(host.pid) == (True, True)))
                    print(file=host.stdin, flush=True)
                    self.assertEqual(host.stdout.readline(), f"round {number}: unloaded\n")
                    self.assertEqual(self.traces_of_plugin(host.pid), (False, False))
                    # The kernel deletes the tracepoint of the plugin a moment later.
                    self.assertTrue(transport.RINGS or became_true(lambda: not self.is_registered()))
                    print(file=host.stdin, flush=True)
            finally:
                host.stdin.close()
        self.assertEqual(host.returncode, 0)

    @staticmethod
    def is_registered():
        return "ExamplePlugin_L4K1" in STATUS.read_text()

    @staticmethod
    def traces_of_plugin(pid):
        """Returns two booleans: whether the process has user_events open (with rings: has the library's thread), and
        whether it maps the plugin."""
        process = pathlib.Path("/proc") / str(pid)
        if transport.RINGS:
            threads = [(task / "comm").read_text().strip() for task in (process / "task").iterdir()]
            is_connected = "eventheader" in threads
        else:
            is_connected = any("user_events_data" in os.readlink(entry) for entry in (process / "fd").iterdir())
        return is_connected, str(ARGS.plugin) in (process / "maps").read_text()


class HttpServiceTest(ExampleTest):
    TRACEPOINTS = ("L4K1", "L4K2")

    def test_each_request_is_an_activity_of_its_callers_trace(self):
        [_, *lines, last], events = self.recorded("ExampleHttp", self.TRACEPOINTS,
                                                  ARGS.http_service, "--requests", "40", "--threads", "4",
                                                  program=ARGS.http_service)
        self.check_counted(last, events)
        requests = requests_of(events)
        self.assertEqual(len(lines), 40)
        self.assertEqual(len(requests), 40)
        for line in lines:
            path, status, traceparent = line.split(" ")
            self.check_request(requests[traceparent.split("-")[1]], path, int(status), traceparent)

    def test_caller_of_another_make(self):
        traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
        answer, requests = self.asked("/items/seven", traceparent)
        self.check_request(requests["4bf92f3577b34da6a3ce929d0e0e4736"], "/items/seven", 200, traceparent)
        span = requests["4bf92f3577b34da6a3ce929d0e0e4736"][0]["payload"]["span_id"]
        self.assertIn(f"traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-{span}-00", answer)

    def test_traceparent_out_of_form_begins_a_trace(self):
        answer, requests = self.asked("/", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01")
        [(trace, events)] = requests.items()
        self.assertNotEqual(trace, "4bf92f3577b34da6a3ce929d0e0e4736")
        span = events[0]["payload"]["span_id"]
        self.assertIn(f"traceparent: 00-{trace}-{span}-01", answer)
        self.check_request(events, "/", 404, f"00-{trace}-{16 * '0'}-01")

    def asked(self, path, traceparent):
        """Sends one request to a service that was started before the recorder. Returns the lines of the answer, and the
        events."""
        request = f"GET {path} HTTP/1.1\\r\\nTraceparent: {traceparent}\\r\\n\\r\\n"
        # With rings, the request must wait until the service has connected, which takes milliseconds.
        wait = 'until grep -q " 03 .*$EVENTHEADER_SOCKET" /proc/net/unix; do sleep 0.01; done; sleep 0.2; ' if transport.RINGS else ""
        with subprocess.Popen([ARGS.http_service], stdout=subprocess.PIPE, text=True) as service:
            port = re.search(r":(\d+)/", service.stdout.readline()).group(1)
            try:
                lines, events = self.recorded(
                    "ExampleHttp", self.TRACEPOINTS,
                    "bash", "-c", f"{wait}exec 3<>/dev/tcp/127.0.0.1/{port}; printf '{request}' >&3; cat <&3", exports=False)
            finally:
                service.send_signal(signal.SIGTERM)
            self.check_counted(service.stdout.read().strip(), events)
        return lines, requests_of(events)

    def check_request(self, events, path, status, traceparent):
        """Checks `events`, which the service and its backend wrote for one request."""
        _, trace, parent, _ = traceparent.split("-")
        request = events[0]["activityId"]
        span = events[0]["payload"]["span_id"]
        seconds = next(event["payload"]["seconds"] for event in events if event["name"] == "RequestDone")
        expected = [Event("RequestStart", 4, "0x1", START, request, None,
                          {"path": path, "trace_id": trace, "span_id": span, "parent_span_id": parent},
                          {"TraceId": trace, "SpanId": span})]
        if status == 200:
            backend = events[1]["activityId"]
            backend_span = events[1]["payload"]["span_id"]
            expected += [Event("BackendStart", 4, "0x2", START, backend, request,
                               {"item": path.removeprefix("/items/"), "trace_id": trace, "span_id": backend_span,
                                "parent_span_id": span}, {"TraceId": trace, "SpanId": backend_span}),
                         Event("BackendStop", 4, "0x2", STOP, backend, None, {})]
            self.assertEqual(len({request, backend, None}), 3)
            self.assertEqual(len({parent, span, backend_span}), 3)
        expected += [Event("RequestDone", 4, "0x1", INFO, request, None,
                           {"path": path, "status": status, "seconds": seconds}),
                     Event("RequestStop", 4, "0x1", STOP, request, None, {})]
        self.assertEqual(as_events(events), expected)
        self.assertEqual(len({event["tid"] for event in events}), 1)
        # The service has measured `seconds` with another clock: from before the first event until after the last event before
        # RequestDone.
        inside = (events[-3]["timestamp"] - events[0]["timestamp"]) / 1e9
        self.assertTrue(0.99 * inside < seconds < 120, f"RequestDone states {seconds} s, but its events are {inside} s apart")


def requests_of(events):
    """Returns the events of each request, by trace id: those of the activity that has the id, and of its children."""
    trace_of = {event["activityId"]: event["payload"]["trace_id"] for event in events if event["opcode"] == START}
    requests = collections.defaultdict(list)
    for event in events:
        requests[trace_of[event["activityId"]]].append(event)
    return requests


def became_true(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


if __name__ == "__main__":
    script.run_cases()
