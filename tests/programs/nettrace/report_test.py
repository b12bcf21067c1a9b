#!/usr/bin/python3
"""Tests `nettrace report` as a user runs it: the numbers of its page, as JSON and in its tables, compared with
`nettrace dump` and `nettrace info`; hostile names; what it refuses, and what is left when it fails.
report_browser_test.py tests the page in a browser."""

import collections
import html.parser
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest

from support import commands, script, trace_bytes, trace_folder

ARGS = script.options(__doc__, "nettrace", "generate", "traces", "corpus")
MAX_NAME = 256


def long_file(path, intervals):
    """Writes a file of events with two numbers each."""
    trace_bytes.write_long(path, intervals, [bytes([1, name]) + b"\x0c" for name in b"ab"], bytes(16))


class Page(html.parser.HTMLParser):
    """The elements, texts, tables and JSON of a page, as a browser without scripts reads them."""

    def __init__(self, path):
        super().__init__()
        self.tags, self.tables, self.texts = collections.Counter(), {}, []
        self.policy = None
        self._raw, self._table, self._json = None, None, ""
        self.size = path.stat().st_size
        self.feed(path.read_text(encoding="utf-8"))
        self.close()
        self.data = json.loads(self._json)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags[tag] += 1
        assert not any(name.startswith("on") for name in attrs), f"<{tag}> has a script in an attribute: {attrs}"
        if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy":
            self.policy = attrs["content"]
        if tag == "script":
            self._raw = attrs.get("type", "script")
        elif tag == "style":
            self._raw = "style"
        elif tag == "table":
            self._table = self.tables.setdefault(attrs["id"], [])
        elif tag == "tr" and self._table is not None:
            self._table.append([])
        elif tag in ("td", "th"):
            self._table[-1].append(attrs.get("data-value", ""))
            self._exact = "data-value" in attrs

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self._raw = None
        elif tag == "table":
            self._table = None

    def handle_data(self, data):
        if self._raw == "application/json":
            self._json += data
        elif self._raw is None:
            self.texts.append(data)
            if self._table and self._table[-1] and not self._exact:
                self._table[-1][-1] += data.strip("\n")

    def rows(self, table):
        return self.tables[table][1:]

    @property
    def text(self):
        return "".join(self.texts)


def shown(text):
    """Returns a name in the form that the page shows."""
    raw = text.encode()
    if len(raw) > MAX_NAME:
        text = raw[:MAX_NAME].decode(errors="ignore") + "…"
    return text


def printable(text):
    return "".join(f"\\u{ord(c):04x}" if ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c in "\u061c\u200e\u200f\u2028\u2029" or
                   "\u202a" <= c <= "\u202e" or "\u2066" <= c <= "\u2069" else c for c in text)


class ReportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.traces = trace_folder.make(cls, ARGS.traces, ARGS.generate, 300, 1, 2, 3)

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="nettrace-report-")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.out = self.folder / "report.html"

    def report(self, *arguments, expect=0, **options):
        """Runs the report; returns its standard error."""
        ran = subprocess.run([ARGS.nettrace, "report", *map(str, arguments)], check=False,
                             stdin=options.pop("stdin", subprocess.DEVNULL), stderr=subprocess.PIPE, **options)
        self.assertEqual(ran.returncode, expect, (arguments, ran.stderr))
        return ran.stderr.decode()

    def page(self, name, *options, expect=0):
        self.report(self.traces / f"{name}.nettrace", "-o", self.out, *options, expect=expect)
        return Page(self.out)

    def check_numbers(self, page, events, info):
        """Compares a page with the events that `nettrace dump` shows."""
        data = page.data
        summary = dict(page.rows("summary-table"))
        self.assertEqual((data["events"], summary["Events"]), (len(events), str(len(events))))
        self.assertEqual((data["lost"], summary["Lost events"]), (info["lost"], str(info["lost"])))
        self.assertEqual(sum(map(int, data["overTime"]["lost"])), info["lost"])
        self.assertEqual(sum(int(row[1]) for row in page.tables.get("losses-table", [])[1:]), info["lost"])
        over_time = page.rows("over-time-table")
        self.assertEqual(sum(int(row[2]) for row in over_time), len(events))
        self.assertEqual(sum(int(row[3]) for row in over_time), info["lost"])
        if not events:
            return
        self.assertEqual(summary["First event"], min(events, key=lambda e: e["timestamp"])["time"])
        self.assertEqual(summary["Last event"], max(events, key=lambda e: e["timestamp"])["time"])
        self.check_kinds(page, events)
        self.check_threads(page, events)
        self.check_over_time(data, events)

    def check_kinds(self, page, events):
        kinds = collections.Counter((shown(e["provider"]), shown(e["name"])) for e in events)
        self.assertEqual({(k["provider"], k["name"]): k["events"] for k in page.data["kinds"]}, kinds)
        self.assertEqual(collections.Counter({(row[1], row[0]): int(row[2]) for row in page.rows("kinds-table")}),
                         collections.Counter({tuple(map(printable, key)): count for key, count in kinds.items()}))
        for kind in page.data["kinds"]:
            times = [e["timestamp"] for e in events
                     if (shown(e["provider"]), shown(e["name"])) == (kind["provider"], kind["name"])]
            self.assertEqual(int(kind["last"]) - int(kind["first"]), max(times) - min(times))

    def check_threads(self, page, events):
        data = page.data
        processes = collections.Counter(e["pid"] for e in events)
        self.assertEqual({p["pid"]: p["events"] for p in data["processes"]}, processes)
        self.assertEqual({row[0]: int(row[2]) for row in page.rows("processes-table")},
                         {"?" if pid is None else str(pid): count for pid, count in processes.items()})
        threads = collections.Counter((e["pid"], e["tid"], shown(e["thread"] or "") if e["tid"] is None else "")
                                      for e in events)
        self.assertEqual(collections.Counter({
            (data["processes"][t["process"]]["pid"], t["tid"], t["name"] if t["tid"] is None else ""): t["events"]
            for t in data["threads"]}), threads)
        self.assertEqual(sum(int(row[3]) for row in page.rows("threads-table")), len(events))
        for lane in data["threadsOverTime"]["lanes"]:
            self.assertEqual(sum(map(int, lane["counts"])), data["threads"][lane["thread"]]["events"])

    def check_over_time(self, data, events):
        over_time = data["overTime"]
        counts = collections.Counter()
        for series in over_time["providers"]:
            for number, count in enumerate(series["counts"]):
                counts[number] += int(count)
        start, width = int(over_time["start"]), int(over_time["width"])
        # Times in the JSON count from the first event or loss, and `first` of a kind is such a time. The difference is
        # therefore the timestamp from which times count.
        first = min(e["timestamp"] for e in events) - min(int(k["first"]) for k in data["kinds"])
        self.assertEqual(counts, collections.Counter((e["timestamp"] - first - start) // width for e in events))
        self.assertLessEqual(len(over_time["lost"]), 1024)

    def read(self, *command, each_line=False):
        """Returns the JSON that a command of nettrace prints: one object, or one for each line."""
        ran = subprocess.run([ARGS.nettrace, *command], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return [json.loads(line) for line in ran.stdout.splitlines()] if each_line else json.loads(ran.stdout)

    def events(self, path, *options):
        return list(commands.dump(ARGS.nettrace, path, *options))

    def test_numbers_match_dump_and_info(self):
        for name in ("shop", "far", "random-1", "random-2", "random-3"):
            with self.subTest(name):
                path = self.traces / f"{name}.nettrace"
                events = self.events(path)
                page = self.page(name)
                self.check_numbers(page, events, commands.info(ARGS.nettrace, path))
                self.check_single(page, events)

    def check_single(self, page, events):
        """Checks that all events are in the page, as `nettrace dump --json` shows them."""
        singles = page.data["singleEvents"]
        self.assertEqual(len(singles), len(events))
        key = lambda event: json.dumps(event, sort_keys=True)  # noqa: E731
        for single in singles:
            event = single["event"]
            kind = page.data["kinds"][single["kind"]]
            self.assertEqual((kind["provider"], kind["name"]), (shown(event["provider"]), shown(event["name"])))
            self.assertEqual(page.data["threads"][single["thread"]]["tid"], event["tid"])
            event["timestamp"] = int(event["timestamp"])
        self.assertEqual(sorted(key(single["event"]) for single in singles), sorted(map(key, events)))
        at = [single["at"] for single in singles]
        self.assertEqual(at, sorted(at))

    def test_processes_have_names(self):
        page = self.page("shop")
        self.assertEqual({p["pid"]: p["name"] for p in page.data["processes"]},
                         {1000: "/usr/bin/web", 2000: "/usr/bin/database", 3000: "/usr/bin/billing", 4000: "/usr/bin/größe"})
        self.assertEqual([row[:3] for row in page.rows("processes-table")][0], ["1000", "/usr/bin/web", "399"])

    def test_losses_are_where_they_were(self):
        page = self.page("shop")
        data = page.data
        width, start = int(data["overTime"]["width"]), int(data["overTime"]["start"])
        found = {number * width + start: int(count) for number, count in enumerate(data["overTime"]["lost"]) if int(count)}
        self.assertEqual(sorted(found.values()), [5, 40])
        for at, count in found.items():
            # Requests are 5 ms apart. CPU 0 loses 40 events before its first event after request 80, and CPU 1 loses 5
            # events before its first event after request 120.
            expected = 5_000_000 * {40: 81, 5: 121}[count]
            self.assertLess(abs(at - expected), 2 * width + 1_000_000)
        self.assertEqual(page.rows("losses-table"), [["CPU 0", "40"], ["CPU 1", "5"]])
        self.assertIn("45 events were lost", page.text)

    def test_durations_match_the_activities(self):
        page = self.page("shop")
        durations = [1000 * (i + 1) for i in range(199)]
        row, = page.data["durations"]
        self.assertEqual(page.data["kinds"][row["kind"]]["name"], "Request")
        self.assertEqual((row["ended"], row["notEnded"], row["min"], row["max"]), (199, 1, durations[0], durations[-1]))
        for name, exact in (("p50", durations[99]), ("p90", durations[179]), ("p99", durations[197])):
            self.assertLessEqual(abs(row[name] - exact), exact / 64)
        self.assertEqual(sum(count for _, _, count in row["buckets"]), 199)
        for low, high, count in row["buckets"]:
            self.assertEqual(count, sum(low <= duration <= high for duration in durations))
        self.assertEqual(page.rows("durations-table"),
                         [["Request", "Shop.Web", "199", "199", "1"] + [str(row[k]) for k in ("min", "p50", "p90", "p99", "max")]])
        activities = page.data["activities"]
        self.assertEqual(activities["of"], 199)
        self.assertEqual(sorted(a["end"] - a["begin"] for a in activities["shown"]), durations)

    def test_filters_choose_events_and_no_losses(self):
        path = self.traces / "shop.nettrace"
        for options in (("--provider", "Shop.Billing"), ("--event", "Query", "--tid", "2001"), ("--pid", "1000"), ("--level", "3"),
                        ("--processes",)):
            with self.subTest(options):
                page = self.page("shop", *options)
                self.check_numbers(page, self.events(path, *options), commands.info(ARGS.nettrace, path))
                self.assertEqual("Only some events" in page.text, options != ("--processes",))

    def test_a_large_file_has_an_even_sample_and_all_of_a_window(self):
        path = self.traces / "large.nettrace"
        events = self.events(path)
        page = self.page("large", "--size", "5M")
        self.check_numbers(page, events, commands.info(ARGS.nettrace, path))
        numbers = [single["event"]["payload"]["n"] for single in page.data["singleEvents"][1:]]
        every = numbers[1] - numbers[0]
        self.assertEqual(numbers, list(range(1, 60000, every)))
        self.assertIn(f"{len(numbers) + 1:,} of 60,000 events are in this page.", page.text)
        self.assertIn("1 kind is complete. Each other kind has an even sample", page.text)
        self.assertIn("--since, --until", page.text)
        self.assertEqual([row[:4] for row in page.rows("kinds-table")],
                         [["Tick", "Large", "59999", str(len(numbers))], ["Text", "Large", "1", "1"]])
        first = page.data["singleEvents"][0]["event"]
        self.assertIn("too large for this page", first["error"])
        self.assertNotIn("payload", first)
        window = ("--since", events[100]["time"], "--until", events[300]["time"])
        page = self.page("large", *window)
        self.check_numbers(page, events, commands.info(ARGS.nettrace, path))
        self.assertEqual([s["event"]["payload"]["n"] for s in page.data["singleEvents"]], list(range(100, 300)))
        self.assertIn(f"All 200 events from {events[100]['time']} until {events[300]['time']} are in this page. The file has 60,000", page.text)
        self.assertEqual({key: int(value) for key, value in page.data["window"].items()}, {"from": 1_000_000, "until": 3_000_000})
        # More events are in this window than fit in the page.
        page = self.page("large", "--since", events[10000]["time"], "--size", "1M")
        count = len(page.data["singleEvents"])
        self.assertIn(f"{count:,} of 50,000 events from {events[10000]['time']} are in this page. {50000 - count:,} are left out", page.text)
        self.assertIsNone(self.page("shop").data["window"])

    def test_notable_events_are_complete(self):
        path = self.traces / "mixed.nettrace"
        events = self.events(path)
        page = self.page("mixed", "--size", "3M")
        self.assertEqual(page.data["events"], len(events))
        self.assertLess(len(page.data["singleEvents"]), len(events) / 5)
        key = lambda event: (int(event["timestamp"]), event["name"])  # noqa: E731
        kept = {key(single["event"]) for single in page.data["singleEvents"]}
        errors = [key(event) for event in events if event["level"] in (1, 2)]
        self.assertEqual(len(errors), 1505)
        self.assertEqual([event for event in errors if event not in kept], [])
        counts = collections.Counter(event["name"] for event in events)
        rare = [key(event) for event in events if counts[event["name"]] <= 20]
        self.assertGreater(len(rare), 200)
        self.assertEqual([event for event in rare if event not in kept], [])
        # The page must have all events of the two calls of 40 ms, even the steps that have no activity id.
        calls = [event for event in events if event["name"] == "Call" and event["payload"]["n"] % 250 == 100]
        self.assertEqual(len(calls), 2)
        for call in calls:
            inside = [key(event) for event in events if event["tid"] == 2 and
                      call["timestamp"] <= event["timestamp"] <= call["timestamp"] + 40_000_001]
            self.assertGreater(len(inside), 400)
            self.assertEqual([event for event in inside if event not in kept], [])
        slowest = sorted((int(a["end"]) - int(a["begin"]) for a in page.data["activities"]["shown"]), reverse=True)[:3]
        self.assertEqual([round(duration / 1e6) for duration in slowest], [40, 40, 1])
        # The loss is directly before the first event after the 70,000th tick on the same CPU. The page must have all
        # events around the loss.
        near = min(i for i, event in enumerate(events) if event["payload"].get("n") == 70001)
        self.assertEqual([event["timestamp"] for event in events[near - 15:near + 15] if key(event) not in kept], [])
        self.assertIn("Level 1 and 2 (critical, error): all 1,505.", page.text)
        table = {row[0]: row[2:5] for row in page.rows("kinds-table")}
        self.assertEqual(table["Failed"], ["1500", "1500", "1500"])
        self.assertEqual(table["Fatal"], ["5", "5", "5"])
        for row in page.rows("kinds-table"):
            self.assertEqual(int(row[3]), sum(1 for _, name in kept if name == row[0]), row)
        # With less room than the errors need, each kind of error has an even sample.
        page = self.page("mixed", "--size", "1M")
        table = {row[0]: row[2:5] for row in page.rows("kinds-table")}
        self.assertEqual(table["Fatal"], ["5", "5", "5"])
        self.assertLess(int(table["Failed"][1]), 1500)
        # The text and the table have the same number.
        kept = int(table["Failed"][1]) + 5
        self.assertIn(f"(critical, error): {kept:,} of 1,505, evenly by kind.", page.text)

    def test_the_size_of_a_page_is_bounded(self):
        for name in ("mixed", "large", "hostile", "random-1"):
            for size in (1, 2, 10):
                with self.subTest(name=name, size=size):
                    page = self.page(name, "--size", f"{size}M")
                    self.assertLessEqual(page.size, size << 20)
                    if name in ("mixed", "large"):
                        self.assertGreater(page.size, size << 18)
        for size in ("10", "100K", "2G", "large"):
            self.report(self.traces / "shop.nettrace", "-o", self.out, "--size", size, expect=2)

    def test_a_pipe_makes_the_same_page(self):
        path = self.traces / "mixed.nettrace"
        self.report("--size", "1M", path, "-o", self.out)
        piped = self.folder / "piped.html"
        with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
            self.report("--size", "1M", "-", "-o", piped, stdin=cat.stdout)
        self.assertEqual(Page(piped).data["singleEvents"], Page(self.out).data["singleEvents"])
        # A file on standard input is read in place, without the copy that a pipe needs.
        with path.open("rb") as file:
            self.report("--size", "1M", "-", "-o", piped, stdin=file)
        self.assertEqual(Page(piped).data["singleEvents"], Page(self.out).data["singleEvents"])

    def parts(self, name, count):
        """Cuts a trace into files, one after the other in time; returns their directory."""
        folder = self.folder / f"{name}-parts"
        folder.mkdir()
        times = [event["time"] for event in self.events(self.traces / f"{name}.nettrace")]
        bounds = [times[len(times) * i // count] for i in range(1, count)]
        for i, (since, until) in enumerate(zip([None, *bounds], [*bounds, None])):
            options = [*(["--since", since] if since else []), *(["--until", until] if until else [])]
            subprocess.run([ARGS.nettrace, "cut", *options, self.traces / f"{name}.nettrace", "-o", folder / f"{i}.nettrace"],
                           stderr=subprocess.DEVNULL, check=True)
        return folder

    def merged(self, *files, options=()):
        """Returns the page of the file into which `nettrace merge` writes these files."""
        merged = self.folder / "merged.nettrace"
        subprocess.run([ARGS.nettrace, "merge", *files, "-o", merged], stderr=subprocess.DEVNULL, check=True)
        self.report(merged, "-o", self.out, *options)
        return Page(self.out)

    def check_same(self, page, other):
        """Checks that two pages differ only in the names of their files."""
        self.assertEqual({key: value for key, value in page.data.items() if key != "file"},
                         {key: value for key, value in other.data.items() if key != "file"})
        self.assertEqual({name: rows for name, rows in page.tables.items() if name not in ("summary-table", "files-table")},
                         {name: rows for name, rows in other.tables.items() if name != "summary-table"})
        facts, others = (dict(each.rows("summary-table")) for each in (page, other))
        self.assertEqual({key: others[key] for key in facts if key not in ("Files", "Complete")},
                         {key: facts[key] for key in facts if key not in ("Files", "Complete")})
        # The first "What stands out" in the text is a link to the section; the second one is its heading.
        findings = [each.text.split("What stands out\n", 2)[2].split("Summary\n", 1)[0] for each in (page, other)]
        self.assertEqual(*findings)

    def test_several_files_make_the_page_of_the_merged_file(self):
        # `nettrace cut` writes all losses of the trace to each part, so each loss is in several parts.
        for name, count, lost, options in (("shop", 2, 90, []), ("tree", 3, 0, []), ("mixed", 2, 1000, ["--level", "2"])):
            with self.subTest(name):
                folder = self.parts(name, count)
                files = sorted(folder.iterdir())
                merged = self.merged(*files, options=options)
                error = self.report(*files, "-o", self.out, *options)
                page = Page(self.out)
                self.check_same(page, merged)
                self.assertIn(f"{merged.data['events']} events", error)
                self.assertGreater(merged.data["events"], 500)
                self.assertEqual(page.data["lost"], lost)
                self.assertNotIn("Nothing stands out", page.text)
                self.assertEqual([row[:2] for row in page.rows("files-table")],
                                 [[file.name, str(file.stat().st_size)] for file in files])
                self.assertEqual(page.data["file"], "0.nettrace and 1.nettrace" if count == 2 else "0.nettrace and 2 more files")
        # The request across processes is one tree, although the parts of the tree are in several files.
        self.report(*sorted((self.folder / "tree-parts").iterdir()), "-o", self.out)
        self.assertIn("Request (Shop.Web) took 6.80 ms", Page(self.out).text)

    def test_a_directory_is_one_page(self):
        folder = self.parts("shop", 3)
        subprocess.run(["zstd", "-q", "--rm", folder / "1.nettrace"], check=True)
        (folder / "3.nettrace.partial").write_bytes(b"")
        whole = self.page("shop")
        error = self.report(folder, "-o", self.out)
        self.assertIn("left out 1 partial file", error)
        page = Page(self.out)
        self.assertEqual([row[0] for row in page.rows("files-table")], ["0.nettrace", "1.nettrace.zst", "2.nettrace"])
        self.assertEqual({row[2] for row in page.rows("files-table")}, {"to its end"})
        self.assertEqual((page.data["events"], page.data["kinds"]), (whole.data["events"], whole.data["kinds"]))
        self.assertEqual(page.rows("durations-table"), whole.rows("durations-table"))
        # With several files, options have the same effect as with one file.
        times = [event["time"] for event in self.events(self.traces / "shop.nettrace")]
        for options in (["--event", "Query", "--level", "4"], ["--since", times[100], "--until", times[200]]):
            whole = self.page("shop", *options)
            self.report(folder, "-o", self.out, *options)
            self.assertEqual([single["event"]["payload"] for single in Page(self.out).data["singleEvents"]],
                             [single["event"]["payload"] for single in whole.data["singleEvents"]])
        os.chmod(folder / "0.nettrace", 0o640)
        os.chmod(folder / "2.nettrace", 0o604)
        self.report(folder, "-o", self.out, "--size", "1M")
        self.assertEqual(self.out.stat().st_mode & 0o777, 0o600)
        self.assertLessEqual(self.out.stat().st_size, 1 << 20)

    def test_a_file_that_is_named_twice_is_read_once(self):
        one = self.page("shop")
        link = self.folder / "link.nettrace"
        link.symlink_to(self.traces / "shop.nettrace")
        for again in (self.traces / "shop.nettrace", link):
            error = self.report(self.traces / "shop.nettrace", again, "-o", self.out)
            self.assertIn(f"{again.name}: named more than once; reading it once", error)
            self.assertEqual(Page(self.out).data, one.data)

    def test_a_missing_file_among_several_leaves_nothing(self):
        trace = self.traces / "shop.nettrace"
        error = self.report(trace, self.folder / "absent.nettrace", self.traces / "tree.nettrace", "-o", self.out, expect=2)
        self.assertIn("absent.nettrace: cannot be opened", error)
        other = self.folder / "other.nettrace"
        other.write_bytes(b"no trace")
        self.assertIn("other.nettrace: ", self.report(trace, other, "-o", self.out, expect=2))
        fifo = self.folder / "fifo.nettrace"
        os.mkfifo(fifo)
        self.assertIn("must be a regular file", self.report(trace, fifo, "-o", self.out, expect=2))
        self.assertIn("together with files", self.report(trace, "-", "-o", self.out, expect=2))
        copy = self.folder / "copy.nettrace"
        copy.write_bytes((self.traces / "tree.nettrace").read_bytes())
        self.assertIn("the output is the input", self.report(trace, copy, "-o", copy, expect=2))
        self.assertFalse(self.out.exists())

    def test_a_cut_file_among_several_is_named(self):
        cut = self.folder / "cut.nettrace"
        cut.write_bytes((self.traces / "shop.nettrace").read_bytes()[:-3000])
        error = self.report(cut, self.traces / "tree.nettrace", "-o", self.out, expect=1)
        self.assertIn("cut.nettrace: ", error)
        self.assertIn("the page shows everything before the damage", error)
        page = Page(self.out)
        self.assertIn("cut.nettrace is truncated or damaged: ", page.text)
        self.assertIn("Losses are unknown", page.text)
        self.assertEqual(dict(page.rows("summary-table"))["Complete"], "no: the end of a file is missing")
        self.assertEqual([row[2] == "to its end" for row in page.rows("files-table")], [False, True])
        dumped = subprocess.run([ARGS.nettrace, "dump", "--json", cut, self.traces / "tree.nettrace"], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, check=False).stdout.splitlines()
        self.assertEqual(page.data["events"], len(dumped))

    def test_processes_of_different_hosts_are_apart(self):
        folder = self.traces / "hosts"
        self.report(folder, "-o", self.out)
        page = Page(self.out)
        hosts = page.data["hosts"]
        self.assertEqual(sorted((p["pid"], p["name"], hosts[p["host"]], p["events"]) for p in page.data["processes"]),
                         [(100, "database", "b", 400), (100, "old web", "a (boot 33333333)", 2), (100, "web", "a (boot 11111111)", 400)])
        self.assertEqual({(row[0], row[1], row[6]) for row in page.rows("processes-table")},
                         {("100", "web", "a (boot 11111111)"), ("100", "database", "b"), ("100", "old web", "a (boot 33333333)")})
        self.assertEqual({row[2] for row in page.rows("threads-table")},
                         {"100 on a (boot 11111111)", "100 on b", "100 on a (boot 33333333)"})
        self.assertEqual(page.rows("losses-table"), [["CPU 0 of b", "4"], ["CPU 0 of a (boot 11111111)", "3"]])
        self.assertIn("in process 100 web on a (boot 11111111). That is ", page.text)
        # A request on one host has its query on the other one.
        slow = max(page.data["trees"][:2], key=lambda tree: len(tree["nodes"]))
        self.assertEqual(len({page.data["threads"][node[6]]["process"] for node in slow["nodes"]}), 2)
        self.check_same(page, self.merged(*sorted(folder.iterdir())))
        events = self.events(folder)
        self.assertEqual({event["threadInfo"]["HostName"] for event in events}, {"a", "b"})
        # `query` and `top` show the same processes.
        self.assertEqual(sorted(self.read("query", "--json", folder, "SELECT pid, name, host, events FROM processes", each_line=True),
                                key=lambda row: row["name"]),
                         [{"pid": 100, "name": name, "host": host, "events": events}
                          for name, host, events in (("database", "b", 400), ("old web", "a", 2), ("web", "a", 400))])
        self.assertEqual(self.read("query", "--json", folder, "SELECT host, count(*) AS n FROM events GROUP BY host ORDER BY 1", each_line=True),
                         [{"host": "a", "n": 402}, {"host": "b", "n": 400}])
        shown = self.read("top", "--json", folder)
        self.assertEqual(sorted((row["pid"], row["process"], row["host"], row["events"]) for row in shown["byProcess"]["rows"]),
                         [(100, "database", "b", 400), (100, "old web", "a (boot 33333333)", 2), (100, "web", "a (boot 11111111)", 400)])
        self.assertEqual(sorted((row["host"][0], row["lost"]) for row in shown["byCpu"]["rows"] if row["lost"]), [("a", 3), ("b", 4)])
        # If all files are from one host and boot, the page does not show the host. A process in two files has one row.
        page = self.page("shop")
        self.assertIsNone(page.data["hosts"])
        self.report(self.parts("shop", 2), "-o", self.out)
        self.assertEqual(Page(self.out).rows("processes-table"), page.rows("processes-table"))

    def test_hostile_names_are_text(self):
        plain, page = self.page("shop"), self.page("hostile")
        # Hostile names add no elements: only the numbers of rows and cells differ.
        numbers = ("tr", "td", "th", "table", "div", "caption", "thead", "tbody", "p")
        self.assertEqual({tag for tag in page.tags if tag not in numbers}, {tag for tag in plain.tags if tag not in numbers})
        self.assertEqual(page.tags["script"], 2)
        self.assertEqual(page.tags["img"], 0)
        self.assertEqual(page.tags["style"], 1)
        self.assertIn("default-src 'none'", page.policy)
        self.assertNotIn("unsafe", page.policy)
        path = self.traces / "hostile.nettrace"
        self.check_numbers(page, self.events(path), commands.info(ARGS.nettrace, path))
        self.check_single(page, self.events(path))
        names = {kind["name"] for kind in page.data["kinds"]}
        self.assertIn("</script><img src=x onerror=\"document.title='broken'\"><!--<script>", names)
        self.assertIn("{{data}}", names)
        text = self.out.read_text(encoding="utf-8")
        self.assertIsNone(re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202e]", text))
        # The page has only two script elements: its data and its script.
        self.assertEqual(text.count("<script"), 2)
        self.assertEqual(text.lower().count("</script"), 2)

    def test_all_kinds_of_files_make_pages(self):
        for path in sorted(ARGS.corpus.iterdir()):
            with self.subTest(path.name):
                ran = subprocess.run([ARGS.nettrace, "dump", "--json", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                     check=False)
                self.report(path, "-o", self.out, expect=ran.returncode)
                page = Page(self.out)
                self.assertEqual(page.data["events"], len(ran.stdout.splitlines()))
                self.assertEqual([single["event"]["payload"] for single in page.data["singleEvents"]],
                                 [json.loads(line)["payload"] for line in ran.stdout.splitlines()])

    def test_an_empty_file_makes_a_page(self):
        long_file(self.traces / "empty.nettrace", 0)
        page = self.page("empty")
        self.check_numbers(page, [], {"lost": 0})
        self.assertEqual(page.data["singleEvents"], [])
        self.assertEqual(page.rows("kinds-table"), [])

    def test_a_cut_file_makes_a_page_up_to_there(self):
        whole = (self.traces / "shop.nettrace").read_bytes()
        cut = self.traces / "cut.nettrace"
        for size in (len(whole) - 20, len(whole) * 2 // 3, len(whole) // 3):
            cut.write_bytes(whole[:size])
            error = self.report(cut, "-o", self.out, expect=1)
            self.assertIn("the page shows everything before the damage", error)
            page = Page(self.out)
            self.assertIn("The file is truncated or damaged", page.text)
            self.assertIn("Losses are unknown", page.text)
            dumped = subprocess.run([ARGS.nettrace, "dump", "--json", cut], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                    check=False).stdout.splitlines()
            self.assertEqual(page.data["events"], len(dumped))

    def test_invalid_input_leaves_nothing(self):
        other = self.folder / "other.nettrace"
        other.write_bytes(b"no trace")
        self.report(other, "-o", self.out, expect=2)
        self.report(self.folder / "absent.nettrace", "-o", self.out, expect=2)
        self.report(self.traces / "shop.nettrace", "-o", self.folder / "absent" / "out", expect=1)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["other.nettrace"])

    def test_harmful_options_are_refused(self):
        trace = self.folder / "trace.nettrace"
        trace.write_bytes((self.traces / "shop.nettrace").read_bytes())
        self.assertIn("the output is the input", self.report(trace, "-o", trace, expect=2))
        self.assertEqual(trace.read_bytes(), (self.traces / "shop.nettrace").read_bytes())
        self.assertIn("name a path", self.report(trace, "-o", "-", expect=2))
        self.assertIn("never compressed", self.report(trace, "-o", f"{self.out}.zst", expect=2))

    def test_a_page_replaces_one_and_has_the_mode_of_the_file(self):
        trace = self.folder / "trace.nettrace"
        trace.write_bytes((self.traces / "shop.nettrace").read_bytes())
        os.chmod(trace, 0o640)
        self.out.write_text("old")
        self.report(trace, "-o", self.out)
        self.assertEqual(self.out.stat().st_mode & 0o777, 0o640)
        self.report(trace, "-o", self.out, "--mode", "0604")
        self.assertEqual(self.out.stat().st_mode & 0o777, 0o604)
        with open(trace, "rb") as file:
            self.report("-", "-o", self.out, stdin=file)
        self.assertIn("standard input", Page(self.out).text)

    def test_a_full_disk_leaves_nothing(self):
        disk = self.folder / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64K", "none", disk], stderr=subprocess.DEVNULL,
                          check=False).returncode != 0:
            self.skipTest("no tmpfs can be mounted")
        try:
            error = self.report(self.traces / "shop.nettrace", "-o", disk / "out", expect=1)
            self.assertIn("No space left on device", error)
            self.assertIn("nothing was written", error)
            self.assertEqual(list(disk.iterdir()), [])
        finally:
            subprocess.run(["umount", disk], check=True)

    def test_a_signal_leaves_nothing(self):
        # The command reads a file, not a pipe, because the test could not write to a pipe while it stops the command.
        file = self.folder / "long.nettrace"
        long_file(file, 40)
        for number in (signal.SIGINT, signal.SIGTERM):
            for _ in range(10):  # Tries again if the command ends before the signal arrives.
                with subprocess.Popen([ARGS.nettrace, "report", file, "-o", self.out], stderr=subprocess.PIPE) as process:
                    # The command installs its signal handlers before it reads the file, and then begins the page.
                    while process.poll() is None and not self.has_begun(process.pid):
                        time.sleep(0.001)
                    process.send_signal(number)
                    _, error = process.communicate()
                if process.returncode != 0:
                    break
                self.out.unlink()
            self.assertEqual(process.returncode, 1, error)
            self.assertIn(b"stopped by a signal", error)
            self.assertEqual([path.name for path in self.folder.iterdir()], ["long.nettrace"])

    def has_begun(self, pid):
        """Returns whether the process has a file of the folder open for writing."""
        try:
            links = [os.readlink(entry) for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir()]
        except FileNotFoundError:
            return False
        return any(link.startswith(f"{self.folder}/") and "long.nettrace" not in link for link in links)

    @commands.measures_memory(ARGS.nettrace)
    def test_memory_and_page_do_not_grow_with_the_file(self):
        peaks, sizes = [], []
        for intervals in (2, 10):
            file = self.folder / f"{intervals}.nettrace"
            long_file(file, intervals)
            peaks.append(commands.peak_memory(ARGS.nettrace, "report", file, "-o", self.out))
            print(f"{intervals} intervals: {peaks[-1]} KiB", flush=True)
            page = Page(self.out)
            sizes.append(page.size)
            self.assertEqual(page.data["events"], intervals * 50_000)
            self.assertEqual(sum(map(int, page.data["overTime"]["providers"][0]["counts"])), intervals * 50_000)
        # A page has between half and all of the single events that fit, so its size may vary by a factor of 2.
        self.assertLess(peaks[1], 1.2 * peaks[0] + 8192, peaks)
        self.assertLess(sizes[1], 2 * sizes[0], sizes)

    @commands.measures_memory(ARGS.nettrace)
    def test_memory_does_not_grow_with_several_files(self):
        peaks = []
        for intervals in (2, 10):
            files = [self.folder / f"{intervals}-{name}.nettrace" for name in "ab"]
            for file in files:
                long_file(file, intervals)
            peaks.append(commands.peak_memory(ARGS.nettrace, "report", *files, "-o", self.out))
            print(f"2 files of {intervals} intervals: {peaks[-1]} KiB", flush=True)
            self.assertEqual(Page(self.out).data["events"], 2 * intervals * 50_000)
        self.assertLess(peaks[1], 1.2 * peaks[0] + 8192, peaks)


if __name__ == "__main__":
    script.run_cases(lambda: None)
