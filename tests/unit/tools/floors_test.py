#!/usr/bin/python3
"""Every #include in tools/ goes downwards: a floor of the engine includes those below it and no other, and the
commands of nettrace that read files include nothing of the engine.
Usage: floors_test.py TOOLS"""

import pathlib
import re
import sys
import unittest

TOOLS = pathlib.Path(sys.argv[1])
FLOORS = ["base", "perf", "tracefs", "identity", "convert", "session"]  # From the ground up.
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.MULTILINE)
# Sources in tools/nettrace that may use the engine.
ENGINE_USERS = {"record.cc"}


def includes(folder):
    """Pairs of a source below tools/ and what it includes."""
    for path in sorted((TOOLS / folder).rglob("*")):
        if path.suffix in (".c", ".cc", ".h"):
            for name in INCLUDE.findall(path.read_text()):
                yield path.relative_to(TOOLS), name


class FloorsTest(unittest.TestCase):
    def test_every_folder_of_the_engine_is_a_floor(self):
        folders = {path.name for path in (TOOLS / "collector").iterdir() if path.is_dir()}
        self.assertEqual(folders, set(FLOORS))

    def test_floors_include_those_below_them_only(self):
        for number, floor in enumerate(FLOORS):
            below = {f"tools/collector/{name}" for name in FLOORS[:number + 1]} | {"tools/common"}
            seen = 0
            for source, name in includes(f"collector/{floor}"):
                seen += 1
                if name.startswith("tools/"):
                    self.assertIn(str(pathlib.PurePath(name).parent), below, f"{source} includes {name}")
            self.assertGreater(seen, 0, floor)

    def test_common_includes_the_ground_floor_only(self):
        for source, name in includes("common"):
            if name.startswith("tools/"):
                self.assertIn(str(pathlib.PurePath(name).parent), {"tools/common", "tools/collector/base"},
                              f"{source} includes {name}")

    def test_file_commands_include_nothing_of_the_kernel(self):
        forbidden = ("tools/collector/", "tracefs", "traceevent/", "linux/")
        for source, name in includes("nettrace"):
            if source.name not in ENGINE_USERS:
                self.assertFalse(name.startswith(forbidden), f"{source} includes {name}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
