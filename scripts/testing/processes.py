"""Starts the programs of a run, measures their CPU time, and ends all of them when the run is interrupted."""

import concurrent.futures
import contextlib
import contextvars
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

# Time that a program has to end its own children after SIGTERM, before SIGKILL, in s.
GRACE = 10

_interrupted = threading.Event()
_meter = contextvars.ContextVar("meter", default=None)


class Meter:
    """Adds up the CPU time of programs, in seconds."""

    def __init__(self):
        self.cpu = 0.0
        self._lock = threading.Lock()

    def add(self, cpu):
        with self._lock:
            self.cpu += cpu


class Interrupted(Exception):
    """The run was interrupted, so nothing more is started."""


def run(command, **options):
    """Runs a command like subprocess.run(), with stdout and stderr in one string unless `stderr` is given. Returns its
    result with one more attribute: cpu, the CPU time of the command and its children in s."""
    if _interrupted.is_set():
        raise Interrupted()
    options = {"stderr": subprocess.STDOUT, **options}
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace",
                          **options) as process:
        output = process.stdout.read()
        # Popen cannot return the resource usage of a single child.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    done = subprocess.CompletedProcess(command, process.returncode, output)
    done.cpu = usage.ru_utime + usage.ru_stime
    if meter := _meter.get():
        meter.add(done.cpu)
    return done


@contextlib.contextmanager
def metered():
    """Yields a Meter of the programs that the `with` block runs, also those that in_parallel() runs for it."""
    meter = Meter()
    token = _meter.set(meter)
    try:
        yield meter
    finally:
        _meter.reset(token)


def in_parallel(function, items, workers):
    """Returns the function's results for all items, in their order."""
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        calls = [pool.submit(contextvars.copy_context().run, function, item) for item in items]
        return [call.result() for call in calls]


def end_when_interrupted():
    """Installs handlers for SIGINT, SIGTERM and SIGHUP that end every program of this run, and then this process."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)


def running():
    """Returns the parent and the start time of every process that is not a zombie, by process id."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            # The process name is in parentheses and may contain any character.
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] not in "ZX":
            found[int(folder.name)] = (int(fields[1]), int(fields[19]))
    return found


def _interrupt(number, _frame):
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    _interrupted.set()
    _end_descendants()
    # The flush fails if the signal has interrupted a print.
    with contextlib.suppress(RuntimeError, OSError):
        sys.stdout.flush()
    # A thread that waits for a program must not delay the exit.
    os._exit(128 + number)


def _end_descendants():
    """Ends the children by SIGTERM, so that meson and vm.py end their own children, and then ends the remaining
    processes by SIGKILL."""
    known = _descendants()
    children = {pid: process for pid, process in known.items() if process[0] == os.getpid()}
    for pid in children:
        _send(pid, signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    while _living(children) and time.monotonic() < deadline:
        time.sleep(0.05)
        known |= _descendants()
    # Another thread may have been about to start a program, so two searches in a row must find nothing.
    quiet = 0
    while quiet < 2 and time.monotonic() < deadline + GRACE:
        known |= _descendants()
        living = _living(known)
        for pid in living:
            _send(pid, signal.SIGKILL)
        quiet = 0 if living else quiet + 1
        time.sleep(0.05)


def _send(pid, number):
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _descendants():
    processes = running()
    children = {}
    for pid, (parent, _) in processes.items():
        children.setdefault(parent, []).append(pid)
    found, pending = {}, [os.getpid()]
    while pending:
        for pid in children.get(pending.pop(), []):
            found[pid] = processes[pid]
            pending.append(pid)
    return found


def _living(known):
    """Returns the known processes that are still running. The start time distinguishes them from later processes with
    the same id."""
    now = running()
    return [pid for pid, (_, began) in known.items() if now.get(pid, (0, None))[1] == began]
