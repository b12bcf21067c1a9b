"""A strict reader of the Common Trace Format 2, by its specification (CTF2-SPEC-2.0). Whatever the specification does
not allow is an Error, and so is anything that babeltrace2 could not read. A trace is a directory with its metadata, and
a file for each stream.

read() returns the same form as ctf.read(), so that ctf.Comparison accepts both."""

import collections
import functools
import heapq
import itertools
import json
import pathlib
import struct

from support import script

import ctf

MAGIC = 0xC1FC1FC1
UNITS = {"utf-8": 1, "utf-16le": 2, "utf-16be": 2, "utf-32le": 4, "utf-32be": 4}  # Bytes of a code unit.
NATURAL_BIT_ORDER = {"little-endian": "first-to-last", "big-endian": "last-to-first"}
UNSIGNED = {"fixed-length-unsigned-integer", "variable-length-unsigned-integer"}
SIGNED = {"fixed-length-signed-integer", "variable-length-signed-integer"}
BOOLEAN = {"fixed-length-boolean"}
TRANSPARENT = {"structure", "optional", "variant"}
HEADER, CONTEXT, EVENT_HEADER, COMMON, SPECIFIC, PAYLOAD = (
    "packet-header", "packet-context", "event-record-header", "event-record-common-context",
    "event-record-specific-context", "event-record-payload")
CLOCK_ROLES = {"default-clock-timestamp", "packet-end-default-clock-timestamp"}
ROLES = {
    HEADER: {"packet-magic-number", "metadata-stream-uuid", "data-stream-class-id", "data-stream-id"},
    CONTEXT: CLOCK_ROLES | {"packet-total-length", "packet-content-length", "packet-sequence-number",
                            "discarded-event-record-counter-snapshot"},
    EVENT_HEADER: {"default-clock-timestamp", "event-record-class-id"}, COMMON: set(), SPECIFIC: set(), PAYLOAD: set()}

# `packets`: each Packet, stream by stream. `fragments`: the fragments of the metadata, unchanged, with their
# attributes.
Trace = collections.namedtuple("Trace", (*ctf.Trace._fields, "packets", "fragments"))
# Times are in ns, and None if the packet does not have them. `discarded`: the value of the counter of discarded events.
# `size`: in bytes.
Packet = collections.namedtuple("Packet", "stream begin end sequence discarded size context")


class Error(Exception):
    pass


def need(condition, text):
    if not condition:
        raise Error(text)


def read(folder):
    """Returns the Trace in the directory. An event is a dict of time (ns since the origin of its clock), name, cpu,
    context, payload, specific (the specific context), and class, which is the fragment of its event record class.

    Fields that only hold the length or the selector of another field are not shown. A missing optional is None."""
    folder = pathlib.Path(folder)
    metadata = Metadata((folder / "metadata").read_bytes())
    streams, identities = [], set()
    for file in sorted(folder.iterdir()):
        if file.name != "metadata":
            need(file.is_file(), f"{file.name} is no file")
            streams.append(DataStream(file.name, file.read_bytes(), metadata))
            identity = streams[-1].identity
            need(identity[1] is None or identity not in identities, f"{file.name}: a data stream in two files")
            identities.add(identity)
    need(streams, "a trace has one data stream or more")
    events = heapq.merge(*(stream.events for stream in streams),
                         key=lambda event: -1 if event["time"] is None else event["time"])
    return Trace(list(events), [loss for stream in streams for loss in stream.losses], metadata.environment,
                 [packet for stream in streams for packet in stream.packets], metadata.fragments)


def parse(data):
    """Yields (name, value) of each fragment of a metadata stream, which is a JSON text sequence (RFC 7464). The name is
    for messages."""
    before, *texts = data.split(b"\x1e")
    need(before == b"" and texts, "metadata: no record separator at the beginning")
    for number, text in enumerate(texts):
        where = f"metadata: fragment {number}"
        need(text.endswith(b"\n"), f"{where} does not end in a line feed")
        try:
            fragment = json.loads(text.decode("utf-8"), object_pairs_hook=_object, parse_constant=_constant)
        except ValueError as reason:
            raise Error(f"{where}: {reason}")
        for error in _validator().iter_errors(fragment):
            raise Error(f"{where}: {error.json_path}: {error.message[:200]}")
        yield where, fragment


