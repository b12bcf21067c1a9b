"""The meaning of every encoding of EventHeader with every format. The table is written by hand from the specification
(docs/format/eventheader.md) and from the rules by which NetTrace types are shown (docs/format/nettrace-v6.md), not from
what our programs print.

A Row has values as they are written and as they are shown: by `nettrace dump --json`, and by TraceEvent if that is
different. It is different for these reasons:

- NetTrace has no hexadecimal numbers, errnos, times or booleans of 2 bytes: TraceEvent shows the number.
- NetTrace has no addresses: TraceEvent shows their bytes. In an array, each is in an Object with the member Value,
  because TraceEvent misreads arrays of arrays. The same applies to binary data.
- NetTrace has no null. If all values of a nullable field in an event are null, they are empty texts, which PerfView
  shows like null. If only some are, each value is an array of one or no element. In an array, this array is the member
  Value of an Object.
"""

import dataclasses
import struct

ENCODINGS = {
    "value8": 2, "value16": 3, "value32": 4, "value64": 5, "value128": 6, "zstring_char8": 7, "zstring_char16": 8,
    "zstring_char32": 9, "string_length16_char8": 10, "string_length16_char16": 11, "string_length16_char32": 12,
    "binary_length16_char8": 13}
FORMATS = {
    "default": 0, "unsigned_int": 1, "signed_int": 2, "hex_int": 3, "errno": 4, "pid": 5, "time": 6, "boolean": 7,
    "float": 8, "hex_bytes": 9, "string8": 10, "string_utf": 11, "string_utf_bom": 12, "string_xml": 13,
    "string_json": 14, "uuid": 15, "port": 16, "ip_address": 17, "ip_address_obsolete": 18,
    # Numbers that are not formats: a field with one of these is shown in the default format of its encoding.
    "number19": 19, "number127": 127}
UNKNOWN = "number19 number127"


class Number:
    """A value in the event's byte order."""

    def __init__(self, code, value):
        self._code, self._value = code, value

    def pack(self, order):
        return struct.pack(order + self._code, self._value)


class Raw:
    """Bytes that are the same in events of both byte orders."""

    def __init__(self, digits):
        self._bytes = bytes.fromhex(digits)

    def pack(self, _order):
        return self._bytes


class Text:
    """Code units of UTF-16 or UTF-32, in the event's byte order or in the opposite one."""

    def __init__(self, bits, text, swapped=False):
        self._bits, self._text, self._swapped = bits, text, swapped

    def pack(self, order):
        little = (order == "<") != self._swapped
        return self._text.encode(f"utf-{self._bits}-{'le' if little else 'be'}", "surrogatepass")


def of(make, first, *values):
    """Applies `make` to each value: of(u8, 1, 2)."""
    return [make(value) for value in (first, *values)]


def u8(value):
    return Number("B", value)


def u16(value):
    return Number("H", value)


def u32(value):
    return Number("I", value)


def u64(value):
    return Number("Q", value)


def i32(value):
    return Number("i", value)


def i64(value):
    return Number("q", value)


def f32(value):
    return Number("f", value)


def f64(value):
    return Number("d", value)


def utf16(text):
    return Text(16, text)


def utf32(text):
    return Text(32, text)


def utf8(text):
    return Raw(text.encode().hex())


NULL = Raw("")


@dataclasses.dataclass
class Row:
    """Describes one event for each of `formats`. The event has the values `written`, in this encoding and format, as
    scalars, in arrays and in structs."""
    encoding: str
    formats: str
    written: list
    json: list  # The values of scalars in JSON.
    traceevent: list = None  # The values of scalars in TraceEvent; None if they are the same as in JSON.
    text: str = None  # Text that an array of the values is shown as, if the values are characters.
    wrapped: bool = False  # TraceEvent shows elements of arrays as Objects with the member Value.
    # The values in TraceEvent of the elements of an array, or of an array of structs, in which some elements are null
    # and others are not. None if they are the same as those of scalars.
    alike: list = None

    def __post_init__(self):
        if self.traceevent is None:
            self.traceevent = self.json


