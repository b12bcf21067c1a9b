#!/usr/bin/python3
"""Tests the flame graph of the page of `nettrace report` in Chromium: sums, zoom, search, keyboard, the address, and a
function whose name would be HTML. Runs only by name (./run test browser); needs Debian's package chromium."""

import itertools
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile

from support import script
from support.browser import CONTRAST, WIDTH, WIDTHS, PageCase, colour_distance

ARGS = script.options(__doc__, "nettrace", "traces")
HTML = """shop!<img src=x onerror="document.title='broken'">"""
CHOSEN = "document.querySelector('#flame-chosen').textContent"
FOUND = "document.querySelector('#flame-found').textContent"
LABEL = "document.querySelector('#flames').getAttribute('aria-label')"
# The texts of the boxes that are drawn, in the order of drawing.
BOXES = "[...document.querySelectorAll('#flame-picture text')].map(box => box.textContent)"
ROWS = """[...document.querySelectorAll("{} tbody tr")].map(row => [...row.cells].map(cell => cell.textContent))"""


def box(text):
    """Returns the rectangle whose text begins with this one."""
    return f"""[...document.querySelectorAll("#flame-picture text")].find(box => box.textContent.startsWith({text!r})).previousElementSibling"""


class ReportStacksBrowserTest(PageCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="flames.")
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        subprocess.run([ARGS.traces, cls.folder], check=True)
        for trace in cls.folder.glob("*.nettrace"):
            subprocess.run([ARGS.nettrace, "report", "--size", "1M", trace, "-o", trace.with_suffix(".html")], stderr=subprocess.DEVNULL, check=True)
        cls.start_browser()

    def choose(self, selector, value, event="change"):
        self.value(f"""(box => {{ box.value = {value!r}; box.dispatchEvent(new Event({event!r})); }})(document.querySelector({selector!r}))""")
        self.drawn()

    def click_box(self, text):
        self.value(f"{box(text)}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
        self.drawn()

    def focus(self):
        for _ in range(120):
            self.press("Tab")
            if self.value("document.activeElement.id") == "flames":
                return
        self.fail("120 presses of Tab did not reach the flame graph")

    def test_the_root_has_all_events_of_a_view(self):
        self.open("stacks")
        self.assertIn("Flame graph of CPU samples: 10 samples, 6 boxes", self.value(LABEL))
        self.assertEqual(self.value(CHOSEN), "CPU samples: 10 samples (100 %)")
        self.assertEqual(self.value(BOXES)[:3], ["CPU samples", "shop", "shop!main"])
        self.assertEqual(set(self.value(BOXES)[3:]), {"shop!shop::Send()", "<img src=x onerr…", "vmlinux!write"})
        self.assertEqual(self.value(ROWS.format("#functions-0"))[0], ["shop!shop::Send()", "8", "80.0 %", "9", "90.0 %"])
        self.choose("#flame-view", "1")
        self.assertEqual(self.value(CHOSEN), "Time off the CPU: 7 µs (100 %)")
        self.choose("#flame-view", "2")
        self.assertEqual(self.value(CHOSEN), "Sale (Shop): 2 events (100 %)")
        # Only the table of this view is shown.
        self.assertEqual(self.value("[...document.querySelectorAll('#stack-tables table')].map(table => table.checkVisibility())"),
                         [False, False, True])

    def test_a_click_zooms_and_the_address_opens_the_same_view(self):
        self.open("stacks")
        self.click_box("shop!shop::Send")
        self.assertEqual(self.value(CHOSEN), "shop!shop::Send(): 9 samples (90 %), 8 samples itself")
        width = "Number({}.getAttribute('width')) / document.querySelector('#flame-picture').clientWidth"
        self.assertGreater(self.value(width.format(box("shop!shop::Send"))), 0.99)
        self.choose("#flame-search", "WRITE", "input")
        address = self.value("location.href")
        self.assertIn("stacks-search=WRITE", address)
        boxes, found = self.value(BOXES), self.value(FOUND)
        self.browser.open_address("about:blank")
        self.browser.open_address(address)
        self.drawn()
        self.assertEqual((self.value(BOXES), self.value(FOUND)), (boxes, found))
        self.assertIn("shop!shop::Send(): 9 samples", self.value(CHOSEN))
        self.click("#flame-whole")
        self.assertNotIn("stacks-zoom", self.value("location.href"))
        self.assertTrue(self.value("document.querySelector('#flame-whole').disabled"))

    def test_the_search_marks_functions_and_states_their_share(self):
        self.open("stacks")
        for text, expected in (("send", "1 box marked: 90 % (9 samples of 10 samples)"), ("WRITE", "1 box marked: 10 % (1 sample of 10 samples)"),
                               ("shop!", "3 boxes marked: 100 % (10 samples of 10 samples)"), ("nowhere", "0 boxes marked: 0 % (0 samples of 10 samples)")):
            self.choose("#flame-search", text, "input")
            self.assertEqual(self.value(FOUND), expected + " have a marked function on their stack.")
            self.assertEqual(self.value("document.querySelectorAll('#flame-picture rect.match').length"), int(expected[0]))
        self.choose("#flame-search", "", "input")
        self.assertEqual(self.value(FOUND), "")

    def test_the_keyboard_zooms_and_goes_back(self):
        for width in (1280, 360):
            self.open("stacks", width)
            self.focus()
            self.assertEqual(self.value("getComputedStyle(document.activeElement).outlineStyle"), "solid")
            self.press("ArrowDown", "ArrowDown", "ArrowDown")
            self.assertIn("shop!shop::Send(): 9 samples", self.value(CHOSEN))
            self.assertEqual(self.value("document.querySelector('#flame-picture .cursor').getAttribute('class')"), "box user cursor")
            self.press("ArrowRight")
            self.assertEqual(self.value(CHOSEN), HTML + ": 1 sample (10 %), 1 sample itself")
            self.press("ArrowLeft", "Enter", "ArrowDown", "Enter")
            self.assertIn("vmlinux!write: 1 sample", self.value(CHOSEN))
            self.press("Backspace")
            self.assertIn("shop!shop::Send(): 9 samples", self.value(CHOSEN))
            self.press("Escape")
            self.assertIn("CPU samples: 10 samples", self.value(CHOSEN))
            self.press("ArrowDown", "Enter", "Home")
            self.assertNotIn("stacks-zoom", self.value("location.href"))

    def test_a_process_and_a_thread_can_be_chosen(self):
        self.open("stacks")
        options = self.value("[...document.querySelectorAll('#flame-place option')].map(option => [option.value, option.textContent])")
        self.assertEqual([text.strip() for _, text in options], ["all", "4242 /opt/shop", "4243 worker", "4244 worker"])
        self.choose("#flame-place", options[3][0])
        self.assertEqual(self.value(CHOSEN), "CPU samples: 3 samples (100 %)")
        self.assertEqual(self.value(ROWS.format("#functions-here-table")), [
            ["shop!shop::Send()", "2", "66.7 %", "3", "100 %"], ["vmlinux!write", "1", "33.3 %", "1", "33.3 %"],
            ["shop!main", "0", "0 %", "3", "100 %"]])
        self.assertFalse(self.value("document.querySelector('#functions-0').checkVisibility()"))
        address = self.value("location.href")
        self.browser.open_address("about:blank")
        self.browser.open_address(address)
        self.drawn()
        self.assertEqual(self.value(CHOSEN), "CPU samples: 3 samples (100 %)")
        self.choose("#flame-place", options[1][0])
        self.assertEqual(self.value(CHOSEN), "CPU samples: 10 samples (100 %)")

    def test_names_of_functions_are_text(self):
        self.open("stacks")
        self.assertIn(HTML, [row[0] for row in self.value(ROWS.format("#functions-0"))])
        self.choose("#flame-search", "onerror", "input")
        self.value("document.querySelector('#flame-picture rect.match').dispatchEvent(new Event('pointerover', {bubbles: true}))")
        self.assertIn(HTML, self.value("document.querySelector('#flame-picture rect.match title').textContent"))
        self.value("document.querySelector('#flame-picture rect.match').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
        self.drawn()
        self.assertIn(HTML, self.value(CHOSEN))
        self.assertIn(HTML, self.value(BOXES))
        self.assertEqual(self.value("document.querySelectorAll('img, #flame-picture script').length"), 0)
        self.assertEqual(self.value("document.title"), "stacks.nettrace – NetTrace report")

    def test_what_is_left_out_is_stated(self):
        self.open("many")
        text = self.value("document.querySelector('#flame-left-out').textContent")
        self.assertRegex(text, r"^41,000 events in this view\. [\d,]+ samples \([\d.]+ %\) in functions below those of the graph")
        self.assertLess(self.value("document.querySelectorAll('#flame-picture *').length"), 4100)
        self.open("stacks")
        self.assertEqual(self.value("document.querySelector('#flame-left-out').textContent"), "10 events in this view.")

    def test_a_trace_without_stacks_has_no_section(self):
        self.open("plain")
        self.assertFalse(self.value("document.querySelector('#stacks').checkVisibility()"))
        self.assertFalse(self.value("""document.querySelector("nav a[href='#stacks']").checkVisibility()"""))

    def test_widths_colours_paper_and_no_scripts(self):
        for name, width in itertools.product(("stacks", "many"), WIDTHS):
            self.open(name, width)
            self.assertEqual(self.value(WIDTH), width)
        for scheme in ("light", "dark"):
            self.open("stacks", 1280, scheme)
            self.assertGreaterEqual(self.value(CONTRAST), 4.5)
            colours = [self.value(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim()")
                       for name in ("user", "kernel", "unknown", "match")]
            for one, other in itertools.combinations(colours, 2):
                self.assertGreater(colour_distance(one, other), 0.095, (scheme, one, other))
        self.browser.call("Emulation.setEmulatedMedia", media="print", features=[])
        self.assertEqual(self.value("getComputedStyle(document.querySelector('#flames')).overflowY"), "visible")
        self.browser.call("Emulation.setEmulatedMedia", media="", features=[])
        self.browser.call("Emulation.setScriptExecutionDisabled", value=True)
        self.addCleanup(self.browser.call, "Emulation.setScriptExecutionDisabled", value=False)
        self.browser.open(self.folder / "stacks.html", 1280)
        self.assertTrue(self.value("document.querySelector('#functions-1').checkVisibility()"))
        self.assertFalse(self.value("document.querySelector('#flames').checkVisibility()"))

    def test_picture_for_the_guide(self):
        """Makes the pictures of docs/guides/where-does-the-time-go.md. NETTRACE_REPORT_PICTURES=docs keeps them."""
        kept = os.environ.get("NETTRACE_REPORT_PICTURES")
        trace = os.environ.get("NETTRACE_REPORT_STACKS")  # a recording for the pictures
        name = "many"
        if trace:
            name = "recorded"
            subprocess.run([ARGS.nettrace, "report", trace, "-o", self.folder / f"{name}.html"], stderr=subprocess.DEVNULL, check=True)
        self.open(name, 1280)
        for view, words, file in (("0", "Parse", "report-stacks-desktop-light.png"), ("1", "Reserve", "report-off-cpu-desktop-light.png")):
            self.choose("#flame-view", view)
            self.choose("#flame-search", words, "input")
            self.value("document.querySelector('#stacks').scrollIntoView()")
            self.drawn()
            picture = self.browser.picture(1280, 640)
            self.assertEqual(struct.unpack(">II", picture[16:24]), (1280, 640))
            if kept:
                pathlib.Path(kept, "guides/pictures", file).write_bytes(picture)


def require():
    if shutil.which("chromium") is None:
        raise script.Skipped("chromium is not installed: apt-get install --no-install-recommends chromium")


if __name__ == "__main__":
    script.run_cases(require)
