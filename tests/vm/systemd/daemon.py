"""Controls nettraced as a service of the VM's systemd: tests configure it, let services write events, and read its
files."""

import contextlib
import json
import os
import pathlib
import subprocess
import time

from support import commands
from support.load import load

UNIT = "nettraced.service"
NETTRACE = "/usr/local/bin/nettrace"
STATE = pathlib.Path("/var/lib/nettraced")
SETTINGS = pathlib.Path("/etc/nettraced/test.toml")
DROP_IN = pathlib.Path(f"/run/systemd/system/{UNIT}.d/test.conf")
SELECT = json.dumps(load.TRACEPOINTS)
AS_SERVICE = ["setpriv", "--reuid=65534", "--regid=65534", "--groups=user_events"]


def run(*command, check=True):
    """Runs a command; returns its output, of both streams."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=300, check=False)
    if check and done.returncode != 0:
        raise RuntimeError(f"{command} ended with {done.returncode}:\n{done.stdout}\n{journal()[-1500:]}")
    return done.stdout


def systemctl(*words, check=True):
    return run("systemctl", "--no-pager", "--full", *words, check=check)


def show(name, unit=UNIT):
    """Returns a property of a unit."""
    return systemctl("show", "--property", name, "--value", unit).strip()


def is_active():
    return show("ActiveState") == "active"


def main_pid():
    return int(show("MainPID"))


def restarts():
    """Returns how often systemd has restarted the daemon since its last manual start."""
    return int(show("NRestarts"))


def until(condition, seconds=120):
    """Waits until a condition is true. Checks it less often the longer the wait takes, because most conditions start systemctl
    or journalctl, which delays the event that they wait for."""
    end = time.monotonic() + seconds
    pause = 0.05
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"the condition was not met within {seconds} s; the journal:\n{journal()[-1500:]}")
        time.sleep(pause)
        pause = min(2 * pause, 0.4)


def mark():
    """Returns a mark: the current time, from which later searches in the journal start."""
    return time.monotonic_ns() // 1000


def journal_entries(since, *matches):
    """Returns the journal's entries since a mark that match."""
    # --after-cursor is not used: if the cursor's own entry does not match, systemd 252 skips the first entry that does.
    lines = run("journalctl", "--no-pager", "--all", "--output", "json", *matches).splitlines()
    return [entry for entry in map(json.loads, lines) if int(entry["__MONOTONIC_TIMESTAMP"]) >= since]


def journal(since=0, unit=UNIT):
    """Returns what systemd and the unit have logged about the unit since a mark."""
    return "\n".join(entry["MESSAGE"] for entry in journal_entries(since, "--unit", unit))


def systemd_said(since):
    """Returns what systemd has logged since a mark. In this VM it writes to the kernel's log."""
    return "\n".join(entry["MESSAGE"] for entry in journal_entries(since, "SYSLOG_IDENTIFIER=systemd"))


def entries(since, session):
    """Returns the journal's entries of a session of nettraced: {"MESSAGE": ..., "PRIORITY": ...}."""
    return journal_entries(since, f"SESSION={session}")


def said(since, session, text):
    """Returns whether nettraced has logged this text for a session since a mark."""
    return any(text in entry["MESSAGE"] for entry in entries(since, session))


def session(name, more=""):
    """Returns the settings of a session that records all events of load_service."""
    return f"[session.{name}]\nselect = {SELECT}\n{more}\n"


def start(*sessions):
    """Reloads nettraced with these sessions, whose settings session() returned."""
    since = mark()
    configure("".join(sessions))
    systemctl("reload", UNIT)
    for text in sessions:
        name = text[len("[session."):text.index("]")]
        until(lambda name=name: said(since, name, "collects"))


def configure(text):
    """Adds these settings to those that the machine booted with."""
    SETTINGS.write_text(text)


@contextlib.contextmanager
def service_settings(text):
    """Restarts nettraced with these lines in the [Service] section of its unit."""
    DROP_IN.parent.mkdir(parents=True, exist_ok=True)
    DROP_IN.write_text(f"[Service]\n{text}\n")
    systemctl("daemon-reload")
    systemctl("restart", UNIT)
    try:
        yield
    finally:
        DROP_IN.unlink()
        systemctl("daemon-reload")
        systemctl("restart", UNIT)


def reset():
    """Restarts nettraced with only the settings that the machine booted with."""
    SETTINGS.unlink(missing_ok=True)
    systemctl("reset-failed", UNIT)
    systemctl("restart", UNIT)


class Load:
    """Runs load_service as a service whose user may register tracepoints, but has no other rights."""

    def __init__(self, *options):
        self._process = subprocess.Popen([*AS_SERVICE, "/usr/local/bin/load_service", *options],
                                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.result = None

    def end(self):
        """Makes load_service stop writing and end."""
        self._process.terminate()

    def runs(self):
        return self._process.poll() is None

    def wait(self):
        """Waits until load_service has ended. Returns what it printed: see load_service.cc."""
        if self.result is None:
            self.result = json.loads(self._process.communicate()[0])
        return self.result

    def written(self):
        return sum(thread["written"] for thread in self.wait()["threads"])

    def not_written(self):
        return sum(thread["notWritten"] for thread in self.wait()["threads"])


def files(session):
    """Returns a session's complete files, in order."""
    return sorted(path for path in (STATE / session).glob("*.nettrace*") if path.suffix != ".partial")


def partial_files(session):
    return sorted((STATE / session).glob("*.partial"))


def events_written(session):
    """Returns the number of events in the file that a session is writing."""
    count = 0
    for file in partial_files(session):
        # Ignores the exit status, which is that of an incomplete file.
        shown = subprocess.run([NETTRACE, "info", "--json", file], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               check=False).stdout
        count += json.loads(shown)["events"] if shown else 0
    return count


class Recorded:
    """The events of runs of load_service in a session's files: `by_pid` has the events of each run, `shown` those of
    the first."""

    def __init__(self, test, session, *services):
        """Fails `test` if a file is damaged, or an event is wrong or occurs twice."""
        self.files = files(session)
        self.by_pid = {service["pid"]: set() for service in services}
        self.shown = self.by_pid[services[0]["pid"]]
        self.lost = 0
        service_of = {service["pid"]: service for service in services}
        for file in self.files:
            run(NETTRACE, "verify", "--strict", file)
            self.lost += commands.info(NETTRACE, file)["lost"]
            for event in commands.dump(NETTRACE, file):
                if event["provider"] != load.PROVIDER or event["pid"] not in service_of:
                    continue
                service, shown = service_of[event["pid"]], self.by_pid[event["pid"]]
                key = load.key_of(event, service)
                test.assertNotIn(key, shown, f"{file}: twice")
                shown.add(key)
                expected = load.expected(service, *key)
                test.assertEqual({name: event[name] for name in expected}, expected)


def as_user(name, *groups):
    """Returns the words before a command that run it as this user, with these supplementary groups. Creates the user if
    necessary."""
    if subprocess.run(["id", name], capture_output=True, check=False).returncode != 0:
        run("useradd", "--system", "--no-create-home", name)
    return ["setpriv", f"--reuid={name}", f"--regid={name}", *([f"--groups={','.join(groups)}"] if groups else ["--clear-groups"])]


def readable(prefix, path):
    return subprocess.run([*prefix, "cat", path], capture_output=True, check=False).returncode == 0


def kill(number, pid=None):
    os.kill(pid or main_pid(), number)