def numbers(encoding, formats, written, json, traceevent=None):
    return Row(encoding, formats, written, json, traceevent)


def characters(encoding, formats, written, json, text):
    return Row(encoding, formats, written, json, text=text)


def sequences(encoding, formats, written, json, traceevent):
    """Returns a Row of values that TraceEvent shows as bytes."""
    return Row(encoding, formats, written, json, traceevent, wrapped=True)


def texts(encoding, formats, written, json):
    return Row(encoding, formats, written, json)


def nullable(encoding, formats, written, json, traceevent, some_null):
    """Returns a Row with a value and null. `some_null`: what TraceEvent shows if the field has both."""
    return Row(encoding, formats, written, json, traceevent, alike=some_null, wrapped=True)


NOT_OF_VALUE8 = "errno pid time float string_utf_bom string_xml string_json uuid port ip_address ip_address_obsolete"
NOT_OF_VALUE16 = "errno pid time float string8 string_utf_bom string_xml string_json uuid ip_address ip_address_obsolete"
NOT_OF_VALUE32 = "string8 string_utf_bom string_xml string_json uuid port"
NOT_OF_VALUE64 = ("errno pid boolean string8 string_utf string_utf_bom string_xml string_json uuid port ip_address "
                  "ip_address_obsolete")
NOT_OF_VALUE128 = ("unsigned_int signed_int hex_int errno pid time boolean float string8 string_utf string_utf_bom "
                   "string_xml string_json port")
NOT_OF_STRINGS = ("unsigned_int signed_int hex_int errno pid time boolean float uuid port ip_address "
                  "ip_address_obsolete")
WITH_MARK = "string_utf_bom string_xml string_json"

UUID = "00112233445566778899aabbccddeeff"
UUID_TEXT = "00112233-4455-6677-8899-aabbccddeeff"
UUID_BYTES = list(bytes.fromhex(UUID))
LOOPBACK6 = "00000000000000000000000000000001"
LOOPBACK6_BYTES = [0] * 15 + [1]
NO_CHARACTER = "\ufffd"

