#!/usr/bin/python3
"""Tests that every example runs to its end while its events are not enabled, also on a kernel without user_events, and
prints what its help says."""

import http.client
import os
import re
import signal
import subprocess
import tempfile
import unittest

from support import script

ARGS = script.options(__doc__, *("example-" + name for name in (
    "service", "c-service", "cxx17-service", "http-service", "logger-bridge", "plugin-host", "plugin", "nettrace-read", "nettrace-write",
    "spdlog-service")))

# The caller's trace context, from the example in the W3C recommendation.
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE_ID}-00f067aa0ba902b7-01"


def run(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)


class ExampleTest(unittest.TestCase):
    def printed(self, *command):
        done = run(*command)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout.splitlines()

    def check_usage(self, program):
        usage = "usage: " + os.path.basename(program)
        self.assertTrue(self.printed(program, "--help")[0].startswith(usage))
        done = run(program, "--no-such-option")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertTrue(done.stderr.startswith(usage), done.stderr)

    def check_no_event_failed(self, line):
        self.assertRegex(line, r"^\d+ events written,( 0 refused,)? 0 failed; .")


class ServiceTest(ExampleTest):
    def test_runs_to_its_end(self):
        [line] = self.printed(ARGS.example_service, "--events", "9", "--threads", "2")
        self.assertRegex(line, r"^\d+ events written, 0 failed")


class NetTraceTest(ExampleTest):
    def test_reader_reads_what_the_writer_wrote(self):
        with tempfile.TemporaryDirectory(prefix="examples-") as folder:
            file = os.path.join(folder, "shop.nettrace")
            self.assertEqual(self.printed(ARGS.example_nettrace_write, file), [])
            counts = [line.split() for line in self.printed(ARGS.example_nettrace_read, file)]
        self.assertEqual(counts, [["10", "Example.Shop", "Request"], ["0", "lost"]])


class CServiceTest(ExampleTest):
    def test_runs_to_its_end(self):
        [line] = self.printed(ARGS.example_c_service, "--rounds", "2")
        self.check_no_event_failed(line)


class Cxx17ServiceTest(ExampleTest):
    def test_runs_to_its_end(self):
        [line] = self.printed(ARGS.example_cxx17_service, "--orders", "2")
        self.check_no_event_failed(line)


class LoggerBridgeTest(ExampleTest):
    def test_prints_every_line_whether_enabled_or_not(self):
        *lines, last = self.printed(ARGS.example_logger_bridge, "--lines", "6")
        levels = [line.split(" ")[0] for line in lines]
        self.assertEqual(levels, ["INFO", "DEBUG", "WARNING", "ERROR", "FATAL", "INFO"])
        self.check_no_event_failed(last)

    def test_runs_with_a_provider_name_out_of_form(self):
        last = self.printed(ARGS.example_logger_bridge, "--provider", "not a name")[-1]
        self.assertIn("provider name, group or level is not valid", last)


@unittest.skipUnless(ARGS.example_spdlog_service.is_file(), "the example needs libspdlog-dev, and a build without sanitizers")
class SpdlogServiceTest(ExampleTest):
    def test_prints_lines_from_the_level_of_the_console(self):
        *lines, last = self.printed(ARGS.example_spdlog_service, "--lines", "8")
        self.assertEqual(lines, [f"{level} line {n} of 8" for n, level in enumerate(["info", "warning", "error", "critical"], 2)])
        self.check_no_event_failed(last)

    def test_has_help_and_refuses_unknown_arguments(self):
        self.check_usage(ARGS.example_spdlog_service)


class PluginTest(ExampleTest):
    def test_is_unloaded_in_every_round(self):
        lines = self.printed(ARGS.example_plugin_host, "--rounds", "3", ARGS.example_plugin)
        self.assertEqual([line.split(";")[0] for line in lines],
                         [f"round {n}: {what}" for n in range(3) for what in ("loaded", "unloaded")])

    def test_missing_plugin_is_named(self):
        done = run(ARGS.example_plugin_host, "./no-such-plugin.so")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("no-such-plugin.so", done.stderr)


class HttpServiceTest(ExampleTest):
    def test_answers_its_own_requests(self):
        where, *lines, last = self.printed(ARGS.example_http_service, "--requests", "9", "--threads", "3")
        self.assertRegex(where, r"^http://127\.0\.0\.1:\d+/$")
        answers = sorted(tuple(line.split(" ")[:2]) for line in lines)
        self.assertEqual(answers, sorted([(f"/items/{n}", "200") for n in (0, 1, 2, 4, 5, 6, 8)]
                                         + [(f"/nothing/{n}", "404") for n in (3, 7)]))
        self.assertEqual(len({line.split(" ")[2] for line in lines}), 9)
        self.check_no_event_failed(last)

    def test_serves_others_until_it_is_terminated(self):
        with subprocess.Popen([ARGS.example_http_service], stdout=subprocess.PIPE, text=True) as service:
            try:
                port = int(re.search(r":(\d+)/", service.stdout.readline()).group(1))
                self.check_answer(port, "GET", "/items/seven", 200, "this is seven\n")
                self.check_answer(port, "GET", "/", 404, "no such thing\n")
                self.check_answer(port, "POST", "/items/seven", 405, "only GET\n")
                self.check_own_trace_where_none_is_given(port)
                self.check_port_in_use(port)
            finally:
                service.send_signal(signal.SIGTERM)
            self.check_no_event_failed(service.stdout.read())
        self.assertEqual(service.returncode, 0)

    def check_answer(self, port, method, path, status, body):
        answer, text = request(port, method, path, {"TraceParent": TRACEPARENT})
        self.assertEqual((answer.status, text), (status, body))
        self.assertRegex(answer.getheader("traceparent"), f"^00-{TRACE_ID}-[0-9a-f]{{16}}-01$")
        self.assertNotEqual(answer.getheader("traceparent"), TRACEPARENT)

    def check_own_trace_where_none_is_given(self, port):
        for headers in ({}, {"traceparent": TRACEPARENT[:-1]}):
            answer, _ = request(port, "GET", "/items/1", headers)
            self.assertRegex(answer.getheader("traceparent"), "^00-[0-9a-f]{32}-[0-9a-f]{16}-01$")
            self.assertNotIn(TRACE_ID, answer.getheader("traceparent"))

    def check_port_in_use(self, port):
        done = run(ARGS.example_http_service, "--port", str(port))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, f"127.0.0.1:{port}: .*; try another --port\n$")


def request(port, method, path, headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    return answer, answer.read().decode()


class UsageTest(ExampleTest):
    def test_every_program_has_help_and_refuses_unknown_arguments(self):
        for name in ("service", "c_service", "cxx17_service", "http_service", "logger_bridge", "plugin_host"):
            program = getattr(ARGS, "example_" + name)
            with self.subTest(name):
                self.check_usage(program)


if __name__ == "__main__":
    script.run_cases()
