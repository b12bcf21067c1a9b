"""Tracepoints of the running kernel: their format files, and the values in their records. This module is independent of
libtraceevent and of the way in which a recording is made."""

import os
import pathlib
import re
import struct

from support import script

TRACEFS = pathlib.Path("/sys/kernel/tracing")
EVENTS = TRACEFS / "events"

_FIELD = re.compile(r"^\tfield:(?P<type>.*?)(?P<name>\w+)(?:\[(?P<count>\w*)\])?;"
                    r"\toffset:(?P<offset>\d+);\tsize:(?P<size>\d+);\tsigned:(?P<signed>[01]);$")
_SIZES = {"char": 1, "u8": 1, "__u8": 1, "unsigned char": 1, "s8": 1, "u16": 2, "__u16": 2, "u32": 4, "__u32": 4,
          "int": 4, "unsigned int": 4, "u64": 8, "__u64": 8, "s64": 8, "unsigned long": 8, "cpumask_t": 8}
_NUMBERS = {(1, False): "B", (1, True): "b", (2, False): "H", (2, True): "h", (4, False): "I", (4, True): "i",
            (8, False): "Q", (8, True): "q"}


class Field:
    """One field of a record."""

    def __init__(self, match):
        declared = match["type"].strip()
        self.name = match["name"]
        self.offset, self.size = int(match["offset"]), int(match["size"])
        self.signed = match["signed"] == "1"
        self.located = next((word for word in ("__data_loc", "__rel_loc") if declared.startswith(word)), None)
        declared = declared.removeprefix("__data_loc ").removeprefix("__rel_loc ")
        self.array = match["count"] is not None or declared.endswith("[]")
        self.type = declared.removesuffix("[]").removeprefix("const ").strip()
        if self.located:
            self.element = _SIZES[self.type]
        elif match["count"]:
            self.element = self.size // int(match["count"])
        else:
            self.element = self.size

    def value(self, raw):
        """Returns the field's value in the record: a number, a boolean, text, or a list of numbers."""
        data = raw[self.offset:self.offset + self.size]
        if self.located:
            location = struct.unpack("<I", data)[0]
            start = (location & 0xFFFF) + (self.offset + 4 if self.located == "__rel_loc" else 0)
            data = raw[start:start + (location >> 16)]
        if self.type == "char" and (self.array or self.located):
            return data.split(b"\0", 1)[0].decode("utf-8", "replace")
        numbers = self._numbers(data)
        return numbers if self.array or self.located else numbers[0]

    def _numbers(self, data):
        code = "?" if self.type == "bool" else _NUMBERS[self.element, self.signed]
        return list(struct.unpack(f"<{len(data) // self.element}{code}", data))


class Tracepoint:
    """A tracepoint and its format."""

    def __init__(self, system, name):
        self.system, self.name = system, name
        text = (EVENTS / system / name / "format").read_text()
        self.id = int(re.search(r"^ID: (\d+)$", text, re.M)[1])
        matches = [_FIELD.match(line) for line in text.splitlines() if line.startswith("\tfield:")]
        fields = [Field(match) for match in matches]
        self.fields = [field for field in fields if not field.name.startswith("common_")]
        self.print_format = text[text.index("print fmt:"):]

    def __str__(self):
        return f"{self.system}:{self.name}"

    def values(self, raw):
        return {field.name: field.value(raw) for field in self.fields}


def of(systems):
    """Returns all tracepoints of these systems (folders in events/). A system that does not exist has none."""
    return [Tracepoint(system, folder.name) for system in systems
            for folder in sorted((EVENTS / system).glob("*/")) if (folder / "format").exists()]


def require(name):
    """Skips the test unless it runs as root and `name` (system:event) exists."""
    system, _, event = name.partition(":")
    if os.geteuid() != 0 or not (EVENTS / system / event / "id").exists():
        raise script.Skipped(f"needs root, and the tracepoint {name} at {TRACEFS}")
