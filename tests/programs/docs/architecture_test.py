#!/usr/bin/python3
"""Tests that the table of folders in docs/architecture.md matches the tree, and that the sources include only the
folders that it allows."""

import re
import unittest

from support import script

SOURCE = script.options(__doc__, "source").source

ROOMS = ("include", "libeventheader", "libnettrace-writer", "tools")
SOURCES = (".h", ".cc", ".c")
CELL = re.compile(r"`([^`]+)/`")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.MULTILINE)


def table():
    """Returns the folders that each folder may include directly, as the table of docs/architecture.md states them."""
    text = (SOURCE / "docs/architecture.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| `")]
    return {CELL.search(cells[0])[1]: set(CELL.findall(cells[2]))
            for cells in rows if len(cells) == 3 and cells[0].strip().startswith(tuple(f"`{room}/" for room in ROOMS))}


def reachable(folders):
    """Returns the folders that each folder may include, directly or through other folders."""
    result = {}
    for folder in folders:
        found, new = {folder}, [folder]
        while new:
            more = folders.get(new.pop(), set()) - found
            found |= more
            new += more
        result[folder] = found
    return result


def sources():
    return [path for room in ROOMS for path in sorted((SOURCE / room).rglob("*")) if path.suffix in SOURCES]


def folder_of_include(path, included):
    """Returns the folder of this tree that an include leads to; None if the file is elsewhere."""
    for root in (path.parent, SOURCE / "include", SOURCE, *(SOURCE / room for room in ROOMS)):
        if (root / included).is_file():
            return str((root / included).resolve().parent.relative_to(SOURCE.resolve()))
    return None


class ArchitectureTest(unittest.TestCase):
    def test_every_folder_with_sources_is_in_the_table(self):
        folders = {str(path.parent.relative_to(SOURCE)) for path in sources()}
        self.assertEqual(set(table()), folders)

    def test_sources_include_only_allowed_folders(self):
        allowed = reachable(table())
        for path in sources():
            folder = str(path.parent.relative_to(SOURCE))
            for included in INCLUDE.findall(path.read_text(encoding="utf-8")):
                target = folder_of_include(path, included)
                with self.subTest(source=str(path.relative_to(SOURCE)), included=included):
                    self.assertIn(target, {None, *allowed.get(folder, ())})

    def test_layers_include_only_those_above_them(self):
        folders = list(table())
        layers = folders[folders.index("tools/base"):folders.index("tools/collector/session") + 1]
        for number, folder in enumerate(layers):
            self.assertEqual(set(table()[folder]) & set(layers[number:]), set(), folder)

    def test_only_record_uses_the_engine(self):
        """Tests that only record.cc includes the collector and headers of the kernel, and only the sources of ctl
        include the control library. The table of folders cannot state this, because these sources are in one folder."""
        only = {"tools/control": ("ctl.cc", "ctl_tables.cc", "ctl_tables.h"), "tools/collector/session": ("record.cc",)}
        for path in sorted((SOURCE / "tools/nettrace").glob("*")):
            if path.suffix in SOURCES:
                for included in INCLUDE.findall(path.read_text(encoding="utf-8")):
                    target = folder_of_include(path, included)
                    with self.subTest(source=path.name, included=included):
                        if path.name != "record.cc":
                            self.assertFalse((target or "").startswith("tools/collector"))
                            self.assertFalse(included.startswith(("tracefs", "traceevent/", "linux/")))
                        self.assertIn(path.name, only.get(target, (path.name,)))


if __name__ == "__main__":
    script.run_cases()
