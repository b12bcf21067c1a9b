"""The events of the table, packed by hand, and what JSON and TraceEvent show for them."""

import itertools
import struct

import table

CONSTANT, VARIABLE, HAS_FORMAT, STRUCT = 0x20, 0x40, 0x80, 1
ORDERS = {"little": "<", "big": ">"}
LAST = ("last", 4, None)  # The value shows whether the sizes of earlier fields were decoded correctly.
LAST_VALUE = 0x0a0b0c0d


def event(order, name, definitions, payload):
    """Returns an EventHeader event of level 4. A definition is (name, encoding byte, format or None[, array
    length])."""
    metadata = name.encode() + b"\0"
    for field, encoding, shown_as, *length in definitions:
        metadata += field.encode() + b"\0"
        metadata += bytes([encoding] if shown_as is None else [encoding | HAS_FORMAT, shown_as])
        for count in length:
            metadata += struct.pack(order + "H", count)
    # The flags say that pointers have 8 bytes, that an extension follows, and whether numbers are little-endian.
    flags = 0x05 | (0x02 if order == "<" else 0)
    header = struct.pack(order + "BBHHBB", flags, 0, 0, 0, 0, 4)
    return header + struct.pack(order + "HH", len(metadata), 1) + metadata + payload


def pack(order, encoding, value):
    """Returns the bytes of a value, with its length or terminator."""
    data = value.pack(order)
    unit = int(encoding.partition("_char")[2] or 8) // 8
    if encoding.startswith("zstring"):
        return data + bytes(unit)
    if "length16" in encoding:
        return struct.pack(order + "H", len(data) // unit) + data
    return data


def of_row(order, row, shown_as):
    """Returns definitions and payload of an event that has the values of the row as scalars, in arrays and in structs, and
    what JSON and TraceEvent show for it."""
    encoding = table.ENCODINGS[row.encoding]
    one, two = (pack(order, row.encoding, value) for value in row.written)
    both, count, none = one + two, struct.pack(order + "H", 2), struct.pack(order + "H", 0)
    last = struct.pack(order + "I", LAST_VALUE)
    definitions = [
        ("first", encoding, shown_as), ("second", encoding, shown_as),
        ("constant", encoding | CONSTANT, shown_as, 2), ("variable", encoding | VARIABLE, shown_as),
        ("empty", encoding | VARIABLE, shown_as),
        ("struct", STRUCT, 3),
        ("first", encoding, shown_as), ("constant", encoding | CONSTANT, shown_as, 2),
        ("variable", encoding | VARIABLE, shown_as),
        ("structs", STRUCT | VARIABLE, 1), ("of", encoding, shown_as),
        ("constants", STRUCT | CONSTANT, 1, 2), ("of", encoding, shown_as),
        LAST]
    payload = (one + two + both + count + both + none) + (one + both + count + both) + (count + both) + both + last
    return definitions, payload, _shown(row, row.json, None, False), _shown(row, row.traceevent, row.alike, row.wrapped)


def _shown(row, values, alike, wrapped):
    first, second = values
    elements = alike or values
    array = [{"Value": element} for element in elements] if wrapped else elements
    empty = []
    if row.text is not None:
        array, empty = row.text, ""
    structs = [{"of": element} for element in elements]
    return {"first": first, "second": second, "constant": array, "variable": array, "empty": empty,
            "struct": {"first": first, "constant": array, "variable": array}, "structs": structs, "constants": structs,
            "last": LAST_VALUE}


def all_events():
    """Yields (name, bytes, what JSON shows, what TraceEvent shows) of each event."""
    numbers = itertools.count()
    for row in table.ROWS:
        for shown_as, (order_name, order) in itertools.product(row.formats.split(), ORDERS.items()):
            name = f"{row.encoding} {shown_as} {order_name}-endian {next(numbers)}"
            definitions, payload, json, traceevent = of_row(order, row, table.FORMATS[shown_as])
            yield name, event(order, name, definitions, payload), json, traceevent
    for case in table.CASES:
        for order_name, order in ORDERS.items():
            name = f"{case.name}, {order_name}-endian"
            payload = b"".join(value.pack(order) for value in case.values)
            yield name, event(order, name, case.definitions, payload), case.json, case.traceevent or case.json