VALUES = [
    # encoding, formats, written values, JSON, TraceEvent
    numbers("value8", f"default unsigned_int {NOT_OF_VALUE8} {UNKNOWN}", of(u8, 5, 251), [5, 251]),
    numbers("value8", "signed_int", of(u8, 5, 251), [5, -5]),
    numbers("value8", "hex_int", of(u8, 5, 251), ["0x5", "0xfb"], [5, 251]),
    numbers("value8", "boolean", of(u8, 0, 1), [False, True]),
    sequences("value8", "hex_bytes", of(u8, 5, 251), ["05", "fb"], [[5], [251]]),
    characters("value8", "string8 string_utf", of(Raw, "41", "7a"), ["A", "z"], "Az"),
    characters("value8", "string8", of(Raw, "41", "e9"), ["A", "\u00e9"], "A\u00e9"),
    characters("value8", "string_utf", of(Raw, "c3", "a9"), [NO_CHARACTER, NO_CHARACTER], "\u00e9"),

    numbers("value16", f"default unsigned_int {NOT_OF_VALUE16} {UNKNOWN}", of(u16, 258, 65534), [258, 65534]),
    numbers("value16", "signed_int", of(u16, 258, 65534), [258, -2]),
    numbers("value16", "hex_int", of(u16, 258, 65534), ["0x102", "0xfffe"], [258, 65534]),
    numbers("value16", "boolean", of(u16, 0, 1), [False, True], [0, 1]),
    sequences("value16", "hex_bytes", of(Raw, "0102", "fffe"), ["0102", "fffe"], [[1, 2], [255, 254]]),
    characters("value16", "string_utf", of(utf16, "A", "\u20ac"), ["A", "\u20ac"], "A\u20ac"),
    numbers("value16", "port", of(Raw, "1f90", "0050"), [8080, 80]),

    numbers("value32", f"default unsigned_int {NOT_OF_VALUE32} {UNKNOWN}", of(u32, 66051, 4294967294),
            [66051, 4294967294]),
    numbers("value32", "signed_int pid", of(i32, 66051, -2), [66051, -2]),
    numbers("value32", "hex_int", of(u32, 66051, 4294967294), ["0x10203", "0xfffffffe"], [66051, 4294967294]),
    numbers("value32", "errno", of(i32, 0, -1), [0, -1]),
    numbers("value32", "time", of(i32, 1795256520, -1), ["2026-11-21T10:22:00Z", "1969-12-31T23:59:59Z"],
            [1795256520, -1]),
    numbers("value32", "boolean", of(u32, 0, 1), [False, True]),
    numbers("value32", "float", of(f32, 1.5, -0.25), [1.5, -0.25]),
    sequences("value32", "hex_bytes", of(Raw, "01020304", "fffefdfc"), ["01020304", "fffefdfc"],
              [[1, 2, 3, 4], [255, 254, 253, 252]]),
    characters("value32", "string_utf", of(utf32, "A", "\U0001f600"), ["A", "\U0001f600"], "A\U0001f600"),
    sequences("value32", "ip_address ip_address_obsolete", of(Raw, "7f000001", "c0000201"), ["127.0.0.1", "192.0.2.1"],
              [[127, 0, 0, 1], [192, 0, 2, 1]]),

    numbers("value64", f"default unsigned_int {NOT_OF_VALUE64} {UNKNOWN}", of(u64, 0x01020304050607, 2**53),
            [0x01020304050607, 2**53]),
    numbers("value64", "signed_int", of(i64, 0x01020304050607, -2), [0x01020304050607, -2]),
    numbers("value64", "hex_int", of(u64, 0x01020304050607, 2**64 - 2), ["0x1020304050607", "0xfffffffffffffffe"],
            [0x01020304050607, 2**64 - 2]),
    numbers("value64", "time", of(i64, 1795256520, 253402300800), ["2026-11-21T10:22:00Z", 253402300800],
            [1795256520, 253402300800]),
    numbers("value64", "float", of(f64, 1.5, -0.1), [1.5, -0.1]),
    sequences("value64", "hex_bytes", of(Raw, "0102030405060708", "fffefdfcfbfaf9f8"),
              ["0102030405060708", "fffefdfcfbfaf9f8"],
              [[1, 2, 3, 4, 5, 6, 7, 8], [255, 254, 253, 252, 251, 250, 249, 248]]),

    sequences("value128", f"default hex_bytes {NOT_OF_VALUE128} {UNKNOWN}", of(Raw, UUID, LOOPBACK6), [UUID, LOOPBACK6],
              [UUID_BYTES, LOOPBACK6_BYTES]),
    numbers("value128", "uuid", of(Raw, UUID, LOOPBACK6), [UUID_TEXT, "00000000-0000-0000-0000-000000000001"]),
    sequences("value128", "ip_address ip_address_obsolete", of(Raw, LOOPBACK6, "20010db8" + 22 * "0" + "10"),
              ["::1", "2001:db8::10"], [LOOPBACK6_BYTES, [0x20, 0x01, 0x0d, 0xb8] + 11 * [0] + [0x10]]),
]

# In UTF-8, each stray byte and each incomplete sequence is one U+FFFD.
BROKEN_UTF8 = ("ff 41 e282 42", f"{NO_CHARACTER}A{NO_CHARACTER}B")


