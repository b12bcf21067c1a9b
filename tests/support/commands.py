"""The commands of nettrace as tests use them. `nettrace` is the program's path."""

import json
import subprocess


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
