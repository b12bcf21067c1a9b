#!/usr/bin/python3
"""Tests the documentation site in Chromium: no page scrolls sideways at the widths of phones and desktops, and the
keyboard reaches everything that scrolls. Runs only by name (./run test browser); needs Debian's package chromium."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

from support import script
from support.browser import CONTRAST, WIDTH, WIDTHS, Browser

SOURCE = script.options(__doc__, "source").source
# Tag and text of each element that is wider than the page and does not scroll by itself.
WIDER = """[...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1 &&
  !e.closest("pre, .scroll, div.Bd")).map(e => e.tagName + ": " + e.textContent.slice(0, 60))"""


class BrowserTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="browser.", ignore_cleanup_errors=True)
        cls.addClassCleanup(temporary.cleanup)
        cls.site = pathlib.Path(temporary.name) / "site"
        subprocess.run([SOURCE / "scripts/docs.py", "--output", cls.site], stdout=subprocess.DEVNULL, check=True)
        cls.pages = sorted(cls.site.rglob("*.html"))
        cls.browser = Browser(temporary.name)
        cls.addClassCleanup(cls.browser.close)

    def test_no_page_scrolls_sideways(self):
        self.assertGreater(len(self.pages), 30)
        for page in self.pages:
            for width in WIDTHS:
                with self.subTest(page=page.relative_to(self.site).as_posix(), width=width):
                    self.browser.open(page, width)
                    self.assertEqual(self.browser.value(WIDTH), width)
                    self.assertEqual(self.browser.value(WIDER), [])

    def test_a_page_that_is_too_wide_is_noticed(self):
        page = self.site / "wide.html"
        text = (self.site / "index.html").read_text(encoding="utf-8")
        page.write_text(text.replace("<h1", '<div style="width: 900px">wide</div><h1', 1), encoding="utf-8")
        self.addCleanup(page.unlink)
        self.browser.open(page, 360)
        self.assertGreater(self.browser.value(WIDTH), 360)
        self.assertEqual(self.browser.value(WIDER), ["DIV: wide"])

    def test_text_can_be_read_in_both_colour_schemes(self):
        grounds = set()
        for scheme in ("light", "dark"):
            for page in self.pages:
                with self.subTest(page=page.relative_to(self.site).as_posix(), scheme=scheme):
                    self.browser.open(page, 1280, scheme)
                    self.assertGreaterEqual(self.browser.value(CONTRAST), 4.5)  # WCAG 2, AA
                    grounds.add(self.browser.value("getComputedStyle(document.body).backgroundColor"))
        self.assertEqual(len(grounds), 2)

    def test_the_keyboard_reaches_the_text_first(self):
        self.browser.open(self.site / "guides/scripts.html", 1280)
        self.browser.press("Tab")
        self.assertEqual(self.browser.value("document.activeElement.getAttribute('href')"), "#main")
        self.assertGreaterEqual(self.browser.value("document.activeElement.getBoundingClientRect().left"), 0)

    def test_the_keyboard_scrolls_wide_code(self):
        self.browser.open(self.site / "guides/scripts.html", 360)
        scrolled = self.browser.value("document.querySelector('pre').scrollWidth > document.querySelector('pre').clientWidth")
        self.assertTrue(scrolled)
        for _ in range(40):
            self.browser.press("Tab")
            if self.browser.value("document.activeElement.tagName") == "PRE":
                return
        self.fail("40 presses of Tab reached no block of code")


def require():
    for name in ("chromium", "cmark-gfm", "mandoc"):
        if shutil.which(name) is None:
            raise script.Skipped(f"{name} is not installed: apt-get install --no-install-recommends {name}")


if __name__ == "__main__":
    script.run_cases(require)
