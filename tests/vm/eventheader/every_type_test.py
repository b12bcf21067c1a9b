#!/usr/bin/python3
"""Tests every type of field from a service through `nettrace record` into a file, and in the output of `nettrace dump`.
Needs root and a kernel with user_events (./run vm), or EVENTHEADER_TRANSPORT=ring."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from support import commands
from support import script
from support import transport

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "conformance"))
import ctf_exports

ARGS = script.options(__doc__, "service", "nettrace")
LOOPBACK6 = [0] * 15 + [1]
# Values that nettrace dump --json shows differently from libeventheader's JSON, by type and by libeventheader's JSON.
SHOWN = {
    ("Errno", "ENOENT"): 2,
}
# libeventheader's JSON formats some types, such as std::byte, in hexadecimal. For these, maps the JSON text to the value
# in the file, as `nettrace dump --raw` shows it.
IN_THE_FILE = {
    ("std::byte", "0xab"): 0xAB,
    ("void*", "0x102"): 0x102,
    ("std::nullptr_t", "0x0"): 0,
    ("Hex<int>", "0x10"): 16,
    ("Errno", "ENOENT"): 2,
    ("Milliseconds", "1970-01-01T00:00:02Z"): 2,
    ("Time", "2026-11-21T10:22:00Z"): 1795256520,
    ("std::span<const std::byte>", "01ff00"): [1, 255, 0],
    ("std::array<std::byte, 3>", "01ff00"): [1, 255, 0],
    ("std::vector<std::byte>", "01"): [1],
    ("std::optional<std::uint32_t>", None): "",
    ("std::optional<double>", None): "",
    ("in_addr", "127.0.0.1"): [127, 0, 0, 1],
    ("in6_addr", "::1"): LOOPBACK6,
    ("Ip4", "192.0.2.1"): [192, 0, 2, 1],
    ("Ip6", "::1"): LOOPBACK6,
    ("dynamic", "000102030405060708090a0b0c0d0e0f"): list(range(16)),
    ("dynamic", '["ff", ""]'): [{"Value": [255]}, {"Value": []}],
}


def lookup(table, of_type, value):
    key = json.dumps(value) if isinstance(value, (list, dict)) else value
    value = table.get((of_type, key), value)
    # Other readers of JSON round larger numbers, so dump shows them as text.
    return str(value) if type(value) is int and abs(value) > 2**53 else value


class EveryType(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        transport.give_socket(self)

    def test_is_recorded_with_its_value(self):
        with tempfile.TemporaryDirectory(prefix="every-type-") as folder:
            file = pathlib.Path(folder) / "trace.nettrace"
            printed = commands.record(ARGS.nettrace, file, ["Vm_EveryType_L4K1"], [ARGS.service])
            subprocess.run([ARGS.nettrace, "verify", "--strict", file], check=True)
            shown, raw = (list(commands.dump(ARGS.nettrace, file, *options)) for options in ([], ["--raw"]))
            _, exports = ctf_exports.compare(ARGS.nettrace, file, file.parent)
        self.assertEqual({form: export.differences for form, export in exports.items()}, {"ctf": [], "ctf2": []})
        written = [json.loads(line) for line in printed.splitlines()]
        self.assertGreater(len(written), 80)
        for recorded, table in ((shown, SHOWN), (raw, IN_THE_FILE)):
            self.assertEqual(len(written), len(recorded))
            for wanted, event in zip(written, recorded):
                with self.subTest(wanted["type"]):
                    self.assertEqual(event["name"], wanted["type"])
                    self.assertEqual(event["provider"], "Vm_EveryType")
                    self.assertEqual(event["payload"], {"f": lookup(table, wanted["type"], wanted["value"])})


if __name__ == "__main__":
    script.run_cases()
