"""Serves a control socket without a daemon, and runs `nettrace ctl` on it."""

import contextlib
import os
import pathlib
import subprocess
import tempfile


@contextlib.contextmanager
def serving(program, look_group="", control_group=""):
    """Yields the path of a socket that tests/programs/nettrace/control_server.cc serves, in a folder that all users can
    access."""
    with tempfile.TemporaryDirectory(prefix="control.") as folder:
        os.chmod(folder, 0o755)
        path = pathlib.Path(folder) / "control"
        with subprocess.Popen([program, path, look_group, control_group], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
            assert server.stdout.readline() == b"ready\n"
            yield path
            server.stdin.close()
            assert server.wait() == 0


class Control:
    """Runs `nettrace ctl` on a socket, as the user and groups in `identity`, which are arguments for subprocess."""

    def __init__(self, nettrace, socket, **identity):
        self.command = [nettrace, "ctl", "--socket", socket]
        self.identity = identity

    def run(self, *arguments, stdin=None):
        return subprocess.run([*self.command, *map(str, arguments)], input=stdin, capture_output=True, text=True,
                              check=False, timeout=40, **self.identity)

    def __call__(self, *arguments, expect=0, stdin=None):
        """Runs a command, which must end with the status `expect`. Returns its stdout, or its stderr if `expect` is not 0."""
        ran = self.run(*arguments, stdin=stdin)
        assert ran.returncode == expect, f"{arguments}: exit status {ran.returncode}, not {expect}: {ran.stdout}{ran.stderr}"
        return ran.stderr if expect else ran.stdout
