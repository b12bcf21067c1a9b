"""Runs Chromium for tests of pages: opens a page with a width and a colour scheme, evaluates JavaScript, and sends key
presses."""

import itertools
import json
import os
import subprocess
import tempfile
import unittest

# CSS pixels: the narrowest phones, common phones, a tablet, a desktop.
WIDTHS = (320, 360, 390, 768, 1280)
HEIGHT = 844
# The width of the page's content. The browser of a phone widens the window to it; that of a desktop shows a scroll bar.
WIDTH = "Math.max(document.documentElement.scrollWidth, innerWidth)"
# Resolves after the requested content has been drawn.
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
        self.open_address(path.as_uri())

    def open_address(self, address):
        self.call("Page.navigate", url=address)
        while self._read().get("method") != "Page.loadEventFired":
            pass

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def press(self, key):
        """Presses a key, given by its name or by the character that it types."""
        codes = {"Tab": 9, "Enter": 13, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
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
    """A test of the pages in `folder`, which setUpClass of the test sets, in one browser for all cases."""

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
