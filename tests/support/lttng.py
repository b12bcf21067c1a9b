"""A session daemon of LTTng that is separate from the system's."""

import contextlib
import os
import pathlib
import signal
import subprocess
import time

NOBODY = 65534
SECONDS = 60  # time limit of one command of lttng, which normally takes less than a second


class Daemon:
    """A separate session daemon, which writes everything below `home`. It does not run as root, because root's daemon
    would be the system's."""

    def __init__(self, home, stack):
        self.home = home
        self._as = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        self._environment = {"PATH": os.environ["PATH"], "LTTNG_HOME": str(home), "LTTNG_RUNDIR": str(home / "run"),
                             "LTTNG_UST_REGISTER_TIMEOUT": "-1", "LTTNG_UST_ALLOW_BLOCKING": "1"}
        self._log = stack.enter_context(open(home / "sessiond.log", "w+b"))
        self.own(home)
        # The daemon ends with this process, even if this process is killed.
        self._process = self.start(["setpriv", "--pdeathsig", "TERM", "lttng-sessiond", "--no-kernel"],
                                   stdout=self._log, stderr=self._log, start_new_session=True)
        stack.callback(self._end)
        end = time.monotonic() + SECONDS
        while self.lttng("list", check=False).returncode != 0:
            if self._process.poll() is not None or time.monotonic() > end:
                self._log.seek(0)
                raise RuntimeError(f"lttng-sessiond did not answer within {SECONDS} s, or has ended: {self._log.read()[-500:]}")
            time.sleep(0.05)

    def own(self, path):
        if self._as:
            os.chown(path, NOBODY, NOBODY)

    def start(self, command, **options):
        """Starts a program as the daemon's user, in its environment."""
        return subprocess.Popen(command, env=self._environment, cwd=self.home, **self._as,
                                **{"stdin": subprocess.DEVNULL, **options})

    def _end(self):
        # On SIGTERM, the daemon ends its consumers. Then kills the remaining processes of the daemon's process group.
        self._process.terminate()
        try:
            self._process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            pass
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def lttng(self, *words, check=True):
        done = subprocess.run(["lttng", "--no-sessiond", *words], env=self._environment, cwd=self.home, timeout=SECONDS,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              text=True, **self._as)
        if check and done.returncode != 0:
            raise RuntimeError(f"lttng {' '.join(words)}: {done.stdout}")
        return done

    def consumers(self):
        """Returns the process ids of the daemon's consumers, which write the files."""
        consumers = [int(name) for name in os.listdir("/proc") if name.isdigit() and self._is_consumer(name)]
        if not consumers:
            raise RuntimeError("lttng-sessiond has started no consumer")
        return consumers

    def _is_consumer(self, process):
        try:
            command = pathlib.Path(f"/proc/{process}/cmdline").read_bytes()
            return os.getsid(int(process)) == self._process.pid and b"lttng-consumerd" in command
        except (FileNotFoundError, ProcessLookupError):
            return False
