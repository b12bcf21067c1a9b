#!/usr/bin/python3
"""Tests the script and the registration file that docs/guides/scripts.md shows, without any change. Needs root and a kernel
with user_events (./run vm)."""

import os
import pathlib
import subprocess
import tempfile
import unittest

from support import documents
from support import script

ARGS = script.options(__doc__, "source", "eventheader", "nettrace", "service")


def block(language):
    """Returns the content of the only block in this language that names this test."""
    [content] = [block.text for block in documents.taken_by(__file__, ARGS.source) if block.language == language]
    return content


class GuideTest(unittest.TestCase):
    def test_the_script_gets_the_very_first_event(self):
        path = os.pathsep.join(str(program.parent) for program in (ARGS.eventheader, ARGS.nettrace, ARGS.service))
        with tempfile.TemporaryDirectory(prefix="guide-") as folder:
            file = pathlib.Path(folder) / "script"
            file.write_text(block("sh"))
            file.chmod(0o755)
            done = subprocess.run([file], cwd=folder, env={**os.environ, "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"},
                                  capture_output=True, text=True, check=False, timeout=300)
            self.assertEqual(done.returncode, 0, done)
            first = done.stdout.splitlines()[-1]
            self.assertRegex(first, r"ExampleService.*RequestDone.*/items/0\b")

    def test_the_file_for_the_boot_is_right(self):
        done = subprocess.run([ARGS.eventheader, "register", "-i", "-"], input=block("conf"), capture_output=True, text=True,
                              check=False, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        listed = subprocess.run([ARGS.eventheader, "list", "Shop_*"], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertEqual(len(listed.splitlines()), 1 + 8 + 2)


if __name__ == "__main__":
    script.run_cases()
