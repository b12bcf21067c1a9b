#!/usr/bin/python3
"""Tests what the rows of threads have besides names and ids: executable, cgroup, unit and container, as they were at the
time of each event. Needs root, tracefs, and a writable cgroup v2 hierarchy. No hierarchy of cgroup v1 may have the
controller perf_event."""

import collections
import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from support import commands
from support import script
from support.kernel import cgroups
from support.kernel import tracepoints

LOAD = "load"
ARGS = None if sys.argv[1:2] == [LOAD] else script.options(__doc__, "nettrace")
CALL = "syscalls:sys_enter_getppid"
ID = "4f8d1c9f0a3b5e7d" * 4

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE3 = 435
CLONE_INTO_CGROUP = 0x200000000
SIGCHLD = 17
PR_SET_NAME = 15


class CloneArgs(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in (
        "flags", "pidfd", "child_tid", "parent_tid", "exit_signal", "stack", "stack_size", "tls", "set_tid",
        "set_tid_size", "cgroup")]


def clone_into(folder, pid=0):
    """Forks a child directly into the cgroup of `folder`, as systemd creates processes. If `pid` is not 0, the child
    gets this process id. Returns the id of the child, and 0 in the child."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    args = CloneArgs(flags=CLONE_INTO_CGROUP, exit_signal=SIGCHLD, cgroup=fd)
    wanted = ctypes.c_int(pid)
    if pid:
        args.set_tid = ctypes.addressof(wanted)
        args.set_tid_size = 1
    child = LIBC.syscall(CLONE3, ctypes.byref(args), ctypes.sizeof(args))
    os.close(fd)
    if child < 0:
        raise OSError(ctypes.get_errno(), "clone3")
    return child


def move(folder, pid=0):
    (folder / "cgroup.procs").write_text(str(pid))


def calls(count=3):
    for _ in range(count):
        os.getppid()


def run_in(folder, child, action):
    """Calls `action` in the child, after moving it into the cgroup if it is not there yet."""
    if child == 0:
        with contextlib.suppress(BaseException):
            action()
        os._exit(0)
    os.waitpid(child, 0)
    return child


# Each function below runs a load in cgroups below `top`, and returns what the recording of the load must contain.

def many(top):
    """Runs 1000 short processes, each in a new cgroup that is removed when the process has ended."""
    pids = {}
    for i in range(1000):
        folder = top / f"u{i}.service"
        folder.mkdir()
        if i % 2:
            child = run_in(folder, clone_into(folder), lambda: calls(1))
        else:
            def enter(to=folder):
                move(to)
                calls(1)
            child = run_in(folder, os.fork(), enter)
        folder.rmdir()
        pids[child] = folder.name
    return pids


def moved(top):
    """Moves this process between cgroups 100 times, and renames it after the third move."""
    for part in range(100):
        move(top / ("a.service" if part % 2 else "b.service"))
        if part == 2:
            LIBC.prctl(PR_SET_NAME, b"renamed", 0, 0, 0)
        calls()
    return os.getpid()


def reused(top):
    """Makes two processes with the same pid in different cgroups."""
    first = run_in(top, clone_into(top / "a.service"), calls)
    run_in(top, clone_into(top / "b.service", first), calls)
    return first


def programs(top):
    """Runs a program that enters the cgroup of a container, and executes another program with the same name."""
    folder = top / f"docker-{ID}.scope"
    with tempfile.TemporaryDirectory(prefix="identity-") as temporary:
        paths = [pathlib.Path(temporary) / part / "app" for part in ("1", "2")]
        for path in paths:
            path.parent.mkdir()
            shutil.copy(os.path.realpath("/bin/sh"), path)
        pid = os.posix_spawn(paths[0], ["app", "-c", f"echo $$ > {folder}/cgroup.procs; exec {paths[1]} -c 'exit 0'"],
                             os.environ)
        os.waitpid(pid, 0)
        return [pid, [str(path) for path in paths]]


def hostile(top):
    """Makes cgroups with arbitrary names."""
    paths = []
    for name in (b"\xff\xfe.service", b'quotes"\'\\\x01.service', b"x" * 255, b"." + b"nginx.service", "größe".encode()):
        paths.append(os.path.join(os.fsencode(top), name))
    deep = os.fsencode(top)
    for _ in range(14):
        deep = os.path.join(deep, b"d" * 250)
        paths.append(deep)
    pids = []
    for path in paths:
        os.mkdir(path)
        pids.append(run_in(path, clone_into(path), calls))
    for path in reversed(paths):
        os.rmdir(path)
    return [pids, [os.fsdecode(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace") for path in paths]]


class IdentityTest(unittest.TestCase):
    def setUp(self):
        self.top = cgroups.mount() / f"nettraced-identity-{os.getpid()}.slice"
        self.folders = [self.top, self.top / "a.service", self.top / "b.service", self.top / f"docker-{ID}.scope"]
        for folder in self.folders:
            folder.mkdir()
        self.addCleanup(self.remove)

    def remove(self):
        for folder in reversed(self.folders):
            folder.rmdir()

    def record(self, load, selectors=(CALL,), options=("--identity",)):
        """Records while the load runs. Returns what the load returns, and the events of its pids."""
        with tempfile.TemporaryDirectory(prefix="identity-") as folder:
            file = pathlib.Path(folder) / "trace.nettrace"
            printed = commands.record(ARGS.nettrace, file, selectors, [sys.executable, __file__, LOAD, load, self.top],
                                      [*options, "--ring-size", "4M"])
            subprocess.run([ARGS.nettrace, "verify", "--strict", file], stdout=subprocess.DEVNULL, check=True)
            self.assertEqual(commands.info(ARGS.nettrace, file)["lost"], 0)
            self.events = list(commands.dump(ARGS.nettrace, file))
            self.process_events = list(commands.dump(ARGS.nettrace, file, "--provider", "Universal.System"))
        return json.loads(printed)

    def infos(self, pid):
        return [event.get("threadInfo", {}) for event in self.events if event["pid"] == pid]

    def test_many_short_lived_processes_and_cgroups(self):
        pids = {int(pid): unit for pid, unit in self.record("many").items()}
        wrong = {pid: infos for pid, unit in pids.items() if (infos := self.infos(pid)) != [{
            "Executable": os.path.realpath(sys.executable), "Cgroup": f"/{self.top.name}/{unit}", "Unit": unit}]}
        self.assertEqual(len(pids), 1000)
        self.assertEqual(wrong, {})

    def test_process_that_moves_and_is_renamed(self):
        pid = self.record("moved")
        units = [info["Unit"] for info in self.infos(pid) if "Unit" in info]
        self.assertEqual(units, [unit for _ in range(50) for unit in ["b.service"] * 3 + ["a.service"] * 3])
        names = [event["thread"] for event in self.events if event["pid"] == pid and "Unit" in event["threadInfo"]]
        self.assertEqual(names[6:], ["renamed"] * len(names[6:]))
        self.assertNotIn("renamed", names[:6])

    def test_reused_pid(self):
        pid = self.record("reused")
        self.assertEqual([info["Unit"] for info in self.infos(pid)], ["a.service"] * 3 + ["b.service"] * 3)

    def test_program_with_the_same_name(self):
        pid, paths = self.record("programs", ["syscalls:sys_enter_execve", "syscalls:sys_enter_exit_group"])
        unit = f"docker-{ID}.scope"
        cgroup = {"Cgroup": f"/{self.top.name}/{unit}", "Unit": unit, "Container": ID}
        self.assertEqual(self.infos(pid)[-2:], [{"Executable": path} | cgroup for path in paths])
        # Events such as ProcessExit do not come from perf samples, so their threads have no cgroup.
        self.assertEqual([event["threadInfo"] for event in self.process_events if event["pid"] == pid][-1],
                         {"Executable": paths[1]})

    def test_hostile_names(self):
        pids, paths = self.record("hostile")
        for pid, path in zip(pids, paths):
            info = self.infos(pid)[0]
            # A path of about 4 KiB or more does not fit into perf's record of a cgroup, so the event may lack it.
            if len(path) < 3900:
                self.assertTrue(path.endswith(info["Cgroup"]), (path, info["Cgroup"]))
            self.assertNotEqual(info.get("Unit"), "nginx.service")

    def test_process_that_was_there_before(self):
        child = clone_into(self.top / "a.service")
        if child == 0:
            while True:
                os.getppid()
                time.sleep(0.01)
        try:
            self.record("reused")
            infos = self.infos(child)
            self.assertGreater(len(infos), 0)
            for info in infos:
                self.assertEqual(info, {"Executable": os.path.realpath(sys.executable),
                                        "Cgroup": f"/{self.top.name}/a.service", "Unit": "a.service"})
        finally:
            os.kill(child, 9)
            os.waitpid(child, 0)

    def test_rows_have_no_identity_without_the_option(self):
        pid = self.record("reused", options=())
        self.assertEqual(collections.Counter(map(str, self.infos(pid))), {"{}": 6})


def require():
    tracepoints.require("syscalls:sys_enter_getppid")
    mount = cgroups.mount()
    if mount is None or not os.access(mount / "cgroup.procs", os.W_OK):
        raise script.Skipped("needs a cgroup v2 that can be written to")
    if "perf_event" in pathlib.Path("/proc/self/cgroup").read_text():
        raise script.Skipped("the controller perf_event is in a hierarchy of version 1")


if __name__ == "__main__":
    if ARGS is None:
        print(json.dumps(globals()[sys.argv[2]](pathlib.Path(sys.argv[3]))))
    else:
        script.run_cases(require)
