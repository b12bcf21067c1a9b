#!/usr/bin/python3
"""Tests that every message that docs/guides/troubleshooting.md quotes occurs in a string literal of the sources."""

import re
import unittest

from support import script

SOURCE = script.options(__doc__, "source").source

GUIDE = "docs/guides/troubleshooting.md"
FOLDERS = ("include", "libeventheader", "libnettrace-writer", "tools")
SUFFIXES = (".h", ".cc", ".c")
LEAST_MESSAGES = 40
# The longest fixed part of a quotation has at least this many characters: shorter texts would be found by chance.
LEAST_PART = 8
PLACEHOLDER = "..."

# A token of C++ code. Comments, numbers with separators and characters match as a whole, so that quotation marks in
# them begin no string literal.
TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|\b\d[\w.]*(?:'\w+)*|'(?:\\.[^'\n]*|[^'\\\n])'"""
                   r"""|R"(?P<delimiter>[^(\s]*)\((?P<raw>.*?)\)(?P=delimiter)["]"""
                   r"""|"(?P<text>(?:\\.|[^"\\\n])*)"|\S""", re.DOTALL)
ESCAPES = {"n": "\n", "t": "\t", "0": "\0"}
HEADING = re.compile(r"^### (.*)$", re.MULTILINE)
QUOTATION = re.compile(r"`` (.+?) ``|`([^`]+)`")


def unescape(text):
    return re.sub(r"\\(.)", lambda found: ESCAPES.get(found[1], found[1]), text, flags=re.DOTALL)


def literals(source):
    """Returns the string literals of a C or C++ source; adjacent literals are joined."""
    result, joins = [], False
    for token in TOKEN.finditer(source):
        if token[0].startswith(("//", "/*")):
            continue
        text = token["raw"] if token["raw"] is not None else token["text"]
        if text is None:
            joins = False
            continue
        if token["raw"] is None:
            text = unescape(text)
        if joins:
            result[-1] += text
        else:
            result.append(text)
        joins = True
    return result


def parts(message):
    """Returns the fixed parts of a quoted message."""
    return [part.strip() for part in message.split(PLACEHOLDER) if part.strip()]


def quotations(text):
    """Returns the messages in the headings of a guide: one or more in each heading of the third level."""
    return [plain or marked for heading in HEADING.findall(text) for marked, plain in QUOTATION.findall(heading)]


class Sources:
    """The string literals of each source."""

    def __init__(self):
        paths = [path for folder in FOLDERS for path in (SOURCE / folder).rglob("*") if path.suffix in SUFFIXES]
        self._literals = [literals(path.read_text(encoding="utf-8")) for path in paths]

    def has(self, message):
        """Returns whether one file has all fixed parts of the message."""
        fixed = parts(message)
        return any(all(any(part in literal for literal in texts) for part in fixed) for texts in self._literals)


class TroubleshootingTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sources = Sources()
        cls.guide = (SOURCE / GUIDE).read_text(encoding="utf-8")

    def test_messages_are_those_of_the_sources(self):
        messages = quotations(self.guide)
        self.assertGreaterEqual(len(messages), LEAST_MESSAGES)
        for message in messages:
            with self.subTest(message):
                self.assertTrue(self.sources.has(message), "no source has this message; quote the message that replaced it")

    def test_messages_are_quoted_once_and_are_long_enough(self):
        messages = quotations(self.guide)
        self.assertEqual(len(messages), len(set(messages)))
        for message in messages:
            with self.subTest(message):
                self.assertGreaterEqual(max(map(len, parts(message))), LEAST_PART)

    def test_every_heading_has_a_message(self):
        for heading in HEADING.findall(self.guide):
            with self.subTest(heading):
                self.assertTrue(QUOTATION.findall(heading))

    def test_missing_messages_are_found(self):
        for message in ("tracefs is not mounted at all", "tracefs is ... mounted twice", "Opens the file"):
            with self.subTest(message):
                self.assertFalse(self.sources.has(message))

    def test_literals_are_joined(self):
        self.assertEqual(literals('a("one " /* "no" */ "two", "three"); // "four"\n'), ["one two", "three"])
        self.assertEqual(literals("b('\"', \"a\\\"b\\n\", 10'000, R\"x(c\"d)x\" \"e\");"), ['a"b\n', 'c"de'])

    def test_quotations_are_read(self):
        self.assertEqual(quotations("### `a ... b`, `` c`d ``\n\n`e`\n## `f`\n"), ["a ... b", "c`d"])
        self.assertEqual(parts("session ... is suspended ..."), ["session", "is suspended"])


if __name__ == "__main__":
    script.run_cases()
