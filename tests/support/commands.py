"""The commands of nettrace as tests use them. `nettrace` is the program's path."""

import json
import os
import subprocess
import sys

# What a process has taken at most counts from what the one had that started it: that is to be a small one.
_MEASURE = """if 1:
    import os, sys
    child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
    _, status, usage = os.wait4(child, 0)
    print(usage.ru_maxrss)
    sys.exit(os.waitstatus_to_exitcode(status))
"""


def record(nettrace, file, selectors, command, options=()):
    """Records while `command` runs; returns what that printed."""
    chosen = [word for selector in selectors for word in ("-e", selector)]
    return subprocess.run([nettrace, "record", "-o", file, *chosen, *options, "--", *command],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True).stdout


def dump(nettrace, file, *options):
    """The events of a file, one at a time: all of them may be more than a small machine holds. Their timestamps are
    numbers; others beyond +-2^53 are strings of digits, as in the JSON."""
    command = [nettrace, "dump", "--json", *options, file]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        for line in process.stdout:
            event = json.loads(line)
            event["timestamp"] = int(event["timestamp"])
            yield event
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)


def info(nettrace, file):
    return json.loads(subprocess.run([nettrace, "info", "--json", file], stdout=subprocess.PIPE, check=True).stdout)


def peak_memory(*command):
    """The most memory that a program takes which ends well, in KiB."""
    # AddressSanitizer would keep what is freed.
    options = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=0"
    ran = subprocess.run([sys.executable, "-ISc", _MEASURE, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         env={**os.environ, "ASAN_OPTIONS": options}, check=True)
    return int(ran.stdout)
