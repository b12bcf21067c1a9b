#!/usr/bin/python3
"""Tests the activities of the page of `nettrace report` in Chromium: trees with their times, the way from events to
activities and back, a slow activity beside a typical one, and the address that opens them again. Runs only by
name (./run test browser); needs Debian's package chromium."""

import os
import pathlib
import shutil
import struct
import subprocess
import tempfile

from support import commands, script
from support.browser import WIDTH, PageCase

ARGS = script.options(__doc__, "nettrace", "traces", "stories")
# The rows of a tree: name, duration, self time, waiting time, time in the critical path, process and thread.
TREE = """[...document.querySelectorAll("{} tbody tr")].map(row => [...row.cells].map(cell => cell.textContent.replace(/^Level \\d+: /, ""))
  .filter((text, column) => column !== 1))"""
TEXT = "document.querySelector({!r}).textContent"
DATA = "JSON.parse(document.querySelector('#data').textContent)"
# The pictures that the guide shows.
SHOWN = {("findings", "desktop"): "light", ("findings", "phone"): "light", ("activities", "desktop"): "dark", ("activities", "phone"): "dark"}
INSIDE = """[...document.querySelectorAll("#inside-events tbody tr")].map(row => [...row.cells].slice(1, 5).map(cell => cell.textContent))"""
FIELDS = """Object.fromEntries([...document.querySelectorAll("#details tr")].map(row => [...row.cells].map(cell => cell.textContent)))"""


def button(text):
    return f"[...document.querySelectorAll('#details button')].find(button => button.textContent === {text!r})"


