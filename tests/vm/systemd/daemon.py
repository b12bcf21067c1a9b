"""nettraced as a service of the VM's systemd: how tests set it up, have services write to it, and read what it wrote."""

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
    """Its output, of both streams."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=300, check=False)
    if check and done.returncode != 0:
        raise RuntimeError(f"{command} ended with {done.returncode}:\n{done.stdout}\n{journal()[-1500:]}")
    return done.stdout


def systemctl(*words, check=True):
    return run("systemctl", "--no-pager", "--full", *words, check=check)


def show(name, unit=UNIT):
    """A property of a unit."""
    return systemctl("show", "--property", name, "--value", unit).strip()


def is_active():
    return show("ActiveState") == "active"


def main_pid():
    return int(show("MainPID"))


def restarts():
    """How often systemd has restarted it since it was last started by hand."""
    return int(show("NRestarts"))


def until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"did not happen within {seconds} s; the journal:\n{journal()[-1500:]}")
        time.sleep(0.05)


def mark():
    """The present, for what the journal has since then."""
    return time.monotonic_ns() // 1000


def _entries(since, *matches):
    # Not by --after-cursor: where the cursor's own entry does not match, systemd 252 leaves out the first that does.
    lines = run("journalctl", "--no-pager", "--all", "--output", "json", *matches).splitlines()
    return [entry for entry in map(json.loads, lines) if int(entry["__MONOTONIC_TIMESTAMP"]) >= since]


def journal(since=0, unit=UNIT):
    """What systemd and the unit have said of it, since a mark."""
    return "\n".join(entry["MESSAGE"] for entry in _entries(since, "--unit", unit))


def systemd_said(since):
    """What systemd has said since a mark: in this VM it says that to the kernel's log."""
    return "\n".join(entry["MESSAGE"] for entry in _entries(since, "SYSLOG_IDENTIFIER=systemd"))


def entries(since, session):
    """The journal's entries of a session of nettraced: {"MESSAGE": ..., "PRIORITY": ...}."""
    return _entries(since, f"SESSION={session}")


def said(since, session, text):
    """Whether nettraced has said this of a session since a mark."""
    return any(text in entry["MESSAGE"] for entry in entries(since, session))


def session(name, more=""):
    """The settings of a session of all events of load_service."""
    return f"[session.{name}]\nselect = {SELECT}\n{more}\n"


def start(*sessions):
    """Reloads nettraced with sessions of these settings, as by session()."""
    since = mark()
    configure("".join(sessions))
    systemctl("reload", UNIT)
    for text in sessions:
        name = text[len("[session."):text.index("]")]
        until(lambda name=name: said(since, name, "collects"))


def configure(text):
    """Gives nettraced these settings beside those that the machine booted with."""
    SETTINGS.write_text(text)


@contextlib.contextmanager
def service_settings(text):
    """Restarts nettraced with these lines in its unit's [Service]."""
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
    """Has it run with no more than the settings that the machine booted with."""
    SETTINGS.unlink(missing_ok=True)
    systemctl("reset-failed", UNIT)
    systemctl("restart", UNIT)


class Load:
    """load_service, run as a service's user that may register tracepoints, and nothing else."""

    def __init__(self, *options):
        self._process = subprocess.Popen([*AS_SERVICE, "/usr/local/bin/load_service", *options],
                                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.result = None

    def end(self):
        """Has it write no more."""
        self._process.terminate()

    def runs(self):
        return self._process.poll() is None

    def wait(self):
        """What it printed: see load_service.cc."""
        if self.result is None:
            self.result = json.loads(self._process.communicate()[0])
        return self.result

    def written(self):
        return sum(thread["written"] for thread in self.wait()["threads"])

    def not_written(self):
        return sum(thread["notWritten"] for thread in self.wait()["threads"])


def files(session):
    """A session's files that are complete, in their order."""
    return sorted(path for path in (STATE / session).glob("*.nettrace*") if path.suffix != ".partial")


def partial_files(session):
    return sorted((STATE / session).glob("*.partial"))


class Recorded:
    """What a session's files have of runs of load_service: `by_pid` the events of each, `shown` those of the first."""

    def __init__(self, test, session, *services):
        """Fails `test` where a file is damaged, or an event is wrong or there twice."""
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
    """The words before a command that run it as this user, in these groups beside its own; made if need be."""
    if subprocess.run(["id", name], capture_output=True, check=False).returncode != 0:
        run("useradd", "--system", "--no-create-home", name)
    return ["setpriv", f"--reuid={name}", f"--regid={name}", *([f"--groups={','.join(groups)}"] if groups else ["--clear-groups"])]


def readable(prefix, path):
    return subprocess.run([*prefix, "cat", path], capture_output=True, check=False).returncode == 0


def kill(number, pid=None):
    os.kill(pid or main_pid(), number)
