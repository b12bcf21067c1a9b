"""Runs nettraced for tests, with separate settings, directories and a separate notification socket."""

import json
import os
import pathlib
import queue
import signal
import socket
import subprocess
import tempfile
import threading
import time


class Daemon:
    """A daemon with settings in `settings` (texts by file name) and the state directory `state`; `said` has its
    notifications to systemd."""

    def __init__(self, nettraced, nettrace, settings, folder=None):
        self.nettraced, self.nettrace = nettraced, nettrace
        self.folder = folder or tempfile.TemporaryDirectory(prefix="nettraced-")
        self.path = pathlib.Path(self.folder.name)
        for name in ("conf", "state", "run"):
            (self.path / name).mkdir(exist_ok=True)
        # The machine may lack the default look_group, whose members may view sessions.
        self.set(daemon="[daemon]\nlook_group = ''\n", **settings)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        (self.path / "notify").unlink(missing_ok=True)
        self.socket.bind(str(self.path / "notify"))
        # A thread reads notifications at once, as systemd does, because the socket holds only ten unread notifications.
        self.received = queue.SimpleQueue()
        threading.Thread(target=self._receive, daemon=True).start()
        self.said = []
        self.process = None

    def set(self, **settings):
        for name, text in settings.items():
            (self.path / "conf" / f"{name}.toml").write_text(text)

    def start(self, watchdog=None, prefix=(), ready=True, **popen):
        environment = os.environ | {"NOTIFY_SOCKET": str(self.path / "notify")}
        if watchdog:
            environment["WATCHDOG_USEC"] = str(int(watchdog * 1e6))
        self.said.clear()
        with open(self.path / "log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [*prefix, self.nettraced, "--config", self.path / "conf", "--state-directory", self.path / "state",
                 "--runtime-directory", self.path / "run"], stdin=subprocess.DEVNULL, stderr=log, env=environment, **popen)
        if ready:
            self.wait_for_said("READY=1")

    def hear(self, timeout):
        """Reads notifications for this time, and returns them."""
        try:
            message = self.received.get(timeout=timeout)
        except queue.Empty:
            return []
        self.said += message
        return message

    def _receive(self):
        while message := self.socket.recv(4096):
            self.received.put(message.decode().splitlines())

    def wait_for_said(self, text, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if any(text in line for line in self.hear(0.1)):
                return
            if self.process.poll() is not None:
                raise AssertionError(f"nettraced sent no {text}, but ended with {self.process.returncode}: {self.log()}")
        raise AssertionError(f"nettraced did not send {text} within {seconds} s, but {self.said}; its log: {self.log()}")

    def log(self):
        return (self.path / "log").read_text()

    def wait_for_log(self, text, seconds=60):
        until(lambda: text in self.log(), seconds, lambda: f"the log must contain '{text}': {self.log()}")

    def ctl(self, *words, **popen):
        return subprocess.run([self.nettrace, "ctl", "--socket", self.path / "run/control", *words],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=60, check=False, **popen)

    def ask(self, *words):
        done = self.ctl(*words)
        if done.returncode != 0:
            raise AssertionError(f"ctl {words}: exit status {done.returncode}: {done.stderr}; log of nettraced: {self.log()}")
        return done.stdout.strip()

    def status(self, session):
        return json.loads(self.ask("status", "--json", session))

    def wait_for_state(self, session, state, seconds=20):
        until(lambda: self.status(session)["state"] == state, seconds,
              lambda: f"session {session} must be {state}: {self.status(session)}; log of nettraced: {self.log()}")

    def stop(self, seconds=30):
        """Stops the daemon as systemd does; returns the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def close(self):
        self.kill()
        self.socket.shutdown(socket.SHUT_RD)  # Ends the thread that reads the socket.
        self.socket.close()
        self.folder.cleanup()

    def files(self, session):
        """Returns the session's complete files, in the order of their names."""
        return sorted(file for file in (self.path / "state" / session).glob("*.nettrace*")
                      if file.suffix in (".nettrace", ".zst"))


def until(condition, seconds, what, pause=0.05):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"the condition was not met within {seconds} s: {what()}")
        time.sleep(pause)