def of_char8(encoding, utf_formats):
    """Returns the rows of text in code units of 8 bits."""
    return [
        texts(encoding, utf_formats, of(utf8, "plain", ""), ["plain", ""]),
        texts(encoding, utf_formats, of(utf8, "gr\u00fcn", "\U0001f600"), ["gr\u00fcn", "\U0001f600"]),
        texts(encoding, utf_formats, [Raw(BROKEN_UTF8[0]), utf8("\u20ac")], [BROKEN_UTF8[1], "\u20ac"]),
        texts(encoding, "string8", of(Raw, "6162", "63"), ["ab", "c"]),
        texts(encoding, "string8", of(Raw, "e4f6fc", "80ff"), ["\u00e4\u00f6\u00fc", "\u0080\u00ff"]),
        # A byte order mark overrides other information about the encoding, and is not part of the text.
        texts(encoding, WITH_MARK, of(utf8, "\ufeffplain", "plain"), ["plain", "plain"]),
        texts(encoding, WITH_MARK, of(Raw, "fffe ac20 e920", "feff 20ac 20e9"), ["\u20ac\u20e9", "\u20ac\u20e9"]),
        texts(encoding, "string_utf", of(utf8, "\ufeffmark", "no"), ["\ufeffmark", "no"]),
        sequences(encoding, "hex_bytes", of(Raw, "616263", "ff"), ["616263", "ff"], [[97, 98, 99], [255]]),
    ]


def of_wide(encoding, bits):
    """Returns the rows of text in code units of 16 or 32 bits."""
    plain = f"default string_utf {NOT_OF_STRINGS} string8 {UNKNOWN}"
    swapped = [Text(bits, "\ufeffA\u20ac", swapped=True), Text(bits, "\ufeffB")]
    return [
        texts(encoding, plain, [Text(bits, "plain"), Text(bits, "")], ["plain", ""]),
        texts(encoding, plain, [Text(bits, "gr\u00fcn"), Text(bits, "\U0001f600\u20ac")],
              ["gr\u00fcn", "\U0001f600\u20ac"]),
        # Half of a surrogate pair is not a character.
        texts(encoding, plain, [Text(bits, "\ud83dx"), Text(bits, "x\ude00")], [f"{NO_CHARACTER}x", f"x{NO_CHARACTER}"]),
        texts(encoding, WITH_MARK, [Text(bits, "plain"), Text(bits, "\U0001f600")], ["plain", "\U0001f600"]),
        texts(encoding, WITH_MARK, swapped, ["A\u20ac", "B"]),
        texts(encoding, "string_utf", [Text(bits, "\ufeffA"), Text(bits, "B")], ["\ufeffA", "B"]),
    ]


ZSTRINGS = [
    *of_char8("zstring_char8", f"default string_utf {NOT_OF_STRINGS} {UNKNOWN}"),
    *of_wide("zstring_char16", 16),
    sequences("zstring_char16", "hex_bytes", of(Raw, "4142", "c3a9"), ["4142", "c3a9"], [[65, 66], [195, 169]]),
    *of_wide("zstring_char32", 32),
    sequences("zstring_char32", "hex_bytes", of(Raw, "41424344", "fffefdfc"), ["41424344", "fffefdfc"],
              [[65, 66, 67, 68], [255, 254, 253, 252]]),
]

COUNTED = [
    *of_char8("string_length16_char8", f"default string_utf {UNKNOWN}"),
    # TraceEvent shows text up to its first NUL.
    Row("string_length16_char8", "string_utf string8", of(utf8, "a\0b", ""), ["a\0b", ""], ["a", ""]),
    *of_wide("string_length16_char16", 16),
    sequences("string_length16_char16", "hex_bytes", of(Raw, "4142", "c3a90000"), ["4142", "c3a90000"],
              [[65, 66], [195, 169, 0, 0]]),
    *of_wide("string_length16_char32", 32),
    sequences("string_length16_char32", "hex_bytes", of(Raw, "41424344", "fffefdfc"), ["41424344", "fffefdfc"],
              [[65, 66, 67, 68], [255, 254, 253, 252]]),
    *of_char8("binary_length16_char8", "string_utf"),
    sequences("binary_length16_char8", f"default {UNKNOWN}", of(Raw, "00ff", ""), ["00ff", ""], [[0, 255], []]),
]


