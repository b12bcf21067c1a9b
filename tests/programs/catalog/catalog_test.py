#!/usr/bin/python3
"""Tests `eventheader catalog`: it lists the event sets and events of programs and shared objects, however they are
linked."""

import json
import pathlib
import subprocess
import tempfile
import unittest

from support import script

ARGS = script.options(__doc__, "eventheader", "plain", "shared_object", "no_pie", "small")
PROBES = {name: getattr(ARGS, name) for name in ("plain", "shared_object", "no_pie", "small")}
EVENTS = {
    "Probe_C_L4K10": [],
    "Probe_C_L5K1": ["InC(text)"],
    "Probe_Macro_L3K3": ["Statement(point{x, y}, numbers[])"],
    "Probe_Own_L1K0": ["OfThisFileAlone()"],
    "Probe_Shared_L4K2Ggroup": ["Elsewhere()"],
    "Probe_Shared_L4K4Ggroup": ["Uncalled()"],
    "Probe_Shared_L4K8000000000000000Ggroup": ["Both(path, status)"],
}
# The tracepoint of an event in a function that is never called. Linkers differ in whether they keep such a function.
UNCALLED = "Probe_Shared_L4K4Ggroup"


def run(*arguments, status=0):
    done = subprocess.run([ARGS.eventheader, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != status:
        raise AssertionError(f"{arguments}: exit status {done.returncode} instead of {status}: {done.stderr}")
    return done.stdout, done.stderr


def shown(table):
    """Parses the table that `eventheader catalog` prints. Returns the events of each tracepoint."""
    events = {}
    tracepoint = None
    for line in table.splitlines()[1:]:
        if line.startswith("    "):
            events[tracepoint].append(line.strip())
        else:
            tracepoint = line.strip()
            events[tracepoint] = []
    return events


class CatalogTest(unittest.TestCase):
    maxDiff = None

    def test_lists_all_events_for_each_way_of_linking(self):
        for name, probe in PROBES.items():
            with self.subTest(name):
                found = shown(run("catalog", probe)[0])
                if name == "small":
                    found[UNCALLED] = EVENTS[UNCALLED]
                self.assertEqual(found, EVENTS)

    def test_strip_keeps_the_catalogue(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, probe in PROBES.items():
                with self.subTest(name):
                    stripped = pathlib.Path(folder) / name
                    subprocess.run(["strip", "--strip-all", "-o", stripped, probe], check=True)
                    self.assertEqual(shown(run("catalog", stripped)[0]), shown(run("catalog", probe)[0]))

    def test_json_has_the_fields(self):
        sets = {line["tracepoint"]: line for line in map(json.loads, run("catalog", "--json", ARGS.plain)[0].splitlines())}
        self.assertEqual(set(sets), set(EVENTS))
        both = sets["Probe_Shared_L4K8000000000000000Ggroup"]
        self.assertEqual((both["provider"], both["level"], both["keyword"], both["group"], both["file"]),
                         ("Probe_Shared", 4, "0x8000000000000000", "group", str(ARGS.plain)))
        event, = both["events"]
        self.assertEqual((event["name"], event["id"], event["version"]), ("Both", 3, 1))
        self.assertEqual([(field["name"], field["type"]) for field in event["fields"]],
                         [("path", "string_length16_char8 string_utf"), ("status", "value32 signed_int")])
        statement, = sets["Probe_Macro_L3K3"]["events"]
        point, numbers = statement["fields"]
        self.assertEqual([field["name"] for field in point["fields"]], ["x", "y"])
        self.assertEqual((numbers["name"], numbers["array"]), ("numbers", "[]"))

    def test_files_without_events_and_files_that_are_no_programs(self):
        _, said = run("catalog", "/bin/true", status=3)
        self.assertIn("/bin/true: no events", said)
        for path in ("/etc/passwd", "/no/such/program"):
            _, said = run("catalog", path, status=1)
            self.assertIn(path, said)
        _, said = run("catalog", "no-such-package", status=1)
        self.assertIn("no such file, and no such installed Debian package", said)
        # The command shows the second file although the first file does not exist.
        self.assertEqual(shown(run("catalog", "/no/such/program", ARGS.plain, status=1)[0]), EVENTS)


if __name__ == "__main__":
    script.run_cases()
