"""Reads the files of `nettrace export --to otlp` and `otlp-json` with Google's implementation of Protocol Buffers, from a
.proto that is written from the specification."""

import base64
import importlib
import json
import pathlib
import struct
import subprocess
import sys

from support import script

PROTO = pathlib.Path(__file__).parent / "otlp" / "logs.proto"


def compile_messages(folder):
    """Compiles the .proto into `folder`, and returns the module of its messages."""
    try:
        importlib.import_module("google.protobuf")
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["protoc", f"--proto_path={PROTO.parent}", f"--python_out={folder}", PROTO], check=True)
    except (ImportError, FileNotFoundError) as error:
        raise script.Skipped(f"needs python3-protobuf and protobuf-compiler: {error}") from error
    sys.path.insert(0, str(folder))
    return importlib.import_module("logs_pb2")


def request_type(messages, spans):
    return messages.ExportTraceServiceRequest if spans else messages.ExportLogsServiceRequest


def read_protobuf(messages, file, spans=False):
    """Yields the requests of a file, and the bytes of each."""
    with open(file, "rb") as stream:
        while size := stream.read(4):
            (size,) = struct.unpack(">I", size)
            data = stream.read(size)
            if len(data) != size:
                raise ValueError(f"{file}: a request of {size} bytes has only {len(data)}")
            yield request_type(messages, spans).FromString(data), size


def _without_hexadecimal(json_object):
    """Returns the object with its ids in base64, as protobuf's own JSON has them. OTLP has them in hexadecimal."""
    return {key: base64.b64encode(bytes.fromhex(value)).decode() if key in ("traceId", "spanId", "parentSpanId") else value
            for key, value in json_object.items()}


def read_json(messages, file, spans=False):
    """Yields the requests of a file, and the bytes of each."""
    json_format = importlib.import_module("google.protobuf.json_format")
    with open(file, "rb") as stream:
        for line in stream:
            request = json.loads(line, object_hook=_without_hexadecimal)
            yield json_format.ParseDict(request, request_type(messages, spans)()), len(line)


def value_of(value):
    """Returns an AnyValue as a pair of its type, None if it has none, and the value."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return kind, [value_of(each) for each in value.array_value.values]
    if kind == "kvlist_value":
        return kind, attributes(value.kvlist_value.values)
    return kind, getattr(value, kind) if kind else None


def attributes(pairs):
    """Returns KeyValues as a dict. Their keys must differ."""
    result = {pair.key: value_of(pair.value) for pair in pairs}
    if len(result) != len(pairs):
        raise ValueError(f"a key occurs twice: {[pair.key for pair in pairs]}")
    return result