@functools.cache
def _validator():
    """Returns the validator that checks fragments by the schema; raises Skipped if the module is missing."""
    try:
        import jsonschema
    except ImportError as reason:
        raise script.Skipped(f"the module of python3-jsonschema cannot be imported: {reason}")
    schema = json.loads(pathlib.Path(__file__).with_suffix(".schema.json").read_text(encoding="utf-8"))
    # Uses the type checker of draft 4, because that of draft 2020-12 accepts 1.0 as an integer, which CTF 2 does not.
    return jsonschema.validators.extend(
        jsonschema.Draft202012Validator, type_checker=jsonschema.Draft4Validator.TYPE_CHECKER)(schema)


def _object(pairs):
    need(len(dict(pairs)) == len(pairs), f"metadata: a name is there twice among {[name for name, _ in pairs]}")
    return dict(pairs)


def _constant(text):
    raise Error(f"metadata: {text} is not JSON")


class Metadata:
    """The classes of a metadata stream. A field class is the dict of its JSON object and what _effective() adds:
    `align`, in bits; for a structure `members` by name, and `hidden`, the names of the members that are not shown; for
    an array `element`; for an optional or a variant `options`: (ranges, class)."""

    def __init__(self, data):
        self.aliases, self.clocks, self.streams, self.events = {}, {}, {}, {}
        self.uuid, self.environment, self.header, self.fragments = None, {}, None, []
        self.roots = {}  # Structure classes that are decoded before the field being checked, by origin.
        self.selected, self.plain = set(), []
        for where, fragment in parse(data):
            try:
                kind = fragment["type"].replace("-", "_")
                need((kind == "preamble") == (not self.fragments), "the preamble is the first fragment, and only that")
                getattr(self, f"_{kind}")(fragment)
            except Error as reason:
                raise Error(f"{where}: {reason}")
            self.fragments.append(fragment)
        need(self.streams, "metadata: no data stream class")
        origins = {json.dumps(clock and clock.get("origin", {"id": clock["id"]}))
                   for clock in (stream["clock"] for stream in self.streams.values())}
        need(len(origins) == 1, "metadata: the clocks of data streams have several origins, so that they have no order")
        for place, name, field_class in self.plain:
            need(id(field_class) in self.selected, f"metadata: {name!r} in the {place} has no role and selects nothing")

    def _preamble(self, fragment):
        self.uuid = bytes(fragment["uuid"]) if "uuid" in fragment else None

    def _field_class_alias(self, fragment):
        need(fragment["name"] not in self.aliases, f"alias {fragment['name']!r} is there twice")
        self.aliases[fragment["name"]] = self._effective(fragment["field-class"])

    def _trace_class(self, fragment):
        need(all(other["type"] not in ("trace-class", "data-stream-class") for other in self.fragments),
             "one trace class at most, and before any data stream class")
        self.environment = {name: str(value) for name, value in fragment.get("environment", {}).items()}
        self.header = self._root(HEADER, fragment, "packet-header-field-class")

    def _clock_class(self, fragment):
        need(fragment["id"] not in self.clocks, f"clock class {fragment['id']!r} is there twice")
        need(fragment.get("offset-from-origin", {}).get("cycles", 0) < fragment["frequency"],
             "the cycles of a clock's offset are a second or more")
        for other in self.clocks.values():
            same = all(other.get(key) == fragment.get(key) for key in ("namespace", "name", "uid"))
            need(not (same and "name" in other and "uid" in other) or
                 all(other.get(key) == fragment.get(key) for key in ("frequency", "precision", "accuracy", "origin")),
                 "two clock classes are the same clock, but differ")
        self.clocks[fragment["id"]] = fragment

    def _data_stream_class(self, fragment):
        number, clock = fragment.get("id", 0), fragment.get("default-clock-class-id")
        need(number not in self.streams, f"data stream class {number} is there twice")
        need(clock is None or clock in self.clocks, f"clock class {clock!r} is not there")
        self.roots = {HEADER: self.header} if self.header else {}
        classes = {place: self._root(place, fragment, f"{place}-field-class", clock is not None)
                   for place in (CONTEXT, EVENT_HEADER, COMMON)}
        self.streams[number] = {**fragment, **classes, "clock": self.clocks.get(clock)}

    def _event_record_class(self, fragment):
        stream, number = fragment.get("data-stream-class-id", 0), fragment.get("id", 0)
        need(stream in self.streams, f"data stream class {stream} is not there")
        need((stream, number) not in self.events, f"event record class {number} of {stream} is there twice")
        before = {HEADER: self.header, **self.streams[stream]}
        self.roots = {place: root for place, root in before.items() if place in ROLES and root}
        self.events[stream, number] = {
            SPECIFIC: self._root(SPECIFIC, fragment, "specific-context-field-class"),
            PAYLOAD: self._root(PAYLOAD, fragment, "payload-field-class"), "fragment": fragment}

    def _root(self, place, fragment, key, has_clock=False):
        if key not in fragment:
            return None
        root = self._effective(fragment[key])
        need(root["type"] == "structure", f"{key} is no structure")
        self.roots[place] = root
        self._check_places(root, place, [], key, has_clock)
        return root

    def _effective(self, field_class):
        """Returns the class with its aliases resolved. Checks only what does not depend on the classes around it."""
        if isinstance(field_class, str):
            need(field_class in self.aliases, f"alias {field_class!r} is not there")
            return self.aliases[field_class]
        result = dict(field_class)
        kind, alignments = result["type"], [result.get("alignment", result.get("minimum-alignment", 1))]
        need(alignments[0].bit_count() == 1, f"{alignments[0]} is no power of two")
        if "byte-order" in result:
            natural = NATURAL_BIT_ORDER[result["byte-order"]]
            need(result.get("bit-order", natural) == natural, f"{result['byte-order']} bits are {natural} here")
        if kind == "structure":
            names = [member["name"] for member in result.get("member-classes", [])]
            need(len(set(names)) == len(names), f"a member is there twice among {names}")
            result["members"] = {member["name"]: self._effective(member["field-class"])
                                 for member in result.get("member-classes", [])}
            result["hidden"] = set()
            alignments += [member["align"] for member in result["members"].values()]
        elif kind.endswith("-array") and "element-field-class" in result:
            result["element"] = self._effective(result["element-field-class"])
            alignments.append(result["element"]["align"])
        elif kind == "optional":
            result["options"] = [(result.get("selector-field-ranges"), self._effective(result["field-class"]))]
        elif kind == "variant":
            names = [option["name"] for option in result["options"] if "name" in option]
            need(len(set(names)) == len(names), f"an option is there twice among {names}")
            result["options"] = [(option["selector-field-ranges"], self._effective(option["field-class"]))
                                 for option in result["options"]]
        elif not kind.startswith("fixed-length"):
            alignments.append(8)
        for name, ranges in {**result.get("mappings", {}), **result.get("flags", {})}.items():
            _check_ranges(ranges, *_bounds(result), repr(name))
        result["align"] = max(alignments)
        return result

    def _check_places(self, field_class, place, opened, name, has_clock):
        """Checks roles and locations. `opened`: the structures around the class, outermost first, each with the member
        that contains the class."""
        kind, roles = field_class["type"], field_class.get("roles", [])
        for role in roles:
            need(role in ROLES[place], f"role {role} in the {place}")
            need(role not in CLOCK_ROLES or has_clock, f"role {role} without a clock")
        if "packet-magic-number" in roles:
            need(kind.startswith("fixed") and field_class["length"] == 32 and len(opened) == 1 and
                 name == next(iter(opened[0][0]["members"])), "the magic number is not the first member, of 32 bits")
        if "metadata-stream-uuid" in roles:
            need(self.uuid is not None and field_class["length"] == 16, "a UUID of no 16 bytes, or of no preamble")
        if place in (HEADER, EVENT_HEADER) and not roles and kind not in TRANSPARENT:
            self.plain.append((place, name, field_class))
        location = field_class.get("length-field-location", field_class.get("selector-field-location"))
        if location is not None:
            self._check_located(field_class, self._locate(location, place, opened))
        if kind == "structure":
            for member, inner in field_class["members"].items():
                self._check_places(inner, place, [*opened, (field_class, member)], member, has_clock)
        for inner in _inner(field_class):
            self._check_places(inner, place, opened, name, has_clock)

    def _check_located(self, field_class, located):
        kinds = {target["type"] for _, _, target in located}
        allowed = {"optional": (UNSIGNED, SIGNED, BOOLEAN), "variant": (UNSIGNED, SIGNED)}
        need(any(kinds <= types for types in allowed.get(field_class["type"], (UNSIGNED,))),
             f"the location of a {field_class['type']} leads to {', '.join(sorted(kinds))}")
        for structure, name, target in located:
            structure["hidden"].add(name)
            if "options" in field_class:
                self.selected.add(id(target))
                need((target["type"] in BOOLEAN) == (field_class["options"][0][0] is None),
                     "a selector has ranges and is no integer, or has none and is one")
        if "options" in field_class and kinds.isdisjoint(BOOLEAN):
            # A variant between the location and the field can lead to several selectors. The ranges of the options may
            # be as large as the selector with the largest range permits.
            low, high = max((_bounds(target) for _, _, target in located), key=lambda bounds: bounds[1])
            options = [_check_ranges(ranges, low, high, "a selector") for ranges, _ in field_class["options"]]
            for one, other in itertools.combinations(options, 2):
                need(all(last < first_of_other or last_of_other < first for first, last in one
                         for first_of_other, last_of_other in other), "options of a variant overlap")

    def _locate(self, location, place, opened):
        """Returns the fields that a location can mean, as (structure, name, class). There are several if the location
        leads through variants."""
        path, origin = location["path"], location.get("origin")
        need(path[-1] is not None, "a location ends in a parent")
        need(origin is None or origin in self.roots, f"a location begins in a {origin}, which is not there yet")
        # A chain has the structures from the root to the one that the path has reached. Each is a pair: the structure,
        # and the member that is being decoded, or None if all members are decoded.
        chains = [opened if origin is None else opened[:1] if origin == place else [(self.roots[origin], None)]]
        for element in path[:-1]:
            chains = [chain for before in chains for chain in _step(before, element, opened)]
        return [(chain[-1][0], path[-1], target) for chain in chains for target in _decoded(chain[-1], path[-1])]


