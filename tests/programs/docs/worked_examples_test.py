#!/usr/bin/python3
"""Tests that the worked examples of docs/format are what the libraries write and the programs read."""

import json
import pathlib
import re
import subprocess
import tempfile
import unittest

from support import documents
from support import script

ARGS = script.options(__doc__, "source", "examples", "nettrace")

ROW = re.compile(r"^ *(\d+) +(\d+) {2}(.+?)(?: {2,}\S.*)?$")


def blocks(document, language):
    """Returns the contents of the document's blocks in a language, if the comment of the block names this test."""
    return [block.text for block in documents.taken_by(__file__, ARGS.source)
            if (block.document, block.language) == (f"docs/format/{document}", language)]


def parse_bytes(text):
    """Converts '4E 65 "ttrace"' to bytes: pairs of hexadecimal digits, and text in double quotes."""
    parts = re.findall(r'"([^"]*)"|([0-9A-Fa-f]{2})', text)
    return b"".join(quoted.encode() if quoted or not digits else bytes.fromhex(digits) for quoted, digits in parts)


def example(document):
    """Returns the bytes of the document's only `bytes` block, whose rows are offset, size, bytes, meaning."""
    [content] = blocks(document, "bytes")
    result = b""
    for line in content.splitlines():
        if not line.strip():
            continue
        row = ROW.match(line)
        assert row, f"{document}: expected a row with offset, size, bytes and meaning: {line}"
        offset, size, written = int(row[1]), int(row[2]), parse_bytes(row[3])
        assert offset == len(result), f"{document}: the offset must be {len(result)}: {line}"
        assert size == len(written), f"{document}: the size must be {len(written)}: {line}"
        result += written
    return result


def run(*command, expected=0):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == expected, f"{command}: exit status {done.returncode} instead of {expected}:\n{done.stdout}"
    return done.stdout


class WorkedExamplesTest(unittest.TestCase):
    maxDiff = None

    def assert_same_bytes(self, document, made_as):
        self.assertEqual(example(document).hex(" "), bytes.fromhex(run(ARGS.examples, made_as)).hex(" "))

    def test_eventheader_bytes_are_what_the_provider_writes(self):
        self.assert_same_bytes("eventheader.md", "eventheader")

    def test_eventheader_json_is_what_the_decoder_reads(self):
        [text] = blocks("eventheader.md", "json")
        self.assertEqual(json.loads(text), json.loads(run(ARGS.examples, "json")))

    def test_nettrace_bytes_are_what_the_writer_writes(self):
        self.assert_same_bytes("nettrace-v6.md", "nettrace")

    def test_verify_finds_nothing_and_dump_matches_the_document(self):
        with tempfile.TemporaryDirectory(prefix="worked-examples-") as folder:
            file = pathlib.Path(folder) / "example.nettrace"
            file.write_bytes(example("nettrace-v6.md"))
            run(ARGS.nettrace, "verify", "--strict", file)
            lines = run(ARGS.nettrace, "dump", "--json", file).splitlines()
            info = json.loads(run(ARGS.nettrace, "info", "--json", file))
        events = [json.loads(line) for line in lines]
        self.assertEqual((info["events"], info["lost"]), (3, 3))
        shown = [json.loads(text) for text in blocks("nettrace-v6.md", "json")]
        self.assertEqual([event["payload"] for event in events], shown * 3)
        self.assertEqual([event["timestamp"] for event in events], [1500, 1700, 2000])


if __name__ == "__main__":
    script.run_cases()
