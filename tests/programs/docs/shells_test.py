#!/usr/bin/python3
"""Tests that the commands of the documents, of the manual pages' examples and of --help do what is described. Runs
only the commands for one place (--place): here, in the VM with user_events, or in the VM with systemd."""

import pathlib
import re
import subprocess
import sys
import time
import unittest

from support import document_shell
from support import documents
from support import script

PARSER = script.parser(__doc__, "source")
PARSER.add_argument("--place", required=True, choices=documents.PLACES)
PARSER.add_argument("--program", action="append", required=True, type=pathlib.Path, metavar="PATH", dest="programs")
# With these variables, services pass events through rings and not by user_events, so recordings need no rights. The
# socket is in the folder of the shell, so no other program uses it.
RINGS = {"EVENTHEADER_TRANSPORT": "ring", "EVENTHEADER_SOCKET": "events"}
# The programs whose --help has examples.
OURS = ("eventheader", "nettrace", "nettraced")


def shells():
    """Returns the blocks of each shell by its name, which is a document or a program. The blocks of a program are the
    examples of its manual pages and of its --help; an example that occurs twice runs once."""
    result = {name: blocks for name, blocks in documents.of_tree(ARGS.source).items() if blocks}
    pages = documents.of_pages(ARGS.source)
    for program in [program for program in ARGS.programs if program.name in OURS]:
        examples = [block for name, blocks in pages.items() for block in blocks
                    if re.match(rf"{program.name}[-.]", pathlib.Path(name).name)] + documents.of_help(program)
        once = {}
        for block in examples:
            once.setdefault(block.text.partition(" #")[0].strip(), block)
        result[program.name] = list(once.values())
    return result


def unregister_all():
    """Unregisters all tracepoints, because other tests in the same VM need a kernel without tracepoints. Must not be
    called under systemd, where nettraced holds the tracepoints that it records. Waits, because the kernel deletes the
    tracepoints of a process a moment after its end."""
    [eventheader] = [program for program in ARGS.programs if program.name == "eventheader"]
    end = time.monotonic() + 60
    while True:
        done = subprocess.run([eventheader, "unregister", "*"], capture_output=True, text=True, check=False)
        if done.returncode in (0, 3):  # 3: there are no tracepoints
            return
        assert time.monotonic() < end, f"tracepoints were still registered after 60 s: {done.stderr}"
        time.sleep(0.1)


class ShellsTest(unittest.TestCase):
    def setUp(self):
        if ARGS.place == "vm":
            self.addCleanup(unregister_all)

    def run_shell(self, name, blocks):
        chosen = [block for block in blocks if block.way == "run" and ARGS.place in block.places]
        before = ARGS.source / "tests/programs/docs/before" / f"{pathlib.Path(name).stem}.sh"
        document_shell.run(chosen, ARGS.programs, before if before.exists() else None, each=name in OURS,
                           files=[block for block in blocks if "as" in block.marker],
                           environment={"PLACE": ARGS.place, **(RINGS if ARGS.place == "here" else {})})
        return len(chosen)


def add_cases():
    """Adds a case for each shell that has commands for this place."""
    for name, blocks in shells().items():
        if any(block.way == "run" and ARGS.place in block.places for block in blocks):
            def case(self, name=name, blocks=blocks):
                self.assertGreater(self.run_shell(name, blocks), 0)
            setattr(ShellsTest, f"test_{name.replace('/', '_').replace('.', '_').replace('-', '_')}", case)


if __name__ == "__main__":
    ARGS, rest = PARSER.parse_known_args()
    sys.argv[1:] = rest
    add_cases()
    script.run_cases()