def _inner(field_class):
    """Returns the classes within a class that are not members."""
    return [field_class["element"]] if "element" in field_class else [one for _, one in field_class.get("options", [])]


def _unwrapped(field_class):
    """Returns the classes at which a path continues: the content of an optional, and of each option of a variant."""
    if "options" in field_class:
        return [one for inner in _inner(field_class) for one in _unwrapped(inner)]
    return [field_class]


def _decoded(step, name):
    """Returns the classes of the member `name` of a structure. Requires that this member is decoded before the field
    that refers to it."""
    structure, current = step
    names = list(structure["members"])
    need(name in names, f"a location leads to {name!r}, which is not among {names}")
    need(current is None or names.index(name) < names.index(current), f"a location leads to {name!r}, not decoded yet")
    return _unwrapped(structure["members"][name])


def _step(chain, element, opened):
    """Returns the chains (see _locate) to which `element` of a path extends `chain`."""
    if element is None:
        need(len(chain) > 1, "a location leads to the parent of a root")
        return [chain[:-1]]
    if element == chain[-1][1] and len(opened) > len(chain):  # a structure that contains the class
        return [opened[:len(chain) + 1]]
    inner = _decoded(chain[-1], element)
    need(all(one["type"] == "structure" for one in inner),
         f"a location continues in {element!r}, which is not a structure")
    return [[*chain, (one, None)] for one in inner]


