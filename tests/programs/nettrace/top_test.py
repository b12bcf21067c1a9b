#!/usr/bin/python3
"""Tests that the numbers of `nettrace top` are those of `nettrace dump` and `info`: as JSON, as a table and on a
terminal. Also tests that it restores the terminal, however it ends."""

import collections
import datetime
import fcntl
import json
import math
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unicodedata
import unittest

from support import script

ARGS = script.options(__doc__, "nettrace", "generate", "activities")
MAX_ERROR = 1 / 64
DEADLINE = 50  # Time limit in s for steps that take no time on an idle machine.
VIEWS = {"byProvider": ("provider",), "byEvent": ("provider", "name"), "byProcess": ("pid",), "byThread": ("pid", "tid", "thread"),
         "byLevel": ("level",)}
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


def setUpModule():
    holder = tempfile.TemporaryDirectory(prefix="nettrace-top-")
    unittest.addModuleCleanup(holder.cleanup)
    global FOLDER, TRACE
    FOLDER = pathlib.Path(holder.name)
    TRACE = FOLDER / "activities.nettrace"
    subprocess.run([ARGS.activities, TRACE, "1", "3000"], check=True)


def top(*arguments, expect=0, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    ran = subprocess.run([ARGS.nettrace, "top", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         check=False, **options)
    assert ran.returncode == expect, f"{arguments}: exit status {ran.returncode} instead of {expect}: {ran.stderr}"
    return ran.stdout


def dump(*arguments):
    """Returns the events of a file that may be cut."""
    ran = subprocess.run([ARGS.nettrace, "dump", "--json", *map(str, arguments)], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True, check=False)
    return [json.loads(line) for line in ran.stdout.splitlines()]


def info(file):
    return json.loads(subprocess.run([ARGS.nettrace, "info", "--json", file], stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL, check=False).stdout)


def key_of(event, fields):
    """Returns the key of the row for an event. A thread's name distinguishes threads only if they have no id."""
    return tuple(None if field == "thread" and event["tid"] is not None else event[field] or None for field in fields)


def durations(events, ticks_per_second):
    """Returns the events that start an activity which stops, each with the duration of the activity in ns."""
    running, result = collections.defaultdict(list), []
    for event in events:
        if event["activityId"] is None:
            continue
        if event["opcode"] == 1:
            running[event["activityId"]].append(event)
        elif event["opcode"] == 2 and running[event["activityId"]]:
            start = running[event["activityId"]].pop()
            ticks = int(event["timestamp"]) - int(start["timestamp"])
            result.append((start, ticks * 10**9 / ticks_per_second))
    return result


class NumbersTest(unittest.TestCase):
    def check_durations(self, shown, expected):
        """Compares shown durations with `expected`, which is in ns."""
        self.assertEqual(shown["count"], len(expected))
        if not expected:
            self.assertEqual((shown["p50"], shown["p99"], shown["max"]), (None, None, None))
            return
        expected = sorted(expected)
        self.assertAlmostEqual(int(shown["max"]), expected[-1], delta=1 + expected[-1] * 1e-9)
        for percent in (50, 99):
            true = expected[math.ceil(len(expected) * percent / 100) - 1]
            self.assertAlmostEqual(int(shown[f"p{percent}"]), true, delta=2 + true * MAX_ERROR)

    def check(self, file, *options, expect=0):
        """Compares everything that is shown for a file."""
        shown, facts, events = json.loads(top("--json", *options, file, expect=expect)), info(file), dump(*options, file)
        took = durations(events, int(facts["ticksPerSecond"]))
        self.assertEqual(shown["events"], len(events))
        self.assertEqual(shown["lost"], facts["lost"])
        self.assertEqual(shown["complete"], facts["complete"])
        self.check_durations(shown["durations"], [duration for _, duration in took])
        if shown["seconds"]:
            self.assertAlmostEqual(shown["eventsPerSecond"], len(events) / shown["seconds"], delta=1e-6 * len(events) + 1e-6)
        for view, fields in VIEWS.items():
            with self.subTest(file=file.name, view=view):
                of_rows = collections.defaultdict(list)
                for row in shown[view]["rows"]:
                    of_rows[key_of(row, fields)].append(row)
                counted = collections.Counter(key_of(event, fields) for event in events)
                self.assertEqual({key: sum(row["events"] for row in rows) for key, rows in of_rows.items()
                                  if any(row["events"] for row in rows)}, counted)
                for key, rows in of_rows.items():
                    if len(rows) == 1:
                        self.check_durations(rows[0]["durations"],
                                             [duration for start, duration in took if key_of(start, fields) == key])
        for view in (*VIEWS, "byCpu"):
            self.check_sums(shown, view)
        return shown, events

    def check_sums(self, shown, view):
        rows = shown[view]["rows"] + [row for row in [shown[view]["others"]] if row]
        for key in ("events", "bytes"):
            self.assertEqual(sum(row[key] for row in rows), shown[key], view)
        self.assertEqual(sum(row["lost"] for row in rows) + shown[view]["lostUnknown"], shown["lost"], view)
        self.assertEqual(sum(row["durations"]["count"] for row in rows), shown["durations"]["count"])

    def test_numbers_match_dump_and_info(self):
        shown, events = self.check(TRACE)
        self.assertGreater(shown["durations"]["count"], 2000)
        self.assertEqual(shown["bytes"], 4 * len(events))
        self.assertEqual({row["cpu"]: row["events"] for row in shown["byCpu"]["rows"] if row["events"]},
                         collections.Counter(f"CPU {event['cpu']}" for event in events))
        self.assertEqual((shown["open"], shown["unmatched"], shown["forgotten"]), (0, 0, 0))

    def test_errors_and_levels_match_dump(self):
        shown, events = self.check(TRACE)
        errors = [event for event in events if event["level"] in (1, 2)]
        self.assertGreater(len(errors), 500)
        self.assertEqual(shown["errors"], len(errors))
        self.assertAlmostEqual(shown["errorsPerSecond"], len(errors) / shown["seconds"], delta=1e-3)
        for view, fields in VIEWS.items():
            counted = collections.Counter(key_of(event, fields) for event in errors)
            levels = collections.defaultdict(list)
            for event in events:
                if event["level"]:
                    levels[key_of(event, fields)].append(event["level"])
            for row in shown[view]["rows"]:
                key = key_of(row, fields)
                self.assertEqual((row["errors"], row["level"]), (counted[key], min(levels[key], default=0)), (view, key))
                self.assertAlmostEqual(row["errorsPerSecond"], counted[key] / shown["seconds"], delta=1e-3)
        by_event = {row["name"]: row["level"] for row in shown["byEvent"]["rows"]}
        self.assertEqual((by_event["SaveDone"], by_event["Query"], by_event["Request"]), (2, 3, 4))
        self.assertRegex(top("--once", TRACE), rf"^events \d+ \(.*/s\)  errors {len(errors)} \(")

    def test_last_minutes_match_dump(self):
        """Compares the durations of the last minute, and of the minute before it, with those of the events. A minute
        begins at a multiple of 5 s."""
        long = FOLDER / "minutes.nettrace"
        subprocess.run([ARGS.activities, long, "2", "55000"], check=True)
        shown, facts, events = json.loads(top("--json", long)), info(long), dump(long)
        self.assertGreater(shown["seconds"], 130)
        ticks, starts, stops = int(facts["ticksPerSecond"]), collections.defaultdict(list), []
        for event in events:
            if event["activityId"] is None:
                continue
            if event["opcode"] == 1:
                starts[event["activityId"]].append(event)
            elif starts[event["activityId"]]:
                stops.append((starts[event["activityId"]].pop(), event))
        step = {stop["time"]: int(datetime.datetime.fromisoformat(stop["time"][:19] + "+00:00").timestamp()) // 5
                for _, stop in stops}
        now = int(datetime.datetime.fromisoformat(shown["lastTime"][:19] + "+00:00").timestamp()) // 5
        for view, fields in (("byEvent", VIEWS["byEvent"]), ("byProcess", VIEWS["byProcess"]), (None, ())):
            took = collections.defaultdict(list)
            for start, stop in stops:
                if (age := now - step[stop["time"]]) < 24:
                    duration = (int(stop["timestamp"]) - int(start["timestamp"])) * 10**9 / ticks
                    took["lastMinute" if age < 12 else "minuteBefore", key_of(start, fields)].append(duration)
            for row in shown[view]["rows"] if view else [shown]:
                key = key_of(row, fields)
                for name in ("lastMinute", "minuteBefore"):
                    self.check_minute(row["durations"][name], sorted(took[name, key]))
                if took["lastMinute", key] and took["minuteBefore", key]:
                    self.assertGreater(len(took["minuteBefore", key]), 1000)
                    ratio = row["durations"]["lastMinute"]["p99"] / row["durations"]["minuteBefore"]["p99"]
                    self.assertAlmostEqual(row["durations"]["p99Ratio"], ratio, delta=1e-9)
                else:
                    self.assertIsNone(row["durations"]["p99Ratio"])

    def check_minute(self, shown, expected):
        self.assertEqual(shown["count"], len(expected))
        for percent in (50, 99):
            if not expected:
                self.assertIsNone(shown[f"p{percent}"])
                continue
            true = expected[math.ceil(len(expected) * percent / 100) - 1]
            self.assertAlmostEqual(shown[f"p{percent}"], true, delta=2 + true * MAX_ERROR)

    def test_sorts_by_the_new_columns(self):
        for column, key in (("errors", lambda row: -row["errorsPerSecond"]), ("level", lambda row: row["level"] or 99),
                            ("p99-minute", lambda row: -(row["durations"]["lastMinute"]["p99"] or 0)),
                            ("p50-minute", lambda row: -(row["durations"]["lastMinute"]["p50"] or 0)),
                            ("p99-before", lambda row: 0), ("p50-before", lambda row: 0), ("ratio", lambda row: 0)):
            rows = {row["name"]: key(row) for row in json.loads(top("--json", TRACE))["byEvent"]["rows"]}
            lines = top("--sort", column, TRACE).splitlines()[3:-1]
            keys = [rows[line.split()[0]] for line in lines if line.split()[0] in rows]
            self.assertGreater(len(keys), 5)
            self.assertEqual(keys, sorted(keys), column)

    def test_colors(self):
        for options, has_colors in (((), False), (("--color", "auto"), False), (("--color", "never"), False),
                                    (("--color", "always"), True)):
            text = top("--once", *options, TRACE)
            self.assertEqual("\x1b[31merror\x1b[0m" in text, has_colors, options)
            self.assertEqual("\x1b[33mwarning\x1b[0m" in text, has_colors, options)
            self.assertEqual("\x1b" in text, has_colors, options)
        self.assertEqual(re.sub("\x1b\\[[0-9;]*m", "", top("--once", "--color", "always", TRACE)), top("--once", TRACE))
        top("--color", "sometimes", TRACE, expect=2)

    def test_losses_match_the_account(self):
        lost = collections.Counter()
        for event in dump("--provider", "NetTrace.Collector", TRACE):
            lost[event["payload"]["Tracepoint"]] += event["payload"]["Count"]
        self.assertEqual(len(lost), 3)
        shown = json.loads(top("--json", TRACE))
        rows = {row["provider"]: row["lost"] for row in shown["byProvider"]["rows"]}
        self.assertEqual((rows["Shop"], rows["sched"]), (lost["user_events:Shop_L4K0"], lost["sched:sched_switch"]))
        self.assertEqual(shown["byProvider"]["lostUnknown"], lost[""])
        self.assertEqual(sum(row["lost"] for row in shown["byCpu"]["rows"]), lost.total())

    def test_random_traces(self):
        subprocess.run([ARGS.generate, FOLDER, "400", *map(str, range(1, 9))], check=True)
        for seed in range(1, 9):
            self.check(FOLDER / f"random-{seed}.nettrace")

    def test_filters_match_those_of_dump(self):
        shown, _ = self.check(TRACE, "--provider", "Shop", "--pid", "1200")
        self.assertEqual([row["pid"] for row in shown["byProcess"]["rows"]], [1200])
        self.assertGreater(shown["unmatched"], 0)

    def test_rows_beyond_the_maximum_are_merged(self):
        shown = json.loads(top("--json", "--max-rows", "2", TRACE))
        for view in (*VIEWS, "byCpu"):
            self.assertLessEqual(len(shown[view]["rows"]), 2)
            self.check_sums(shown, view)
        self.assertGreater(shown["byThread"]["others"]["rows"], 3)

    def test_cut_and_empty_files(self):
        data = TRACE.read_bytes()
        cut, empty, other = FOLDER / "cut.nettrace", FOLDER / "empty.nettrace", FOLDER / "other.nettrace"
        cut.write_bytes(data[:len(data) * 2 // 3])
        self.check(cut, expect=1)
        # An empty file has no end, but also no damaged block.
        empty.write_bytes(b"")
        other.write_bytes(b"no trace at all, whatever it is")
        for file in (empty, other, FOLDER / "absent"):
            expected = subprocess.run([ARGS.nettrace, "dump", file], check=False, stderr=subprocess.PIPE, text=True)
            ran = subprocess.run([ARGS.nettrace, "top", "--once", file], check=False, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                 text=True)
            self.assertEqual((ran.returncode, ran.stderr), (expected.returncode, expected.stderr.replace(" dump:", " top:")))

    def test_compressed_files_and_pipes(self):
        expected = top("--json", TRACE)
        with open(TRACE, "rb") as file:
            self.assertEqual(top("--json", "-", stdin=file), expected)
        compressed = FOLDER / "activities.nettrace.zst"
        subprocess.run([ARGS.nettrace, "repair", TRACE, "-o", compressed], check=True, stderr=subprocess.DEVNULL)
        self.assertEqual(json.loads(top("--json", compressed))["byEvent"], json.loads(expected)["byEvent"])

    def test_without_a_terminal_it_prints_a_table(self):
        shown = json.loads(top("--json", TRACE))
        self.assertEqual(top(TRACE), top("--once", TRACE))
        lines = top("--by", "thread", "--sort", "events", TRACE).splitlines()
        self.assertRegex(lines[0], rf"^events {shown['events']} .* lost {shown['lost']}$")
        self.assertIn(f"activities {shown['durations']['count']} stopped", lines[1])
        rows = [re.fullmatch(r"(\d+) .* (\d+)((?: +\S+){12})", line) for line in lines[3:9]]
        self.assertEqual([int(row[2]) for row in rows], [row["events"] for row in shown["byThread"]["rows"]])
        self.assertEqual(lines[9], f"lost events that belong to no known row: {shown['lost']}")
        self.assertEqual(top("--by", "thread", "--sort", "events", "--reverse", TRACE).splitlines()[3:9], lines[8:2:-1])

    def test_after_a_time_it_ends(self):
        """Tests that `nettrace top --for` ends after this time although the writer of the pipe does not close it."""
        read, write = os.pipe()
        os.write(write, TRACE.read_bytes()[:60_000])
        try:
            shown = json.loads(top("--json", "--for", "3s", "-", stdin=read))
        finally:
            os.close(read)
            os.close(write)
        self.assertGreater(shown["events"], 100)
        self.assertFalse(shown["complete"])

    def test_following_ends_with_the_file_or_at_a_signal(self):
        growing = FOLDER / "never-ending.nettrace"
        growing.write_bytes(TRACE.read_bytes()[:60_000])
        for end in ("delete", "signal"):
            with subprocess.Popen([ARGS.nettrace, "top", "--json", "-f", growing], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE) as follower:
                with self.assertRaises(subprocess.TimeoutExpired):
                    follower.wait(1)
                if end == "delete":
                    os.rename(growing, FOLDER / "kept.nettrace")
                    (FOLDER / "kept.nettrace").unlink()
                    growing.write_bytes(TRACE.read_bytes()[:60_000])
                else:
                    follower.terminate()
                text = follower.communicate(timeout=DEADLINE)[0]
            self.assertEqual(follower.returncode, 1 if end == "delete" else 0)
            self.assertGreater(json.loads(text)["events"], 100)
        self.assertEqual(top("--json", "-f", TRACE), top("--json", TRACE))
        another = FOLDER / "another.nettrace"
        another.write_bytes(TRACE.read_bytes())
        for words in ((TRACE, another), ("-e", "a:b"), ("--session", "web")):
            top("-f", *words, expect=2)

    def test_wrong_usage(self):
        for words in ([], ["a", "-e", "b"], ["a", "--by", "color"], ["a", "--sort", "color"], ["a", "--color", "red"], ["a", "--interval", "1ms"],
                      ["a", "--for", "soon"], ["a", "--socket", "s"]):
            top(*words, expect=2)

    def test_a_missing_file_names_the_option_for_sessions(self):
        ran = subprocess.run([ARGS.nettrace, "top", "--once", "web"], check=False, cwd=FOLDER, capture_output=True, text=True)
        self.assertEqual((ran.returncode, ran.stdout), (2, ""))
        self.assertRegex(ran.stderr, "web: cannot be opened: No such file.*\n.*--session\n$")

    def test_shows_messages_of_the_recorder(self):
        ran = subprocess.run([ARGS.nettrace, "top", "--once", "--session", "web", "--socket", FOLDER / "no-socket"], check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))
        self.assertRegex(ran.stderr, r"^nettrace ctl tail: .*no-socket: [^\n]*\n$")


class Terminal:
    """`nettrace top` on a pseudo-terminal, with a screen that interprets the sequences that it writes."""

    def __init__(self, *arguments, stdin=None, rows=30, columns=150, term="xterm", no_color=False):
        self.size = rows, columns
        self.written, self.rest = b"", b""
        self.cells, self.is_shown = {}, False
        self.frame = {}  # Cells after the last complete frame.
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            if stdin is not None:
                os.dup2(stdin, 0)
            os.environ["TERM"] = term
            os.environ.pop("NO_COLOR", None)
            if no_color:
                os.environ["NO_COLOR"] = "1"
            os.read(1, 1)  # wait until the terminal has its size
            os.execv(ARGS.nettrace, [str(ARGS.nettrace), "top", *map(str, arguments)])
        self.set_size(rows, columns)
        self.before = termios.tcgetattr(self.master)
        self.send("\n")
        self.ended = None

    def set_size(self, rows, columns):
        self.size = rows, columns
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def send(self, keys):
        os.write(self.master, keys.encode())

    def read(self, seconds):
        """Waits up to `seconds` for output, and reads it. Returns False if the program has closed the terminal."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:  # EIO: the other end is closed
            data = b""
        self.written += data
        self.rest += data
        self._show()
        return bool(data)

    def _show(self):
        """Interprets whole sequences and characters of the output."""
        pattern = re.compile(rb"\x1b\[(\?\d+[hl])|\x1b\[([\d;]*)([A-Za-z])|([ -~]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}"
                             rb"|[\xf0-\xf4][\x80-\xbf]{3})|([\r\n])")
        at = 0
        while found := pattern.match(self.rest, at):
            at = found.end()
            if found[1] in (b"?1049h", b"?1049l"):
                self.is_shown = found[1] == b"?1049h"
            elif found[1] == b"?2026l":
                self.frame = dict(self.cells)
            elif found[3] == b"H":
                row, column = (int(number) for number in found[2].split(b";"))
                self.row, self.column = row - 1, column - 1
            elif found[3] == b"J":
                self.cells = {}
            elif found[3] == b"K":
                self.cells = {place: text for place, text in self.cells.items() if place[0] != self.row}
            elif found[3] not in (None, b"m"):
                raise AssertionError(f"the screen of this test does not know the sequence {found[0]}")
            elif found[4] and self.is_shown:
                text = found[4].decode()
                width = 2 if unicodedata.east_asian_width(text) in "WF" else 1
                if self.column + width > self.size[1]:
                    raise AssertionError(f"text beyond the right edge: row {self.row}, column {self.column}, {text!r}")
                self.cells[self.row, self.column] = text
                for i in range(1, width):
                    self.cells[self.row, self.column + i] = ""
                self.column += width
        self.rest = self.rest[at:]

    def lines(self):
        rows, columns = self.size
        return ["".join(self.frame.get((row, column), " ") for column in range(columns)).rstrip() for row in range(rows)]

    def wait(self, condition, what):
        """Waits until the screen meets the condition."""
        end = time.monotonic() + DEADLINE
        while not condition(self.lines()):
            if not self.read(0.2) or time.monotonic() > end:
                raise AssertionError(f"expected on the screen: {what}\n" + "\n".join(self.lines()) + repr(self.written[-300:]))
        return self.lines()

    def wait_for(self, pattern):
        return self.wait(lambda lines: any(re.search(pattern, line) for line in lines), pattern)

    def finish(self):
        """Waits until `nettrace top` ends; returns the exit code."""
        end = time.monotonic() + DEADLINE
        while self.read(0.2):
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
                raise AssertionError(f"nettrace top did not end within {DEADLINE} s:\n" + "\n".join(self.lines()))
        self.after = termios.tcgetattr(self.master)
        self.ended = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.ended

    def close(self):
        if self.ended is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)


class TerminalTest(unittest.TestCase):
    def start(self, *arguments, **options):
        terminal = Terminal(*arguments, **options)
        self.addCleanup(terminal.close)
        return terminal

    def check_end(self, terminal, expect=0):
        """Checks that the program ended with this code and restored the terminal. Returns what it wrote after that."""
        self.assertEqual(terminal.finish(), expect, terminal.written[-500:])
        self.assertEqual(terminal.after, terminal.before)
        self.assertEqual(terminal.written.count(ENTER), terminal.written.count(LEAVE))
        screen, after = terminal.written.rsplit(LEAVE, 1)
        for on, off in ((b"\x1b[?25l", b"\x1b[?25h"), (b"\x1b[?7l", b"\x1b[?7h")):
            self.assertEqual(screen.count(on), screen.count(off))
        return after.decode()

    def rows(self, lines):
        """Returns the numbers of the table's rows by their titles."""
        found = (re.fullmatch(r"[> ](\S.*?\S) +([a-z]+|-) +([\d.]+) +(\d+) +[\d.<]+ +\S+ +(\d+) +(\d+)(?: +\S+){8}", line)
                 for line in lines[4:-1])
        return {row[1]: (int(row[4]), int(row[5]), int(row[6])) for row in found if row}

    def expected(self, view, title):
        return {title(row): (row["events"], row["lost"], row["durations"]["count"])
                for row in json.loads(top("--json", TRACE))[view]["rows"]}

    def test_a_pipe_live_and_at_its_end(self):
        read, write = os.pipe()
        terminal = self.start("--interval", "100ms", "-", stdin=read)
        os.close(read)
        with open(write, "wb") as pipe:
            terminal.wait_for(r"standard input  waiting")
            data = TRACE.read_bytes()
            pipe.write(data[:len(data) // 2])
            pipe.flush()
            lines = terminal.wait_for(r"^.Request  Shop ")
            self.assertIn("  live ", lines[0])
            half = self.rows(lines)["Request  Shop"][0]
            pipe.write(data[len(data) // 2:])
        lines = terminal.wait_for(r"standard input  ended")
        self.assertLess(half, self.rows(lines)["Request  Shop"][0])
        facts = info(TRACE)
        self.assertRegex(lines[1], rf"^events {facts['events']} \(.*  lost {facts['lost']}$")
        shown, expected = self.rows(lines), self.expected("byEvent", lambda row: f"{row['name']}  {row['provider']}")
        hostile = [title for title in expected if "\x1b" in title]
        self.assertEqual(len(hostile), 1)
        expected[hostile[0].replace("\x1b", "\\u001b")] = expected.pop(hostile[0])
        self.assertEqual(shown, expected)

        terminal.send("t")
        lines = terminal.wait_for("^ THREAD ")
        self.assertEqual(self.rows(lines), self.expected(
            "byThread", lambda row: f"{row['tid']} {row['thread']}  {row['pid']} {row['process']}"))
        terminal.send("q")
        self.assertEqual(self.check_end(terminal), "")

    def test_keys(self):
        terminal = self.start(TRACE)
        terminal.wait_for("  ended")
        terminal.send("e/queryd\r")
        lines = terminal.wait_for("EVENT /queryd")
        self.assertEqual(list(self.rows(lines)), ["QueryDone  Database"])
        terminal.send("\r")
        lines = terminal.wait_for("^Last events of QueryDone  Database")
        text = subprocess.run([ARGS.nettrace, "dump", "--event", "QueryDone", TRACE], stdout=subprocess.PIPE, text=True, check=True)
        last = text.stdout.splitlines()[-24:]
        self.assertEqual([line.rstrip("~") for line in lines[4:-1] if line], [line[:149] for line in last])
        terminal.send("\x1b[C" * 3)
        terminal.wait(lambda shown: shown[4] == last[0][48:], "the lines, moved to the left")
        terminal.send("\x1b")
        terminal.wait_for("^ EVENT /queryd")
        terminal.send("\x1b")
        terminal.wait_for("^.SaveDone ")
        terminal.send("\x1b[C")  # sort by events instead of the rate
        lines = terminal.wait_for(" vEVENTS ")
        counts = [row[0] for row in self.rows(lines).values()]
        self.assertEqual(counts, sorted(counts, reverse=True))
        terminal.send("r")
        lines = terminal.wait_for(r" \^EVENTS ")
        self.assertEqual([row[0] for row in self.rows(lines).values()], sorted(counts))
        terminal.send(" ")
        terminal.wait_for("activities.nettrace  paused")
        terminal.send("?")
        terminal.wait_for("^Keys")
        terminal.send("xp")
        lines = terminal.wait_for("^ PROVIDER ")
        self.assertEqual(self.rows(lines), self.expected("byProvider", lambda row: row["provider"]))
        terminal.send("q")
        self.assertEqual(self.check_end(terminal), "")

    def test_writes_only_changed_cells(self):
        terminal = self.start("--interval", "100ms", TRACE)
        terminal.wait_for("  ended")
        while terminal.written.count(b"\x1b[?25l") == 0 or select.select([terminal.master], [], [], 1)[0]:
            terminal.read(1)
        before = len(terminal.written)
        terminal.send("\x1b[B")
        terminal.wait(lambda lines: lines[5].startswith(">"), "the second row selected")
        # Two lines changed: the line that was selected before, and the line that is selected now.
        self.assertEqual(terminal.written[before:].count(b"H"), 2)
        terminal.send("q")
        self.check_end(terminal)

    def test_a_terminal_of_another_size(self):
        terminal = self.start(TRACE)
        terminal.wait_for("  ended")
        terminal.cells = {}
        terminal.set_size(12, 70)
        lines = terminal.wait(lambda lines: lines[-1].startswith("p e o t c l f view"), "the last line at the edge")
        self.assertLessEqual(max(map(len, lines)), 70)
        terminal.send("q")
        self.check_end(terminal)

    def test_narrow_terminals(self):
        expected = {row["name"]: row for row in json.loads(top("--json", TRACE))["byEvent"]["rows"]}
        for columns, heads in ((80, "LEVEL vRATE/S EVENTS ERR/S P99/1M BEFORE RATIO"), (60, "LEVEL vRATE/S ERR/S P99/1M RATIO")):
            terminal = self.start(TRACE, columns=columns)
            lines = terminal.wait_for("  ended")
            self.assertEqual(lines[3].split(), ["EVENT", *heads.split()])
            self.assertEqual(len(lines[3]), columns)
            self.assertTrue(lines[1].startswith("events "), lines[1])
            self.assertIn(f"  errors {expected['SaveDone']['errors']} (", lines[1])
            self.assertRegex(lines[1], r"/s\)  lost \d+$")
            shown = {line[1:].split()[0]: line.split()[-len(heads.split()):] for line in lines[4:-1] if line}
            self.assertGreater(len(shown), 6)
            for name in ("SaveDone", "Query", "Request"):
                self.assertIn(shown[name][0], ("error", "warning", "info"))
                row = dict(zip(heads.replace("vRATE", "RATE").split(), shown[name]))
                self.assertAlmostEqual(float(row["RATE/S"]), expected[name]["eventsPerSecond"], delta=0.06)
                self.assertAlmostEqual(float(row["ERR/S"]), expected[name]["errorsPerSecond"], delta=0.06)
                self.assertEqual(row["P99/1M"] == "-", expected[name]["durations"]["lastMinute"]["count"] == 0)
            # The column by which rows are sorted is shown even in a narrow terminal.
            terminal.send("\x1b[D\x1b[D")
            self.assertTrue(terminal.wait_for("vRATIO$")[3].endswith("vRATIO"))
            terminal.send("\x1b[C\x1b[C" + "\x1b[C" * 3)
            lines = terminal.wait_for("vBYTES")
            self.assertEqual(len(lines[3]), columns)
            terminal.send("q")
            self.check_end(terminal)

    def test_colors_on_a_terminal(self):
        red = b"\x1b[31m"
        for options, no_color, has_colors in (((), False, True), ((), True, False), (("--color", "always"), True, True),
                                              (("--color", "never"), False, False)):
            terminal = self.start(*options, TRACE, no_color=no_color)
            terminal.wait_for("  ended")
            terminal.send("q")
            self.check_end(terminal)
            self.assertEqual(red + b"error\x1b[0m" in terminal.written, has_colors, (options, no_color))
            self.assertEqual(red in terminal.written, has_colors)

    def test_a_table_on_a_terminal_has_its_width_and_colors(self):
        terminal = self.start("--once", TRACE, columns=60)
        self.assertEqual(terminal.finish(), 0)
        self.assertIn(b"\x1b[31merror\x1b[0m", terminal.written)
        for line in re.sub(rb"\x1b\[[0-9;]*m", b"", terminal.written).decode().splitlines():
            if not line.startswith("activities"):
                self.assertLessEqual(len(line), 60, line)

    def test_follows_a_file_that_grows(self):
        growing, data = FOLDER / "growing.nettrace", TRACE.read_bytes()
        growing.write_bytes(data[:len(data) // 2])
        terminal = self.start("-f", "--interval", "100ms", growing)
        half = self.rows(terminal.wait_for(r"^.Request  Shop "))["Request  Shop"][0]
        self.assertIn("  live ", terminal.lines()[0])
        with open(growing, "ab") as file:
            file.write(data[len(data) // 2:])
        lines = terminal.wait_for("  ended")
        whole = self.expected("byEvent", lambda row: f"{row['name']}  {row['provider']}")["Request  Shop"]
        self.assertEqual(self.rows(lines)["Request  Shop"], whole)
        self.assertLess(half, whole[0])
        terminal.send("q")
        self.check_end(terminal)

    def test_signals_restore_the_terminal(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            read, write = os.pipe()
            terminal = self.start("-", stdin=read)
            os.close(read)
            terminal.wait_for("waiting")
            # The key makes the program wait for input once more before it gets the signal: during the first wait of a
            # thread, ThreadSanitizer sometimes loses signals.
            terminal.send("p")
            terminal.wait_for("PROVIDER")
            os.kill(terminal.pid, number)
            self.assertEqual(self.check_end(terminal), "")
            os.close(write)

    def test_stopped_and_continued(self):
        terminal = self.start(TRACE)
        terminal.wait_for("  ended")
        terminal.send("\x1a")
        terminal.wait(lambda _: LEAVE in terminal.written, "the screen is left")
        _, status = os.waitpid(terminal.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status))
        self.assertEqual(termios.tcgetattr(terminal.master), terminal.before)
        terminal.frame = {}
        os.kill(terminal.pid, signal.SIGCONT)
        terminal.wait_for("  ended")
        terminal.send("q")
        self.assertEqual(self.check_end_of_stopped(terminal), 0)

    def check_end_of_stopped(self, terminal):
        """Checks the end of a program that was stopped. It may have entered the alternate screen twice, but must leave
        it."""
        code = terminal.finish()
        self.assertEqual(terminal.after, terminal.before)
        self.assertGreater(terminal.written.rindex(LEAVE), terminal.written.rindex(ENTER))
        return code

    def test_errors_come_after_the_screen(self):
        cut, other = FOLDER / "cut-on-terminal.nettrace", FOLDER / "none.nettrace"
        cut.write_bytes(TRACE.read_bytes()[:50_000])
        other.write_bytes(b"no trace")
        terminal = self.start(cut)
        terminal.wait_for("  ended, incomplete")
        terminal.send("q")
        self.assertIn("cut-on-terminal.nettrace: offset", self.check_end(terminal, expect=1))
        self.assertIn("standard input is a terminal", self.check_end(self.start("-"), expect=2))
        self.assertIn("none.nettrace: ", self.check_end(self.start(other), expect=2))
        self.assertRegex(self.check_end(self.start("--session", "web", "--socket", FOLDER / "no-socket"), expect=1),
                         r"^nettrace ctl tail: .*no-socket: [^\n]*\n$")

    def test_a_dumb_terminal_gets_a_table(self):
        terminal = self.start(TRACE, term="dumb")
        self.assertEqual(terminal.finish(), 0)
        self.assertNotIn(b"\x1b", terminal.written)
        self.assertIn(b"Request  Shop", terminal.written)


if __name__ == "__main__":
    script.run_cases(lambda: None)
