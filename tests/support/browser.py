"""Runs Chromium for tests of pages: opens a page with a width and a colour scheme, evaluates JavaScript, and sends key
presses."""

import base64
import itertools
import json
import math
import os
import subprocess
import tempfile
import unittest

# Widths of windows in CSS pixels: the narrowest phones, common phones, a tablet, a desktop.
WIDTHS = (320, 360, 390, 768, 1280)
HEIGHT = 844
# Width of the page's content, in CSS pixels. If it exceeds the window, the browser of a phone widens the window, and the
# browser of a desktop shows a scroll bar.
WIDTH = "Math.max(document.documentElement.scrollWidth, innerWidth)"
# JavaScript: a promise that the browser resolves after it has drawn all earlier changes of the page.
DRAWN = "new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
# The lowest contrast ratio (WCAG 2) between text and background of all elements that contain text.
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


def in_oklab(rgb):
    """Converts linear RGB to OKLab, in which the distance of two colours is the difference that people see."""
    matrix = ((0.4122214708, 0.5363325363, 0.0514459929), (0.2119034982, 0.6806995451, 0.1073969566), (0.0883024619, 0.2817188376, 0.6299787005))
    l, m, s = (sum(a * min(1, max(0, b)) for a, b in zip(row, rgb)) ** (1 / 3) for row in matrix)
    return (0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s, 1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
            0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s)


# Matrices that convert linear RGB to the colours that people with normal sight, protanopia, deuteranopia and tritanopia
# see (Machado and others, 2009).
SIGHTS = (((1, 0, 0), (0, 1, 0), (0, 0, 1)),
          ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
          ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
          ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)))


def colour_distance(one, other):
    """Returns the smallest distance that two colours, such as #105be1, have for any kind of sight in SIGHTS."""
    def linear(colour):
        parts = (int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5))
        return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]

    def seen(colour, sight):
        return in_oklab([sum(a * b for a, b in zip(row, linear(colour))) for row in sight])
    return min(math.dist(seen(one, sight), seen(other, sight)) for sight in SIGHTS)


class Browser:
    """A page of Chromium, driven by the DevTools protocol on two pipes."""

    def __init__(self, folder):
        to_browser, from_browser = os.pipe(), os.pipe()
        # The protocol uses descriptors 3 and 4, so the shell opens the pipes there.
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
                raise ConnectionError("chromium ended before it answered")
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
        assert "error" not in message, f"chromium refused {method}: {message}"
        return message["result"]

    def open(self, path, width, scheme="light"):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=HEIGHT, deviceScaleFactor=1, mobile=width < 768)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.open_address(path.as_uri())

    def open_address(self, address):
        self.call("Page.navigate", url=address)
        while self._read().get("method") != "Page.loadEventFired":
            pass

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, f"JavaScript threw an exception: {expression}: {result}"
        return result["result"].get("value")

    def picture(self, width, height):
        """Returns a PNG of the upper left part of the window, with this size in CSS pixels."""
        shot = self.call("Page.captureScreenshot", format="png", clip={
            "x": 0, "y": self.value("scrollY"), "width": width, "height": height, "scale": 1})
        return base64.b64decode(shot["data"])

    def press(self, key):
        """Presses a key, given by its name or by the character that it types."""
        codes = {"Backspace": 8, "Tab": 9, "Enter": 13, "Escape": 27, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", key=key, code=key if key in codes else "",
                  windowsVirtualKeyCode=codes.get(key, 0), text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key if key in codes else "",
                  windowsVirtualKeyCode=codes.get(key, 0))

    def close(self):
        self._session = None
        self.call("Browser.close")
        self._process.wait()
        self._to.close()
        self._from.close()


class PageCase(unittest.TestCase):
    """A test of pages, which uses one browser for all its cases. Its setUpClass sets `folder`, which has the pages."""

    folder, browser = None, None

    @classmethod
    def start_browser(cls):
        profile = tempfile.TemporaryDirectory(prefix="browser.", ignore_cleanup_errors=True)
        cls.addClassCleanup(profile.cleanup)
        cls.browser = Browser(profile.name)
        cls.addClassCleanup(cls.browser.close)

    def open(self, name="shop", width=1280, scheme="light"):
        self.browser.open(self.folder / f"{name}.html", width, scheme)
        self.drawn()

    def drawn(self):
        self.browser.call("Runtime.evaluate", expression=DRAWN, awaitPromise=True)

    def value(self, expression):
        return self.browser.value(expression)

    def press(self, *keys):
        for key in keys:
            self.browser.press(key)
        self.drawn()

    def click(self, selector):
        self.value(f"document.querySelector({selector!r}).click()")
        self.drawn()