def _bounds(field_class):
    """Returns the lowest and highest integer of a class, or index of a bit map."""
    bits = field_class.get("length", 64)
    if field_class["type"] == "fixed-length-bit-map":
        return 0, bits - 1
    return (-2**(bits - 1), 2**(bits - 1) - 1) if field_class["type"] in SIGNED else (0, 2**bits - 1)


def _check_ranges(ranges, low, high, name):
    for first, last in ranges:
        need(low <= first <= last <= high, f"range [{first}, {last}] of {name} is not within [{low}, {high}]")
    return ranges


class Structure(dict):
    """The fields of a structure by name. While the structure is decoded, `inner` is the structure in its member
    `current`."""

    def __init__(self, parent, hidden):
        super().__init__()
        self.parent, self.hidden, self.current, self.inner = parent, hidden, None, None


class Fields:
    """The fields of a packet, decoded in order. Positions are in bits from the packet's beginning."""

    def __init__(self, data, begin):
        self.data, self.begin = data, begin
        self.position, self.limit = 0, 8 * (len(data) - begin)
        self.byte_order, self.clock = None, 0
        self.roots, self.roles = {}, {}

    def root(self, place, field_class):
        """Returns the fields of a root structure in the form in which they are shown, or None if there is no such
        class."""
        self.roots.pop(place, None)
        if field_class is None:
            return None
        return _shown(self._structure(field_class, None, place))

    def _field(self, field_class, parent):
        kind, start = field_class["type"], self.position + -self.position % field_class["align"]
        if kind == "structure":
            return self._structure(field_class, parent)
        self._skip(start - self.position)
        if kind.startswith("fixed-length"):
            value = self._fixed(field_class)
        elif kind.startswith("variable-length"):
            value = self._leb128(kind in SIGNED)
        elif "options" in field_class:
            return self._option(field_class, parent)
        else:
            location, length = field_class.get("length-field-location"), field_class.get("length")
            length = length if location is None else self._located(location, parent)
            if "element" in field_class:
                return [self._field(field_class["element"], parent) for _ in range(length)]
            value = self._bytes(length) if kind.endswith("blob") else self._text(field_class, length)
        if "mappings" in field_class or "flags" in field_class:
            value = ctf.Named(value, tuple(_names(field_class, value)))
        for role in field_class.get("roles", ()):
            self.roles[role] = value
            if role == "default-clock-timestamp":
                # A timestamp has only the lowest bits of the clock. If it is lower than these bits of the previous
                # time, the bits have wrapped once.
                self.clock += (value - self.clock) % (1 << field_class.get("length", (self.position - start) // 8 * 7))
                need(self.clock < 2**64, "a timestamp is before the one before it")
        return value

    def _structure(self, field_class, parent, place=None):
        self._skip(-self.position % field_class["align"])
        result = Structure(parent, field_class["hidden"])
        if place is not None:
            self.roots[place] = result
        else:
            parent.inner = result
        for name, member in field_class["members"].items():
            result.current, result.inner = name, None
            result[name] = self._field(member, result)
        result.current = None
        return result

    def _skip(self, bits):
        """Skips this number of bits, and returns the position of the first."""
        begin = self.position
        need(begin + bits <= self.limit, f"{bits} bits go on after the packet's content")
        self.position += bits
        return begin

    def _bytes(self, count):
        begin = self.begin + self._skip(8 * count) // 8
        return self.data[begin:begin + count]

    def _fixed(self, field_class):
        kind, length, byte_order = field_class["type"], field_class["length"], field_class["byte-order"]
        position = self._skip(length)
        need(position % 8 == 0 or byte_order == self.byte_order, "a byte is in two byte orders")
        self.byte_order = byte_order
        first, last = position // 8, (position + length + 7) // 8
        number = int.from_bytes(self.data[self.begin + first:self.begin + last], byte_order.partition("-")[0])
        number >>= position % 8 if byte_order == "little-endian" else 8 * last - position - length
        number &= (1 << length) - 1
        if kind in BOOLEAN:
            return ctf.Named(number != 0, ("true" if number else "false",))
        if kind == "fixed-length-floating-point-number":
            return struct.unpack("<f" if length == 32 else "<d", number.to_bytes(length // 8, "little"))[0]
        return number - (1 << length) if kind in SIGNED and number >> (length - 1) else number

    def _leb128(self, signed):
        number, bits, byte = 0, 0, 0x80
        while byte & 0x80:
            [byte] = self._bytes(1)
            number |= (byte & 0x7F) << bits
            bits += 7
        if signed and byte & 0x40:
            number -= 1 << bits
        need((-2**63 <= number < 2**63) if signed else number < 2**64, f"{number} has more than 64 bits")
        return number

    def _text(self, field_class, length):
        """Returns a text of this many bytes, which a NUL may end earlier. Without a length, the text ends at a NUL."""
        encoding, begin = field_class.get("encoding", "utf-8"), self.begin + self.position // 8
        unit, end = UNITS[encoding], self.begin + self.limit // 8
        if length is not None:
            self._skip(8 * length)
            end = begin + length
        nul = self.data.find(bytes(unit), begin, end)
        while nul > 0 and (nul - begin) % unit:
            nul = self.data.find(bytes(unit), nul + 1, end)
        if length is None:
            need(nul >= 0, "a text extends past the packet's content")
            self._skip(8 * (nul + unit - begin))
        try:
            return self.data[begin:end if nul < 0 else nul].decode(encoding)
        except UnicodeDecodeError as reason:
            raise Error(f"a text is not {encoding}: {reason}")

    def _option(self, field_class, parent):
        selector = self._located(field_class["selector-field-location"], parent)
        for ranges, inner in field_class["options"]:
            if (selector if ranges is None else any(first <= selector <= last for first, last in ranges)):
                return self._field(inner, parent)
        need(field_class["type"] == "optional", f"{selector} selects no option of a variant")
        return None

    def _located(self, location, parent):
        """Returns the value of the field at a location; `parent` is the structure around the field that needs it."""
        value = self.roots.get(location["origin"]) if "origin" in location else parent
        for element in location["path"]:
            need(isinstance(value, Structure), f"location {location['path']} is not within a structure")
            if element is None:
                value = value.parent
            elif element == value.current:
                value = value.inner
            else:
                value = value.get(element)
        need(isinstance(value, int), f"location {location['path']} leads to no integer")
        return value


def _names(field_class, value):
    """Returns the names of an integer, or of each bit of a bit map."""
    if "flags" in field_class:
        return [name for name, ranges in field_class["flags"].items()
                if any(value >> first & (1 << (last - first + 1)) - 1 for first, last in ranges)]
    return [name for name, ranges in field_class["mappings"].items()
            if any(first <= value <= last for first, last in ranges)]


def _shown(value):
    if isinstance(value, Structure):
        return {name: _shown(inner) for name, inner in value.items() if name not in value.hidden}
    return [_shown(inner) for inner in value] if isinstance(value, list) else value


class DataStream:
    """The packets and events of a data stream, and its losses: (begin, end, count) of each, times in ns."""

    def __init__(self, name, data, metadata):
        self.name, self.data, self.metadata = name, data, metadata
        self.events, self.packets, self.losses = [], [], []
        self.identity, self.time = None, None
        need(data, f"{name}: a data stream has one packet or more")
        position = 0
        while position < len(data):
            fields = Fields(data, position)
            try:
                position += self._packet(fields)
            except Error as reason:
                raise Error(f"{name}: packet {len(self.packets)} at {position}, bit {fields.position}: {reason}")

    def _packet(self, fields):
        """Reads a packet; returns its size."""
        roles, metadata = fields.roles, self.metadata
        fields.root(HEADER, metadata.header)
        need(roles.get("packet-magic-number", MAGIC) == MAGIC, "no magic number")
        need(roles.get("metadata-stream-uuid", metadata.uuid) == metadata.uuid, "the UUID is not that of the metadata")
        identity = roles.get("data-stream-class-id", 0), roles.get("data-stream-id")
        need(self.identity in (None, identity), "packets of several data streams")
        self.identity = identity
        need(identity[0] in metadata.streams, f"data stream class {identity[0]} is not there")
        stream = metadata.streams[identity[0]]
        context = fields.root(CONTEXT, stream[CONTEXT])
        content = roles.get("packet-content-length", roles.get("packet-total-length", fields.limit))
        total = roles.get("packet-total-length", content)
        need(total % 8 == 0, f"a packet of {total} bits")
        need(fields.position <= content, f"the content, {content} bits, ends within the packet's context")
        need(content <= total, f"the content, {content} bits, is longer than the packet, {total} bits")
        need(total <= fields.limit, f"the packet, {total} bits, extends past the end of the file")
        fields.limit = content
        packet = self._head(stream, roles, fields, total // 8, context)
        self._check_loss(packet)
        while fields.position < content:
            self._event(fields, stream, identity[0], packet)
        if packet.end is not None:
            self._go_on(packet.end, "the packet's end")
        self.packets.append(packet)
        return total // 8

    def _head(self, stream, roles, fields, size, context):
        begin, end = None, roles.get("packet-end-default-clock-timestamp")
        if "default-clock-timestamp" in roles:
            begin = nanoseconds(stream["clock"], fields.clock)
            self._go_on(begin, "the packet's begin")
        return Packet(self.name, begin, None if end is None else nanoseconds(stream["clock"], end),
                      roles.get("packet-sequence-number"), roles.get("discarded-event-record-counter-snapshot"),
                      size, context)

    def _go_on(self, time, what):
        need(self.time is None or time >= self.time, f"{what}, {time}, is before what comes before it, {self.time}")
        self.time = time

    def _check_loss(self, packet):
        before = self.packets[-1] if self.packets else packet._replace(sequence=None, discarded=0)
        lost = 0
        if packet.discarded is not None:
            lost = packet.discarded - (before.discarded or 0)
            need(lost >= 0, f"the counter of discarded events goes back from {before.discarded} to {packet.discarded}")
        # babeltrace2 counts losses from the counter in the first packet, so it does not see losses before
        # the end of this packet.
        need(self.packets or not lost, f"{lost} events are lost before the end of the first packet")
        if lost:
            self.losses.append((before.end, packet.end, lost))
        if packet.sequence is not None and before.sequence is not None:
            need(packet.sequence == before.sequence + 1 or (lost and packet.sequence > before.sequence),
                 f"packet {packet.sequence} comes after packet {before.sequence}, and nothing is said to be lost")

    def _event(self, fields, stream, number, packet):
        begin = fields.position
        fields.roles.pop("event-record-class-id", None)
        for place in (COMMON, SPECIFIC, PAYLOAD):
            fields.roots.pop(place, None)
        fields.root(EVENT_HEADER, stream[EVENT_HEADER])
        key = number, fields.roles.get("event-record-class-id", 0)
        need(key in self.metadata.events, f"event record class {key[1]} is not there")
        event = self.metadata.events[key]
        time = None if stream["clock"] is None else nanoseconds(stream["clock"], fields.clock)
        if time is not None:
            self._go_on(time, "an event")
            need(packet.end is None or time <= packet.end, f"an event, {time}, is after its packet's end, {packet.end}")
        context = fields.root(COMMON, stream[COMMON])
        specific = fields.root(SPECIFIC, event[SPECIFIC])
        payload = fields.root(PAYLOAD, event[PAYLOAD])
        need(fields.position > begin, "an event has no bits")
        self.events.append({
            "time": time, "name": event["fragment"].get("name"), "cpu": fields.roots.get(CONTEXT, {}).get("cpu_id"),
            "context": context, "payload": payload or {}, "specific": specific, "class": event["fragment"]})


def nanoseconds(clock, cycles):
    """Returns nanoseconds from the clock's origin."""
    offset, frequency = clock.get("offset-from-origin", {}), clock["frequency"]
    return (offset.get("cycles", 0) + cycles) * 10**9 // frequency + offset.get("seconds", 0) * 10**9
