"""Reads a profile.proto of pprof strictly: every number must refer to something, and every field must be one that the
format has. Shares no code with the exporter."""

import collections
import gzip
import shutil
import subprocess

# The kinds of the fields of each message: n number, p packed numbers, t text, or the name of a message.
MESSAGES = {
    "Profile": {1: "ValueType", 2: "Sample", 3: "Mapping", 4: "Location", 5: "Function", 6: "t", 9: "n", 10: "n",
                13: "p", 14: "n"},
    "ValueType": {1: "n", 2: "n"},
    "Sample": {1: "p", 2: "p", 3: "Label"},
    "Label": {1: "n", 2: "n", 3: "n"},
    "Mapping": {1: "n", 2: "n", 3: "n", 4: "n", 5: "n", 6: "n", 7: "n"},
    "Location": {1: "n", 2: "n", 3: "n", 4: "Line"},
    "Line": {1: "n"},
    "Function": {1: "n", 2: "n", 3: "n"},
}
Frame = collections.namedtuple("Frame", "file build_id function address")
Sample = collections.namedtuple("Sample", "frames values labels")
Profile = collections.namedtuple("Profile", "types default samples comments duration")


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def parse(message, data):
    """Returns the values of each field, as lists."""
    fields, at = collections.defaultdict(list), 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = MESSAGES[message][tag >> 3]
        if tag & 7 == 0:
            assert kind == "n", (message, tag >> 3)
            value, at = varint(data, at)
        else:
            assert tag & 7 == 2 and kind != "n", (message, tag)
            size, at = varint(data, at)
            piece = data[at:at + size]
            assert len(piece) == size
            at += size
            value = piece.decode() if kind == "t" else packed(piece) if kind == "p" else parse(kind, piece)
        fields[tag >> 3].append(value)
    return fields


def packed(data):
    numbers, at = [], 0
    while at < len(data):
        number, at = varint(data, at)
        numbers.append(number)
    return numbers


def one(fields, field):
    values = fields[field]
    assert len(values) <= 1, fields
    return values[0] if values else 0


def by_id(rows):
    table = {one(row, 1): row for row in rows}
    assert len(table) == len(rows) and 0 not in table
    return table


def frame_of(location, mappings, functions, texts):
    file = build_id = function = ""
    address = one(location, 3)
    if one(location, 2):
        mapping = mappings[one(location, 2)]
        file, build_id = texts[one(mapping, 5)], texts[one(mapping, 6)]
        assert one(mapping, 2) <= address < one(mapping, 3), (mapping, address)
    for line in location[4]:
        row = functions[one(line, 1)]
        function = texts[one(row, 2)]
        assert function and texts[one(row, 3)], row
    return Frame(file, build_id, function, address)


def read(path):
    profile = parse("Profile", gzip.decompress(path.read_bytes()))
    texts = profile[6]
    assert texts[0] == "" and len(set(texts)) == len(texts)
    mappings, functions = by_id(profile[3]), by_id(profile[5])
    frames = {number: frame_of(row, mappings, functions, texts) for number, row in by_id(profile[4]).items()}
    types = [f"{texts[one(row, 1)]}/{texts[one(row, 2)]}" for row in profile[1]]
    samples = []
    for row in profile[2]:
        labels = {texts[one(label, 1)]: texts[one(label, 2)] if label[2] else one(label, 3) for label in row[3]}
        assert len(labels) == len(row[3])
        (values,) = row[2]
        assert len(values) == len(types)
        samples.append(Sample([frames[number] for number in row[1][0]], values, labels))
    comments = [texts[number] for row in profile[13] for number in row]
    return Profile(types, texts[one(profile, 14)], samples, comments, one(profile, 10))


def find_program():
    """Returns the command of Google's pprof, or None."""
    if shutil.which("pprof"):
        return ["pprof"]
    return ["go", "tool", "pprof"] if shutil.which("go") else None


def raw(command, path):
    """Returns the values of each sample, with the number of its frames, as pprof prints them."""
    text = subprocess.run([*command, "-raw", path], stdout=subprocess.PIPE, check=True).stdout.decode()
    lines = text[text.index("Samples:\n"):text.index("Locations\n")].splitlines()[2:]
    samples = [line.split(":") for line in lines if line.split(":")[0].replace(" ", "").isdigit()]
    return collections.Counter((tuple(map(int, values.split())), len(frames.split())) for values, frames in samples)
