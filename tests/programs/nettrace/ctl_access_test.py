#!/usr/bin/python3
"""Tests which users may use the control socket, with real users and groups for every command."""

import grp
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import control
from support import script

ARGS = script.options(__doc__, "nettrace", "server")
# Groups that exist on every Debian system, and the id of a user that does not exist.
LOOK, CONTROL, OTHER = "games", "staff", "users"
USER = 54321

LOOKING = (["list"], ["services"], ["status"], ["status", "web"], ["tail", "web"], ["wait", "box"], ["metrics"])
CHANGING = (["stop", "web"], ["start", "web"], ["rotate", "web"], ["snapshot", "box"], ["reload"],
            ["start", "--from", "-"])


def copy_suppressions(folder):
    """Copies the files that the options of sanitizers name to the folder. Returns an environment with the new paths."""
    environment = dict(os.environ)
    for name in [name for name in environment if name.endswith("SAN_OPTIONS")]:
        for path in set(re.findall(r"\bsuppressions=([^:]+)", environment[name])):
            environment[name] = environment[name].replace(path, shutil.copy(path, folder))
    return environment


def member(*groups, user=USER):
    """Returns a user with these groups as supplementary groups."""
    return {"user": user, "group": user, "extra_groups": [grp.getgrnam(name).gr_gid for name in groups]}


class AccessTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Copies the program, because the build may be in a folder that only root may enter.
        folder = tempfile.TemporaryDirectory(prefix="ctl-access.")
        cls.addClassCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        cls.nettrace = pathlib.Path(folder.name) / "nettrace"
        shutil.copy(ARGS.nettrace, cls.nettrace)
        cls.environment = copy_suppressions(folder.name)

    def setUp(self):
        manager = control.serving(ARGS.server, LOOK, CONTROL)
        self.socket = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)

    def ctl(self, **identity):
        return control.Control(self.nettrace, self.socket, env=self.environment, **identity)

    def run_command(self, ctl, command):
        if command[0] != "tail":
            return ctl.run(*command, stdin="[session.new]\n")
        # An accepted tail runs until it is stopped, so the test reads only its first bytes.
        with subprocess.Popen([*ctl.command, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              **ctl.identity) as tail:
            first = tail.stdout.read(8)
            tail.terminate()
            output, error = tail.communicate()
            return subprocess.CompletedProcess(command, tail.returncode, (first + output).decode("latin1"),
                                               error.decode())

    def check(self, ctl, commands, refusal=None):
        for command in commands:
            ran = self.run_command(ctl, command)
            if refusal is None:
                self.assertEqual((ran.returncode, ran.stderr), (0, ""), command)
            else:
                self.assertEqual((ran.returncode, ran.stdout), (1, ""), command)
                self.assertIn(refusal, ran.stderr, command)

    def state(self):
        return self.ctl()("status", "--json")

    def test_root_and_control_group_may_do_everything(self):
        for ctl in (self.ctl(), self.ctl(**member(CONTROL)), self.ctl(**member(LOOK, CONTROL))):
            self.check(ctl, LOOKING + CHANGING)

    def test_look_group_may_look_and_not_change(self):
        before = self.state()
        for ctl in (self.ctl(**member(LOOK)), self.ctl(**member(OTHER, LOOK)),
                    self.ctl(user=USER, group=grp.getgrnam(LOOK).gr_gid, extra_groups=[])):
            self.check(ctl, LOOKING)
            self.check(ctl, CHANGING, "is allowed only for root, the daemon's user and members of control_group")
        self.assertEqual(self.state(), before)

    def test_other_users_cannot_connect(self):
        before = self.state()
        for ctl in (self.ctl(**member()), self.ctl(**member(OTHER)), self.ctl(**member("nogroup", user=65534))):
            self.check(ctl, LOOKING + CHANGING, f"permission denied; run as root, or add your user to group {LOOK}")
        self.assertEqual(self.state(), before)

    def test_a_socket_that_all_may_write_gives_no_rights(self):
        before = self.state()
        os.chmod(self.socket, 0o666)
        self.check(self.ctl(**member(OTHER)), LOOKING + CHANGING, "only root, the daemon's user and members of look_group")
        self.check(self.ctl(**member(LOOK)), CHANGING, "is allowed only for root, the daemon's user and members of control_group")
        self.assertEqual(self.state(), before)

    def test_root_of_another_user_namespace_is_not_root(self):
        unshare = [shutil.which("unshare"), "--user", "--map-root-user"]
        if subprocess.run([*unshare, "true"], check=False, capture_output=True, **member()).returncode != 0:
            self.skipTest("users without rights cannot make user namespaces here")
        before = self.state()
        os.chmod(self.socket, 0o666)
        outsider = self.ctl(**member(OTHER))
        outsider.command = [*unshare, *outsider.command]
        self.check(outsider, LOOKING + CHANGING, "only root, the daemon's user and members of look_group")
        # The group ids outside the user namespace count, whatever the namespace maps them to.
        looker = self.ctl(**member(LOOK))
        looker.command = [*unshare, *looker.command]
        self.check(looker, LOOKING)
        self.check(looker, CHANGING, "is allowed only for root, the daemon's user and members of control_group")
        self.assertEqual(self.state(), before)

    def test_connections_of_a_user_are_bounded_and_root_has_some_left(self):
        waiting = [[*self.ctl().command, "wait", "web", "--files", "99"]] * 12
        running = [subprocess.Popen(command, stderr=subprocess.PIPE, env=self.environment, **member(LOOK)) for command in waiting]
        try:
            # A user may have ten connections, so two of the twelve clients are refused.
            refused = []
            while len(refused) < 2:
                refused = [process for process in running if process.poll() is not None]
            self.assertEqual([b"too many connections" in process.stderr.read() for process in refused],
                             [True, True])
            self.check(self.ctl(), LOOKING)
            self.check(self.ctl(**member(LOOK, user=USER + 1)), LOOKING)
        finally:
            for process in running:
                process.kill()
                process.communicate()

    def test_socket_file_has_the_access_rights(self):
        facts = os.stat(self.socket)
        self.assertEqual(facts.st_gid, grp.getgrnam(LOOK).gr_gid)
        acl = subprocess.run(["getfacl", "--omit-header", "--numeric", self.socket], capture_output=True, text=True,
                             check=False)
        if acl.returncode != 0:
            self.skipTest("getfacl is not installed")
        self.assertEqual(acl.stdout.split(), ["user::rw-", "group::rw-", f"group:{grp.getgrnam(CONTROL).gr_gid}:rw-",
                                              "mask::rw-", "other::---"])


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("only root can be other users")
        sys.exit(script.EXIT_SKIPPED)
    script.run_cases()
