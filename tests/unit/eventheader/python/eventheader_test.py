#!/usr/bin/python3
"""Tests the Python module eventheader. AnywhereTest runs everywhere. RecordedTest records the events of service.py with
the program nettrace as $NETTRACE: it needs root and a kernel with user_events, or EVENTHEADER_TRANSPORT=ring."""

import asyncio
import collections
import errno
import json
import logging
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

from support import libraries
from support import script

ARGS = script.options(__doc__, "library")
try:
    import eventheader
    import service
except ImportError as error:
    def skip_or_fail(failure=error):
        libraries.need_own_architecture(ARGS.library)
        raise failure
    script.main(skip_or_fail)
EXAMPLE = pathlib.Path(__file__).resolve().parents[4] / "examples/python_service.py"
SERVICE = pathlib.Path(__file__).with_name("service.py")
class Touchy:
    """A value that must not be converted to text: str() of it fails the test."""

    def __str__(self):
        raise AssertionError("the module converted a value of a disabled event to text")


class AnywhereTest(unittest.TestCase):
    def setUp(self):
        self.provider = eventheader.Provider("Test_Anywhere")

    def check_mistake(self, error, text, function, *arguments, **keywords):
        with self.assertRaisesRegex(error, text):
            function(*arguments, **keywords)

    def test_invalid_providers_are_refused(self):
        for name in ("", "no name", "1st", "größer", "a\0b"):
            self.check_mistake(ValueError, "not valid; use ", eventheader.Provider, name)
        self.check_mistake(ValueError, "not valid; use ", eventheader.Provider, "Good", "Upper")
        self.check_mistake(TypeError, "not a str", eventheader.Provider, b"bytes")
        self.check_mistake(ValueError, "at most 255 bytes", eventheader.Provider("x" * 251).event, "E")

    def test_invalid_events_are_refused(self):
        for name in ("", "a;b", "a\0b"):
            self.check_mistake(ValueError, "must not be empty or contain", self.provider.event, name)
        self.check_mistake(ValueError, "too long", self.provider.event, "ü" * 513)
        self.check_mistake(TypeError, "not a str", self.provider.event, 1)
        for level in (0, 256, -1):
            self.check_mistake(ValueError, "level.*use 1 to 255", self.provider.event, "E", level=level)
        self.check_mistake(TypeError, "level.*not an integer", self.provider.event, "E", level="4")
        self.check_mistake(ValueError, "keyword.*out of range", self.provider.event, "E", keyword=2**64)
        self.check_mistake(ValueError, "keyword.*out of range", eventheader.Handler, self.provider, keyword=-1)
        self.check_mistake(ValueError, "opcode.*out of range", self.provider.event, "E", opcode=256)
        self.check_mistake(ValueError, "16 bytes", eventheader.Activity, b"short")
        self.provider.event("E", level=255, keyword=2**64 - 1, opcode=255)

    def test_sixty_fifth_tracepoint_is_refused(self):
        for keyword in range(64):
            self.provider.event("E", keyword=keyword)
        self.provider.event("Other", keyword=63)
        self.check_mistake(ValueError, "at most 64 sets", self.provider.event, "E", keyword=64)

    def test_status_is_that_of_the_events(self):
        self.assertEqual(self.provider.status, errno.ENOTCONN)
        self.assertIn("not registered: create", self.provider.status_text)
        event = self.provider.event("E")
        self.assertEqual((self.provider.status, self.provider.retry()), (0, 0))
        self.assertFalse(event.enabled)
        self.assertIn("ring", eventheader.describe_transport())
        eventheader.poll_transport()

    def test_disabled_event_takes_no_value(self):
        event = self.provider.event("E")
        self.assertIs(event(value=Touchy()), False)
        self.assertEqual(self.provider.counters, (0, 0, 0, 0, 0))

    def test_disabled_event_does_no_system_call(self):
        # A forbidden system call makes the kernel kill the calling thread. The process ends with that thread only if it
        # has no other, so the library must not start its helper thread.
        done = subprocess.run([sys.executable, SERVICE, "disabled"], env={**os.environ, "EVENTHEADER_THREAD": "0"},
                              capture_output=True, timeout=60, check=False)
        if done.returncode == script.EXIT_SKIPPED:
            self.skipTest("this system has no seccomp")
        self.assertEqual((done.stdout, done.stderr, done.returncode), (b"done", b"", -signal.SIGKILL))

    def test_names_and_types_without_end_do_not_fill_the_memory(self):
        cache = {}
        writer = eventheader._Writer(None, b"E", 0, cache)
        for number in range(2500):
            kind = type(f"Kind{number}", (), {})
            prepared, data = writer.encode({f"field{number}": kind()})
            self.assertEqual((prepared.is_valid, data[2:9]), (True, b"<__main"))
        self.assertLessEqual(len(cache), 1000)
        self.assertLessEqual(len(eventheader._put_by_type), 1000)

    def test_handler_formats_nothing_while_disabled(self):
        handler = eventheader.Handler("Test_Handler")
        logger = logging.Logger("shop")
        logger.addHandler(handler)
        logger.error(Touchy())
        self.assertGreater(handler.wanted_level(), logging.CRITICAL)
        handler.update_level(logger, logging.ERROR)
        self.assertEqual(logger.level, logging.ERROR)
        handler.emit(logging.makeLogRecord({"levelno": logging.ERROR, "msg": Touchy()}))
        self.assertEqual(handler.provider.counters, (0, 0, 0, 0, 0))

    def test_activity_is_that_of_the_context(self):
        self.assertIsNone(eventheader.current_activity())
        seen = []
        with eventheader.Activity() as outer:
            with eventheader.Activity() as inner:
                self.assertIs(eventheader.current_activity(), inner)
                self.assertEqual((inner.related, outer.related), (outer.id, None))
                thread = threading.Thread(target=lambda: seen.append(eventheader.current_activity()))
                thread.start()
                thread.join()
            self.assertIs(eventheader.current_activity(), outer)
        self.assertIsNone(eventheader.current_activity())
        self.assertEqual(seen, [None])
        self.assertNotEqual(inner.id, outer.id)

    def test_tasks_share_an_activity_without_mixing(self):
        shared = eventheader.Activity()

        async def work(number):
            with shared:
                await asyncio.sleep(0.001 * (3 - number))
                with eventheader.Activity() as own:
                    await asyncio.sleep(0.001 * number)
                    self.assertIs(eventheader.current_activity(), own)
                self.assertIs(eventheader.current_activity(), shared)
            self.assertIsNone(eventheader.current_activity())

        async def all_of_them():
            await asyncio.gather(*(work(number) for number in range(4)))
        asyncio.run(all_of_them())

    def test_unused_provider_is_unregistered(self):
        for _ in range(100):
            for keyword in range(64):
                self.assertIsNotNone(eventheader.Provider("Test_Many").event("E", keyword=keyword))


    def test_example_runs_to_its_end(self):
        for arguments, status, text in ((["--requests", "4"], 0, r"^\d+ events written, 0 refused, 0 failed; registered$"),
                                        (["--help"], 0, "^usage: python_service.py"), (["--no-such"], 2, "^usage: python_service.py")):
            done = subprocess.run([sys.executable, EXAMPLE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  timeout=60, check=False)
            self.assertEqual(done.returncode, status, done.stdout)
            self.assertRegex(done.stdout, text)


class RecordedTest(unittest.TestCase):
    def recorded(self, *command, provider=service.PROVIDER, levels=(4,)):
        """Returns the events of a program, and what it printed."""
        with tempfile.TemporaryDirectory(prefix="python-") as folder:
            trace = f"{folder}/trace.nettrace"
            selectors = [word for level in levels for word in ("-e", f"{provider}_L{level}K1")]
            done = subprocess.run([os.environ["NETTRACE"], "record", "-o", trace, *selectors, "--", sys.executable, *command],
                                  env={**os.environ, "EVENTHEADER_SOCKET": f"{folder}/events"}, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            subprocess.run([os.environ["NETTRACE"], "verify", "--strict", trace], check=True)
            dump = subprocess.run([os.environ["NETTRACE"], "dump", "--json", trace], stdout=subprocess.PIPE, text=True, check=True)
        self.assertIn(" 0 lost", done.stderr)
        return [json.loads(line) for line in dump.stdout.splitlines()], done.stdout

    def recorded_service(self, name, **options):
        """Returns the events of a service of service.py, and its counters."""
        events, printed = self.recorded(SERVICE, name, **options)
        counters = eventheader.Counters(*map(int, printed.split()))
        self.assertEqual((counters.failed, counters.last_error), (0, 0))
        return events, counters

    def test_values_arrive_with_their_types(self):
        events, counters = self.recorded_service("values")
        payloads = [event["payload"] for event in events]
        self.assertEqual({event["name"] for event in events}, {"Values"})
        self.assertEqual(payloads[0], service.expected(service.TYPES))
        self.assertEqual(payloads[1], service.expected(service.ODD) | service.RENAMED)
        self.assertEqual(payloads[2:], [{}, {"last": 1}])
        # One of the refused events has too many fields. The others are too large.
        self.assertEqual(counters, (4, len(service.REFUSED) + 1, 1, 0, 0))

    def test_lines_of_each_level_arrive(self):
        events, counters = self.recorded_service("lines", levels=range(1, 6))
        self.assertEqual(counters[:3], (len(events), 0, 0))
        numbered, others = events[:8], [event["payload"] for event in events[8:]]
        source = SERVICE.read_text().splitlines()
        for number, (event, level) in enumerate(zip(numbered, (5, 5, 4, 4, 3, 2, 1, 1))):
            self.assertEqual((event["name"], event["level"], event["keywords"]), ("shop.cart", level, "0x1"))
            payload = event["payload"]
            self.assertIn('"line %d"', source[payload.pop("lineno") - 1])
            self.assertEqual(payload, {"message": f"line {number}", "logger": "shop.cart", "pathname": str(SERVICE),
                                       "funcName": "lines", "user": "ann", "extra_logger": "other", "sizes": [1, 2]})
        self.assertEqual(others[0]["message"], "failed")
        self.assertTrue(others[0]["exc_text"].startswith("Traceback ") and others[0]["exc_text"].endswith("\nKeyError: 'lost'"))
        self.assertEqual(others[1]["message"], "%d")
        self.assertRegex(others[1]["format_error"], "^TypeError: %d format")
        self.assertEqual((others[2]["message"], others[2]["format_error"]), ("%s", "ValueError: no text"))
        self.assertEqual((others[3]["message"], others[3]["message_bytes"]), ("ü" * 2048, 10000))
        self.assertEqual((others[4]["message"], others[4]["extra_dropped"], "a" in others[4]), ("large", 1, False))
        self.assertEqual((others[5]["a_b"], others[5]["b"]), ("y" * 1024, "<Unprintable>"))
        self.assertEqual((others[6]["message"], others[6]["threadName"]), ("by a queue", "MainThread"))
        self.assertEqual((others[7]["message"], "threadName" in others[7]), ("no thread", False))
        self.assertEqual((events[-1]["name"], others[8]["message"], len(others)), ("Log", "no logger", 9))

    def test_threads_write_at_the_same_time(self):
        events, counters = self.recorded_service("threads")
        self.assertEqual(counters.written, service.THREADS * service.EVENTS)
        numbers = collections.defaultdict(list)
        for event in events:
            payload = event["payload"]
            number = payload["number"]
            self.assertEqual(payload, {"thread": payload["thread"], "number": number, f"f{number % 7}": number})
            self.assertEqual(event["activityId"].replace("-", ""), f"{payload['thread'] + 1:02x}" * 16)
            numbers[payload["thread"]].append(number)
        self.assertEqual(numbers, {thread: list(range(service.EVENTS)) for thread in range(service.THREADS)})

    def test_children_of_a_fork_write(self):
        events, _ = self.recorded_service("forks")
        numbers, pids = collections.defaultdict(list), collections.defaultdict(set)
        for event in events:
            payload = event["payload"]
            pids[payload["child"]].add(event["pid"])
            if payload["number"] >= 0:
                numbers[payload["child"]].append(payload["number"])
        self.assertEqual(numbers, {child: list(range(service.EVENTS)) for child in range(service.CHILDREN)})
        self.assertEqual(len(set.union(*pids.values())), service.CHILDREN)

    def test_events_have_the_activity_of_their_block(self):
        events, _ = self.recorded_service("activities")
        one, two = ("00000000-0000-0000-0000-00000000000" + digit for digit in "12")
        self.assertEqual([(event["name"], event["opcode"], event["activityId"], event["relatedActivityId"]) for event in events],
                         [("Start", 1, two, one), ("Stop", 2, two, None), ("Stop", 2, one, None), ("Stop", 2, None, None)])

    def test_example_is_recorded(self):
        events, _ = self.recorded(EXAMPLE, "--requests", "5", provider="ExamplePython", levels=(2, 4))
        expected = []
        for number in range(5):
            expected.append(("Request", 4, 1, {"path": f"/items/{number}", "number": number}))
            if number % 3 == 0:
                expected.append(("shop", 2, 0, {"message": f"no item {number}", "logger": "shop", "funcName": "handle", "status": 404}))
            expected.append(("Request", 4, 2, {"status": 200 if number % 3 else 404, "sizes": [100 * number, 7]}))
        for event in events:
            event["payload"].pop("pathname", None)
            event["payload"].pop("lineno", None)
        self.assertEqual([(event["name"], event["level"], event["opcode"], event["payload"]) for event in events], expected)
        self.assertEqual(len({event["activityId"] for event in events}), 5)


if __name__ == "__main__":
    script.run_cases()
