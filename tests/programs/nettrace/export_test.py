#!/usr/bin/python3
"""Tests `nettrace export` as a user runs it: what it refuses, and what is left when it fails. tests/conformance tests
its output with babeltrace2."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from support import commands
from support import script
from support import trace_bytes

ARGS = script.options(__doc__, "nettrace", "generate")


def long_file(path, intervals):
    """Writes a file of events with two numbers each."""
    trace_bytes.write_long(path, intervals, [bytes([1, name]) + b"\x0c" for name in b"ab"], bytes(16))


class ExportTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="nettrace-export-")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.out = self.folder / "out"
        subprocess.run([ARGS.generate, self.folder, "200", "1"], check=True)
        self.trace = self.folder / "random-1.nettrace"
        os.chmod(self.trace, 0o640)

    def export(self, *arguments, expect=0, to="ctf", **options):
        """Runs the export; returns its standard error."""
        ran = subprocess.run([ARGS.nettrace, "export", "--to", to, *map(str, arguments)], check=False,
                             stdin=options.pop("stdin", subprocess.DEVNULL), stderr=subprocess.PIPE, **options)
        self.assertEqual(ran.returncode, expect, (arguments, ran.stderr))
        return ran.stderr.decode()

    def check_nothing_is_left(self, folder=None):
        left = [path.name for path in (folder or self.folder).iterdir()
                if path.suffix not in (".nettrace", ".expected")]
        self.assertEqual(left, [])

    def test_replaces_only_an_empty_directory(self):
        self.out.mkdir()
        self.export(self.trace, "-o", f"{self.out}/")
        self.assertTrue((self.out / "metadata").read_text().startswith("/* CTF 1.8 */\n"))
        self.assertIn("already exists", self.export(self.trace, "-o", self.out, expect=1))
        self.assertIn("already exists", self.export(self.trace, "-o", self.trace, expect=1))
        self.assertIn("name a path", self.export(self.trace, "-o", "-", expect=2))

    def test_trace_has_the_access_rights_of_the_file(self):
        for options, file_mode, folder_mode in (((), 0o640, 0o750), (("--mode", "0604"), 0o604, 0o705)):
            out = self.folder / f"out{len(options)}"
            self.export(self.trace, "-o", out, *options)
            self.assertEqual(out.stat().st_mode & 0o777, folder_mode)
            self.assertEqual({path.stat().st_mode & 0o777 for path in out.iterdir()}, {file_mode})

    def test_a_cut_file_is_exported_up_to_there(self):
        cut = self.folder / "cut.nettrace"
        cut.write_bytes(self.trace.read_bytes()[:-20])
        self.assertIn("everything before the damage was written", self.export(cut, "-o", self.out, expect=1))
        self.assertTrue((self.out / "metadata").is_file())

    def test_invalid_input_leaves_nothing(self):
        other = self.folder / "other.nettrace"
        other.write_bytes(b"no trace")
        self.export(other, "-o", self.out, expect=2)
        self.export(self.folder / "absent.nettrace", "-o", self.out, expect=2)
        self.export(self.trace, "-o", self.folder / "absent" / "out", expect=1)
        self.check_nothing_is_left()

    def test_exports_of_stacks_need_stacks(self):
        file = self.folder / "long.nettrace"
        long_file(file, 1)
        for to in ("folded", "speedscope", "pprof"):
            error = self.export(file, "-o", self.out, to=to, expect=1)
            self.assertIn("none of 50000 events has a stack; record stacks with 'nettrace record --stacks'", error)
        self.check_nothing_is_left()

    def test_stacks_are_added_up(self):
        error = self.export(self.trace, "-o", self.out, to="folded")
        lines = self.out.read_text().splitlines()
        with_stack = [event for event in commands.dump(ARGS.nettrace, self.trace) if "stack" in event]
        self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in lines), len(with_stack))
        self.assertRegex(error, r"\d+ events without a stack left out\n")
        for to in ("speedscope", "pprof"):
            self.export(self.trace, "-o", self.out, to=to)
            self.assertGreater(self.out.stat().st_size, 100)

    def test_other_exports_report_that_they_have_no_stacks(self):
        with_stack = sum("stack" in event for event in commands.dump(ARGS.nettrace, self.trace))
        for to in ("json", "fxt", "csv", "parquet"):
            self.assertIn(f"{with_stack} events with a stack, but {to} has no stacks;",
                          self.export(self.trace, "-o", self.out, to=to))
        self.assertIn("ctf has only the addresses;", self.export(self.trace, "-o", self.folder / "ctf", to="ctf"))
        long_file(self.trace, 1)
        self.assertNotIn("stack", self.export(self.trace, "-o", self.out, to="json"))

    def test_weight_is_for_stacks_only(self):
        self.assertIn("--weight: needs --to folded", self.export(self.trace, "-o", self.out, "--weight", "Value",
                                                                 to="csv", expect=2))
        self.assertIn("number in the field Nothing", self.export(self.trace, "-o", self.out, "--weight", "Nothing",
                                                                 to="folded", expect=1))
        self.check_nothing_is_left()

    def test_time_is_chosen_by_until(self):
        file = self.folder / "long.nettrace"
        long_file(file, 1)
        error = self.export(file, "-o", self.out, "--since", "2026-11-21T10:00:00.000000002Z", "--until",
                            "2026-11-21T10:00:00.000000007Z")
        self.assertIn("out: 5 events", error)
        self.assertIn("--to", self.export(self.trace, "-o", self.out, to="other", expect=2))

    def test_options_that_would_do_nothing_are_refused(self):
        for profile, form in (("lttng", "csv"), ("speedscope", "ctf")):
            self.assertIn("lttng needs --to ctf", self.export(self.trace, "-o", self.out, "--profile", profile, to=form, expect=2))
        self.assertIn("never compressed", self.export(self.trace, "-o", f"{self.out}.zst", to="json", expect=2))

    def test_csv_cannot_read_a_pipe_twice(self):
        read, write = os.pipe()
        os.close(write)
        with open(read, "rb") as pipe:
            self.assertIn("save the stream to a file first",
                          self.export("-", "-o", self.out, to="csv", stdin=pipe, expect=2))

    def test_a_file_replaces_one(self):
        for to in ("csv", "fxt", "json", "otlp", "otlp-json", "parquet"):
            self.out.write_text("old")
            self.export(self.trace, "-o", self.out, to=to)
            self.assertGreater(self.out.stat().st_size, 100)
            self.assertEqual(self.out.stat().st_mode & 0o777, 0o640)
            self.export(self.trace, "-o", self.folder / "absent" / "out", to=to, expect=1)

    def test_reads_standard_input(self):
        with open(self.trace, "rb") as trace:
            self.export("-", "-o", self.out, stdin=trace)
        self.assertTrue((self.out / "metadata").is_file())

    def test_files_are_also_written_to_standard_output(self):
        for to in ("otlp", "otlp-json", "csv", "json", "fxt", "parquet"):
            self.export(self.trace, "-o", self.out, to=to)
            with open(self.folder / "piped", "wb") as piped:
                error = self.export(self.trace, "-o", "-", to=to, stdout=piped)
            self.assertRegex(error, "standard output: [0-9]+ events, 0 lost\n$")
            self.assertEqual((self.folder / "piped").read_bytes(), self.out.read_bytes())
        with open("/dev/full", "wb") as full:
            error = self.export(self.trace, "-o", "-", to="otlp", stdout=full, expect=1)
        self.assertIn("No space left on device", error)

    def test_otlp_has_the_events_of_the_filters(self):
        levels = {}
        for options in ((), ("--level", "error")):
            self.export(self.trace, "-o", self.out, *options, to="otlp-json")
            with open(self.out, encoding="utf-8") as lines:
                levels[options] = [record.get("severityNumber", 0) for line in lines
                                   for resource in json.loads(line)["resourceLogs"]
                                   for scope in resource["scopeLogs"] if scope["scope"]["name"] != "nettrace"
                                   for record in scope["logRecords"]]
        every, errors = levels.values()
        self.assertGreater(len(every), len(errors))
        self.assertEqual(sorted(errors), sorted(level for level in every if level == 0 or level >= 17))

    def test_binary_formats_are_not_written_to_a_terminal(self):
        main, terminal = os.openpty()
        try:
            for to in ("otlp", "fxt", "pprof", "parquet"):
                self.assertIn(f"standard output is a terminal, and {to} is binary",
                              self.export(self.trace, "-o", "-", to=to, stdout=terminal, expect=2))
        finally:
            os.close(main)
            os.close(terminal)

    def test_parquet_can_be_a_folder_of_tables(self):
        os.chmod(self.trace, 0o440)
        for options in (("--typed",), ("--partition", "date,hour,host"), ("--typed", "--partition", "date")):
            error = self.export(self.trace, "-o", self.out, *options, to="parquet")
            self.assertRegex(error, r"out: \d+ events")
            files = [path for path in self.out.rglob("*") if path.is_file()]
            self.assertGreater(len(files), 0)
            for path in files:
                self.assertEqual((path.suffix, path.stat().st_mode & 0o777), (".parquet", 0o440))
                self.assertEqual(path.read_bytes()[-4:], b"PAR1")
            self.assertIn("already exists", self.export(self.trace, "-o", self.out, *options, to="parquet", expect=1))
            shutil.rmtree(self.out)
        self.assertIn("name a path", self.export(self.trace, "-o", "-", "--typed", to="parquet", expect=2))
        self.assertIn("--typed: needs --to parquet", self.export(self.trace, "-o", self.out, "--typed", to="csv", expect=2))
        self.assertIn("hour needs date", self.export(self.trace, "-o", self.out, "--partition", "hour", to="parquet", expect=2))
        self.assertIn("--partition", self.export(self.trace, "-o", self.out, "--partition", "pid", to="parquet", expect=2))
        self.check_nothing_is_left()

    def test_a_full_disk_leaves_nothing(self):
        disk = self.folder / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256K", "none", disk], stderr=subprocess.DEVNULL,
                          check=False).returncode != 0:
            self.skipTest("no tmpfs can be mounted")
        try:
            long_file(self.folder / "long.nettrace", 1)
            for to in ("ctf", "csv", "fxt", "json", "otlp", "otlp-json"):
                error = self.export(self.folder / "long.nettrace", "-o", disk / "out", to=to, expect=1)
                self.assertIn("No space left on device", error)
                self.assertIn("nothing was written", error)
                self.check_nothing_is_left(disk)
            # In Parquet, these events fit on the disk, so another file takes most of its space first.
            (disk / "other.expected").write_bytes(bytes(240 << 10))
            for options in ((), ("--typed", "--partition", "date")):
                error = self.export(self.folder / "long.nettrace", "-o", disk / "out", *options, to="parquet", expect=1)
                self.assertIn("nothing was written", error)
                self.check_nothing_is_left(disk)
        finally:
            subprocess.run(["umount", disk], check=True)

    def test_a_signal_leaves_nothing(self):
        file = self.folder / "long.nettrace"
        long_file(file, 20)
        for number in (signal.SIGINT, signal.SIGTERM):
            for _ in range(10):  # Tries again if the export ends before the signal arrives.
                with subprocess.Popen([ARGS.nettrace, "export", "--to", "ctf", file, "-o", self.out],
                                      stderr=subprocess.PIPE) as process:
                    while not any(self.folder.glob(".nettrace-*/stream-0")) and process.poll() is None:
                        time.sleep(0.001)
                    process.send_signal(number)
                    _, error = process.communicate()
                if process.returncode != 0:
                    break
                shutil.rmtree(self.out)
            self.assertEqual(process.returncode, 1, error)
            self.assertIn(b"stopped by a signal", error)
            self.check_nothing_is_left()

    @commands.measures_memory(ARGS.nettrace)
    def test_memory_does_not_grow_with_the_file(self):
        files = {intervals: self.folder / f"{intervals}.nettrace" for intervals in (2, 10)}
        for intervals, file in files.items():
            long_file(file, intervals)
        for to in ("ctf", "csv", "fxt", "json", "otlp", "otlp-json"):
            peaks = [commands.peak_memory(ARGS.nettrace, "export", "--to", to, file, "-o", self.folder / f"{file.stem}.{to}")
                     for file in files.values()]
            print(f"{to}: {peaks} KiB", flush=True)
            self.assertLess(peaks[1], 1.2 * peaks[0] + 2048, (to, peaks))


if __name__ == "__main__":
    script.run_cases(lambda: None)
