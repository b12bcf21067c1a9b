#!/usr/bin/python3
"""The site of the documents in Chromium: no page scrolls sideways, at the widths of telephones and of desks, and the
keyboard reaches it. By name only (./run test browser); needs Debian's package chromium."""

import itertools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from support import script

SOURCE = script.options(__doc__, "source").source
# CSS pixels: the narrowest telephones, common ones, a tablet, a desk.
WIDTHS = (320, 360, 390, 768, 1280)
HEIGHT = 844
# What the page takes; a telephone's browser makes the window as wide as that, and a desk's has a bar for scrolling in it.
WIDTH = "Math.max(document.documentElement.scrollWidth, innerWidth)"
# Tags of what is wider than the page and scrolls by itself.
WIDER = """[...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1 &&
  !e.closest("pre, .scroll, div.Bd")).map(e => e.tagName + ": " + e.textContent.slice(0, 60))"""
# Colours of text and ground of everything that has text of its own, as lightness contrast (WCAG 2).
CONTRAST = """(() => {
  const light = c => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255)
    .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
  const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
    if (!/, 0\\)$/.test(c)) return c; } return "rgb(255, 255, 255)"; };
  let least = 21;
  for (const e of document.querySelectorAll("body *")) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    const a = light(getComputedStyle(e).color), b = light(ground(e));
    least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  return least; })()"""


class Browser:
    """A page of Chromium, driven by the DevTools protocol on two pipes."""

    def __init__(self, folder):
        to_browser, from_browser = os.pipe(), os.pipe()
        # The protocol's ends are descriptors 3 and 4, so the shell puts them there.
        command = ["sh", "-c", f'exec "$@" 3<&{to_browser[0]} 4>&{from_browser[1]}', "sh", "chromium", "--headless=new", "--no-sandbox",
                   "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe",
                   f"--user-data-dir={folder}", "about:blank"]
        self._process = subprocess.Popen(command, pass_fds=(to_browser[0], from_browser[1]), stdin=subprocess.DEVNULL,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "HOME": folder})
        os.close(to_browser[0])
        os.close(from_browser[1])
        self._to, self._from = os.fdopen(to_browser[1], "wb", 0), os.fdopen(from_browser[0], "rb")
        self._ids, self._session = itertools.count(1), None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")

    def _read(self):
        message = bytearray()
        while (byte := self._from.read(1)) != b"\0":
            if not byte:
                raise ConnectionError("chromium has ended")
            message += byte
        return json.loads(message)

    def call(self, method, **parameters):
        number = next(self._ids)
        request = {"id": number, "method": method, "params": parameters}
        if self._session:
            request["sessionId"] = self._session
        self._to.write(json.dumps(request).encode() + b"\0")
        while (message := self._read()).get("id") != number:
            pass
        assert "error" not in message, (method, message)
        return message["result"]

    def open(self, path, width, scheme="light"):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=HEIGHT, deviceScaleFactor=1, mobile=width < 768)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=path.as_uri())
        while self._read().get("method") != "Page.loadEventFired":
            pass

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode={"Tab": 9}[key])

    def close(self):
        self._session = None
        self.call("Browser.close")
        self._process.wait()
        self._to.close()
        self._from.close()


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
        self.fail("no Tab comes to a block of code")


def require():
    for name in ("chromium", "cmark-gfm", "mandoc"):
        if shutil.which(name) is None:
            raise script.Skipped(f"{name} is not installed: apt-get install --no-install-recommends {name}")


if __name__ == "__main__":
    script.run_cases(require)
