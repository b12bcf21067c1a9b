"""Writes typed events of Python programs through the C API of libeventheader.

    import eventheader

    provider = eventheader.Provider("MyCompany_MyService")
    request_done = provider.event("RequestDone", level=eventheader.Level.INFORMATION, keyword=1)

    request_done(path="/index.html", status=200, seconds=0.25)

An event is written only while a collector records its tracepoint. Provider(), event() and Handler() raise TypeError or
ValueError if an argument is not valid. A call that writes an event never raises an exception: it returns whether the
event was written, and Provider.counters has the numbers of events that were refused or failed.

All functions are thread-safe, and work in the children of os.fork(). They must not be called in a signal handler that C
code has installed; handlers of the module `signal` may call them.
"""

import contextvars
import ctypes
import enum
import errno
import logging
import operator
import os
import re
import struct
import threading
import typing
import weakref

__all__ = ["Activity", "Counters", "Event", "Handler", "Level", "Opcode", "Provider", "current_activity",
           "describe_transport", "poll_transport"]

MAX_EVENT_BYTES = 8184  # maximum size of an event with its header, as in libeventheader
_MAX_FIELDS = 1024
_MAX_NAME_BYTES = 1024  # of an event's name
_MAX_CACHED = 1000  # entries of each cache, which is cleared when it is full


class Level(enum.IntEnum):
    """The severity of an event."""
    CRITICAL_ERROR = 1
    ERROR = 2
    WARNING = 3
    INFORMATION = 4
    VERBOSE = 5


class Opcode(enum.IntEnum):
    """The role of an event in its activity."""
    INFO = 0
    START = 1
    STOP = 2


class Counters(typing.NamedTuple):
    """Events of a provider since it was created, by result."""
    written: int
    too_big: int
    invalid: int
    failed: int
    last_error: int  # errno of the latest failed event; 0: none has failed


# The C API (eventheader_c.h). Functions that may wait release the global interpreter lock, and others keep it.


class _EventOfC(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint16), ("version", ctypes.c_uint8), ("opcode", ctypes.c_uint8), ("tag", ctypes.c_uint16),
                ("metadata_size", ctypes.c_uint16), ("metadata", ctypes.c_char_p)]


class _ActivityOfC(ctypes.Structure):
    _fields_ = [("id", ctypes.c_char_p), ("related", ctypes.c_char_p)]


class _CountersOfC(ctypes.Structure):
    _fields_ = [("written", ctypes.c_uint64), ("too_big", ctypes.c_uint64), ("invalid", ctypes.c_uint64),
                ("failed", ctypes.c_uint64), ("last_error", ctypes.c_int)]


def _load(kind):
    try:
        return kind("libeventheader-c.so.0")
    except OSError as error:
        raise ImportError(f"libeventheader-c.so.0: {error}; install the package libeventheader0") from error


def _function(library, name, result, *arguments):
    function = library[name]
    function.restype, function.argtypes = result, arguments
    return function


