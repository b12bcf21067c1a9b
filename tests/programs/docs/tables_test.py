#!/usr/bin/python3
"""Tests that the tables of docs/format have the numbers of the C++ headers, and the formats that
tests/unit/eventheader/golden has bytes for."""

import re
import unittest

from support import script

SOURCE = script.options(__doc__, "source").source


def read(path):
    return (SOURCE / path).read_text(encoding="utf-8")


def table(document, heading):
    """Returns the rows, without the first two, of the table whose first row begins with `heading`."""
    lines = read(f"docs/format/{document}").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {heading}"))
    rows = []
    for line in lines[start + 2:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def numbers(cell):
    return {int(number) for number in re.findall(r"\b\d+\b", cell)}


def enum(header, name):
    """Returns the values of an enum by their names."""
    body = re.search(rf"enum class {name} [^{{]*\{{(.*?)\}};", read(header), re.DOTALL)[1]
    return {key: int(value, 0) for key, value in re.findall(r"k(\w+) = (\w+)", body)}


def snake(name):
    """Converts ZStringChar8 to zstring_char8."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def formats_of_golden_bytes():
    """Returns the names of the formats that have golden bytes, by the name of the encoding."""
    body = re.search(r"FormatsOf\(Encoding encoding\) \{(.*?)\n\}", read("tests/unit/eventheader/golden/golden.cc"), re.DOTALL)[1]
    result, cases = {}, []
    for case, formats in re.findall(r"case Encoding::k(\w+):|return \{([^}]+)\}", body):
        if case:
            cases.append(snake(case))
        else:
            result |= dict.fromkeys(cases, {snake(name) for name in re.findall(r"k(\w+)", formats)})
            cases = []
    return result


class EventHeaderTablesTest(unittest.TestCase):
    def test_encodings_have_their_numbers(self):
        shown = {name: int(number) for row in table("eventheader.md", "encoding")
                 for number, name in re.findall(r"(\d+) (\w+)", row[0])}
        self.assertEqual(shown, {snake(name): value for name, value in enum("include/eventheader/wire.h", "Encoding").items()
                                 if name != "Invalid"})

    def test_formats_have_their_numbers(self):
        shown = {name: int(number) for row in table("eventheader.md", "format")
                 for number, name in re.findall(r"(\d+) ([a-z]\w+)", row[0])}
        wanted = enum("include/eventheader/wire.h", "Format")
        del wanted["IpAddressObsolete"]
        self.assertEqual(shown, {snake(name): value for name, value in wanted.items()})

    def test_encodings_have_the_formats_of_the_golden_bytes(self):
        golden = formats_of_golden_bytes()
        everything = set().union(*golden.values())
        shown = {}
        for encodings, _, default, others in table("eventheader.md", "encoding"):
            for name in re.findall(r"\d+ (\w+)", encodings):
                shown[name] = {"default", default} | (everything if "all" in others else set(re.findall(r"\w+", others)))
        del shown["struct"]
        self.assertEqual(shown, golden)


class NetTraceTablesTest(unittest.TestCase):
    def test_blocks_types_and_labels_have_their_numbers(self):
        for heading, name, unwritten in (("kind", "BlockKind", set()), ("code", "TypeCode", {15}), ("label", "LabelKind", set())):
            with self.subTest(table=heading):
                shown = set().union(*(numbers(row[0]) for row in table("nettrace-v6.md", heading)))
                self.assertEqual(shown, set(enum("include/nettrace/format.h", name).values()) - unwritten)

    def test_blocks_and_types_have_their_names(self):
        for heading, name, unwritten in (("kind", "BlockKind", set()), ("code", "TypeCode", {"decimal"})):
            with self.subTest(table=heading):
                shown = {word.lower() for row in table("nettrace-v6.md", heading) for word in row[1].split(", ") if word}
                shown = {"boolean32" if word == "boolean" else word for word in shown}
                self.assertEqual(shown, {key.lower() for key in enum("include/nettrace/format.h", name)} - unwritten)


if __name__ == "__main__":
    script.run_cases()
