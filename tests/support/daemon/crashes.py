"""Checks nettraced's files when the daemon is killed repeatedly while a load writes all the time."""

import json
import os
import pathlib
import random
import select
import shutil
import signal
import subprocess
import time

from support.load import load

SECOND = 1_000_000_000
INTERVAL = SECOND  # the default of the settings
# Settings of each session: `whole` has the default settings, `rotated` begins a compressed file each second.
SESSIONS = {"whole": "", "rotated": 'compression = true\nfiles.rotate_every = "1s"\n'}


def numbers(program, *files, pid=None):
    """Returns the object that load_numbers prints for each file. It counts events of all processes or of the process `pid`."""
    if not files:
        return []
    options = [] if pid is None else ["--pid", str(pid)]
    printed = subprocess.run([program, *options, *files], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [json.loads(line) for line in printed.splitlines()]


def kill(pid):
    """Kills a process, and waits until none of its threads runs; returns the time of the kill."""
    descriptor = os.pidfd_open(pid)
    try:
        at = time.monotonic_ns()
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        select.select([descriptor], [], [])
        return at
    finally:
        os.close(descriptor)


def kill_often(kills, sessions, pid, restart, until, start_takes):
    """Kills a daemon at random times. One kill in four comes within `start_takes` seconds after a start, while the
    daemon may repair the damage of the last kill. pid() returns the process to kill, restart() returns when a new
    process runs, and until(condition) waits."""
    for number in range(kills):
        if number % 4 == 3:
            time.sleep(random.uniform(0, start_takes))
        else:
            wait_until_it_collects(sessions, until)
            time.sleep(random.uniform(0, 4))
        at = kill(pid())
        for session in sessions:
            session.killed(at)
        restart()
        print(f"{time.monotonic():.1f}: kill {number + 1} of {kills}", flush=True)
    wait_until_it_collects(sessions, until)


def wait_until_it_collects(sessions, until):
    for session in sessions:
        until(session.is_written)
        session.is_ready()


class Session:
    """The files of a session of a daemon that is killed repeatedly. A kill leaves a torn file, which lacks its end; the
    next daemon repairs it. Copies of the torn files are kept, and all files are checked after the last kill, so that
    checks do not delay the kills.

    Times are those of CLOCK_MONOTONIC in ns, as in the files."""

    def __init__(self, test, load_numbers, folder):
        self._test, self._load_numbers = test, load_numbers
        self._folder = pathlib.Path(folder)
        # The folder is on the same file system, so that hard links to torn files keep their contents after the repair.
        self._kept = self._folder.parent / f"{self._folder.name}-torn"
        self._kept.mkdir()
        test.addCleanup(shutil.rmtree, self._kept)
        self._kills = []  # For each kill: its time, and the time of is_ready() since the last start; None: not called
        self._ready = None

    def has_events(self):
        """Returns whether events of the load are in the file that is being written. The session must not begin another
        file during the call."""
        return any(found["numbered"] for found in numbers(self._load_numbers, *self._folder.glob("*.partial")))

    def is_written(self):
        """Returns whether a restarted daemon has begun a file."""
        return any(not self._link_of(path).exists() for path in self._folder.glob("*.partial"))

    def is_ready(self):
        """Notes that the daemon collects. Must be called after a start, when is_written() is true."""
        self._ready = time.monotonic_ns()

    def _link_of(self, partial):
        return self._kept / partial.name.removesuffix(".partial")

    def killed(self, at):
        """Notes a kill, and keeps the torn file. Must be called after the daemon has ended and before it is restarted."""
        torn = [path for path in self._folder.glob("*.partial") if not self._link_of(path).exists()]
        self._test.assertLessEqual(len(torn), 1)
        for path in torn:
            os.link(path, self._link_of(path))
        self._kills.append((at, self._ready))
        self._ready = None

    def check(self, service, margin):
        """Checks, after the daemon was stopped, that no file is damaged, that no event occurs twice, and that each kill
        has lost at most the events of the time INTERVAL + `margin` before it. `service`: what load_service printed."""
        paths = sorted(self._folder.iterdir())
        self._test.assertEqual({path.suffix for path in paths}, {paths[0].suffix})  # No file is a partial file.
        files = {path.name: found for path, found in zip(paths, numbers(self._load_numbers, *paths, pid=service["pid"]))}
        for name, file in files.items():
            self._test.assertEqual((name, file["complete"], file["findings"], file["twice"]), (name, True, 0, 0))
        torn = self._check_repaired(files, service["pid"])
        missing = self._check_numbers(files, service)
        costs = self._costs(files)
        print(f"{self._folder.name}: {len(self._kills)} kills, {torn} torn files, {len(files)} files in all, of "
              f"{sum(self._totals(service).values())} events {missing} are missing; time from the last event in a file to the "
              f"kill: {max(costs) / SECOND:.3f} s at most, {sum(costs) / len(costs) / SECOND:.3f} s on average", flush=True)
        self._test.assertLessEqual(max(costs), INTERVAL + margin)
        # Three of four kills wait until the daemon collects, so the lost time is known for them.
        self._test.assertGreaterEqual(len(costs), len(self._kills) * 3 // 4)

    def _check_repaired(self, files, pid):
        """Checks that everything that is readable in a torn file is in the file that replaced it. Returns the number of
        torn files."""
        torn = [path for path in sorted(self._kept.iterdir()) if path.stat().st_size]
        for path, found in zip(torn, numbers(self._load_numbers, *torn, pid=pid)):
            self._test.assertEqual(path.name in files, found["events"] > 0, path.name)
            if found["events"]:
                self._test.assertEqual(files[path.name]["numbers"], found["numbers"], path.name)
        return len(torn)

    def _check_numbers(self, files, service):
        """Checks that no number occurs twice, and that numbers are missing only at kills. Returns how many are
        missing."""
        total = self._totals(service)
        expected = dict.fromkeys(total, 0)
        after_kill = set(total)  # tracepoints of threads whose next numbers may be missing
        end = missing = lost = holes = 0
        for name, file in files.items():
            lost += file["lost"]
            if file["first"] and any(end <= at <= file["first"] for at, _ in self._kills):
                after_kill.update(total)
            for _, thread, tracepoint, first, last in file["numbers"]:
                key = thread, tracepoint
                gap = first - expected[key]
                self._test.assertGreaterEqual(gap, 0, f"{name}: {key} has {first} again; expected {expected[key]} or more")
                if key in after_kill:
                    missing += gap
                elif gap:
                    print(f"{name}: {key} lacks {gap} before {first}", flush=True)
                    holes += gap
                after_kill.discard(key)
                expected[key] = last + 1
            end = file["last"] or end
        self._test.assertLessEqual(holes, lost)
        self._test.assertEqual(expected, total)
        return missing

    @staticmethod
    def _totals(service):
        """Returns the number of events of each thread for each of its tracepoints, whether they were collected or
        not."""
        tracepoints = 1 if service["calls"] else len(load.TRACEPOINTS)
        return {(number, tracepoint): (thread["written"] + thread["notWritten"] - tracepoint + tracepoints - 1) // tracepoints
                for number, thread in enumerate(service["threads"]) for tracepoint in range(tracepoints)}

    def _costs(self, files):
        """Returns, for each kill of a daemon that collected, the time in ns from the last event in a file to the kill. If
        the daemon has recorded no event since its start, the time counts from the call of is_ready()."""
        costs = []
        before = 0
        for at, ready in self._kills:
            last = max((file["last"] for file in files.values() if file["first"] and file["first"] <= at), default=0)
            since = last if last > before else ready
            if since is not None:
                costs.append(at - since)
            before = at
        return costs
