"""Runs the commands of nettrace for tests. `nettrace` is the program's path."""

import json
import pathlib
import struct
import subprocess
import sys
import unittest

# The kernel counts the memory of the parent at the fork into the peak memory of a process. So a small process, which
# runs this script, starts the measured program.
_MEASURE = """if 1:
    import os, sys
    child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
    _, status, usage = os.wait4(child, 0)
    print(usage.ru_maxrss)
    sys.exit(os.waitstatus_to_exitcode(status))
"""


def is_malformed_text(units, text):
    """Returns whether `text` is the malformed text of `units` as other readers show it, with replacement characters.
    `dump --raw` shows malformed text as a list of its code units, which are UTF-16 or UTF-8."""
    if not isinstance(units, list) or not isinstance(text, str) or not all(isinstance(unit, int) and 0 <= unit < 0x10000 for unit in units):
        return False
    texts = [struct.pack(f"<{len(units)}H", *units).decode("utf-16-le", "replace")]
    if max(units, default=0) < 256:
        texts.append(bytes(units).decode("utf-8", "replace"))
    return text in texts


def record(nettrace, file, selectors, command, options=()):
    """Records while `command` runs; returns the command's output."""
    chosen = [word for selector in selectors for word in ("-e", selector)]
    return subprocess.run([nettrace, "record", "-o", file, *chosen, *options, "--", *command],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True).stdout


def dump(nettrace, file, *options):
    """Yields the events of a file one at a time, because all of them may exceed the memory of a small machine. Their
    timestamps are numbers; other numbers beyond +-2^53 are strings of digits, as in the JSON."""
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


def has_sanitizer(program):
    """Returns whether a program is built with AddressSanitizer or ThreadSanitizer."""
    contents = pathlib.Path(program).read_bytes()
    return b"__asan_" in contents or b"__tsan_" in contents


def measures_memory(program):
    """Skips a case that measures the memory of a program if the program has a sanitizer, which itself uses memory."""
    return unittest.skipIf(has_sanitizer(program), "memory is measured only in programs without a sanitizer")


def peak_memory(*command):
    """Returns the peak memory, in KiB, of a program that must succeed."""
    ran = subprocess.run([sys.executable, "-ISc", _MEASURE, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         check=True)
    return int(ran.stdout)


def memory_growth(smallest, largest):
    """Returns a message for each command whose peak memory grows with its input. The arguments are the peak memory in
    KiB of each command, by its name, for the smallest and for the largest input."""
    return [f"{name}: peak memory of {least} KiB grew to {largest[name]} KiB" for name, least in smallest.items()
            if largest[name] > 1.3 * least + (8 << 10)]  # tables may grow up to their limits