_waiting, _quick = _load(ctypes.CDLL), _load(ctypes.PyDLL)
_provider_create = _function(_waiting, "eh_provider_create", ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
_provider_destroy = _function(_waiting, "eh_provider_destroy", None, ctypes.c_void_p)
_provider_status = _function(_waiting, "eh_provider_status", ctypes.c_int, ctypes.c_void_p)
_provider_retry = _function(_waiting, "eh_provider_retry", ctypes.c_int, ctypes.c_void_p)
_provider_counters = _function(_quick, "eh_provider_counters", None, ctypes.c_void_p, ctypes.c_void_p)
_status_text = _function(_quick, "eh_status_text", ctypes.c_char_p, ctypes.c_int)
_describe = _function(_waiting, "eh_describe_transport", ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)
_poll = _function(_waiting, "eh_poll_transport", ctypes.c_int)
_set_create = _function(_waiting, "eh_event_set_create", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint8, ctypes.c_uint64)
_set_destroy = _function(_waiting, "eh_event_set_destroy", None, ctypes.c_void_p)
_set_status = _function(_quick, "eh_event_set_status", ctypes.c_int, ctypes.c_void_p)
_set_word = _function(_quick, "eh_event_set_enable_word", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_write = _function(_quick, "eh_write", ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p,
                   ctypes.c_size_t)
_new_activity_id = _function(_quick, "eh_new_activity_id", None, ctypes.c_char_p)


def describe_transport():
    """Returns one line that explains how events reach the collector."""
    text = ctypes.create_string_buffer(512)
    _describe(text, len(text))
    return text.value.decode(errors="replace")


def poll_transport():
    """Does the work of the library's helper thread for rings in user space, if EVENTHEADER_THREAD=0 has switched the
    thread off. Call it about once a second. Does not wait."""
    _poll()


# The bytes of values. A function for a type appends the payload of a value to a list of bytes, and returns the bytes of
# the field's type: encoding and format. The result None leaves the field out.

_INT, _UNSIGNED, _FLOAT, _BOOL = b"\x85\x02", b"\x05", b"\x85\x08", b"\x82\x07"
_TEXT, _BYTES, _UUID, _IP4, _IP6, _TIME = b"\x0a", b"\x0d", b"\x86\x0f", b"\x84\x11", b"\x86\x11", b"\x85\x06"
_ARRAY = 0x40  # flag in the first byte of a type: the payload is a count of values, then the values
_pack_signed, _pack_unsigned = struct.Struct("=q").pack, struct.Struct("=Q").pack
_pack_float, _pack_count = struct.Struct("=d").pack, struct.Struct("=H").pack


class _TooBig(Exception):
    """The value does not fit in an event."""


def _utf8(text):
    """Returns the UTF-8 of a text. Surrogates that are not pairs become U+FFFD."""
    if len(text) > MAX_EVENT_BYTES:
        raise _TooBig
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def _put_bytes(value, parts):
    if len(value) > MAX_EVENT_BYTES:
        raise _TooBig
    parts.append(_pack_count(len(value)))
    parts.append(bytes(value))
    return _BYTES


def _put_memory(value, parts):
    if value.nbytes > MAX_EVENT_BYTES:
        raise _TooBig
    return _put_bytes(value.tobytes(), parts)


def _put_text(value, parts):
    text = _utf8(value)
    parts.append(_pack_count(len(text)) + text)
    return _TEXT


def _put_int(value, parts):
    try:
        parts.append(_pack_signed(value))
        return _INT
    except struct.error:
        pass
    try:
        parts.append(_pack_unsigned(value))
        return _UNSIGNED
    except struct.error:
        # A number of more than 64 bits becomes text. Above 1,024 bits, the text is hexadecimal, because decimal text
        # would take too long, and Python refuses more than 4,300 decimal digits.
        return _put_text(str(int(value)) if value.bit_length() <= 1024 else hex(value), parts)


def _put_float(value, parts):
    parts.append(_pack_float(value))
    return _FLOAT


def _put_bool(value, parts):
    parts.append(b"\1" if value else b"\0")
    return _BOOL


def _put_none(_value, _parts):
    return None


def _put_uuid(value, parts):
    parts.append(value.bytes)
    return _UUID


def _put_ip4(value, parts):
    parts.append(value.packed)
    return _IP4


def _put_ip6(value, parts):
    parts.append(value.packed)
    return _IP6


def _put_time(value, parts):
    """Adds a datetime in whole seconds. A datetime without a time zone is local time."""
    try:
        seconds = value.timestamp() // 1
    except (OverflowError, ValueError, OSError):
        return _put_text(str(value), parts)
    parts.append(_pack_signed(int(seconds)))
    return _TIME


def _put_index(value, parts):
    return _put_int(operator.index(value), parts)


def _put_other(value, parts):
    return _put_text(_text_of(value), parts)


def _text_of(value):
    """Returns str(value), or the name of the type if str() fails."""
    if type(value) is str:
        return value
    try:
        text = str(value)
    except Exception:  # whatever the code of the value raises
        return f"<{type(value).__name__}>"
    return text if type(text) is str else str.__str__(text)


def _put_list(values, parts):
    """Adds an array. If all values have one type, the array has this type. A mixture of int and float becomes float,
    and any other mixture becomes text."""
    values = list(values)  # another thread may change the list
    if len(values) > MAX_EVENT_BYTES:
        raise _TooBig
    own, types = [_pack_count(len(values))], set()
    for value in values:
        put = _put_for(type(value))
        # An array cannot contain lists or None, so these values make it an array of text.
        types.add(None if put is _put_list else put(value, own))
    if types <= {_INT, _FLOAT} and len(types) == 2:
        own[1:] = [_pack_float(value) for value in values]
        types = {_FLOAT}
    elif len(types) != 1 or None in types:
        del own[1:]
        for value in values:
            _put_other(value, own)
        types = {_TEXT}
    parts += own
    [kind] = types
    return bytes([kind[0] | _ARRAY]) + kind[1:]


# The keys are the module and name of a class, so that this module does not have to import uuid, ipaddress and datetime.
_PUT_BY_NAME = {
    ("builtins", "bool"): _put_bool, ("builtins", "int"): _put_int, ("builtins", "float"): _put_float,
    ("builtins", "str"): _put_text, ("builtins", "bytes"): _put_bytes, ("builtins", "bytearray"): _put_bytes,
    ("builtins", "memoryview"): _put_memory, ("builtins", "NoneType"): _put_none, ("builtins", "list"): _put_list,
    ("builtins", "tuple"): _put_list, ("uuid", "UUID"): _put_uuid, ("ipaddress", "IPv4Address"): _put_ip4,
    ("ipaddress", "IPv6Address"): _put_ip6, ("datetime", "datetime"): _put_time,
}
_put_by_type = {}


def _put_for(kind):
    """Returns the function that adds values of a type: that of the type or of the nearest base class."""
    put = _put_by_type.get(kind)
    if put is None:
        bases = [(base.__module__, base.__qualname__) for base in kind.__mro__]
        other = _put_index if hasattr(kind, "__index__") else _put_other
        put = next((_PUT_BY_NAME[base] for base in bases if base in _PUT_BY_NAME), other)
        if len(_put_by_type) >= _MAX_CACHED:
            _put_by_type.clear()
        _put_by_type[kind] = put
    return put


def _name(text):
    """Returns the bytes of a name in metadata. Characters that names must not contain become '_'."""
    return _utf8(text.replace(";", "_").replace("\0", "_") or "_")


class _Set:
    """An event set. `word.value & mask` is not 0 while it is enabled."""

    def __init__(self, provider, level, keyword):
        self.handle = _set_create(provider, level, keyword)
        if not self.handle:
            raise MemoryError
        self.mask, self.word = 0, None
        self.refresh()

    def refresh(self):
        """Reads the mask again, which may change when the provider registers its sets again."""
        mask = ctypes.c_uint64()
        word = ctypes.c_uint64.from_address(_set_word(self.handle, ctypes.byref(mask)))
        self.word, self.mask = word, mask.value


class _Prepared:
    """The struct of an event for eh_write, with metadata of one combination of fields."""

    def __init__(self, event_name, opcode, names, types):
        self.is_valid = sum(kind is not None for kind in types) <= _MAX_FIELDS
        fields = (_name(name) + b"\0" + kind for name, kind in zip(names, types) if kind is not None)
        metadata = event_name + b"\0" + b"".join(fields)
        self.size = len(metadata)
        if self.size > MAX_EVENT_BYTES:
            raise _TooBig
        self._event = _EventOfC(0, 0, opcode, 0, self.size, metadata)
        self.pointer = ctypes.byref(self._event)


class _Writer:
    """Writes the events of one name to one set."""

    def __init__(self, event_set, name, opcode, prepared):
        """`prepared` is the cache of prepared events, which several writers may share."""
        self._set, self._name, self._opcode = event_set, name, opcode
        self._prepared = prepared

    def encode(self, fields):
        """Returns the prepared event and the payload of a dict of fields. Raises _TooBig, or an error of a value."""
        parts, types = [], []
        for value in fields.values():
            put = _put_by_type.get(type(value)) or _put_for(type(value))
            types.append(put(value, parts))
        key = (self._name, self._opcode, tuple(fields), tuple(types))
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = _Prepared(*key)
            if len(self._prepared) >= _MAX_CACHED:
                self._prepared.clear()
            self._prepared[key] = prepared
        return prepared, b"".join(parts)

    def write(self, fields):
        """Writes an event. Returns 0 or an errno."""
        try:
            prepared, data = self.encode(fields)
        except _TooBig:
            return self.refuse_too_big()
        except Exception:  # a value whose methods raise, or no memory
            return self.refuse()
        return self.put(prepared, data)

    def put(self, prepared, data):
        if not prepared.is_valid:
            return self.refuse()
        activities = _activities.get()
        context = activities[0]._for_opcode(self._opcode) if activities else None
        return _write(self._set.handle, prepared.pointer, context, data, len(data))

    # Make the library count an event that this module cannot encode as invalid or too big: they pass an event that the
    # library refuses, because it has no name (_nameless) or because of its size (_too_big). The library does not read
    # its data.
    def refuse(self):
        return _write(self._set.handle, _nameless, None, None, 0)

    def refuse_too_big(self):
        return _write(self._set.handle, _too_big, None, None, 2 * MAX_EVENT_BYTES)


_nameless_event, _too_big_event = _EventOfC(), _EventOfC(metadata_size=2, metadata=b"E\0")
_nameless, _too_big = ctypes.byref(_nameless_event), ctypes.byref(_too_big_event)


# Activities.

# The activities that a context has entered, as a linked list: (), or a pair of the latest activity and the older list.
_activities = contextvars.ContextVar("eventheader_activities", default=())


def current_activity():
    """Returns the Activity of this context: of the thread, or of the asyncio task; None if there is none."""
    activities = _activities.get()
    return activities[0] if activities else None


class Activity:
    """A piece of work that several events belong to. Events in a `with` block of the activity have its id. The current
    activity is in a context variable, so that each thread and each asyncio task has its own.

    `id` is 16 bytes or a uuid.UUID; None: a new id. The activity that is current when the object is made is the related
    activity of the start event (Opcode.START)."""

    def __init__(self, id=None):
        if id is None:
            new = ctypes.create_string_buffer(16)
            _new_activity_id(new)
            id = new.raw
        id = getattr(id, "bytes", id)
        if not isinstance(id, bytes) or len(id) != 16:
            raise ValueError("id of an activity: not 16 bytes; pass 16 bytes or a uuid.UUID")
        parent = current_activity()
        self.id = id
        self.related = None if parent is None else parent.id
        self._plain = _ActivityOfC(self.id, None)
        self._start = _ActivityOfC(self.id, self.related)
        self._plain_pointer, self._start_pointer = ctypes.byref(self._plain), ctypes.byref(self._start)

    def _for_opcode(self, opcode):
        return self._start_pointer if opcode == Opcode.START else self._plain_pointer

    def __enter__(self):
        _activities.set((self, _activities.get()))
        return self

    def __exit__(self, *_error):
        activities = _activities.get()
        # If the block was entered in another context, as in a generator, the list of this context does not change.
        if activities and activities[0] is self:
            _activities.set(activities[1])


# Providers and events.

_providers = weakref.WeakSet()


def _refresh_all():
    for provider in list(_providers):
        provider._after_fork()


os.register_at_fork(after_in_child=_refresh_all)


def _check_number(what, value, low, high):
    """Returns the value as an int. Raises TypeError if it is not an integer, and ValueError if it is out of range."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} {value!r}: not an integer; use {low} to {high}") from None
    if not low <= number <= high:
        raise ValueError(f"{what} {value!r}: out of range; use {low} to {high}")
    return number


def _destroy(provider, sets):
    for event_set in sets.values():
        _set_destroy(event_set.handle)
    _provider_destroy(provider)


class Provider:
    """A component that writes events. The names of its tracepoints begin with `name`: [A-Za-z_][A-Za-z0-9_]*. `group` is
    a part of the names too: [a-z0-9]*. Make a provider once, for example in a module. Its tracepoints are unregistered
    when neither the provider nor one of its events or handlers is referenced any more."""

    def __init__(self, name, group=""):
        for what, text, pattern in (("provider", name, "[A-Za-z_][A-Za-z0-9_]*"), ("group", group, "[a-z0-9]*")):
            if not isinstance(text, str):
                raise TypeError(f"{what} {text!r}: not a str")
            if re.fullmatch(pattern, text) is None:
                raise ValueError(f"{what} {text!r}: not valid; use {pattern}")
        self.name, self.group = name, group
        self._sets, self._lock = {}, threading.Lock()
        self._handle = _provider_create(name.encode(), group.encode())
        if not self._handle:
            raise MemoryError
        # Not called at exit: other threads may still write events then, and the tracepoints end with the process.
        weakref.finalize(self, _destroy, self._handle, self._sets).atexit = False
        _providers.add(self)

    def _after_fork(self):
        self._lock = threading.Lock()  # another thread may have held it during the fork
        for event_set in self._sets.values():
            event_set.refresh()

    def _set(self, level, keyword):
        """Returns the set of a level and keyword. Raises ValueError if its tracepoint has no valid name, or if the
        provider has too many sets."""
        with self._lock:
            event_set = self._sets.get((level, keyword))
            if event_set is None:
                event_set = _Set(self._handle, level, keyword)
                status = _set_status(event_set.handle)
                if status in (errno.EINVAL, errno.ENOSPC):
                    _set_destroy(event_set.handle)
                    raise ValueError(f"provider {self.name!r}: {_status_text(status).decode()}")
                self._sets[level, keyword] = event_set
            return event_set

    def event(self, name, *, level=Level.INFORMATION, keyword=1, opcode=Opcode.INFO):
        """Returns an Event. Its tracepoint is registered if the provider has no other event of the level (1 to 255) and
        keyword (64 bits). A registration that fails raises no exception: see status."""
        if not isinstance(name, str):
            raise TypeError(f"event {name!r}: not a str")
        if not name or ";" in name or "\0" in name:
            raise ValueError(f"event {name!r}: not valid; the name must not be empty or contain ';' or NUL")
        level = _check_number("level", level, 1, 255)
        keyword = _check_number("keyword", keyword, 0, 2**64 - 1)
        opcode = _check_number("opcode", opcode, 0, 255)
        if len(name) > _MAX_NAME_BYTES or len(_utf8(name)) > _MAX_NAME_BYTES:
            raise ValueError(f"event {name[:20]!r}...: name too long; use at most {_MAX_NAME_BYTES} bytes")
        return Event(self, name, self._set(level, keyword), opcode)

    @property
    def status(self):
        """0 if every tracepoint is registered, else an errno. ENOTCONN: there is no event yet."""
        return _provider_status(self._handle)

    @property
    def status_text(self):
        """One line that explains the status and names a remedy."""
        return _status_text(self.status).decode()

    def retry(self):
        """Registers again the tracepoints that are not registered. Returns the status."""
        with self._lock:
            status = _provider_retry(self._handle)
            for event_set in self._sets.values():
                event_set.refresh()
        return status

    @property
    def counters(self):
        """The Counters of the events of this provider."""
        counters = _CountersOfC()
        _provider_counters(self._handle, ctypes.byref(counters))
        return Counters(*(getattr(counters, name) for name in Counters._fields))


class Event:
    """An event with a name, level and keyword. A call writes it, with the keyword arguments as fields. Made by
    Provider.event."""

    __slots__ = ("_provider", "_set", "_write", "name")

    def __init__(self, provider, name, event_set, opcode):
        self.name = name
        self._provider, self._set = provider, event_set
        self._write = _Writer(event_set, _utf8(name), opcode, {}).write

    @property
    def enabled(self):
        """Whether a collector records the event. Reads a word of memory, and calls nothing."""
        event_set = self._set
        return event_set.word.value & event_set.mask != 0

    def __call__(self, /, **fields):
        """Writes the event if it is enabled. Returns whether it was written. Never raises an exception."""
        event_set = self._set
        if not event_set.word.value & event_set.mask:
            return False
        return self._write(fields) == 0


# The bridge from the module `logging`.

_MAX_MESSAGE, _MAX_TRACEBACK, _MAX_EXTRA = 4096, 2048, 1024  # bytes
_RECORD_BYTES = 8 + 4 + 4 + 32  # header, extension headers and ids of an activity
_RECORD_NAMES = frozenset(logging.LogRecord("", 0, "", 0, "", (), None).__dict__) | {"message", "asctime", "taskName"}
_traceback_formatter = logging.Formatter()


def _level_of(levelno):
    """Returns the Level of a logging level."""
    if levelno >= logging.ERROR:
        return Level.CRITICAL_ERROR if levelno >= logging.CRITICAL else Level.ERROR
    if levelno >= logging.INFO:
        return Level.WARNING if levelno >= logging.WARNING else Level.INFORMATION
    return Level.VERBOSE


def _cut(text, limit):
    """Returns at most `limit` bytes of a text, without a part of a character."""
    if len(text) <= limit // 4:  # a character has at most 4 bytes
        return text
    data = _utf8(text[:limit])
    return text[:limit] if len(data) <= limit else data[:limit].decode(errors="ignore")


def _cut_start(text, limit):
    """Returns at most the last `limit` bytes of a text, without a part of a character."""
    data = _utf8(text[-limit:])
    return text[-limit:] if len(data) <= limit else data[-limit:].decode(errors="ignore")


class Handler(logging.Handler):
    """Writes log records as events. Each level has a tracepoint, so that recordings select records by level.

    `provider` is a Provider or the name of one. The name of an event is that of the logger; with
    name_events_by_logger=False, it is always "Log"."""

    def __init__(self, provider, level=logging.NOTSET, *, keyword=1, name_events_by_logger=True):
        super().__init__(level)
        self.provider = provider if isinstance(provider, Provider) else Provider(provider)
        keyword = _check_number("keyword", keyword, 0, 2**64 - 1)
        self._sets = {each: self.provider._set(each, keyword) for each in Level}
        self._writers, self._prepared = {}, {}
        # Writers of events named Log: for records without the name of a logger, and to count records as refused.
        self._others = {each: _Writer(event_set, b"Log", Opcode.INFO, self._prepared) for each, event_set in self._sets.items()}
        self._by_logger = name_events_by_logger

    def handle(self, record):
        """Writes the record if its level is recorded. Needs no lock, because writing is thread-safe."""
        event_set = self._sets[_level_of(record.levelno)]
        if not event_set.word.value & event_set.mask:
            return False
        passed = self.filter(record)
        if isinstance(passed, logging.LogRecord):  # a filter of Python 3.12 may replace the record
            record = passed
        if passed:
            self.emit(record)
        return passed

    def emit(self, record):
        """Writes the record. Never raises an exception."""
        level = _level_of(record.levelno)
        event_set = self._sets[level]
        if not event_set.word.value & event_set.mask:
            return
        writer = self._others[level]
        try:
            writer = self._writer(record, level)
            fields, extra = self._fields(record), self._extra(record)
            try:
                prepared, data = writer.encode({**fields, **extra})
                fits = prepared.size + len(data) + _RECORD_BYTES <= MAX_EVENT_BYTES
            except Exception:  # a value is too big, or its methods raise
                fits = False
            if not fits:
                prepared, data = writer.encode({**fields, "extra_dropped": len(extra)})
            writer.put(prepared, data)
        except Exception:  # the record is not a logging.LogRecord, or memory is exhausted
            writer.refuse()

    def wanted_level(self):
        """Returns the lowest level of logging that a collector records; a level above CRITICAL if it records none."""
        levels = ((Level.VERBOSE, logging.NOTSET + 1), (Level.INFORMATION, logging.INFO), (Level.WARNING, logging.WARNING),
                  (Level.ERROR, logging.ERROR), (Level.CRITICAL_ERROR, logging.CRITICAL))
        for level, levelno in levels:
            event_set = self._sets[level]
            if event_set.word.value & event_set.mask:
                return levelno
        return logging.CRITICAL + 1

    def update_level(self, logger, others=logging.WARNING):
        """Sets the level of a logger to the lower of wanted_level() and `others`, the level that other handlers need.
        The logger then makes only records that a handler or a collector needs. Call it, for example, once a second."""
        level = min(others, self.wanted_level())
        if logger.level != level:
            logger.setLevel(level)

    def _writer(self, record, level):
        name = record.name
        if not self._by_logger or not name:
            return self._others[level]
        writer = self._writers.get((name, level))
        if writer is None:
            writer = _Writer(self._sets[level], _name(_cut(_text_of(name), 128)), Opcode.INFO, self._prepared)
            if len(self._writers) >= _MAX_CACHED:
                self._writers.clear()
            self._writers[name, level] = writer
        return writer

    def _fields(self, record):
        """Returns the fields of a record, without those of `extra`. They always fit in an event."""
        try:
            message, error = record.getMessage(), None
        except Exception as raised:  # the arguments do not match the format
            message, error = _text_of(record.msg), f"{type(raised).__name__}: {_text_of(raised)}"
        message = _text_of(message)
        cut = _cut(message, _MAX_MESSAGE)
        fields = {"message": cut, "logger": _cut(_text_of(record.name), 128), "pathname": _cut(_text_of(record.pathname), 256),
                  "lineno": record.lineno, "funcName": None if record.funcName is None else _cut(_text_of(record.funcName), 256)}
        if len(cut) != len(message):
            fields["message_bytes"] = len(message.encode(errors="surrogatepass"))
        if error is not None:
            fields["format_error"] = _cut(error, 256)
        if record.thread not in (None, threading.get_ident()):
            fields["threadName"] = _cut(_text_of(record.threadName), 128)  # a queue passes the record to another thread
        if record.exc_info or record.exc_text:
            fields["exc_text"] = _cut_start(self._traceback(record), _MAX_TRACEBACK)
        if record.stack_info:
            fields["stack_info"] = _cut_start(_text_of(record.stack_info), _MAX_EXTRA)
        return fields

    def _traceback(self, record):
        if record.exc_text:
            return _text_of(record.exc_text)
        try:
            return _traceback_formatter.formatException(record.exc_info)
        except Exception:  # the exception's own methods raise
            return _text_of(record.exc_info[0])

    def _extra(self, record):
        """Returns the fields that the program has passed as `extra`. Their texts are cut."""
        extra = {}
        for name in [name for name in record.__dict__ if name not in _RECORD_NAMES]:
            value = record.__dict__[name]
            if _put_for(type(value)) in (_put_text, _put_other):
                value = _cut(_text_of(value), _MAX_EXTRA)
            elif isinstance(value, (bytes, bytearray)):
                value = bytes(value[:_MAX_EXTRA])
            extra["extra_logger" if name == "logger" else str(name)] = value
        return extra
