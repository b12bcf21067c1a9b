"""Finds the functions of ELF files with binutils, as an oracle for the names that tools show."""

import bisect
import re
import subprocess


def _run(*command):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, check=True).stdout


class Oracle:
    """The functions of an ELF file with symbols, as nm prints them."""

    def __init__(self, path):
        self.ranges = []
        for line in _run("nm", "-S", "--defined-only", path).splitlines():
            found = re.fullmatch(r"([0-9a-f]+) ([0-9a-f]+) [tTwWi] (\S+)", line)
            if found:
                first = int(found[1], 16)
                self.ranges.append((first, first + int(found[2], 16), found[3].split("@")[0]))
        self.ranges.sort()
        self.segments = [(int(words[1], 16), int(words[2], 16), int(words[4], 16))
                         for words in map(str.split, _run("readelf", "-lW", path).splitlines())
                         if words[:1] == ["LOAD"] and "E" in words[6:-1]]

    def names_at(self, offset):
        """Returns the names of the function at an offset of the file; none if there is no function."""
        [address] = [offset - start + first for start, first, size in self.segments if start <= offset < start + size]
        last = bisect.bisect_right(self.ranges, (address, 1 << 64, ""))
        return {name for first, end, name in self.ranges[max(0, last - 20):last] if first <= address < end}
