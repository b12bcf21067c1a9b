#!/usr/bin/python3
"""Tests `nettrace import` as a user runs it: what it refuses, and what is left when it fails. tests/conformance tests
traces of other writers."""

import os
import pathlib
import subprocess
import tempfile
import unittest

from support import script

ARGS = script.options(__doc__, "nettrace", "generate")
MAGIC = bytes.fromhex("1000044678541600")


class ImportTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="nettrace-import-")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.out = self.folder / "out.nettrace"

    def nettrace(self, *arguments, expect=0, **options):
        """Runs nettrace; returns its standard output and error."""
        ran = subprocess.run([ARGS.nettrace, *map(str, arguments)], check=False, capture_output=True,
                             stdin=options.pop("stdin", subprocess.DEVNULL), **options)
        self.assertEqual(ran.returncode, expect, (arguments, ran.stderr))
        return ran.stdout.decode(), ran.stderr.decode()

    def load(self, source, *arguments, expect=0, form="ctf", **options):
        """Imports a trace; returns the messages."""
        return self.nettrace("import", "--from", form, source, "-o", self.out, *arguments, expect=expect, **options)[1]

    def trace(self):
        """Returns a CTF trace with the events of a file, and that file."""
        subprocess.run([ARGS.generate, self.folder, "50", "1"], check=True)
        file = self.folder / "random-1.nettrace"
        os.chmod(file, 0o640)
        folder = self.folder / "trace"
        self.nettrace("export", "--to", "ctf", file, "-o", folder)
        return folder, file

    def check_nothing_is_left(self):
        left = [path.name for path in self.folder.iterdir() if path.name.startswith((".", "out"))]
        self.assertEqual(left, [])

    def test_a_trace_becomes_a_file_that_verifies(self):
        folder, file = self.trace()
        said = self.load(folder)
        self.nettrace("verify", self.out)
        shown = [self.nettrace("dump", "--json", each)[0].count("\n") for each in (file, self.out)]
        self.assertEqual(*shown)
        self.assertIn(f"{shown[0]} events, ", said)
        self.assertEqual(self.out.stat().st_mode & 0o777, 0o640)
        self.load(folder, "--mode", "0600")
        self.assertEqual(self.out.stat().st_mode & 0o777, 0o600)

    def test_a_name_that_ends_in_zst_is_compressed(self):
        folder, file = self.trace()
        self.out = self.folder / "out.nettrace.zst"
        self.load(folder)
        self.assertEqual(self.out.read_bytes()[:4], bytes.fromhex("28b52ffd"))
        self.assertEqual(*[self.nettrace("dump", "--json", each)[0].count("\n") for each in (file, self.out)])

    def test_traces_below_the_directory_become_one_file(self):
        folder, file = self.trace()
        session = self.folder / "session"
        (session / "kernel").mkdir(parents=True)
        os.rename(folder, session / "ust")
        self.nettrace("export", "--to", "ctf", file, "-o", session / "kernel")
        self.load(session)
        one, both = [self.nettrace("dump", "--json", each)[0].count("\n") for each in (file, self.out)]
        self.assertEqual(both, 2 * one)
        self.nettrace("verify", self.out)

    def test_invalid_input_is_refused(self):
        empty = self.folder / "empty"
        empty.mkdir()
        self.assertIn("empty: neither this directory nor one below it has a file 'metadata'", self.load(empty, expect=2))
        self.assertIn("No such file", self.load(self.folder / "none", expect=2))
        (empty / "metadata").write_text("/* CTF 1.8 */\nnonsense { };\n")
        self.assertIn("metadata: line 2: 'nonsense' is not a declaration", self.load(empty, expect=2))
        (empty / "metadata").write_text("")
        (empty / "stream").write_bytes(b"x")
        self.assertIn("stream: at byte 0: the metadata declares no event with id 0 for this stream", self.load(empty, expect=1))
        self.out.unlink()
        os.mkfifo(empty / "pipe")
        self.assertIn("pipe: not a regular file", self.load(empty, expect=2))
        for content in (b"", b"Nettrace", bytes(64)):
            (self.folder / "no.fxt").write_bytes(content)
            self.assertIn("not a Fuchsia trace", self.load(self.folder / "no.fxt", form="fxt", expect=2))
        self.load(empty, form="perfetto", expect=2)
        self.check_nothing_is_left()

    def test_a_cut_trace_is_imported_up_to_the_cut(self):
        folder, file = self.trace()
        stream = max(folder.glob("stream-*"), key=lambda path: path.stat().st_size)
        stream.write_bytes(stream.read_bytes()[:-3])
        said = self.load(folder, expect=1)
        self.assertRegex(said, f"{stream.name}: at byte [0-9]+: the file ends within an event")
        self.assertIn("all undamaged parts were written", said)
        self.nettrace("verify", self.out)
        whole, left = [self.nettrace("dump", "--json", each)[0].count("\n") for each in (file, self.out)]
        self.assertEqual(left, whole - 1)

    def test_a_fuchsia_trace_may_come_from_a_pipe(self):
        ran = subprocess.run([ARGS.nettrace, "import", "--from", "fxt", "-", "-o", self.out], input=MAGIC + b"\x24",
                             capture_output=True, check=False)
        self.assertEqual(ran.returncode, 1, ran.stderr)
        self.assertIn(b"standard input: at byte 8: a record is cut", ran.stderr)
        self.assertEqual(self.out.stat().st_mode & 0o777, 0o600)
        self.nettrace("verify", self.out)

    def test_an_output_that_cannot_be_written_leaves_nothing(self):
        folder, _ = self.trace()
        self.out = self.folder / "none" / "out"
        self.assertIn("nothing was written", self.load(folder, expect=1))
        self.out = "-"
        self.assertIn("name a file", self.load(folder, expect=2))
        self.check_nothing_is_left()


if __name__ == "__main__":
    script.run_cases(lambda: None)