def of_counted_bytes(encoding):
    """Returns the rows of formats with a fixed size, such as float, on an encoding that counts bytes. A value of that size
    has the format, no bytes are null, and a value of another size is shown in the default format of the encoding."""
    is_binary = encoding == "binary_length16_char8"
    misfit = ["414243", "4445464748"] if is_binary else ["ABC", "DEFGH"]
    misfit_bytes = [[65, 66, 67], [68, 69, 70, 71, 72]]
    return [
        numbers(encoding, "unsigned_int", of(u8, 5, 251), [5, 251]),
        numbers(encoding, "unsigned_int", of(u16, 258, 65534), [258, 65534]),
        numbers(encoding, "unsigned_int", of(u32, 66051, 4294967294), [66051, 4294967294]),
        numbers(encoding, "unsigned_int", of(u64, 0x01020304050607, 2**53), [0x01020304050607, 2**53]),
        numbers(encoding, "signed_int", of(u8, 5, 251), [5, -5]),
        numbers(encoding, "signed_int", of(u16, 258, 65534), [258, -2]),
        numbers(encoding, "signed_int", of(i32, 66051, -5), [66051, -5]),
        numbers(encoding, "signed_int", of(i64, 0x01020304050607, -2), [0x01020304050607, -2]),
        numbers(encoding, "hex_int", of(u16, 258, 65534), ["0x102", "0xfffe"], [258, 65534]),
        numbers(encoding, "hex_int", of(u64, 258, 2**64 - 1), ["0x102", "0xffffffffffffffff"], [258, 2**64 - 1]),
        numbers(encoding, "errno", of(i32, 0, -1), [0, -1]),
        numbers(encoding, "pid", of(i32, 4711, -1), [4711, -1]),
        numbers(encoding, "time", of(i32, 1795256520, 0), ["2026-11-21T10:22:00Z", "1970-01-01T00:00:00Z"],
                [1795256520, 0]),
        numbers(encoding, "time", of(i64, 1795256520, 0), ["2026-11-21T10:22:00Z", "1970-01-01T00:00:00Z"],
                [1795256520, 0]),
        numbers(encoding, "boolean", of(u8, 0, 1), [False, True]),
        numbers(encoding, "boolean", of(u16, 0, 1), [False, True], [0, 1]),
        numbers(encoding, "boolean", of(u32, 0, 1), [False, True]),
        numbers(encoding, "float", of(f32, 1.5, -0.25), [1.5, -0.25]),
        numbers(encoding, "float", of(f64, 1.5, -0.1), [1.5, -0.1]),
        numbers(encoding, "uuid", of(Raw, UUID, LOOPBACK6), [UUID_TEXT, "00000000-0000-0000-0000-000000000001"]),
        numbers(encoding, "port", of(Raw, "1f90", "0050"), [8080, 80]),
        sequences(encoding, "ip_address ip_address_obsolete", of(Raw, "7f000001", "c0000201"), ["127.0.0.1", "192.0.2.1"],
                  [[127, 0, 0, 1], [192, 0, 2, 1]]),
        sequences(encoding, "ip_address", of(Raw, LOOPBACK6, LOOPBACK6), ["::1", "::1"], [LOOPBACK6_BYTES] * 2),
        # Null.
        nullable(encoding, "signed_int", [i32(-5), NULL], [-5, None], [-5, ""], [[-5], []]),
        nullable(encoding, "unsigned_int pid", [u32(7), NULL], [7, None], [7, ""], [[7], []]),
        nullable(encoding, "errno", [i32(-1), NULL], [-1, None], [-1, ""], [[-1], []]),
        nullable(encoding, "hex_int", [u8(31), NULL], ["0x1f", None], [31, ""], [[31], []]),
        nullable(encoding, "time", [i64(0), NULL], ["1970-01-01T00:00:00Z", None], [0, ""], [[0], []]),
        nullable(encoding, "boolean", [u8(1), NULL], [True, None], [True, ""], [[True], []]),
        nullable(encoding, "float", [f64(1.5), NULL], [1.5, None], [1.5, ""], [[1.5], []]),
        nullable(encoding, "uuid", [Raw(UUID), NULL], [UUID_TEXT, None], [UUID_TEXT, ""], [[UUID_TEXT], []]),
        nullable(encoding, "port", [Raw("1f90"), NULL], [8080, None], [8080, ""], [[8080], []]),
        nullable(encoding, "ip_address ip_address_obsolete", [Raw("7f000001"), NULL], ["127.0.0.1", None],
                 [[127, 0, 0, 1], ""], [[127, 0, 0, 1], []]),
        Row(encoding, "unsigned_int signed_int hex_int errno pid time boolean float uuid port ip_address",
            [NULL, NULL], [None, None], ["", ""]),
        # Values of 3 and 5 bytes, which fit none of these formats.
        Row(encoding, "unsigned_int signed_int hex_int errno pid time boolean float uuid port ip_address",
            of(Raw, "414243", "4445464748"), misfit, misfit_bytes if is_binary else misfit, wrapped=is_binary),
    ]


