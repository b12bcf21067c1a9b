"""What nettraced's files have of a load that writes all the time, while the daemon is killed again and again."""

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
# What the daemon is to do in the tests: files of every kind.
SESSIONS = {"whole": "", "rotated": 'compression = true\nfiles.rotate_every = "1s"\n'}


def numbers(program, *files, pid=None):
    """What load_numbers.cc prints of each file: of all processes' events, or of one's."""
    if not files:
        return []
    options = [] if pid is None else ["--pid", str(pid)]
    printed = subprocess.run([program, *options, *files], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [json.loads(line) for line in printed.splitlines()]


def kill(pid):
    """Kills a process, and waits until none of its threads does anything any more; returns when it was killed."""
    descriptor = os.pidfd_open(pid)
    try:
        at = time.monotonic_ns()
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        select.select([descriptor], [], [])
        return at
    finally:
        os.close(descriptor)


def kill_often(kills, sessions, pid, restart, until, start_takes):
    """Kills a daemon at moments that nobody chose: one in four comes in the seconds `start_takes` after a start, when it
    may repair what the one before has cost. `pid` says whom to kill, `restart` returns when there is another one, and
    `until` waits for a condition."""
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
    """A session's files, of a daemon that is killed. All is looked at in the end, so that nothing keeps the kills waiting;
    what was torn is kept until then.

    Times are those of CLOCK_MONOTONIC in ns, as in the files."""

    def __init__(self, test, load_numbers, folder):
        self._test, self._load_numbers = test, load_numbers
        self._folder = pathlib.Path(folder)
        # On the same file system, so that links keep the files that repairs replace.
        self._kept = self._folder.parent / f"{self._folder.name}-torn"
        self._kept.mkdir()
        test.addCleanup(shutil.rmtree, self._kept)
        self._kills = []  # times, and since when the daemon was seen to collect then, or None
        self._ready = None

    def has_events(self):
        """Whether the load's events are in the file that is being written, which stays the same one."""
        return any(found["numbered"] for found in numbers(self._load_numbers, *self._folder.glob("*.partial")))

    def is_written(self):
        """Whether a daemon that was started again has begun a file."""
        return any(not self._link_of(path).exists() for path in self._folder.glob("*.partial"))

    def is_ready(self):
        """To be called when it is written, after a start."""
        self._ready = time.monotonic_ns()

    def _link_of(self, partial):
        return self._kept / partial.name.removesuffix(".partial")

    def killed(self, at):
        """To be called when the daemon is dead, before it is started again."""
        torn = [path for path in self._folder.glob("*.partial") if not self._link_of(path).exists()]
        self._test.assertLessEqual(len(torn), 1)
        for path in torn:
            os.link(path, self._link_of(path))
        self._kills.append((at, self._ready))
        self._ready = None

    def check(self, service, margin):
        """When the daemon has been stopped, that no file is damaged and no event twice, and that a kill has cost no more
        than the interval, and a margin. `service`: what load_service printed."""
        paths = sorted(self._folder.iterdir())
        self._test.assertEqual({path.suffix for path in paths}, {paths[0].suffix})  # All are complete.
        files = {path.name: found for path, found in zip(paths, numbers(self._load_numbers, *paths, pid=service["pid"]))}
        for name, file in files.items():
            self._test.assertEqual((name, file["complete"], file["findings"], file["twice"]), (name, True, 0, 0))
        torn = self._check_repaired(files, service["pid"])
        missing = self._check_numbers(files, service)
        costs = self._costs(files)
        print(f"{self._folder.name}: {len(self._kills)} kills, {torn} torn files, {len(files)} files in all, of "
              f"{sum(self._totals(service).values())} events {missing} are missing; from the last event in a file to the kill "
              f"{max(costs) / SECOND:.3f} s at most, {sum(costs) / len(costs) / SECOND:.3f} s on average", flush=True)
        self._test.assertLessEqual(max(costs), INTERVAL + margin)
        # It has collected whenever it was waited for.
        self._test.assertGreaterEqual(len(costs), len(self._kills) * 3 // 4)

    def _check_repaired(self, files, pid):
        """All that can be read of a file that was torn is in the one that took its place. Returns how many were torn."""
        torn = [path for path in sorted(self._kept.iterdir()) if path.stat().st_size]
        for path, found in zip(torn, numbers(self._load_numbers, *torn, pid=pid)):
            self._test.assertEqual(path.name in files, found["events"] > 0, path.name)
            if found["events"]:
                self._test.assertEqual(files[path.name]["numbers"], found["numbers"], path.name)
        return len(torn)

    def _check_numbers(self, files, service):
        """No number is there twice, and none missing but at a kill. Returns how many are."""
        total = self._totals(service)
        expected = dict.fromkeys(total, 0)
        after_kill = set(total)  # tracepoints of threads of which the next numbers may be missing
        end = missing = lost = holes = 0
        for name, file in files.items():
            lost += file["lost"]
            if file["first"] and any(end <= at <= file["first"] for at, _ in self._kills):
                after_kill.update(total)
            for _, thread, tracepoint, first, last in file["numbers"]:
                key = thread, tracepoint
                gap = first - expected[key]
                self._test.assertGreaterEqual(gap, 0, f"{name}: {key} has {first} again")
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
        """How many events each thread had for each of its tracepoints, whether somebody collected or not."""
        tracepoints = 1 if service["calls"] else len(load.TRACEPOINTS)
        return {(number, tracepoint): (thread["written"] + thread["notWritten"] - tracepoint + tracepoints - 1) // tracepoints
                for number, thread in enumerate(service["threads"]) for tracepoint in range(tracepoints)}

    def _costs(self, files):
        """For each kill of a daemon that collected, how long before it the last event was that is in a file."""
        costs = []
        before = 0
        for at, ready in self._kills:
            last = max((file["last"] for file in files.values() if file["first"] and file["first"] <= at), default=0)
            since = last if last > before else ready
            if since is not None:
                costs.append(at - since)
            before = at
        return costs
