#!/usr/bin/python3
"""Tests the commands of nettrace that read files, as a user runs them."""

import datetime
import fcntl
import json
import os
import pathlib
import pty
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unicodedata
import unittest

from support import commands
from support import script
from support import trace_bytes

ARGS = script.options(__doc__, "nettrace", "generate", "activities", "corpus")
SEEDS = (1, 2, 3)
# Text that a terminal would obey: escape sequences with ESC and with C1, a title, an override of the direction of text,
# line ends; and bytes that are not UTF-8.
HOSTILE = b"\x1b[2J\xc2\x9b31m\x1b]0;t\x07\xe2\x80\xae\r\xff\x9b\x7f\n\xc2\x85"


def nettrace(*arguments, expect=0, stdin=None, environment=None):
    """Runs a command that must exit with `expect`, or with any status if it is None; returns its standard output and
    error."""
    ran = subprocess.run([ARGS.nettrace, *map(str, arguments)], input=stdin, capture_output=True, check=False,
                         env={**os.environ, **(environment or {})})
    assert expect in (ran.returncode, None), f"{arguments}: exit status {ran.returncode} instead of {expect}: {ran.stderr}"
    return ran.stdout.decode(), ran.stderr.decode()


def dump(file, *options):
    return list(commands.dump(ARGS.nettrace, file, *map(str, options)))


def dump_cut(file):
    """Returns the events of a file that is cut."""
    return [json.loads(line) for line in nettrace("dump", "--json", file, expect=1)[0].splitlines()]


