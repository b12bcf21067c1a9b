"""Tests of a run's programs: their CPU time, and their end when the run is interrupted."""

import pathlib
import signal
import subprocess
import sys
import time

import pytest

from testing import processes

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_output_status_and_cpu_time_come_back():
    done = processes.run(["sh", "-c", "echo out; echo err >&2; i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done; exit 3"])
    assert (done.returncode, done.stdout) == (3, "out\nerr\n")
    assert 0.01 < done.cpu < 60
    assert processes.run(["sh", "-c", "kill -SEGV $$"]).returncode == -signal.SIGSEGV


def test_a_meter_adds_up_what_its_block_runs():
    command = ["sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done"]
    with processes.metered() as outer:
        processes.run(command)
        before = outer.cpu
        with processes.metered() as inner:
            assert len(processes.in_parallel(lambda _: processes.run(command), range(4), 2)) == 4
    assert 0.01 < before == outer.cpu
    assert inner.cpu > before


# The program starts another one in a different session, as meson does with tests. `then` is the code that runs after
# that.
RUN = """
import sys, threading
sys.path.insert(0, {scripts!r})
from testing import processes
processes.end_when_interrupted()
command = ["sh", "-c", "setsid sleep 1000 & echo $! >>{pids}; echo $$ >>{pids}; {then}"]
threading.Thread(target=processes.run, args=[command]).start()
processes.run(command)
"""


def interrupt(text, pids, number):
    """Starts a run, interrupts it when its four programs are running, and returns its exit status and those of the
    programs that are still running after it. A later process with the same id has another start time."""
    with subprocess.Popen([sys.executable, "-c", text]) as run:
        try:
            wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 4)
            programs = set(map(int, pids.read_text().split()))
            began = {pid: start for pid, (_, start) in processes.running().items() if pid in programs}
            run.send_signal(number)
            status = run.wait(60)
        finally:
            run.kill()
    return status, [pid for pid, (_, start) in processes.running().items() if began.get(pid) == start]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("then", ["wait", "trap 'kill %1; exit' TERM; wait"])
def test_an_interrupted_run_leaves_no_programs(tmp_path, number, then):
    pids = tmp_path / "pids"
    assert interrupt(RUN.format(scripts=str(SCRIPTS), pids=pids, then=then), pids, number) == (128 + number, [])


def test_a_program_that_ignores_sigterm_is_killed(tmp_path):
    pids = tmp_path / "pids"
    text = RUN.format(scripts=str(SCRIPTS), pids=pids, then="trap : TERM; while :; do wait; done")
    text = text.replace("processes.end_when_interrupted()", "processes.GRACE = 1; processes.end_when_interrupted()")
    assert interrupt(text, pids, signal.SIGTERM) == (128 + signal.SIGTERM, [])
