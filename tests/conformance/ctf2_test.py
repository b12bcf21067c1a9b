"""Tests that the reader of CTF 2 reads what the specification allows, and refuses everything else. The traces are made
by hand: some have every field class in both byte orders, and each of the others breaks one rule."""

import copy
import json
import pathlib
import struct
import tempfile
import unittest

import pytest

import ctf
import ctf2

pytest.importorskip("jsonschema")

LITTLE, BIG = "little-endian", "big-endian"
UUID = bytes(range(16))
SECONDS = 1_700_000_000
PAYLOAD = "event-record-payload"


def fixed(kind, length, order, align=8, **more):
    return {"type": f"fixed-length-{kind}", "length": length, "byte-order": order, "alignment": align, **more}


def unsigned(length, order=LITTLE, **more):
    return fixed("unsigned-integer", length, order, **more)


def structure(members, **more):
    classes = [{"name": name, "field-class": field_class} for name, field_class in members.items()]
    return {"type": "structure", "member-classes": classes, **more}


def located(kind, path, location="length", origin=PAYLOAD, **more):
    place = {"path": path, **({"origin": origin} if origin else {})}
    return {"type": kind, f"{location}-field-location": place, **more}


def blob(path, origin=PAYLOAD, **more):
    return located("dynamic-length-blob", path, origin=origin, **more)


def optional(selector, field_class, *ranges):
    return located("optional", [selector], "selector", **{"field-class": field_class}, **(
        {"selector-field-ranges": list(ranges)} if ranges else {}))


def variant(selector, options):
    return located("variant", [selector], "selector", options=options)


def fragments(payload=None, order=LITTLE):
    """Returns the fragments of the metadata. Tests use their keys to replace or remove fragments."""
    def role(length, name):
        return unsigned(length, order, roles=[name])
    return {
        "preamble": {"type": "preamble", "version": 2, "uuid": list(UUID)},
        "trace": {"type": "trace-class", "environment": {"host": "a", "cpus": 4},
                  "packet-header-field-class": structure({
                      "magic": role(32, "packet-magic-number"),
                      "uuid": {"type": "static-length-blob", "length": 16, "roles": ["metadata-stream-uuid"]},
                      "class": role(8, "data-stream-class-id"), "stream": role(8, "data-stream-id")})},
        "clock": {"type": "clock-class", "id": "c", "frequency": 10**9, "origin": "unix-epoch",
                  "offset-from-origin": {"seconds": SECONDS, "cycles": 7}},
        "stream": {"type": "data-stream-class", "default-clock-class-id": "c",
                   "packet-context-field-class": structure({
                       "total": role(64, "packet-total-length"), "content": role(64, "packet-content-length"),
                       "begin": role(64, "default-clock-timestamp"),
                       "end": role(64, "packet-end-default-clock-timestamp"),
                       "sequence": role(64, "packet-sequence-number"),
                       "discarded": role(64, "discarded-event-record-counter-snapshot"),
                       "cpu_id": unsigned(32, order)}),
                   "event-record-header-field-class": structure({
                       "id": role(8, "event-record-class-id"), "time": role(32, "default-clock-timestamp")}),
                   "event-record-common-context-field-class": structure({"tid": unsigned(16, order)})},
        "event": {"type": "event-record-class", "id": 1, "name": "E", "attributes": {"n": {"x": [1.5]}},
                  "payload-field-class": structure(payload or {"n": unsigned(8)})},
    }


def event(time, payload=b"\x05", order=LITTLE, number=1):
    """Returns an event. Its payload begins at byte 7 of the event."""
    return struct.pack("<BIH" if order == LITTLE else ">BIH", number, time % 2**32, 42) + payload


def packet(*events, begin=100, end=200, sequence=0, discarded=0, padding=0, order=LITTLE, **more):
    """Returns a packet. Its first event begins at byte 74 of the packet."""
    content = 74 + sum(map(len, events))
    head = struct.pack("<I" if order == LITTLE else ">I", more.get("magic", ctf2.MAGIC)) + more.get("uuid", UUID) + \
        bytes([more.get("kind", 0), more.get("stream", 0)])
    context = struct.pack("<6QI" if order == LITTLE else ">6QI", more.get("total", 8 * (content + padding)),
                          more.get("content", 8 * content), begin, end, sequence, discarded, more.get("cpu", 3))
    return head + context + b"".join(events) + bytes(padding)


def encoded(parts):
    return b"".join(b"\x1e" + json.dumps(part).encode() + b"\n" for part in parts)