def one_interval(events, fields=()):
    """Returns a V6 stream with events of two threads at the same times, and no sequence point. The events have empty
    payloads. `fields` are the bytes of field descriptions, without their sizes."""
    stream = trace_bytes.begin(fields, threads=(1, 2))
    for thread in (1, 2):
        # The first row has metadata id, capture thread, thread, no stack, no labels and an empty payload. Each other
        # row is one tick later.
        first = bytes([0x9F, 1, 0, thread, 0, thread, 0, 1, 0, 0])
        rows = first + b"\0\1" * (events // 2 - 1)
        stream += trace_bytes.block(trace_bytes.EVENT, struct.pack("<HHQQ", 20, 1, 1, events // 2) + rows)
    return stream + trace_bytes.block(trace_bytes.END, b"")


def nanoseconds(event):
    seconds, fraction = event["time"].removesuffix("Z").split(".")
    whole = datetime.datetime.fromisoformat(seconds + "+00:00")
    return int(whole.timestamp()) * 10**9 + int(fraction)


def width(text):
    """Returns the columns of a terminal that the text takes."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def check_printable(test, said):
    """Checks that `said`, which may have several lines, is UTF-8 and has nothing that a terminal obeys."""
    for c in said.decode():
        number = ord(c)
        test.assertFalse(number < 0x20 and c != "\n" or 0x7f <= number < 0xa0 or number == 0x202e, said)


class CommandsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory(prefix="nettrace-commands-")
        cls.folder = pathlib.Path(cls._folder.name)
        subprocess.run([ARGS.generate, cls.folder, "200", *map(str, SEEDS)], check=True)
        cls.traces = [cls.folder / f"random-{seed}.nettrace" for seed in SEEDS]
        cls.events = dump(cls.traces[0])
        cls.out = cls.folder / "out.nettrace"

    @classmethod
    def tearDownClass(cls):
        cls._folder.cleanup()

    def setUp(self):
        self.out.unlink(missing_ok=True)

    def filters(self):
        """Returns options, each with the condition of the events that it selects."""
        events = self.events
        middle = events[len(events) // 2]
        pid = next(event["pid"] for event in events if event["pid"])
        tid = next(event["tid"] for event in events if event["tid"])
        name = next(event["name"] for event in events if event["provider"] == "R")
        mask = 0x10
        return [
            (["--provider", "R"], lambda event: event["provider"] == "R"),
            (["--provider", "R", "--provider", "Random"], lambda event: event["provider"] in ("R", "Random")),
            (["--event", name], lambda event: event["name"] == name),
            (["--pid", pid], lambda event: event["pid"] == pid),
            (["--tid", tid], lambda event: event["tid"] == tid),
            (["--pid", 0], lambda event: event["pid"] == 0),
            (["--level", 3], lambda event: event["level"] <= 3),
            (["--level", "warning"], lambda event: event["level"] <= 3),
            (["--keyword", hex(mask)],
             lambda event: int(event["keywords"], 16) == 0 or int(event["keywords"], 16) & mask),
            (["--since", middle["time"]], lambda event: event["time"] >= middle["time"]),
            (["--until", middle["time"]], lambda event: event["time"] < middle["time"]),
            # --from and --to are the older names of --since and --until.
            (["--from", middle["time"]], lambda event: event["time"] >= middle["time"]),
            (["--to", middle["time"]], lambda event: event["time"] < middle["time"]),
            (["--level", 3, "--provider", "R", "--until", middle["time"]],
             lambda event: event["level"] <= 3 and event["provider"] == "R" and event["time"] < middle["time"]),
        ]

    def test_dump_filters_select_the_right_events(self):
        for options, passes in self.filters():
            wanted = [event for event in self.events if passes(event)]
            if options != ["--pid", 0]:
                self.assertGreater(len(wanted), 0, f"{options} must select some events")
            if options.count("--provider") != 2:
                self.assertLess(len(wanted), len(self.events), f"{options} must not select all events")
            self.assertEqual(dump(self.traces[0], *options), wanted, options)

    def test_filters_take_one_value_each(self):
        for option, value in (("--provider", "R"), ("--event", "E"), ("--pid", 1), ("--tid", 1)):
            nettrace("cut", option, value, self.traces[0], "-o", self.out)
            nettrace("dump", option, value, self.traces[0], "--json")

    def test_invalid_ids_are_wrong_usage(self):
        for option in ("--pid", "--tid"):
            for value in ("99999999999999999999", "-5", "1x", ""):
                _, error = nettrace("dump", f"{option}={value}", self.traces[0], expect=2)
                self.assertIn(option, error)

    def test_standard_output_that_cannot_be_written_is_an_error(self):
        for command in ("dump", "info", "verify"):
            for options in ([], ["--json"]):
                if (command, options) == ("verify", ["--json"]):
                    continue  # This command prints nothing for a clean file.
                with open("/dev/full", "wb") as full:
                    ran = subprocess.run([ARGS.nettrace, command, *options, self.traces[0]], stdout=full,
                                         stderr=subprocess.PIPE, check=False)
                self.assertEqual(ran.returncode, 1, (command, options))
                self.assertIn(b"standard output cannot be written", ran.stderr)

    def test_unknown_commands_and_options_are_named(self):
        for command, message in ((["bogus"], "nettrace: unknown command 'bogus'; 'nettrace --help' lists the commands\n"),
                                 (["ctl", "bogus"], "nettrace ctl: unknown command 'bogus'; "
                                                    "'nettrace ctl --help' lists the commands\n"),
                                 (["--bogus"], "nettrace: unknown option '--bogus'; 'nettrace --help' lists the options\n"),
                                 (["dump", "a", "--bogus"], "nettrace dump: unknown option '--bogus'; "
                                  "'nettrace dump --help' lists the options\n"),
                                 (["ctl", "list", "a"], "nettrace ctl list: unknown argument 'a'; "
                                                        "'nettrace ctl list --help' lists the arguments\n"),
                                 (["dump", "--bogus"], "nettrace dump: unknown option '--bogus'; "
                                                       "'nettrace dump --help' lists the options\n")):
            _, error = nettrace(*command, expect=2)
            self.assertEqual(error, message)

    def test_dump_reads_standard_input(self):
        out, _ = nettrace("dump", "--json", "-", stdin=self.traces[0].read_bytes())
        self.assertEqual([json.loads(line) for line in out.splitlines()], self.events)

    def test_dump_sorts_by_time_by_default(self):
        in_file_order = dump(self.traces[0], "--file-order")
        self.assertEqual(self.events, sorted(in_file_order, key=lambda event: event["timestamp"]))
        self.assertNotEqual(self.events, in_file_order, "the events of this trace must not be in the order of time in the file")

    def test_dump_sorts_an_interval_that_does_not_fit_in_memory(self):
        events, file = 300_000, self.folder / "long"
        file.write_bytes(one_interval(events))
        out, _ = nettrace("dump", file, environment={"TMPDIR": self.folder})
        times = [line[:30] for line in out.splitlines()]
        self.assertEqual(len(times), events)
        self.assertEqual(times, sorted(times))
        out, error = nettrace("dump", file, environment={"TMPDIR": "/nowhere"}, expect=1)
        self.assertIn("/nowhere", error)
        self.assertIn("--file-order", error)
        self.assertGreater(len(out), 0)
        out, _ = nettrace("dump", "--file-order", file, environment={"TMPDIR": "/nowhere"})
        self.assertEqual(out.count("\n"), events)

    def test_dump_shows_times_relative_to_other_events(self):
        times = [nanoseconds(event) for event in self.events]
        for option, since in (("relative", [times[0]] * len(times)), ("delta", [times[0], *times])):
            wanted = [f"+{(time - before) // 10**9}.{(time - before) % 10**9:09}" for time, before in zip(times, since)]
            out, _ = nettrace("dump", "--time", option, self.traces[0])
            self.assertEqual([line.split(" ", 1)[0] for line in out.splitlines()], wanted)
        absolute, _ = nettrace("dump", self.traces[0])
        self.assertEqual([line.split(" ", 1)[1] for line in out.splitlines()],
                         [line.split(" ", 1)[1] for line in absolute.splitlines()])
        self.assertEqual(nettrace("dump", "--time", "absolute", self.traces[0])[0], absolute)
        out, _ = nettrace("dump", "--time", "delta", "--file-order", self.traces[0])
        self.assertIn("\n-", out)
        nettrace("dump", "--time", "relative", "--json", self.traces[0], expect=2)

    def test_dump_colors_lines_by_level(self):
        plain, _ = nettrace("dump", self.traces[0])
        self.assertNotIn("\x1b", plain)
        colors = {1: "\x1b[1;31m", 2: "\x1b[31m", 3: "\x1b[33m", 5: "\x1b[2m"}
        wanted = [f"{colors[event['level']]}{line}\x1b[0m" if event["level"] in colors else line
                  for event, line in zip(self.events, plain.splitlines())]
        self.assertGreater(len({event["level"] for event in self.events}), 4)
        self.assertEqual(nettrace("dump", "--color", "always", self.traces[0])[0].splitlines(), wanted)
        colored, plain = "\n".join(wanted), plain.removesuffix("\n")
        for environment, color, shown in (({"TERM": "xterm", "NO_COLOR": ""}, "auto", colored),
                                          ({"TERM": "xterm", "NO_COLOR": "1"}, "auto", plain),
                                          ({"TERM": "xterm", "NO_COLOR": "1"}, "always", colored),
                                          ({"TERM": "dumb", "NO_COLOR": ""}, "auto", plain),
                                          ({"TERM": "xterm", "NO_COLOR": ""}, "never", plain)):
            ours, theirs = pty.openpty()
            with subprocess.Popen([ARGS.nettrace, "dump", f"--color={color}", self.traces[0]], stdout=theirs,
                                  stdin=subprocess.DEVNULL, env={**os.environ, **environment}) as process:
                os.close(theirs)
                text = b""
                while chunk := read_or_end(ours):
                    text += chunk
            os.close(ours)
            self.assertEqual(process.returncode, 0)
            # On a terminal, spaces align the columns.
            aligned = text.decode().replace("\r\n", "\n").removesuffix("\n")
            self.assertEqual(re.sub(" +", " ", aligned), re.sub(" +", " ", shown), environment)

    def on_terminal(self, *arguments):
        """Returns what a command prints on a terminal, without colors."""
        ours, theirs = pty.openpty()
        with subprocess.Popen([ARGS.nettrace, *map(str, arguments)], stdout=theirs, stdin=subprocess.DEVNULL,
                              env={**os.environ, "TERM": "dumb"}) as process:
            os.close(theirs)
            text = b""
            while chunk := read_or_end(ours):
                text += chunk
        os.close(ours)
        self.assertEqual(process.returncode, 0)
        return text.decode().replace("\r\n", "\n")

    def test_dump_aligns_columns_on_a_terminal(self):
        file = self.folder / "columns"
        subprocess.run([ARGS.activities, file, "1", "50"], check=True)
        plain = nettrace("dump", "--verbose", file)[0].splitlines()
        aligned = self.on_terminal("dump", "--verbose", file).splitlines()
        self.assertEqual([re.sub(" +", " ", line) for line in aligned], [re.sub(" +", " ", line) for line in plain])
        # Widths only grow, so each column begins where it began in the line before, or further to the right. In the
        # last lines, each column is as wide as its longest text.
        for word in (" cpu ", " level="):
            places = [width(line[:line.index(word)]) for line in aligned]
            self.assertEqual(places, sorted(places), word)
            self.assertEqual(places[-1], max(places))
        longest = max(width(re.search(r"\d+/\d+ (.*) level=", line).group(1)) for line in plain)
        last = re.search(r"\d+/\d+ +(.*) level=", aligned[-1]).group(1)
        self.assertEqual(width(last), longest)
        # All relative times of this file have the same width.
        relative = self.on_terminal("dump", "--time", "relative", file).splitlines()
        self.assertEqual({line.index(" cpu ") for line in relative}, {12})

    def test_dump_prints_chosen_fields_in_columns(self):
        file = self.folder / "fields"
        subprocess.run([ARGS.activities, file, "1", "50"], check=True)
        events = dump(file)
        names = sorted({name for event in events for name in event["payload"]})
        self.assertTrue(names)
        head, *lines = nettrace("dump", "--fields", ",".join([*names, "none"]), file)[0].splitlines()
        self.assertEqual(head.split("\t"), ["time", "name", *names, "none"])
        self.assertEqual(len(lines), len(events))
        for line, event in zip(lines, events):
            time_text, _, *values = line.split("\t")
            self.assertEqual(time_text, event["time"])
            self.assertEqual(values, [*(str(event["payload"].get(name, "-")) for name in names), "-"])
        for other in (["--json"], ["--time", "delta"]):
            nettrace("dump", "--fields", "a", *other, file, expect=2)

    def test_dump_prints_the_frames_of_stacks_below_their_events(self):
        for trace in self.traces:
            events = dump(trace, "--stacks")
            stacks = [event.get("stack", []) for event in events]
            self.assertGreater(sum(map(len, stacks)), 0)
            # The file describes no mappings, so the frames are addresses.
            self.assertEqual([event.get("frames", []) for event in events], stacks)
            lines = nettrace("dump", "--stacks", trace)[0].splitlines()
            frames = [line.strip() for line in lines if line.startswith("    ")]
            self.assertEqual(frames, [frame for stack in stacks for frame in stack])
            self.assertEqual(len(lines), len(frames) + len(events))
            self.assertFalse(any("frames" in event for event in dump(trace)))
        nettrace("dump", "--stacks", "--fields", "a", self.traces[0], expect=2)

    def test_dump_follows_a_file_that_grows(self):
        bytes_ = self.traces[0].read_bytes()
        file = self.folder / "growing"
        for end in ("the recording ends", "the file is deleted"):
            file.write_bytes(bytes_[:len(bytes_) // 2])
            first_half, _ = nettrace("dump", "--json", file, expect=1)
            with subprocess.Popen([ARGS.nettrace, "dump", "--json", "-f", file], bufsize=0,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                shown = process.stdout.readline()
                self.assertIsNone(process.poll())
                if end == "the recording ends":
                    with open(file, "ab") as appended:
                        appended.write(bytes_[len(bytes_) // 2:])
                else:
                    file.unlink()
                rest, error = process.communicate(timeout=30)
            if end == "the recording ends":
                self.assertEqual((process.returncode, error), (0, b""))
                self.assertEqual((shown + rest).decode(), nettrace("dump", "--json", self.traces[0])[0])
            else:
                self.assertEqual(process.returncode, 1, error)
                self.assertEqual((shown + rest).decode(), first_half)

    def test_dump_shows_an_activity_with_the_activities_that_began_in_it(self):
        file = self.folder / "activities"
        subprocess.run([ARGS.activities, file, "1", "100"], check=True)
        events = dump(file)
        root = next(event["relatedActivityId"] for event in events if event["relatedActivityId"])
        activities, wanted = {root}, []
        for event in events:
            if event["activityId"] in activities:
                wanted.append(event)
            elif event["relatedActivityId"] in activities:
                wanted.append(event)
                activities |= {event["activityId"]} - {None}
        self.assertGreater(len(activities), 1)
        self.assertLess(len(wanted), len(events))
        self.assertEqual(dump(file, "--activity", root), wanted)
        self.assertEqual(dump(file, "--activity", root.upper()), wanted)
        self.assertEqual(dump(file, "--activity", "0" * 32), [])
        _, error = nettrace("dump", "--activity", "1234", file, expect=2)
        self.assertIn("--activity: invalid id \"1234\"; example: 00112233-", error)

    def test_dump_and_info_say_that_traceevent_refuses_a_file(self):
        file = self.folder / "refused"
        file.write_bytes(one_interval(2, [b"\x01f\x18\x15"]))  # RelLoc of VarUInt
        out, error = nettrace("dump", file)
        self.assertEqual(out.count("\n"), 2)
        self.assertIn("TraceEvent, the library of PerfView, cannot show this file: a field of P/E", error)
        self.assertIn("a field of P/E", commands.info(ARGS.nettrace, file)["traceeventRefusal"])
        self.assertIn("cannot show this file: a field of P/E", nettrace("info", file)[0])
        self.assertIsNone(commands.info(ARGS.nettrace, self.traces[0])["traceeventRefusal"])
        self.assertEqual(nettrace("dump", self.traces[0])[1], "")

    def test_info_counts_the_contents(self):
        info = commands.info(ARGS.nettrace, self.traces[0])
        self.assertEqual((info["version"], info["events"], info["complete"]), (6, len(self.events), True))
        table, _ = nettrace("info", self.traces[0])
        self.assertIn(f"{info['ticksPerSecond']} ticks a second", table)
        self.assertRegex(table, rf"events +{info['events']}\n")

    def several(self, name, count):
        """Cuts the first trace into at most `count` files, one after the other in time. Returns their directory."""
        folder = self.folder / name
        folder.mkdir()
        times = [event["time"] for event in self.events]
        bounds = sorted(set(times[len(times) * i // count] for i in range(1, count)))
        for i, (since, until) in enumerate(zip([None, *bounds], [*bounds, None])):
            options = [*(["--since", since] if since else []), *(["--until", until] if until else [])]
            nettrace("cut", *options, self.traces[0], "-o", folder / f"{i:03}.nettrace")
        return folder

    def test_dump_and_query_read_several_files_as_one(self):
        nettrace("merge", *self.traces, "-o", self.out)
        merged, _ = nettrace("dump", "--json", self.out)
        shown, _ = nettrace("dump", "--json", *self.traces)
        self.assertEqual(shown, merged)
        for sql in ("SELECT time, provider, name, payload FROM events", "SELECT a.number FROM events a JOIN fields b USING (number)"):
            self.assertEqual(nettrace("query", *self.traces, sql), nettrace("query", self.out, sql))
        # This query does not read all events. It must nevertheless end the thread that merges the files.
        one, _ = nettrace("query", "--csv", *self.traces, "SELECT count(*) FROM (SELECT 1 FROM events LIMIT 1)")
        self.assertEqual(one.split(), ["count(*)", "1"])

    def test_export_and_top_read_several_files_as_one(self):
        nettrace("merge", *self.traces, "-o", self.out)
        for form in ("json", "fxt", "csv"):
            outputs = [self.folder / f"{name}.{form}" for name in ("merged", "several")]
            for output, files in zip(outputs, ([self.out], self.traces)):
                nettrace("export", "--to", form, *files, "-o", output)
            self.assertEqual(outputs[0].read_bytes(), outputs[1].read_bytes(), form)
        shown, merged = (json.loads(nettrace("top", "--json", *files)[0]) for files in (self.traces, [self.out]))
        self.assertEqual(shown, merged)
        _, errors = nettrace("top", "--once", *self.traces, self.folder / "none", expect=2)
        self.assertIn("none: cannot be opened", errors)

    def test_a_directory_means_its_files(self):
        folder = self.several("several", 3)
        (folder / "003.nettrace.partial").write_bytes(self.traces[1].read_bytes())
        (folder / "notes.txt").write_text("not a trace")
        (folder / "000.nettrace").rename(folder / "zzz.nettrace")  # files are read by their times, not their names
        subprocess.run(["zstd", "-q", "--rm", folder / "001.nettrace"], check=True)
        text, errors = nettrace("dump", "--json", folder)
        self.assertIn("several: left out 1 partial file; ", errors)
        keys = ("time", "provider", "name", "pid", "payload")
        events = [json.loads(line) for line in text.splitlines()]
        self.assertEqual([[event[key] for key in keys] for event in events], [[event[key] for key in keys] for event in self.events])
        names = [json.loads(line)["file"] for line in nettrace("info", "--json", f"{folder}/")[0].splitlines()]
        self.assertEqual(names, [f"{folder}/{name}" for name in ("001.nettrace.zst", "002.nettrace", "zzz.nettrace")])
        self.assertEqual(nettrace("info", folder)[0].count("\nfile  "), 2)
        self.assertEqual(nettrace("verify", folder)[0].count(" 0 errors"), 3)

    def test_a_file_that_is_named_twice_is_read_once(self):
        folder = self.several("twice", 2)
        once, _ = nettrace("dump", "--json", folder)
        text, errors = nettrace("dump", "--json", folder, folder / "000.nettrace", folder / "001.nettrace")
        self.assertEqual(text, once)
        self.assertIn("000.nettrace: named more than once; reading it once; other repeated paths left out: 1", errors)

    def test_files_one_after_the_other_need_few_descriptors(self):
        folder = self.several("many", 60)
        self.assertGreater(len(list(folder.iterdir())), 40)
        limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))}
        shown = subprocess.run([ARGS.nettrace, "dump", "--json", folder], stdout=subprocess.PIPE, check=True, **limit).stdout
        self.assertEqual(len(shown.splitlines()), len(self.events))

    def test_errors_of_several_files_name_the_file(self):
        good = self.traces[0]
        cut = self.folder / "cut-of-several.nettrace"
        cut.write_bytes(self.traces[1].read_bytes()[:-30])
        empty = self.folder / "empty"
        empty.mkdir()
        for command in (["dump"], ["info"], ["verify"], ["query", "SELECT count(*) FROM events"]):
            output, errors = nettrace(command[0], good, cut, *command[1:], expect=1)
            self.assertTrue(output)
            self.assertTrue("cut-of-several.nettrace: " in errors or command == ["verify"], errors)
            for wrong in (self.folder / "none.nettrace", empty):
                _, errors = nettrace(command[0], good, wrong, *command[1:], expect=2)
                self.assertIn(wrong.name, errors)
            _, errors = nettrace(command[0], good, "-", *command[1:], expect=2)
            self.assertIn("standard input: cannot be read together with files", errors)
        _, errors = nettrace("dump", "--follow", good, self.traces[1], expect=2)
        self.assertIn("--follow reads only one file", errors)

    def test_wrong_usage_and_unreadable_files_exit_with_2(self):
        missing, other = self.folder / "missing", self.folder / "other"
        other.write_text("no trace")
        for command in ("dump", "info", "verify", "repair", "cut"):
            output = [] if command in ("dump", "info", "verify") else ["-o", self.out]
            for file, reason in ((missing, "No such file"), (other, "not a NetTrace file")):
                _, error = nettrace(command, file, *output, expect=2)
                self.assertIn(str(file), error)
                self.assertIn(reason, error)
            nettrace(command, "--nonsense", expect=2)
        nettrace("dump", "--since", "yesterday", self.traces[0], expect=2)
        nettrace("merge", self.traces[0], "-o", self.out, expect=2)
        self.assertFalse(self.out.exists())

    def test_help_has_examples(self):
        for command in ("dump", "info", "verify", "repair", "cut", "merge"):
            out, _ = nettrace(command, "--help")
            self.assertIn("Example", out)
            self.assertIn("Exit code", out)

    def test_cut_and_damaged_input(self):
        cut = self.folder / "cut.nettrace"
        cut.write_bytes(self.traces[0].read_bytes()[:-3])
        before = len(dump(self.traces[0]))
        out, error = nettrace("dump", "--json", cut, expect=1)
        self.assertEqual(len(out.splitlines()), before)
        self.assertIn("offset", error)
        nettrace("info", cut, expect=1)
        nettrace("verify", cut, expect=1)
        for command in (["cut", cut], ["merge", cut, self.traces[1]]):
            _, error = nettrace(*command, "-o", self.out, expect=1)
            self.assertIn("nettrace repair", error)
            self.assertFalse(self.out.exists())
        nettrace("repair", cut, "-o", self.out)
        nettrace("verify", "--strict", self.out)
        self.assertEqual(dump(self.out), dump(self.traces[0]))

    def test_repair_skips_bad_bytes_and_keeps_the_end(self):
        whole = self.traces[0].read_bytes()
        events = dump(self.traces[0])
        damaged = self.folder / "damaged.nettrace"
        at = len(whole) // 2
        damaged.write_bytes(whole[:at] + bytes(0x55 + 37 * i & 0xFF for i in range(64)) + whole[at + 64:])
        _, error = nettrace("repair", damaged, "-o", self.out)
        self.assertRegex(error, r"damaged\.nettrace: offset \d+: .*; skipped \d+ bytes? and about \d+ events?")
        self.assertNotIn("losses are unknown", error)
        self.assertTrue(commands.info(ARGS.nettrace, self.out)["complete"])
        kept = dump(self.out)
        self.assertEqual(kept[-1]["time"], events[-1]["time"])
        self.assertGreater(len(kept), len(events) // 2)

    def test_repaired_file_records_the_unknown_time(self):
        cut = self.folder / "unknown.nettrace"
        whole = self.traces[0].read_bytes()
        self.assertIsNone(commands.info(ARGS.nettrace, self.traces[0])["unknown"])
        for name, end in (("an end that is cut off", -1), ("a cut in the middle", len(whole) * 2 // 3)):
            with self.subTest(name):
                cut.write_bytes(whole[:end])
                last = max(event["time"] for event in dump_cut(cut))
                # Makes the file look as if the recorder had last written to it a second after the last event.
                written = nanoseconds({"time": last}) + 10**9
                os.utime(cut, ns=(written, written))
                told, _ = nettrace("info", "--json", cut, expect=1)
                unknown = json.loads(told)["unknown"]
                self.assertEqual(nanoseconds({"time": unknown["until"]}), written)
                self.assertLess(unknown["since"], unknown["until"])
                table, _ = nettrace("info", cut, expect=1)
                text = f"losses are unknown from {unknown['since']} to at least {unknown['until']}"
                self.assertRegex(table, rf"lost +\d+; {text}")

                _, error = nettrace("repair", cut, "-o", self.out)
                self.assertIn(text, error)
                nettrace("verify", "--strict", self.out)
                info = commands.info(ARGS.nettrace, self.out)
                self.assertEqual((info["unknown"], info["collectorEvents"], info["complete"]), (unknown, 1, True))
                self.assertEqual(info["events"], len(dump(self.out)))
                shown = dump(self.out, "--account")
                self.assertEqual(shown[:-1], dump(self.out))
                self.assertEqual((shown[-1]["provider"], shown[-1]["name"]), ("NetTrace.Collector", "AccountUnknown"))
                times = {key.lower(): nanoseconds({"time": time}) for key, time in unknown.items()}
                self.assertEqual({key.lower(): int(value) for key, value in shown[-1]["payload"].items()}, times)
                self.assertEqual(dump(self.out, "--provider", "NetTrace.Collector"), shown[-1:])
                # `merge` and `cut` copy the time in which losses are unknown from the repaired file.
                whole_again = self.folder / "whole-again.nettrace"
                nettrace("merge", self.out, self.traces[1], "-o", whole_again)
                self.assertEqual(commands.info(ARGS.nettrace, whole_again)["unknown"], unknown)
                nettrace("cut", self.out, "-o", whole_again, "--provider", "Nobody", "--since", last)
                self.assertEqual(commands.info(ARGS.nettrace, whole_again)["unknown"], unknown)
                nettrace("cut", self.out, "-o", whole_again, "--until", self.events[0]["time"])
                self.assertIsNone(commands.info(ARGS.nettrace, whole_again)["unknown"])

    def test_when_a_file_was_last_written_may_not_be_known(self):
        whole = self.traces[0].read_bytes()
        told, _ = nettrace("info", "--json", "-", expect=1, stdin=whole[:-1])
        unknown = json.loads(told)["unknown"]
        self.assertIsNone(unknown["until"])
        table, _ = nettrace("info", "-", expect=1, stdin=whole[:-1])
        self.assertIn(f"losses are unknown from {unknown['since']} on", table)
        # A modification time before the begin of the recording must be ignored, because it cannot be from the recorder.
        cut = self.folder / "unknown.nettrace"
        cut.write_bytes(whole[:-1])
        os.utime(cut, (1000, 1000))
        self.assertEqual(json.loads(nettrace("info", "--json", cut, expect=1)[0])["unknown"], unknown)

    def test_verify_distinguishes_errors_hazards_and_clean_files(self):
        self.assertEqual(nettrace("verify", "--strict", "--json", self.traces[0])[0], "")
        trailing = self.folder / "hazard"
        trailing.write_bytes(self.traces[0].read_bytes() + b"x")
        nettrace("verify", trailing)
        out, _ = nettrace("verify", "--strict", "--json", trailing, expect=1)
        finding = json.loads(out)
        self.assertEqual((finding["rule"], finding["severity"]), ("trailing-bytes", "hazard"))
        self.assertEqual(finding["offset"], self.traces[0].stat().st_size)
        self.assertEqual(set(finding), {"file", "rule", "severity", "section", "offset", "explanation"})
        cut = self.folder / "error"
        cut.write_bytes(self.traces[0].read_bytes()[:-3])
        findings = [json.loads(line) for line in nettrace("verify", "--json", cut, expect=1)[0].splitlines()]
        self.assertEqual([finding["severity"] for finding in findings], ["error"])
        self.assertIn("1 error, ", nettrace("verify", "-", stdin=cut.read_bytes(), expect=1)[0])

    def test_repair_makes_v6_of_v4_and_v5(self):
        for version in ("v4", "v5"):
            nettrace("repair", ARGS.corpus / version, "-o", self.out)
            nettrace("verify", "--strict", self.out)
            self.assertEqual(commands.info(ARGS.nettrace, self.out)["version"], 6)
            before, after = dump(ARGS.corpus / version), dump(self.out)
            self.assertGreater(len(before), 0)
            for key in ("timestamp", "time", "provider", "name", "level", "keywords", "pid", "tid", "cpu", "activityId"):
                self.assertEqual([event[key] for event in after], [event[key] for event in before], key)

    def test_cut_selects_the_events_that_dump_shows(self):
        for options, _ in self.filters():
            nettrace("cut", self.traces[0], *options, "-o", self.out)
            self.assertEqual(dump(self.out), dump(self.traces[0], *options), options)
            nettrace("verify", "--strict", self.out)

    def test_merge_sorts_by_time_whatever_the_clocks(self):
        infos = [commands.info(ARGS.nettrace, trace) for trace in self.traces]
        self.assertGreater(len({info["ticksPerSecond"] for info in infos}), 1, "the traces must have different clocks")
        for traces in (self.traces, self.traces[::-1]):
            nettrace("merge", *traces, "-o", self.out)
            nettrace("verify", self.out)
            merged = dump(self.out)
            wanted = sorted((event for trace in traces for event in dump(trace)), key=nanoseconds)
            self.assertEqual(len(merged), len(wanted))
            info = commands.info(ARGS.nettrace, self.out)
            self.assertEqual(info["lost"], sum(one["lost"] for one in infos))
            tick = 10**9 / info["ticksPerSecond"]
            for before, after in zip(wanted, merged):
                self.assertLessEqual(abs(nanoseconds(before) - nanoseconds(after)), 2 * tick + 1)
            payloads = [sorted(json.dumps(event["payload"]) for event in events) for events in (wanted, merged)]
            self.assertEqual(*payloads)

    def test_merge_reads_the_files_of_a_directory(self):
        parts = self.folder / "parts"
        parts.mkdir()
        for number, trace in enumerate(self.traces):
            shutil.copy(trace, parts / f"{number}.nettrace")
        nettrace("merge", parts, "-o", self.out)
        self.assertEqual(len(dump(self.out)), sum(len(dump(trace)) for trace in self.traces))
        # The output of an earlier merge in the directory would repeat all events.
        shutil.copy(self.out, parts / "all.nettrace")
        _, said = nettrace("merge", parts, "-o", parts / "all.nettrace", expect=2)
        self.assertIn("all.nettrace: is the output, and in a directory that is read; write to another directory", said)
        _, said = nettrace("merge", self.traces[0], "-o", self.out, expect=2)
        self.assertIn("is the only file; name at least two files, or a directory with several", said)

    def test_merge_and_cut_open_files_only_while_their_times_overlap(self):
        parts = self.several("one-by-one", 40)
        self.assertGreater(len(list(parts.iterdir())), 30)
        limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))}
        for command in (["merge", parts], ["cut", parts]):
            subprocess.run([ARGS.nettrace, *command, "-o", self.out], check=True, stderr=subprocess.DEVNULL, **limit)
            shown = [(event["timestamp"], event["name"], event["payload"]) for event in dump(self.out)]
            self.assertEqual(sorted(map(str, shown)),
                             sorted(str((e["timestamp"], e["name"], e["payload"])) for e in dump(self.traces[0])))
        # Files that cover the same time must all be open at once, so the limit of 16 descriptors is too low for 20
        # files.
        many = self.folder / "same-time"
        many.mkdir()
        for number in range(20):
            shutil.copy(self.traces[0], many / f"{number}.nettrace")
        ran = subprocess.run([ARGS.nettrace, "merge", many, "-o", self.folder / "none"], check=False, capture_output=True, text=True, **limit)
        self.assertEqual(ran.returncode, 2, ran.stderr)
        self.assertRegex(ran.stderr, r"same-time/\d+\.nettrace: cannot be opened: too many open files; raise the limit, for example by ulimit -n 4096")
        self.assertFalse((self.folder / "none").exists())

    def test_cut_reads_the_files_of_a_directory(self):
        parts = self.several("to-cut", 3)
        name = self.events[0]["name"]
        nettrace("cut", "--event", name, parts, "-o", self.out)
        self.assertEqual(len(dump(self.out, "--event", name)), sum(event["name"] == name for event in self.events))
        _, said = nettrace("cut", parts, "-o", parts / "000.nettrace", expect=2)
        self.assertIn("000.nettrace: is the output, and in a directory that is read", said)

    def test_repair_writes_a_file_for_each(self):
        broken, results = self.folder / "broken", self.folder / "results"
        broken.mkdir()
        content = self.traces[0].read_bytes()
        for name in ("a.nettrace", "b.nettrace.partial"):
            (broken / name).write_bytes(content[:-3])
        inputs = [broken / "a.nettrace", broken / "b.nettrace.partial"]
        _, said = nettrace("repair", *inputs, "-o", results, expect=2)
        self.assertIn("results: not a directory; create one for the results of 2 files", said)
        results.mkdir()
        nettrace("repair", *inputs, "-o", results)
        self.assertEqual(sorted(path.name for path in results.iterdir()), ["a.nettrace", "b.nettrace"])
        for path in results.iterdir():
            nettrace("verify", "--strict", path)
            self.assertEqual(len(dump(path)), len(dump(self.traces[0])))
        # The command repairs the other files although one file cannot be read.
        for path in results.iterdir():
            path.unlink()
        (broken / "0.nettrace").write_text("something else")
        _, said = nettrace("repair", broken, "-o", results, expect=2)
        self.assertIn("0.nettrace: ", said)
        self.assertEqual([path.name for path in results.iterdir()], ["a.nettrace"])
        before = inputs[0].read_bytes()
        _, said = nettrace("repair", inputs[0], "-o", broken, expect=2)
        self.assertIn("a.nettrace: is in the directory of the results; name another directory", said)
        self.assertEqual(inputs[0].read_bytes(), before)
        other = self.folder / "broken-too"
        other.mkdir()
        shutil.copy(inputs[0], other)
        _, said = nettrace("repair", inputs[0], other, "-o", results, expect=2)
        self.assertIn("a.nettrace: is the result of two files; repair them into two directories", said)
        _, said = nettrace("repair", "-", "-o", results, expect=2)
        self.assertIn("is a directory; with standard input, -o must name a file", said)

    def test_symbolize_reads_the_files_of_a_directory(self):
        parts = self.folder / "to-name"
        parts.mkdir()
        for name in "ab":
            shutil.copy(self.traces[0], parts / f"{name}.nettrace")
        out, _ = nettrace("symbolize", "--json", parts)
        found = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([one["file"] for one in found], [str(parts / "a.nettrace"), str(parts / "b.nettrace")])
        _, said = nettrace("symbolize", parts, "-o", self.out, expect=2)
        self.assertIn("cannot be the output of 2 files; without -o, each file is replaced", said)
        (parts / "0.nettrace").write_text("something else")
        _, said = nettrace("symbolize", parts, expect=2)
        self.assertIn("0.nettrace: ", said)
        self.assertIn("b.nettrace: 0 functions", said)

    def test_killed_halfway_leaves_the_old_output(self):
        self.out.write_text("the old one")
        before = set(self.folder.iterdir())
        bytes_ = self.traces[0].read_bytes()
        with subprocess.Popen([ARGS.nettrace, "repair", "-", "-o", self.out], stdin=subprocess.PIPE) as repair:
            repair.stdin.write(bytes_[:len(bytes_) // 2])
            repair.stdin.flush()
            until(lambda: self.is_writing(repair.pid))
            repair.send_signal(signal.SIGKILL)
        self.assertEqual(self.out.read_text(), "the old one")
        for left in set(self.folder.iterdir()) - before:
            # The temporary file has a name only if the file system does not support unnamed files.
            self.assertRegex(left.name, r"^\.nettrace-[0-9a-f]{32}\.tmp$")
            left.unlink()

    def is_writing(self, pid):
        """Returns whether the process has a file in the folder open, with or without a name."""
        open_files = []
        for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            try:
                open_files.append(os.readlink(fd))
            except FileNotFoundError:  # The process has closed this descriptor.
                pass
        return any(file.startswith(f"{self.folder}/") for file in open_files)

    def test_outputs_have_the_mode_of_their_input(self):
        for command, inputs in (("repair", 1), ("cut", 1), ("merge", 2)):
            for mode in (0o600, 0o640, 0o664):
                with self.subTest(command=command, mode=oct(mode)):
                    for trace in self.traces[:inputs]:
                        trace.chmod(mode)
                    nettrace(command, *self.traces[:inputs], "-o", self.out)
                    self.assertEqual(self.out.stat().st_mode & 0o7777, mode)
            nettrace(command, *self.traces[:inputs], "-o", self.out, "--mode", "0604")
            self.assertEqual(self.out.stat().st_mode & 0o7777, 0o604)
            for wrong in ("0888", "rw", "", "04755", "1777"):
                _, error = nettrace(command, *self.traces[:inputs], "-o", self.out, f"--mode={wrong}", expect=2)
                self.assertIn("--mode", error)
        nettrace("repair", "-", "-o", self.out, stdin=self.traces[0].read_bytes())
        self.assertEqual(self.out.stat().st_mode & 0o7777, 0o600)

    def test_a_planted_link_is_not_written_through(self):
        victim = self.folder / "victim"
        victim.write_text("precious")
        self.out.symlink_to(victim)
        # Puts a link to the victim at a name that an attacker could expect for the temporary file.
        with subprocess.Popen([ARGS.nettrace, "repair", "-", "-o", self.out], stdin=subprocess.PIPE) as repair:
            planted = self.folder / f"out.nettrace.{repair.pid}.tmp"
            planted.symlink_to(victim)
            repair.communicate(self.traces[0].read_bytes())
        self.assertEqual(repair.returncode, 0)
        self.assertEqual(victim.read_text(), "precious")
        self.assertFalse(self.out.is_symlink())
        planted.unlink()

    def test_compressed_files_are_read_and_written(self):
        whole = self.folder / "whole.nettrace.zst"
        nettrace("repair", self.traces[0], "-o", whole)
        self.assertEqual(whole.read_bytes()[:4], b"\x28\xb5\x2f\xfd")
        self.assertLess(whole.stat().st_size, self.traces[0].stat().st_size)
        wanted = dump(self.traces[0])
        self.assertEqual(dump(whole), wanted)
        # The format is detected by content, not by name.
        other = self.folder / "compressed"
        other.write_bytes(whole.read_bytes())
        for file in (whole, other):
            nettrace("verify", "--strict", file)
            self.assertEqual(commands.info(ARGS.nettrace, file)["events"], len(wanted))
            for command in (["repair", file], ["cut", file], ["merge", file, file]):
                for name, magic in (("out.nettrace", b"Nett"), ("out.zst", b"\x28\xb5\x2f\xfd")):
                    output = self.folder / name
                    nettrace(*command, "-o", output)
                    self.assertEqual(output.read_bytes()[:4], magic)
                    self.assertEqual(commands.info(ARGS.nettrace, output)["events"], len(wanted) * (len(command) - 1))
                    output.unlink()
        out, _ = nettrace("dump", "--json", "-", stdin=whole.read_bytes())
        self.assertEqual([json.loads(line) for line in out.splitlines()], wanted)

    def test_a_compressed_file_that_is_cut_or_damaged(self):
        whole = self.folder / "whole.nettrace.zst"
        nettrace("merge", *12 * self.traces[:1], "-o", whole)  # The file has several chunks of 128 KB.
        bytes_ = whole.read_bytes()
        damaged = bytearray(bytes_)
        damaged[-2] ^= 1  # A bit of the checksum.
        cut = "the zstd data is truncated; copy the file again, or write its readable part with nettrace repair"
        for broken, reason in ((bytes_[:-2], cut), (bytes_[:len(bytes_) // 2], cut), (bytes_[:-6], cut),
                               (bytes(damaged), "zstd: .*checksum")):
            file = self.folder / "broken.zst"
            file.write_bytes(broken)
            events = len(nettrace("dump", "--json", file, expect=None)[0].splitlines())
            out, _ = nettrace("verify", file, expect=1)
            self.assertRegex(out, f"error: truncated: {reason}")
            nettrace("repair", file, "-o", self.out)
            nettrace("verify", "--strict", self.out)
            self.assertEqual(commands.info(ARGS.nettrace, self.out)["events"], events)
        window = self.folder / "window"
        window.write_bytes(b"\x28\xb5\x2f\xfd\0" + bytes([(31 - 10) << 3]) + b"\x09\0\0x")
        for command in (["dump"], ["info"], ["verify"], ["repair", "-o", self.out]):
            _, error = nettrace(command[0], window, *command[1:], expect=2)
            self.assertRegex(error, "window: .*zstd: .*memory")

    def test_limit_of_file_sizes_is_an_error(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        for command in (["merge", *self.traces[:2]], ["cut", self.traces[0]], ["repair", self.traces[0]]):
            with self.subTest(command[0]):
                ran = subprocess.run([ARGS.nettrace, *command, "-o", self.out], preexec_fn=limit, capture_output=True, text=True,
                                     check=False)
                self.assertEqual(ran.returncode, 1, ran)
                self.assertIn("File too large", ran.stderr)
                self.assertFalse(self.out.exists())

    def test_running_out_of_memory_names_the_file(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (200 << 20, 200 << 20))
        if subprocess.run([ARGS.nettrace, "--help"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          preexec_fn=limit, check=False).returncode != 0:
            self.skipTest("a sanitizer needs more address space than this test allows")
        # Metadata rows of 16,000 fields. A field has 4 bytes in the file, and takes 25 times as many in memory.
        rows = b""
        for index in range(250):
            row = bytes([index & 0x7f | 0x80, index >> 7]) + b"\x01P" + bytes([index & 0x7f | 0x80, index >> 7]) \
                + b"\x01N" + struct.pack("<H", 16000) + 16000 * b"\x02\x00\x00\x09" + b"\x00\x00"
            rows += trace_bytes.row(row)
        start = self.traces[0].read_bytes()
        trace_block = struct.unpack_from("<I", start, 20)[0] & 0xffffff
        large = self.folder / "large"
        large.write_bytes(start[:24 + trace_block] + trace_bytes.block(trace_bytes.METADATA, b"\0\0" + rows))
        for command in (["dump"], ["info"], ["verify"], ["repair", "-o", self.out], ["cut", "-o", self.out],
                        ["merge", self.traces[0], "-o", self.out]):
            ran = subprocess.run([ARGS.nettrace, command[0], large, *command[1:]], capture_output=True, preexec_fn=limit,
                                 check=False)
            self.assertEqual(ran.returncode, 2, (command, ran.stderr))
            self.assertIn(f"{large}", ran.stderr.decode())
            self.assertIn("not enough memory", ran.stderr.decode())
        self.assertFalse(self.out.exists())

    def hostile_trace(self):
        """Returns a trace with hostile names of threads, providers and events, and hostile keys."""
        bytes_ = self.traces[0].read_bytes()
        words = {event[key] for event in self.events for key in ("provider", "name", "thread") if event[key]}
        words |= set(commands.info(ARGS.nettrace, self.traces[0])["keyValues"])
        replaced = 0
        for i, word in enumerate(sorted(words, key=len, reverse=True)):
            old = word.encode()
            if len(old) >= 4:
                replaced += bytes_.count(old)
                bytes_ = bytes_.replace(old, (HOSTILE[i % len(HOSTILE):] + 20 * HOSTILE)[:len(old)])
        self.assertGreater(replaced, 5)
        return bytes_

    def test_hostile_names_do_not_reach_a_terminal(self):
        hostile = self.folder / os.fsdecode(b"trace-\x1b[31m\xe2\x80\xae\xff\xc2\x9b.nettrace")
        hostile.write_bytes(self.hostile_trace())
        cut = self.folder / os.fsdecode(b"cut-\x1b[31m.nettrace")
        cut.write_bytes(hostile.read_bytes()[:-3])
        out = self.folder / os.fsdecode(b"out-\x1b[31m.nettrace")
        missing = self.folder / os.fsdecode(b"missing-\x1b[31m")
        escapes = 0
        for file in (hostile, cut, missing):
            for command in (["dump"], ["dump", "--json"], ["info"], ["info", "--json"], ["verify", "--strict"],
                            ["verify", "--strict", "--json"], ["repair", "-o", out], ["cut", "-o", out],
                            ["merge", file, "-o", out]):
                ran = subprocess.run([ARGS.nettrace, command[0], file, *command[1:]], capture_output=True, check=False)
                with self.subTest(command=command, file=file):
                    check_printable(self, ran.stdout)
                    check_printable(self, ran.stderr)
                    escapes += (ran.stdout + ran.stderr).count(b"\\u001b")
                    if "--json" in command:
                        for line in ran.stdout.splitlines():
                            json.loads(line)
        self.assertGreater(escapes, 50)
        out.unlink()

    def test_hostile_arguments_do_not_reach_a_terminal(self):
        for arguments in (["\x1b[2J"], ["dump", "\x1b[2J", "\x1b[2J"], ["dump", "--pid", "\x1b[2J", "file"],
                          ["dump", "file", "--\x1b[2J"], ["dump", "--since", "\x1b[2J", "file"], ["dump", "--keyword", "\x1b[2J", "f"],
                          ["cut", "f", "-o", "o", "--mode", "\x1b[2J"], ["record", "-o", "x", "-e", "a:\x1b[2J"],
                          ["record", "-o", "x", "-e", "a", "--duration", "\x1b[2J"]):
            with self.subTest(arguments):
                ran = subprocess.run([ARGS.nettrace, *arguments], capture_output=True, check=False)
                self.assertEqual(ran.returncode, 2)
                check_printable(self, ran.stdout + ran.stderr)
                self.assertIn(b"\\u001b", ran.stderr)

    def test_progress_is_shown_on_a_terminal(self):
        for command, show in ((["dump"], "dump: "), (["info"], "info: "), (["verify"], "verify: "),
                              (["repair", "-o", self.out], "repair: "), (["cut", "-o", self.out], "cut: "),
                              (["merge", self.traces[1], "-o", self.out], "merge: ")):
            terminal = self.stopped_halfway(command, on_terminal=True)
            self.assertRegex(terminal, rf"\r\x1b\[Knettrace {show}\d+ MB")
            # The progress line is erased before the next line is printed.
            self.assertTrue(terminal.rpartition("MB")[2].startswith("\r\x1b[K"), terminal)
        self.assertEqual(self.stopped_halfway(["verify"], on_terminal=False), "")

    def stopped_halfway(self, command, on_terminal):
        """Returns standard error of a command that reads the second half of its input half a second after the first."""
        ours, theirs = pty.openpty() if on_terminal else os.pipe()
        bytes_ = self.traces[0].read_bytes()
        with subprocess.Popen([ARGS.nettrace, command[0], "-", *command[1:]], stdin=subprocess.PIPE,
                              stdout=subprocess.DEVNULL, stderr=theirs, env={**os.environ, "TERM": "xterm"}) as process:
            os.close(theirs)
            process.stdin.write(bytes_[:len(bytes_) // 2])
            process.stdin.flush()
            # The clock of the progress line starts before the command reads, so it runs once the input is read.
            until(lambda: unread(process.stdin) == 0)
            time.sleep(0.55)
            process.stdin.write(bytes_[len(bytes_) // 2:])
            process.stdin.close()
            text = b""
            while chunk := read_or_end(ours):
                text += chunk
        os.close(ours)
        self.assertEqual(process.returncode, 0, text)
        return text.decode()


def read_or_end(fd):
    try:
        return os.read(fd, 4096)
    except OSError:  # The other end of the terminal is closed.
        return b""


def unread(pipe):
    """Returns the number of unread bytes in a pipe."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "the condition was not met within 20 s"
        time.sleep(0.01)


if __name__ == "__main__":
    script.run_cases()
