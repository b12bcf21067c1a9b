#!/usr/bin/python3
"""Tests the stacks in the page of `nettrace report`: their sums are those of `nettrace export --to folded`, and what a
small page has no room for is counted. report_stacks_browser_test.py tests the page in a browser."""

import collections
import html.parser
import json
import pathlib
import re
import subprocess
import tempfile
import unittest

from support import script

ARGS = script.options(__doc__, "nettrace", "traces")
MEGABYTE = 1 << 20
# The views of the page, and the names of their events.
EVENTS = {"CPU samples": "cpu", "Time off the CPU": "cswitch", "Sale (Shop)": "Sale"}


class Tables(html.parser.HTMLParser):
    """The rows of the tables of functions, by caption: each has a name, the sum of the function itself and that with callees."""

    def __init__(self, text):
        super().__init__()
        self.rows, self._rows, self._text = {}, None, None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "table":
            self._rows = [] if attrs["id"].startswith("functions-") else None
        elif tag == "tr" and self._rows is not None:
            self._rows.append([])
        elif tag in ("caption", "th", "td"):
            self._text = attrs.get("data-value", "")

    def handle_data(self, data):
        if self._text is not None:
            self._text += data if not self._text.isdigit() else ""

    def handle_endtag(self, tag):
        if self._rows is None or tag not in ("caption", "th", "td"):
            return
        if tag == "caption":
            self.rows[self._text] = self._rows
        else:
            self._rows[-1].append(self._text)
        self._text = None

    def functions(self, view):
        """Returns the sums by function of a view."""
        [rows] = [rows for caption, rows in self.rows.items() if view in caption]
        return {row[0]: (int(row[1]), int(row[3])) for row in rows[1:]}


class ReportStacksTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="stacks-")
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        subprocess.run([ARGS.traces, cls.folder], check=True)

    def page(self, name, *options):
        """Writes a page, and returns its text and the stacks in its JSON."""
        out = self.folder / "report.html"
        subprocess.run([ARGS.nettrace, "report", self.folder / f"{name}.nettrace", "-o", out, *options],
                       stderr=subprocess.DEVNULL, check=True)
        text = out.read_text(encoding="utf-8")
        return text, json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])["stacks"]

    def folded(self, name, event):
        """Returns the sums of an export, by the functions of the stack."""
        lines = subprocess.run([ARGS.nettrace, "export", "--to", "folded", "--event", event, self.folder / f"{name}.nettrace", "-o", "-"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout.splitlines()
        return {tuple(stack.split(";")[1:]): int(count) for stack, count in (line.rsplit(" ", 1) for line in lines)}

    def stacks_of(self, stacks, view):
        """Returns the sums of a view of the page, by the functions of the stack."""
        nodes = [(0, None)] + list(zip(stacks["nodes"][::2], stacks["nodes"][1::2]))
        sums = collections.Counter()
        numbers = iter(view["self"])
        for node, _, weight in zip(numbers, numbers, numbers):
            path = []
            while node != 0:
                node, function = nodes[node]
                path.insert(0, stacks["functions"][function][0])
            sums[tuple(path)] += int(weight)
        return sums

    def test_sums_are_those_of_the_export(self):
        for name, size in (("stacks", "1M"), ("many", "100M")):
            text, stacks = self.page(name, "--size", size)
            tables = Tables(text)
            for view in stacks["views"]:
                with self.subTest(name=name, view=view["name"]):
                    folded = self.folded(name, EVENTS[view["name"]])
                    self.assertEqual(view["total"], sum(folded.values()))
                    self.assertEqual(view["leftOut"], 0)
                    self.assertEqual(self.stacks_of(stacks, view), folded)
                    own, total = collections.Counter(), collections.Counter()
                    for stack, count in folded.items():
                        own[stack[-1]] += count
                        total.update(dict.fromkeys(stack, count))
                    functions = tables.functions(view["name"])
                    self.assertEqual(functions, {function: (own[function], total[function]) for function in functions})
                    self.assertEqual(len(functions), min(50, len(total)))

    def test_a_small_page_counts_what_is_left_out(self):
        text, stacks = self.page("many", "--size", "1M")
        self.assertLessEqual(len(text.encode()), MEGABYTE)
        [view] = stacks["views"]
        folded = self.folded("many", "cpu")
        self.assertEqual(view["total"], sum(folded.values()))
        self.assertEqual(view["leftOut"], sum(map(int, view["below"][2::3])))
        self.assertEqual(sum(map(int, view["self"][2::3])) + view["leftOut"], view["total"])
        self.assertGreater(view["leftOut"], 10_000)
        self.assertLessEqual(len(json.dumps(stacks, separators=(",", ":"))), MEGABYTE / 8)
        # The page leaves out rare stacks, but has the stack with the most samples, and the function at the second level
        # of each stack.
        sums = self.stacks_of(stacks, view)
        most = max(folded, key=folded.get)
        self.assertEqual(sums[most], folded[most])
        self.assertEqual(len({path[1] for path in folded} - {function for function, _ in stacks["functions"]}), 0)

    def test_functions_without_a_name_are_reported(self):
        text, _ = self.page("stacks")
        self.assertIn("2 events have functions without a name on the stack, of 14 events with stacks.", text)
        self.assertIn("&#39;nettrace symbolize FILE&#39;", text)

    def test_a_trace_without_stacks_has_no_section(self):
        text, stacks = self.page("plain")
        self.assertIsNone(stacks)
        self.assertIn('<section aria-labelledby="stacks" hidden>', text)
        self.assertIn('<li hidden><a href="#stacks">', text)


if __name__ == "__main__":
    script.run_cases()