def write(folder, parts=None, **files):
    """Writes a trace. `files`: the data streams; without any, the trace has one data stream with one event."""
    metadata = parts if isinstance(parts, bytes) else encoded((fragments() if parts is None else parts).values())
    pathlib.Path(folder, "metadata").write_bytes(metadata)
    for name, data in (files or {"s": packet(event(150))}).items():
        pathlib.Path(folder, name).write_bytes(data)


def read(parts=None, **files):
    with tempfile.TemporaryDirectory() as folder:
        write(folder, parts, **files)
        return ctf2.read(folder)


def plain(value):
    """Converts each ctf.Named in a value to a pair of the number and its names."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return (int(value), *value.names) if isinstance(value, ctf.Named) else value


def text(kind, encoding, **more):
    return {"type": f"{kind}-string", "encoding": encoding, **more}


def leb128(sign, **more):
    return {"type": f"variable-length-{sign}signed-integer", **more}


def option(first, last, field_class, **more):
    return {"selector-field-ranges": [[first, last]], "field-class": field_class, **more}


def classes(order):
    """Returns (members of the payload, its bytes little-endian, its bytes big-endian, its values) of each sample."""
    number = unsigned(8)
    points = structure({"n": number, "points": located("dynamic-length-array", ["n"], origin=None, **{
        "element-field-class": structure({"m": number, "texts": located("dynamic-length-array", ["m"], origin=None, **{
            "element-field-class": located("dynamic-length-string", [None, "n"], origin=None)})})})})
    return {
        "bits": ({"a": fixed("bit-array", 3, order, 1), "b": fixed("unsigned-integer", 5, order, 1),
                  "c": fixed("unsigned-integer", 12, order, 1), "d": fixed("signed-integer", 4, order, 1)},
                 "8dbcda", "b1abcd", {"a": 5, "b": 17, "c": 0xABC, "d": -3}),
        "integers": ({"u": unsigned(64, order), "s": fixed("signed-integer", 32, order), "t": unsigned(24, order)},
                     "efcdab8967452301" "feffffff" "563412", "0123456789abcdef" "fffffffe" "123456",
                     {"u": 0x123456789ABCDEF, "s": -2, "t": 0x123456}),
        "flags": ({"m": fixed("bit-map", 16, order, flags={
                       "low": [[0, 1]], "mid": [[7, 9]], "none": [[2, 3], [15, 15]]}),
                   "t": fixed("boolean", 8, order), "f": fixed("boolean", 8, order, **{"bit-order": {
                       LITTLE: "first-to-last", BIG: "last-to-first"}[order]})}, "0201" "8000", "0102" "8000",
                  {"m": (0x102, "low", "mid"), "t": (1, "true"), "f": (0, "false")}),
        "names": ({"u": unsigned(8, order, mappings={"one": [[1, 1], [3, 4]], "small": [[0, 9]]}),
                   "s": fixed("signed-integer", 8, order, mappings={"minus": [[-128, -1]]}),
                   "v": leb128("", mappings={"minus": [[-9, -1]]}), "w": leb128("un", mappings={"x": [[7, 8]]})},
                  "03" "80" "7f" "09", "03" "80" "7f" "09",
                  {"u": (3, "one", "small"), "s": (-128, "minus"), "v": (-1, "minus"), "w": (9,)}),
        "floats": ({"f": fixed("floating-point-number", 32, order), "d": fixed("floating-point-number", 64, order)},
                   "0000c03f" "000000000000f8bf", "3fc00000" "bff8000000000000", {"f": 1.5, "d": -1.5}),
        "leb128": ({"u": leb128("un"), "s": leb128("", **{"preferred-display-base": 16}), "z": leb128("un"),
                    "max": leb128("un"), "min": leb128("")},
                   *2 * ["b4c772" "b4c772" "8000" "ffffffffffffffffff01" "8080808080808080807f"],
                   {"u": 1876916, "s": -220236, "z": 0, "max": 2**64 - 1, "min": -2**63}),
        "texts": ({"a": {"type": "null-terminated-string"}, "b": text("null-terminated", "utf-16le"),
                   "c": text("null-terminated", "utf-32be"), "d": text("static-length", "utf-16be", length=6),
                   "e": text("static-length", "utf-8", length=3), "f": text("static-length", "utf-32le", length=4),
                   "g": text("null-terminated", "utf-8"), "h": text("static-length", "utf-8", length=0)},
                  *2 * ["c3a900" "00013dd800de0000" "0001f60000000000" "00e90000ffff" "616263" "e9000000" "00"],
                  {"a": "\u00e9", "b": "\u0100\U0001f600", "c": "\U0001f600", "d": "\u00e9", "e": "abc", "f": "\u00e9",
                   "g": "", "h": ""}),
        "lengths": ({"n": unsigned(16, order), "t": located("dynamic-length-string", ["n"]),
                     "b": blob(["n"], **{"media-type": "x/y"}),
                     "s": {"type": "static-length-blob", "length": 2}, "k": leb128("un"),
                     "w": located("dynamic-length-string", ["k"], encoding="utf-16le")},
                    "0300" "616200" "010203" "fffe" "04" "61006200", "0003" "616200" "010203" "fffe" "04" "61006200",
                    {"t": "ab", "b": b"\1\2\3", "s": b"\xff\xfe", "w": "ab"}),
        "arrays": ({"s": {"type": "static-length-array", "length": 2, "element-field-class": {
                        "type": "static-length-array", "length": 2, "element-field-class": unsigned(16, order)}},
                    "n": number, "e": located("dynamic-length-array", ["n"], **{"element-field-class": number})},
                   "0100020003000400" "00", "0001000200030004" "00", {"s": [[1, 2], [3, 4]], "e": []}),
        # The number of bytes of each text in a point is a member of the structure around the points.
        "places": ({"x": points, "tid": blob(["cpu_id"], origin="packet-context"),
                    "v": blob(["x", "n"])},
                   *2 * ["02" "02" "6162" "6364" "00" "010203" "0405"],
                   {"x": {"points": [{"texts": ["ab", "cd"]}, {"texts": []}]}, "tid": b"\1\2\3", "v": b"\4\5"}),
        "optional": ({"b": fixed("boolean", 8, order), "v": optional("b", number), "u": number,
                      "s": fixed("signed-integer", 8, order), "ux": optional("u", leb128("un"), [1, 1], [5, 9]),
                      "sy": optional("s", leb128("un"), [-3, -1]), "uz": optional("u", number, [0, 3])},
                     *2 * ["01" "0a" "05" "fe" "0b" "0c"], {"v": 10, "ux": 11, "sy": 12, "uz": None}),
        "variant": ({"u": number, "s": fixed("signed-integer", 8, order),
                     "v": variant("s", [option(-9, -1, unsigned(16, order), name="a"),
                                        option(0, 9, text("null-terminated", "utf-8"))]),
                     "w": variant("u", [option(0, 0, structure({"n": number})),
                                        option(1, 2, structure({"n": number, "x": leb128("un")}))]),
                     "b": blob(["w", "n"])},
                    "02" "ff" "3412" "01" "07" "aa", "02" "ff" "1234" "01" "07" "aa",
                    {"v": 0x1234, "w": {"x": 7}, "b": b"\xaa"}),
        # The payload begins at byte 88 instead of 81, because it must be aligned like the structure `g` in it.
        "alignment": ({"a": number, "b": unsigned(16, order, align=16), "c": fixed("bit-array", 4, order, 4),
                       "d": leb128("un"), "e": {"type": "static-length-array", "length": 0, "minimum-alignment": 32,
                                                "element-field-class": number}, "f": number,
                       "g": structure({"x": number}, **{"minimum-alignment": 64})},
                      # Bytes 81 to 87, then from 88: a, padding, b, c, d, 2 bytes of padding, f, 7 bytes of padding, g.
                      "00" * 7 + "01" "00" "0300" "0f" "05" "0000" "06" + "00" * 7 + "07",
                      "00" * 7 + "01" "00" "0003" "f0" "05" "0000" "06" + "00" * 7 + "07",
                      {"a": 1, "b": 3, "c": 15, "d": 5, "e": [], "f": 6, "g": {"x": 7}}),
    }


def sample(name, order):
    """Returns metadata and a data stream with two packets, whose events have the payload of this sample of classes()."""
    members, little, big, _ = classes(order)[name]
    payload = bytes.fromhex(little if order == LITTLE else big)
    parts = fragments(members, order)
    return parts, packet(event(150, payload, order), order=order) + packet(
        event(250, payload, order), begin=200, end=300, sequence=1, discarded=4, padding=5, order=order)


def lossy():
    """Returns a trace with two data streams, one of which has losses, and one a slow clock."""
    parts = fragments()
    parts["slow clock"] = {"type": "clock-class", "id": "slow", "frequency": 3, "origin": "unix-epoch"}
    parts["slow"] = {**parts["stream"], "id": 1, "default-clock-class-id": "slow"}
    parts["slow event"] = {**parts["event"], "id": 0, "data-stream-class-id": 1, "payload-field-class": structure({}),
                           "specific-context-field-class": structure({"s": unsigned(8)})}
    return parts, {
        "a": packet(event(150)) + packet(event(210), event(220), begin=200, end=220, sequence=1, discarded=2) +
        packet(begin=230, end=240, sequence=5, discarded=9),
        "b": packet(event(5, b"\x07", number=0), event(2**32 + 3, b"\x08", number=0), kind=1, begin=0, end=2**33)}


class ReadTest(unittest.TestCase):
    def test_every_field_class_is_read(self):
        for order in (LITTLE, BIG):
            for name, (*_, values) in classes(order).items():
                parts, data = sample(name, order)
                trace = read(parts, s=data)
                self.assertEqual([plain(one["payload"]) for one in trace.events], [values] * 2, (name, order))

    def test_an_event_has_every_property_and_its_class(self):
        parts = fragments()
        trace = read(parts)
        time = SECONDS * 10**9 + 7
        self.assertEqual(trace.events, [{
            "time": time + 150, "name": "E", "cpu": 3, "context": {"tid": 42}, "payload": {"n": 5}, "specific": None,
            "class": parts["event"]}])
        self.assertEqual((trace.environment, trace.discarded), ({"host": "a", "cpus": "4"}, []))
        self.assertEqual(trace.fragments, list(parts.values()))
        self.assertEqual([one[:-1] for one in trace.packets], [("s", time + 100, time + 200, 0, 0, 82)])

    def test_streams_are_in_one_order_and_losses_counted(self):
        parts, files = lossy()
        trace = read(parts, **files)
        time = SECONDS * 10**9 + 7
        self.assertEqual([(one["time"], one["specific"]) for one in trace.events], [
            (5 * 10**9 // 3, {"s": 7}), ((2**32 + 3) * 10**9 // 3, {"s": 8}),
            *[(time + offset, None) for offset in (150, 210, 220)]])
        self.assertEqual(trace.discarded, [(time + 200, time + 220, 2), (time + 220, time + 240, 7)])

    def test_a_data_stream_needs_no_clock_nor_structure(self):
        parts = {"preamble": {"type": "preamble", "version": 2}, "stream": {"type": "data-stream-class"}, "event": {
            "type": "event-record-class", "specific-context-field-class": structure({"s": unsigned(8)})}}
        events = read(parts, s=b"\x07\x08").events
        self.assertEqual([(one["time"], one["cpu"], one["name"], one["specific"]) for one in events],
                         [(None, None, None, {"s": 7}), (None, None, None, {"s": 8})])

    def test_an_alias_is_its_class(self):
        parts = fragments()
        alias = {"type": "field-class-alias", "name": "u", "field-class": unsigned(8)}
        parts["event"]["payload-field-class"] = "p"
        parts = {"preamble": parts.pop("preamble"), "u": alias, "w": {**alias, "name": "w", "field-class": "u"},
                 "p": {**alias, "name": "p", "field-class": structure({"n": "w"})}, **parts}
        self.assertEqual(read(parts).events[0]["payload"], {"n": 5})

    def test_a_packet_may_be_all_of_the_file(self):
        parts = fragments()
        del parts["stream"]["packet-context-field-class"]
        data = packet()[:22] + event(150) + event(2**32 + 1)
        self.assertEqual([one["time"] - SECONDS * 10**9 - 7 for one in read(parts, s=data).events], [150, 2**32 + 1])

    def test_timestamps_may_have_any_length(self):
        parts = fragments()
        parts["stream"]["event-record-header-field-class"] = structure({
            "id": unsigned(8, roles=["event-record-class-id"]),
            "time": leb128("un", roles=["default-clock-timestamp"])})
        data = packet(*[b"\x01" + time + b"\x2a\0" b"\0" for time in (b"\x05", b"\x04", b"\x83\0")], end=2**62)
        times = [one["time"] - SECONDS * 10**9 - 7 for one in read(parts, s=data).events]
        self.assertEqual(times, [133, 260, 2**14 + 3])


def change(*path, **more):
    """Returns metadata in which the value at a path is replaced by `to`, or removed. The path has keys of objects, and names of
    members where the value is a list of members."""
    parts = fragments()
    at = parts
    for key in path[:-1]:
        at = next(one for one in at if one["name"] == key)["field-class"] if isinstance(at, list) else at[key]
    if "to" in more:
        at[path[-1]] = more["to"]
    else:
        del at[path[-1]]
    return {name: part for name, part in parts.items() if part is not None}


def payload(**members):
    return fragments(members)


def member(place, name, key, to):
    root = {"header": ("trace", "packet-header-field-class"), "context": ("stream", "packet-context-field-class"),
            "event": ("stream", "event-record-header-field-class"), "payload": ("event", "payload-field-class")}[place]
    return change(*root, "member-classes", name, key, to=to)


def twice(name, **more):
    parts = fragments()
    return {**parts, "again": {**copy.deepcopy(parts[name]), **more}}


def moved(*names):
    """Returns the metadata with these fragments before the others."""
    parts = fragments()
    return {**{name: parts[name] for name in names}, **parts}


NUMBER, SIGNED_NUMBER, FLAG = unsigned(8), fixed("signed-integer", 8, LITTLE), fixed("boolean", 8, LITTLE)
ALIAS = {"type": "field-class-alias", "name": "x", "field-class": NUMBER}
WIDE = unsigned(8, LITTLE, mappings={"x": [[1, 256]]})
TWO = {"n": SIGNED_NUMBER, "v": variant("n", [option(0, 1, structure({"m": NUMBER})),
                                                                             option(2, 3, NUMBER)])}

# Wrong metadata streams: what is wrong with each, and the message of the error.
METADATA = {
    "no separator": (encoded(fragments().values())[1:], "no record separator"),
    "nothing": (b"", "no record separator"),
    "no line feed": (encoded(fragments().values())[:-1], "fragment 4 does not end in a line feed"),
    "not UTF-8": (b'\x1e{"type": "preamble", "version": 2, "attributes": {"\xff": 1}}\n', "fragment 0: 'utf-8' codec"),
    "no JSON": (b"\x1e{]\n", "fragment 0: Expecting"),
    "two texts": (b'\x1e{"type": "preamble", "version": 2}{}\n', "Extra data"),
    "NaN": (b'\x1e{"type": "preamble", "version": 2, "attributes": {"a": NaN}}\n', "NaN is not JSON"),
    "a name twice": (b'\x1e{"type": "preamble", "version": 2, "version": 2}\n', "a name is there twice"),
    "no object": (b"\x1e[]\n", r"fragment 0: \$: \[\] is not of type 'object'"),
    "no type": (change("event", "type"), r"\$: 'type' is a required property"),
    "another type": (change("event", "type", to="event"), r"\$.type: 'event' is not one of"),
    "version 1": (change("preamble", "version", to=1), r"\$.version: 2 was expected"),
    "a fraction": (change("clock", "frequency", to=1.5), r"\$.frequency: 1.5 is not of type 'integer'"),
    "an integer as a fraction": (change("clock", "frequency", to=1.0), r"\$.frequency: 1.0 is not of type 'integer'"),
    "an unknown property": (change("clock", "absolute", to=True), "'absolute' was unexpected"),
    "an extension": (change("preamble", "extensions", to={"n": {"x": 1}}), "extensions: .* too many properties"),
    "attributes": (change("event", "attributes", to=[]), "attributes: .* is not of type 'object'"),
    "a short UUID": (change("preamble", "uuid", to=[1] * 15), r"uuid: .* is too short"),
    "a UUID of large bytes": (change("preamble", "uuid", to=[256] * 16), r"uuid\[0\]: 256 is greater than the maximum"),
    "an environment": (change("trace", "environment", to={"x": 1.5}), "environment.x: 1.5 is not of type"),
    "an origin": (change("clock", "origin", to="boot"), "origin: 'unix-epoch' was expected"),
    "an origin without a uid": (change("clock", "origin", to={"name": "x"}), "'uid' is a required property"),
    "no frequency": (change("clock", "frequency"), "'frequency' is a required property"),
    "frequency 0": (change("clock", "frequency", to=0), "0 is less than the minimum"),
    "too many cycles": (change("clock", "offset-from-origin", to={"cycles": 10**9}), "a second or more"),
    "a class of no type": (payload(x={}), "'type' is a required property"),
    "a class of an unknown type": (payload(x={"type": "integer"}), "'integer' is not one of"),
    "a class without its length": (payload(x={"type": "static-length-blob"}), "'length' is a required property"),
    "65 bits": (payload(x=unsigned(65)), "65 is greater than the maximum"),
    "no bits": (payload(x=unsigned(0)), "0 is less than the minimum"),
    "a short float": (payload(x=fixed("floating-point-number", 24, LITTLE)), r"24 is not one of \[32, 64\]"),
    "a byte order": (payload(x=unsigned(8, "le")), "'le' is not one of"),
    "a bit order": (payload(x=unsigned(8, BIG, **{"bit-order": "first-to-last"})),
                    "big-endian bits are last-to-first here"),
    "an alignment": (payload(x=unsigned(8, align=12)), "12 is no power of two"),
    "a minimum alignment": (payload(x=structure({}, **{"minimum-alignment": 3})), "3 is no power of two"),
    "a display base": (payload(x=unsigned(8, **{"preferred-display-base": 7})), "7 is not one of"),
    "an encoding": (payload(x=text("null-terminated", "latin-1")), "'latin-1' is not one of"),
    "roles of a signed integer": (payload(x={**SIGNED_NUMBER, "roles": []}), "'roles' was unexpected"),
    "a bit map without flags": (payload(x=fixed("bit-map", 8, LITTLE, flags={})), "does not have enough properties"),
    "a flag of no bit": (payload(x=fixed("bit-map", 8, LITTLE, flags={"f": [[7, 8]]})),
                         r"\[7, 8\] of 'f' is not within \[0, 7\]"),
    "no ranges": (payload(x=unsigned(8, mappings={"a": []})), r"\[\] is too short"),
    "a range upside down": (payload(x=unsigned(8, mappings={"a": [[2, 1]]})), r"range \[2, 1\] of 'a'"),
    "a range that does not fit": (payload(x=WIDE), r"range \[1, 256\] of 'x' is not within \[0, 255\]"),
    "a negative range": (payload(x=leb128("un", mappings={"a": [[-1, 1]]})), r"range \[-1, 1\] of 'a'"),
    "a member twice": (change("event", "payload-field-class",
                       "member-classes", to=structure({"n": NUMBER})["member-classes"] * 2),
                       "a member is there twice"),
    "a root that is none": (change("event", "payload-field-class", to=NUMBER), "'structure' was expected"),
    "a root's alias that is none": ({**moved("preamble"), "alias": ALIAS, "more": {
        **fragments()["event"], "id": 2, "payload-field-class": "x"}}, "payload-field-class is no structure"),
    "an unknown alias": (payload(x="x"), "alias 'x' is not there"),
    "an alias twice": ({**fragments(), "a": ALIAS, "b": ALIAS}, "alias 'x' is there twice"),
    "an alias of itself": ({**fragments(), "a": {**ALIAS, "field-class": structure({"x": "x"})}},
                           "alias 'x' is not there"),
    "no preamble": (change("preamble", to=None), "the preamble is the first fragment"),
    "a late preamble": (moved("trace"), "the preamble is the first fragment"),
    "two preambles": (twice("preamble"), "fragment 5: the preamble is the first fragment"),
    "two trace classes": (twice("trace"), "one trace class at most"),
    "a late trace class": (moved("preamble", "clock", "stream"), "before any data stream class"),
    "no data stream class": ({"preamble": fragments()["preamble"]}, "no data stream class"),
    "a clock class twice": (twice("clock"), "clock class 'c' is there twice"),
    "a clock that differs": ({**change("clock", "name", to="m"), "clock": {**fragments()["clock"], "name": "m",
                             "uid": "u"},
                              "other": {"type": "clock-class", "id": "d", "name": "m", "uid": "u", "frequency": 1}},
                             "but differ"),
    "clocks of several origins": ({**twice("clock", id="d", origin={"name": "boot", "uid": "1"}), "stream 1": {
        **fragments()["stream"], "id": 1, "default-clock-class-id": "d"}}, "have several origins"),
    "one clock and none": ({**fragments(), "stream 1": {"type": "data-stream-class", "id": 1}}, "have several origins"),
    "no clock class": (change("clock", to=None), "clock class 'c' is not there"),
    "a data stream class twice": (twice("stream"), "data stream class 0 is there twice"),
    "an event record class twice": (twice("event"), "event record class 1 of 0 is there twice"),
    "an event record class of none": (change("event", "data-stream-class-id", to=1),
                                      "data stream class 1 is not there"),
    "a role in the payload": (member("payload", "n", "roles", ["packet-total-length"]),
                              "role packet-total-length in the event-record"),
    "a role of another place": (member("event", "id", "roles", ["packet-total-length"]),
                                "role packet-total-length in the event-rec"),
    "an unknown role": (member("event", "id", "roles", ["time"]), "'time' is not one of"),
    "a role twice": (member("event", "id", "roles", ["event-record-class-id"] * 2), "has non-unique elements"),
    "a timestamp of no clock": (change("stream", "default-clock-class-id"),
                                "role default-clock-timestamp without a clock"),
    "a magic number of 16 bits": (member("header", "magic", "length", 16), "the magic number is not the first"),
    "a magic number in another place": (member("header", "class", "roles", ["packet-magic-number"]),
                                        "the magic number is not"),
    "a UUID of 15 bytes": (member("header", "uuid", "length", 15), "a UUID of no 16 bytes"),
    "a UUID of no preamble": (change("preamble", "uuid"), "a UUID of no 16 bytes, or of no preamble"),
    "user fields in the header": (member("header", "stream", "roles", []), "'stream' in the packet-header has no role"),
    "user fields in the event's header": (member("event", "id", "roles", []),
                                          "'id' in the event-record-header has no role"),
    "an empty path": (payload(x=blob([])), "path: .* is too short"),
    "a path to a parent": (payload(x=blob(["x", None])), "ends in a parent"),
    "an unknown origin": (payload(x=blob(["n"], origin="payload")), "'payload' is not one of"),
    "a later origin": (change("stream", "event-record-common-context-field-class", to=structure({
        "x": blob(["n"])})), "begins in a event-record-payload, which is not there yet"),
    "a missing member": (payload(x=blob(["n"])), r"leads to 'n', which is not among \['x'\]"),
    "a later member": (payload(x=blob(["n"]), n=NUMBER), "not decoded yet"),
    "itself": (payload(x=blob(["x"])), "not decoded yet"),
    "in itself": (payload(x=blob(["x", "n"])), "not decoded yet"),
    "above the root": (payload(n=NUMBER, x=blob([None, "n"], origin=None)), "the parent of a root"),
    "in a number": (payload(n=NUMBER, x=blob(["n", "n"])), "in 'n', which is not a structure"),
    "in one option only": (payload(**TWO, x=blob(["v", "m"])), "in 'v', which is not a structure"),
    "into another array": (payload(a={
        "type": "static-length-array", "length": 1, "element-field-class": structure({"n": NUMBER})},
        x=blob(["a", "n"])), "in 'a', which is not a structure"),
    "a signed length": (payload(n=SIGNED_NUMBER, x=blob(["n"])), "leads to fixed-length-signed-integer"),
    "a boolean selector of a variant": (payload(n=FLAG, x=variant("n", [option(0, 1, NUMBER)])),
                                        "of a variant leads to fixed-length-boolean"),
    "a selector that is a text": (payload(n=text("null-terminated", "utf-8"), x=optional("n", NUMBER)),
                                  "of a optional leads to null-terminated-string"),
    "a boolean selector with ranges": (payload(n=FLAG, x=optional("n", NUMBER, [0, 1])),
                                       "a selector has ranges and is no integer"),
    "an integer selector without ranges": (payload(n=NUMBER, x=optional("n", NUMBER)), "or has none and is one"),
    "a selector's range": (payload(n=NUMBER, x=optional("n", NUMBER, [0, 256])),
                           r"range \[0, 256\] of a selector is not within \[0, 255\]"),
    "no options": (payload(n=NUMBER, x=variant("n", [])), r"options: \[\] is too short"),
    "options that overlap": (payload(n=NUMBER, x=variant("n", [
        {**option(0, 9, NUMBER), "selector-field-ranges": [[0, 9], [1, 2]]}, option(9, 12, NUMBER)])),
                             "options of a variant overlap"),
    "an option twice": (payload(n=NUMBER, x=variant("n", [
        option(0, 1, NUMBER, name="a"), option(2, 3, NUMBER, name="a")])), "an option is there twice"),
}

# Wrong data streams, by what is wrong: the metadata (None: that of fragments()), the stream, and the message of the error.
DATA = {
    "no magic number": (None, packet(magic=1), "no magic number"),
    "another UUID": (None, packet(uuid=bytes(16)), "the UUID is not that of the metadata"),
    "an unknown class": (None, packet(kind=1), "data stream class 1 is not there"),
    "two data streams": (None, packet() + packet(stream=1, begin=200), "packets of several data streams"),
    "nothing": (None, b"", "one packet or more"),
    "a cut header": (None, packet()[:20], r"8 bits go on after the packet's content"),
    "a cut packet": (None, packet(event(150))[:-1], "extends past the end of the file"),
    "more than the packet": (None, packet(event(150)) + b"\0", "packet 1 at 82, bit 0: 32 bits go on"),
    "a long content": (None, packet(content=600, total=592), "600 bits, is longer than the packet, 592 bits"),
    "a short content": (None, packet(content=584), "584 bits, ends within the packet's context"),
    "half a byte": (None, packet(total=596, padding=1), "a packet of 596 bits"),
    "a packet that ends before it begins": (None, packet(end=99),
                                            "the packet's end, .*, is before what comes before it"),
    "a packet before the end of the last one": (None, packet() + packet(begin=199, sequence=1),
                                                "the packet's begin, .*, is before"),
    "an event before the packet": (None, packet(event(99), end=200), "an event, .*, is after its packet's end"),
    "an event after the packet": (None, packet(event(201)), "an event, .*, is after its packet's end"),
    "events out of order": (None, packet(event(150), event(149)), "an event, .*, is after its packet's end"),
    "a clock gone round": (member("event", "time", "length", 64), packet(b"\1" + struct.pack("<QHB", 99, 42, 0)),
                           "a timestamp is before the one before it"),
    "a gap of packets": (None, packet() + packet(begin=200, end=200, sequence=2),
                         "packet 2 comes after packet 0, and nothing"),
    "a packet again": (None, packet() + packet(begin=200, end=200, discarded=1), "packet 0 comes after packet 0"),
    "fewer losses": (None, packet() + packet(begin=200, sequence=1, discarded=2) +
                     packet(begin=200, sequence=2, discarded=1),
                     "goes back from 2 to 1"),
    "an unknown event": (None, packet(event(150, number=2)), "event record class 2 is not there"),
    "a cut event": (None, packet(event(150, b"")), "8 bits go on after the packet's content"),
    "an event without bits": ({**fragments(), "stream": {"type": "data-stream-class"},
                               "event": {"type": "event-record-class"}}, packet(), "an event has no bits"),
    "a text without an end": (payload(t=text("null-terminated", "utf-8")), packet(event(150, b"ab")),
                              "a text extends past"),
    "half a code unit": (payload(t=text("null-terminated", "utf-16le")), packet(event(150, b"a\0\0")),
                         "a text extends past"),
    "a text that is not UTF-8": (payload(t=text("null-terminated", "utf-8")), packet(event(150, b"\xe9\0")),
                                 "a text is not utf-8"),
    "half a surrogate": (payload(t=text("static-length", "utf-16be", length=2)), packet(event(150, b"\xd8\0")),
                         "is not utf-16be"),
    "a text of three bytes": (payload(t=text("static-length", "utf-16le", length=3)), packet(event(150, b"a\0b")),
                              "is not utf-16le"),
    "no code point": (payload(t=text("static-length", "utf-32le", length=4)), packet(event(150, b"\0\0\x11\0")),
                      "is not utf-32le"),
    "a long number": (payload(n=leb128("un")), packet(event(150, b"\xff" * 9 + b"\x02")), "has more than 64 bits"),
    "a long signed number": (payload(n=leb128("")), packet(event(150, b"\xff" * 9 + b"\x01")), "has more than 64 bits"),
    "a number without an end": (payload(n=leb128("un")), packet(event(150, b"\xff")), "8 bits go on after"),
    "a long array": (payload(n=NUMBER, a=located("dynamic-length-array", ["n"], **{"element-field-class": NUMBER})),
                     packet(event(150, b"\2\1")), "8 bits go on after"),
    "a byte in two orders": (payload(a=unsigned(4, LITTLE, align=1), b=unsigned(4, BIG, align=1)),
                             packet(event(150, b"\1")), "a byte is in two byte orders"),
    "no option": (payload(**TWO), packet(event(150, b"\4\0")), "4 selects no option of a variant"),
    "lost before the first packet": (None, packet(discarded=1), "1 events are lost before the end of the first packet"),
    "a structure that is not there": (
        payload(f=FLAG, o=optional("f", structure({"n": NUMBER})), b=blob(["o", "n"])), packet(event(150, b"\0")),
        "is not within a structure"),
    "the length in an optional that is not there": (
        payload(f=FLAG, n=optional("f", NUMBER),
                b=blob(["n"])), packet(event(150, b"\0")), "leads to no integer"),
}


class RefusalTest(unittest.TestCase):
    def refused(self, name, wanted, *args, **files):
        with self.subTest(name), self.assertRaisesRegex(ctf2.Error, wanted):
            read(*args, **files)

    def test_wrong_metadata_is_refused(self):
        for name, (parts, wanted) in METADATA.items():
            self.refused(name, "^metadata: .*" + wanted, parts)

    def test_wrong_data_streams_are_refused(self):
        for name, (parts, data, wanted) in DATA.items():
            self.refused(name, f"^s: .*{wanted}", parts, s=data)

    def test_files_that_are_no_data_streams_are_refused(self):
        self.refused("a data stream twice", "t: a data stream in two files", s=packet(), t=packet())
        with tempfile.TemporaryDirectory() as folder:
            write(folder)
            pathlib.Path(folder, "index").mkdir()
            self.assertRaisesRegex(ctf2.Error, "index is no file", ctf2.read, folder)
            pathlib.Path(folder, "index").rmdir()
            pathlib.Path(folder, "s").unlink()
            self.assertRaisesRegex(ctf2.Error, "one data stream or more", ctf2.read, folder)