ROWS = [*VALUES, *ZSTRINGS, *COUNTED, *of_counted_bytes("string_length16_char8"),
        *of_counted_bytes("binary_length16_char8")]


@dataclasses.dataclass
class Case:
    """An event of several fields. Definitions are (name, encoding byte, format or None); the format of a struct is the
    number of its members."""
    name: str
    definitions: list
    values: list  # Each is a value, or a u16 count.
    json: dict
    traceevent: dict = None  # None: as in JSON.


def counted(*values):
    """Returns the byte counts and the bytes of texts in code units of 8 bits."""
    result = []
    for value in values:
        result += [u16(len(value.pack("<"))), value]
    return result


CASES = [
    Case("broken text beside others",
         [("broken", 10, 11), ("utf8", 10, 11), ("latin1", 10, 10), ("character", 2, 10), ("number", 4, None)],
         [*counted(Raw("ff"), utf8("gr\u00fcn"), Raw("e9")), Raw("fc"), u32(1)],
         {"broken": NO_CHARACTER, "utf8": "gr\u00fcn", "latin1": "\u00e9", "character": "\u00fc", "number": 1}),
    Case("broken text in an array",
         [("texts", 10 | 0x40, 11), ("number", 4, None)],
         [u16(3), *counted(utf8("a"), Raw("ff"), utf8("\u20ac")), u32(1)],
         {"texts": ["a", NO_CHARACTER, "\u20ac"], "number": 1}),
    # TraceEvent shows text up to its first NUL.
    Case("NUL within a text in an array",
         [("texts", 10 | 0x40, None), ("number", 4, None)],
         [u16(2), *counted(Raw("610062"), utf8("c")), u32(1)],
         {"texts": ["a\0b", "c"], "number": 1}, {"texts": ["a", "c"], "number": 1}),
    Case("padded characters", [("name", 2 | 0x20, 10, 8), ("number", 4, None)],
         [Raw("6e616d6500000000"), u32(1)], {"name": "name", "number": 1}),
    Case("struct that announces more members than follow",
         [("number", 4, None), ("struct", 1, 5), ("a", 2, None), ("b", 10, 2)],
         [u32(1), u8(2), *counted(i32(-3))],
         {"number": 1, "struct": {"a": 2, "b": -3}}),
    Case("struct in a struct, both announcing more",
         [("outer", 1, 9), ("a", 2, None), ("inner", 1 | 0x40, 127), ("b", 2, None)],
         [u8(1), u16(2), u8(2), u8(3)],
         {"outer": {"a": 1, "inner": [{"b": 2}, {"b": 3}]}}),
    Case("nullable fields beside each other",
         [("a", 13, 2), ("b", 13, 2), ("c", 10, 8), ("d", 13, 17)],
         [*counted(i32(-5), NULL, f64(0.5), NULL)],
         {"a": -5, "b": None, "c": 0.5, "d": None}, {"a": -5, "b": "", "c": 0.5, "d": ""}),
    # The values have several sizes, so TraceEvent shows each as its bytes, in little-endian order.
    Case("nullable values of several sizes",
         [("f", 13 | 0x40, 2), ("number", 4, None)],
         [u16(3), *counted(i32(-5), u16(258), NULL), u32(1)],
         {"f": [-5, 258, None], "number": 1},
         {"f": [{"Value": [251, 255, 255, 255]}, {"Value": [2, 1]}, {"Value": []}], "number": 1}),
]
