"""Records load_service while `perf stat` counts the hits of the same tracepoints in the kernel."""

import json
import os
import pathlib
import subprocess
import time

from support import failures
from support.load import load

# A part of the message that `nettrace record` prints if it counted another number of events than the kernel.
KERNEL_DIFFERS = "please report this"


def kind():
    """Returns the options of load_service for events that this kernel can record."""
    return [] if failures.has_user_events() else ["--calls"]


def tracepoints():
    return [f"user_events:{name}" for name in load.TRACEPOINTS] if failures.has_user_events() else [load.CALL_TRACEPOINT]


def register(eventheader):
    """Registers the tracepoints, unless the kernel defines them, so that perf can count all hits."""
    if failures.has_user_events():
        subprocess.run([eventheader, "register", *load.TRACEPOINTS], check=True)


class Watched:
    """Runs `perf stat`, which runs `nettrace record`, which runs load_service; with perf=False, without `perf stat`."""

    def __init__(self, args, folder, options, load_options, file=None, output=None, perf=True):
        """`file` is the recording, by default trace.nettrace in `folder`. `output` is the recorder's option -o, by
        default `file`."""
        self.folder = pathlib.Path(folder)
        self.file = file or self.folder / "trace.nettrace"
        self._counts = self.folder / "counts" if perf else None
        self._errors = self.folder / "stderr"
        pid_file = self.folder / "pid"
        for old in (pid_file, self.file):
            old.unlink(missing_ok=True)
        points = [word for point in tracepoints() for word in ("-e", point)]
        counter = ["perf", "stat", "-a", "-x", ",", "-o", self._counts, *points, "--"] if perf else []
        # The recorder has the process id of the shell, because exec keeps it.
        shell = ["sh", "-c", f'echo $$ > {pid_file}.new && mv {pid_file}.new {pid_file} && exec "$@"', "sh"]
        recorder = [args.nettrace, "record", "--json", "-o", output or self.file, *points, *options]
        with open(self._errors, "wb") as errors:
            self.process = subprocess.Popen(
                [*counter, *shell, *recorder, "--", args.service, *kind(), *load_options],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True)
        until(lambda: pid_file.exists() or self.process.poll() is not None)
        self.recorder = int(pid_file.read_text())
        self.service = self.summary = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
            try:
                os.kill(self.recorder, 9)
            except ProcessLookupError:
                pass
        self.process.stdout.close()

    def signal(self, number):
        os.kill(self.recorder, number)

    def wait_for_events(self, nettrace):
        """Waits until events of the load are in the file, which has no end yet."""
        def there_are():
            info = subprocess.run([nettrace, "info", "--json", self.file], capture_output=True, check=False).stdout
            return info and json.loads(info)["events"] > 0
        until(there_are)

    def wait_for_load(self):
        """Waits until load_service has written everything."""
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"load_service ended before it had written everything; the recorder printed:\n{self.said()}")
        self.service = json.loads(line)

    def wait(self, status=0):
        """Waits until the recorder has ended, with this exit status."""
        if self.service is None:
            self.wait_for_load()
        rest = self.process.stdout.read()
        self.process.wait()
        if self.process.returncode != status:
            raise RuntimeError(f"the recorder ended with {self.process.returncode}, not {status}; it printed:\n{self.said()}")
        self.summary = json.loads(rest) if rest else None

    def said(self):
        return self._errors.read_text()

    def hits(self):
        """Returns the kernel's count of hits."""
        lines = [line for line in self._counts.read_text().splitlines() if line and not line.startswith("#")]
        return sum(int(line.split(",")[0]) for line in lines)

    def problems(self, nettrace, events, **expected):
        """Returns messages about what is wrong with the finished recording, like load.problems()."""
        texts = load.problems(nettrace, self.file, self.service, events=events, **expected)
        verified = subprocess.run([nettrace, "verify", "--strict", self.file], capture_output=True, text=True, check=False)
        if verified.returncode != 0:
            texts.append(f"verify --strict: {verified.stdout}{verified.stderr}")
        if self.summary["events"] + self.summary["lost"] != self.hits():
            texts.append(f"{self.summary['events']} events and {self.summary['lost']} lost, but perf counts {self.hits()}")
        if self.summary["events"] == 0:
            texts.append("the recording has no events")
        if KERNEL_DIFFERS in self.said():
            texts.append(self.said())
        return texts


def until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"the condition was not met within {seconds} s")
        time.sleep(0.01)