class ReportActivitiesTest(PageCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="activities.")
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        subprocess.run([ARGS.traces, cls.folder], check=True)
        subprocess.run([ARGS.stories, cls.folder], check=True)
        for name in ("tree", "large", "burst", "million"):
            trace = cls.folder / f"{name}.nettrace"
            subprocess.run([ARGS.nettrace, "report", trace, "-o", trace.with_suffix(".html")], stderr=subprocess.DEVNULL, check=True)
        cls.start_browser()

    def change(self, selector, value):
        self.value(f"""(box => {{ box.value = {value!r}; box.dispatchEvent(new Event("change")); }})(document.querySelector({selector!r}))""")
        self.drawn()

    def test_a_tree_has_all_processes_with_their_times(self):
        self.open("tree")
        self.assertEqual(self.value(TREE.format("#tree")), [
            ["◆ Request", "6.8 ms", "300 µs", "6 ms", "300 µs", "100 web, 101 web"],
            ["◆ Query", "6 ms", "6 ms", "0 ns", "6 ms", "→ 200 database, 201 database"],
            ["◆ Render", "500 µs", "300 µs", "200 µs", "300 µs", "100 web, 101 web"],
            ["◆ Fetch", "200 µs", "200 µs", "0 ns", "200 µs", "→ 300 cache, 301 cache"]])
        self.assertIn("All 10 events inside are in this page.", self.value(TEXT.format("#tree")))
        # All four rows of this tree are on the critical path, so all stay when only that path is shown.
        self.click("#only-critical")
        self.assertEqual(len(self.value(TREE.format("#tree"))), 4)

    def test_a_typical_activity_is_beside_a_slow_one(self):
        self.open("tree")
        self.assertEqual(self.value(TREE.format("#tree-beside"))[:2], [
            ["◆ Request", "1.1 ms", "300 µs", "300 µs", "300 µs", "100 web, 101 web"],
            ["◆ Query", "300 µs", "300 µs", "0 ns", "300 µs", "→ 200 database, 201 database"]])
        self.assertIn("typical", self.value(TEXT.format("#tree-beside h3")))
        difference = self.value("[...document.querySelectorAll('#difference-table tbody tr')].map(row => [...row.cells].map(c => c.textContent))")
        self.assertEqual(difference[0], ["Query", "1", "6 ms", "1", "300 µs", "+5.7 ms"])
        # In a wide window, the two activities are next to each other. On a phone, one is below the other.
        place = "['#tree', '#tree-beside'].map(box => document.querySelector(box).getBoundingClientRect()).map(({left, top}) => [left, top])"
        (left, top), (left_beside, top_beside) = self.value(place)
        self.assertEqual(top, top_beside)
        self.assertLess(left, left_beside)
        self.open("tree", 360)
        (left, top), (left_beside, top_beside) = self.value(place)
        self.assertEqual(left, left_beside)
        self.assertLess(top, top_beside)
        self.assertEqual(self.value(WIDTH), 360)
        self.change("#beside-it", "none")
        self.assertFalse(self.value("document.querySelector('#tree-beside').checkVisibility()"))

    def test_an_event_leads_to_its_activity_and_back(self):
        self.open("tree")
        # Opens an event without an activity id. The page must find the activity of the event: the query that the thread
        # of the event executes at that time for the slow request.
        number = self.value("""JSON.parse(document.querySelector("#data").textContent).singleEvents.findIndex(({event}) =>
          event.name === "Note" && event.payload.n === 150 && event.tid === 201)""")
        self.value("""(box => { box.value = "Note 201"; box.dispatchEvent(new Event("input")); })(document.querySelector("#search"))""")
        self.drawn()
        for _ in range(200 // 25):
            if self.value(f"document.querySelector('#list [data-index=\"{number}\"]') !== null"):
                break
            self.click("#next-page")
        self.click(f"#list [data-index='{number}']")
        self.value(button("Follow its activity") + ".click()")
        self.drawn()
        self.assertEqual(self.value("document.activeElement.textContent"), "Level 2: ◆ Query")
        self.assertEqual(self.value("document.activeElement.getAttribute('aria-current')"), "true")
        self.assertEqual(self.value(TEXT.format("#inside-heading")), "Query: 3 events")
        self.assertEqual(self.value(INSIDE), [["+0 ns", "Query", "4 information", "201 database"], ["+100 µs", "Note", "4 information", "201 database"],
                                              ["+6 ms", "QueryDone", "4 information", "201 database"]])
        self.assertIn("Longest time without an event or another activity: 5.9 ms, after Note.", self.value(TEXT.format("#inside-facts")))
        self.assertRegex(self.value("location.hash"), "activity=0&node=1$")
        # Goes back to the event, and from there to all events with the id of its activity.
        self.click("#inside-events tbody tr:nth-child(3) button")
        fields = self.value(FIELDS)
        self.assertEqual((fields["name"], fields["n"]), ("QueryDone", "150"))
        self.value(button("All events with its activity id") + ".click()")
        self.drawn()
        rows = self.value("[...document.querySelectorAll('#list tbody tr')].map(row => row.cells[1].textContent)")
        events = [event for event in commands.dump(ARGS.nettrace, self.folder / "tree.nettrace") if event["activityId"] == fields["activityId"]]
        self.assertEqual(sorted(rows), sorted(event["name"] for event in events))

    def test_any_event_with_an_activity_leads_to_it(self):
        # The page has trees only for the slowest requests and a typical one. This test uses an event of another request.
        self.open("tree")
        number = self.without_tree("Query")
        events = self.value(f"{DATA}.singleEvents.map(({{event}}) => event)")
        query = events[number]
        of_id = lambda id_: [event for event in events if event["activityId"] == id_]  # noqa: E731
        options = "document.querySelectorAll('#activity-of option').length"
        trees = self.value(options)
        self.open_event(number, query["activityId"])
        self.value(button("Follow its activity") + ".click()")
        self.drawn()
        self.assertEqual(self.value("document.activeElement.textContent"), "Level 2: Query")
        self.assertRegex(self.value(TEXT.format("#tree h3")), r"^Request, .*, of the events in this page, at ")
        self.assertIn("Only the events in this page: ", self.value(TEXT.format("#tree")))
        rows = self.value(TREE.format("#tree"))
        self.assertEqual([row[0] for row in rows], ["Request", "Query", "Render", "Fetch"])
        for row, id_ in zip(rows, (query["relatedActivityId"], query["activityId"])):
            times = [event["timestamp"] for event in of_id(id_)]
            took = max(times) - min(times)
            self.assertEqual(row[1].removesuffix(" or more"), f"{took / 1e6:.3g} ms" if took >= 1e6 else f"{took / 1e3:.3g} µs")
        self.assertEqual(self.value(TEXT.format("#inside-heading")), f"Query: {len(of_id(query['activityId']))} events")
        # The page shows a typical activity beside the followed one. The address must open the followed one again.
        self.assertIn("typical", self.value(TEXT.format("#tree-beside h3")))
        address = self.value("location.hash")
        self.assertRegex(address, rf"activity={query['activityId']}%40\d+&node=1$")
        self.open("large")
        self.browser.open_address((self.folder / "tree.html").as_uri() + address)
        self.drawn()
        self.assertEqual(self.value(TREE.format("#tree")), rows)
        self.assertEqual(self.value(options), trees + 1)
        # Following the same event again opens the same tree, and adds none.
        self.open_event(number, query["activityId"])
        self.value(button("Follow its activity") + ".click()")
        self.assertEqual(self.value(options), trees + 1)
        # A wrong address shows the slowest activity.
        self.value("location.hash = '#activity=00000000-0000-0000-0000-00000000ffff@5'")
        self.drawn()
        self.assertEqual(self.value(TREE.format("#tree"))[0][:2], ["◆ Request", "6.8 ms"])

    def without_tree(self, name):
        """Returns the number of an event with this name whose activity has no tree."""
        found = self.value(f"""(({{singleEvents, trees}}) => {{ const ids = new Set(trees.flatMap(({{nodes}}) => nodes.map((node) => node[10])));
          return singleEvents.findIndex(({{event}}) => event.name === {name!r} && !ids.has(event.activityId)); }})({DATA})""")
        self.assertGreaterEqual(found, 0)
        return found

    def open_event(self, number, words):
        """Searches for words, and chooses the event with this number among the first ones that match."""
        self.value(f"""(box => {{ box.value = {words!r}; box.dispatchEvent(new Event("input")); }})(document.querySelector("#search"))""")
        self.drawn()
        self.click(f"#list [data-index='{number}']")

    def test_a_sampled_event_leads_to_its_activity(self):
        self.open("million")
        number = self.without_tree("Request")
        self.open_event(number, self.value(f"{DATA}.singleEvents[{number}].event.activityId"))
        self.value(button("Follow its activity") + ".click()")
        self.drawn()
        self.assertRegex(self.value(TEXT.format("#tree h3")), r"^Request, .*, of the events in this page, at ")
        self.assertTrue(self.value("document.querySelector('#tree').checkVisibility()"))

    def test_trees_fit_side_by_side(self):
        self.open("burst", 1280)
        cut = "[...document.querySelectorAll('.trees .scroll')].map(box => box.scrollWidth - box.clientWidth)"
        self.assertEqual(self.value(cut), [0, 0])

    def test_the_address_opens_the_same_activities(self):
        self.open("tree")
        slow = self.value("[...document.querySelectorAll('#activity-of option')].filter(o => o.textContent.startsWith('Request')).map(o => o.value)")
        self.change("#activity-of", slow[2])
        self.change("#beside-it", slow[0])
        self.click("#tree-beside [data-node='2']")
        address = self.value("location.hash")
        shown = self.value(TREE.format("#tree") + ".concat(" + TREE.format("#tree-beside") + ")")
        self.assertEqual(address, f"#activity={slow[2]}&node=beside-2&beside={slow[0]}")
        self.open("large")
        self.assertIn("No activity begins and ends in this file.", self.value(TEXT.format("#no-activity")))
        self.browser.open_address((self.folder / "tree.html").as_uri() + address)
        self.drawn()
        self.assertEqual(self.value(TREE.format("#tree") + ".concat(" + TREE.format("#tree-beside") + ")"), shown)
        self.assertEqual(self.value(TEXT.format("#inside-heading")), "Render: 2 events")
        # An address with values that are not in the page shows the slowest activity.
        for wrong in ("#activity=999999", "#activity=-1", "#activity=x&node=y&beside=z", f"#activity={slow[0]}&node=99&beside=999", "#activity=__proto__"):
            self.value(f"location.hash = {wrong!r}")
            self.drawn()
            self.assertEqual(self.value(TREE.format("#tree"))[0][:2], ["◆ Request", "6.8 ms"], wrong)

    def test_the_keyboard_reaches_activities_and_their_events(self):
        self.open("tree")
        self.value("document.querySelector('#only-critical').focus()")
        self.press("Tab", "Tab")  # focuses the area that scrolls, then the first row
        self.assertEqual(self.value("document.activeElement.textContent"), "Level 1: ◆ Request")
        self.press("ArrowDown", "ArrowDown", "ArrowUp", "Enter")
        self.assertEqual(self.value(TEXT.format("#inside-heading")), "Query: 3 events")
        self.assertEqual(self.value("document.activeElement.textContent"), "Level 2: ◆ Query")
        # One press of Tab leaves the tree.
        self.press("Tab")
        self.assertIsNone(self.value("document.activeElement.closest('#tree')"))

    def test_a_click_changes_a_bounded_part_of_the_page(self):
        # A click draws a bounded number of rows, whatever the size of the page, so it adds a bounded number of
        # elements.
        self.browser.call("Performance.enable", timeDomain="threadTicks")
        task = lambda: next(m["value"] for m in self.browser.call("Performance.getMetrics")["metrics"] if m["name"] == "TaskDuration")  # noqa: E731
        change = "(box => {{ box.value = {}; box.dispatchEvent(new Event('{}')); }})(document.querySelector('{}'))"
        for name in ("burst", "million"):
            self.open(name)
            self.assertGreater(self.value("JSON.parse(document.querySelector('#data').textContent).singleEvents.length"), 15000)
            before = self.value("document.querySelectorAll('*').length")
            for action, script_of_it in (
                    ("open an activity", change.format("box.options[5].value", "change", "#activity-of")),
                    ("choose an activity of the tree", "document.querySelector('#tree tbody button').click()"),
                    ("filter by level", change.format("'2'", "input", "#filter-level")),
                    ("filter by field", change.format("'n>=100'", "input", "#filter-field")),
                    ("filter by duration", change.format("'1ms'", "input", "#filter-duration")),
                    ("remove the filters", "document.querySelector('#no-filter').click()"),
                    ("open a finding", "document.querySelector('.findings a').click()"),
                    ("choose an event", "document.querySelector('#list tbody button').click()")):
                start = task()
                self.value(f"""self.added = 0; self.observer ??= new MutationObserver(changes => {{
                  for (const {{addedNodes}} of changes) for (const node of addedNodes) self.added += 1 + (node.querySelectorAll?.("*").length ?? 0); }});
                  self.observer.observe(document.body, {{childList: true, subtree: true}}); self.began = performance.now(); {script_of_it};
                  requestAnimationFrame(() => {{ const {{port1, port2}} = new MessageChannel();
                    port1.onmessage = () => {{ self.took = performance.now() - self.began; }}; port2.postMessage(null); }});""")
                self.drawn()
                self.drawn()
                # For people: the time that the browser's main thread worked, and the time until the change was drawn.
                print(f"{name}: {action}: {1000 * (task() - start):.0f} ms of CPU, {self.value('took'):.0f} ms until drawn, "
                      f"{self.value('added')} elements", flush=True)
                self.assertLess(self.value("added"), 6000, action)
                self.assertLess(self.value("document.querySelectorAll('*').length") - before, 3000, action)

    def test_pictures_for_the_guide(self):
        """Makes the pictures of docs/guides/looking-at-traces.md and README.md. NETTRACE_REPORT_PICTURES=docs keeps them."""
        kept = os.environ.get("NETTRACE_REPORT_PICTURES")
        self.open("burst", 900)
        picture = self.browser.picture(900, 414)
        self.assertEqual(struct.unpack(">II", picture[16:24]), (900, 414))
        if kept:
            pathlib.Path(kept, "report.png").write_bytes(picture)
        sizes = {"desktop": (1280, 640), "phone": (390, 720)}
        for part in ("findings", "activities"):
            for device, (width, height) in sizes.items():
                pictures = []
                for scheme in ("light", "dark"):
                    self.open("burst", width, scheme)
                    if part == "activities":
                        self.click("#tree [data-node='1']")
                    self.value(f"document.querySelector('{'header' if part == 'findings' else '#activities'}').scrollIntoView()")
                    self.drawn()
                    pictures.append(self.browser.picture(width, height))
                    self.assertEqual(struct.unpack(">II", pictures[-1][16:24]), (width, height))
                    self.assertLess(len(pictures[-1]), 150_000)
                    if kept and scheme == SHOWN[part, device]:
                        pathlib.Path(kept, "guides/pictures", f"report-{part}-{device}-{scheme}.png").write_bytes(pictures[-1])
                self.assertNotEqual(*pictures)

    def test_a_slow_activity_of_the_first_screen_opens_its_tree(self):
        self.open("million")
        self.click(".findings a")
        self.assertIn("Request, 4 s, slow", self.value(TEXT.format("#tree h3")))
        self.assertEqual([row[1] for row in self.value(INSIDE) if row[1] == "LockWait"], ["LockWait"])
        self.assertIn("Longest time without an event or another activity: ", self.value(TEXT.format("#inside-facts")))
        self.assertIn("activity=0", self.value("location.hash"))
        self.open("burst")
        difference = self.value("document.querySelector('#difference-table tbody tr').cells[0].textContent")
        self.assertEqual(difference, "Payment")  # The slow dependency must be first.


def require():
    if shutil.which("chromium") is None:
        raise script.Skipped("chromium is not installed: apt-get install --no-install-recommends chromium")


if __name__ == "__main__":
    script.run_cases(require)
