#!/usr/bin/python3
"""Tests that the records of `nettrace export --to otlp` and `otlp-json` have what `nettrace dump --json` shows: the same
events with the same values and types, times, threads and ids, and the same losses; that `nettrace ship` sends the same
records; and that the spans of `otlp-spans` are those of the events. An independent implementation reads the files and
requests; see otlp_receiver.py."""

import collections
import decimal
import json
import math
import re
import struct
import subprocess

from support import commands
from support import otlp_server
from support import script

import ctf
import otlp_receiver

FILES = ("types", "quirks", "labels", "activities", "names", "intervals", "lost", "account", "empty", "sections",
         "common-schema")
LOG_RECORDS = {"common-schema": 12}  # events that are log records of OpenTelemetry
MAX_SHOWN = 10
MAX_REQUEST = 1_000_000
SEVERITIES = {0: (0, ""), 1: (21, "critical"), 2: (17, "error"), 3: (13, "warning"), 4: (9, "info"), 5: (5, "verbose")}
MESSAGES = ("message", "Message", "_m")
# Labels of events that do not become attributes.
LABELS = "TraceId", "SpanId", "OpCode", "Keywords", "Level", "Version"
# Keys of thread rows, with the attributes of the resource that they become.
RESOURCE = {"HostName": "host.name", "BootId": "nettrace.boot_id", "Executable": "process.executable.path",
            "Cgroup": "process.linux.cgroup", "Container": "container.id", "Unit": "nettrace.unit",
            "UserUnit": "nettrace.user_unit"}
NO_ID = "00000000-0000-0000-0000-000000000000"

# Parts of log records of OpenTelemetry in Common Schema: the members of their structs, and their types.
LOG_MEMBERS = {"PartA.time": str, "PartA.ext_dt_traceId": str, "PartA.ext_dt_spanId": str, "PartA.ext_dt_traceFlags": int,
               "PartA.ext_cloud_role": str, "PartA.ext_cloud_roleInstance": str, "PartB.name": str, "PartB.body": object,
               "PartB.severityNumber": int, "PartB.severityText": str}

Record = collections.namedtuple("Record", "resource scope scope_attributes record attributes")


def fnv1a(data):
    result = 0xCBF29CE484222325
    for byte in data:
        result = (result ^ byte) * 0x100000001B3 % 2**64
    return result


def read(args, messages, file, to):
    """Exports a file, and returns its records with a list of what is wrong with the requests."""
    out = args.out / f"{file.stem}.{to}"
    subprocess.run([args.nettrace, "export", "--to", to, "--processes", "--account", file, "-o", out], check=True,
                   stderr=subprocess.DEVNULL)
    piped = subprocess.run([args.nettrace, "export", "--to", to, "--processes", "--account", file, "-o", "-"], check=True,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    wrong = [] if piped == out.read_bytes() else [f"{to}: standard output differs from the file"]
    reader = otlp_receiver.read_protobuf if to == "otlp" else otlp_receiver.read_json
    records = []
    for request, size in reader(messages, out):
        before = len(records)
        for resource in request.resource_logs:
            of_resource = otlp_receiver.attributes(resource.resource.attributes)
            for scope in resource.scope_logs:
                of_scope = otlp_receiver.attributes(scope.scope.attributes)
                records += [Record(of_resource, scope.scope.name, of_scope, record,
                                   otlp_receiver.attributes(record.attributes)) for record in scope.log_records]
        count = len(records) - before
        if not 0 < count <= 8192 or (size > MAX_REQUEST + 1 and count > 1):
            wrong.append(f"{to}: a request of {size} bytes has {count} records")
    return records, wrong


def encoded(request):
    """Yields the bytes of each record of a request, with its resource and scope."""
    for resource in request.resource_logs:
        for scope in resource.scope_logs:
            for record in scope.log_records:
                yield tuple(part.SerializeToString(deterministic=True) for part in (resource.resource, scope.scope, record))


def check_shipped(args, messages, file, exported):
    """Yields the differences between the records that `nettrace ship` sends and those of the export, whose values are
    compared with dump. The export also has the events that ship leaves out."""
    receiver = otlp_server.Receiver(read_uids=lambda body: [])
    state = args.out / f"{file.stem}.state"
    state.unlink(missing_ok=True)
    out = subprocess.run([args.nettrace, "ship", "--once", "--json", "--to", receiver.url, "--compression", "zstd", "--state", state,
                          file], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    receiver.close()
    shipped = collections.Counter(record for _, _, body in receiver.requests
                                  for record in encoded(messages.ExportLogsServiceRequest.FromString(body)))
    counts = json.loads(out)
    info = commands.info(args.nettrace, file)
    plain = subprocess.run([args.nettrace, "dump", "--json", file], check=True, stdout=subprocess.PIPE).stdout.count(b"\n")
    if counts["accepted"] != shipped.total() or (counts["events"], counts["lost"]) != (plain, info["lost"]):
        yield f"ship printed {counts}, but sent {shipped.total()} records; the file has {plain} events and {info['lost']} lost"
    if extra := shipped - exported:
        yield f"ship: {extra.total()} records that the export does not have"


def is_same(shown, value):
    """Returns whether the value of an attribute is what dump shows."""
    kind, value = value
    if shown is None:
        return kind is None
    if isinstance(shown, bool):
        return kind == "bool_value" and value == shown
    if isinstance(shown, int):
        return kind == "int_value" and value == shown
    if isinstance(shown, decimal.Decimal):
        if kind != "double_value":
            return False
        return value == float(shown) or struct.pack("<f", value) == struct.pack("<f", float(shown))
    if isinstance(shown, list):
        return kind == "array_value" and len(shown) == len(value) and all(map(is_same, shown, value))
    if isinstance(shown, dict):
        return kind == "kvlist_value" and are_same(shown, value)
    if kind == "int_value":  # dump shows it as text, because readers of JSON would round it
        return str(value) == shown and abs(value) > 2**53
    if kind == "double_value":
        return shown == ("NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity")
    if kind == "bytes_value":
        return value.hex() == shown
    return kind == "string_value" and value == shown


def are_same(members, values):
    members = {name: value for name, value in members.items() if value is not None}
    return members.keys() == values.keys() and all(is_same(value, values[name]) for name, value in members.items())


def log_record(payload):
    """Returns the parts of a log record by the names in LOG_MEMBERS, and its attributes. Returns no parts, and the payload,
    if the event is not a log record."""
    ordinary = {}, payload
    parts = {name: payload[name] for name in ("PartA", "PartB", "PartC") if isinstance(payload.get(name), dict)}
    if payload.get("__csver__") != 0x400 or "PartB" not in parts or payload.keys() != {"__csver__", *parts}:
        return ordinary
    found, attributes = {}, {}
    members = []
    for part, values in parts.items():
        for name, value in values.items():
            if part == "PartA" and name.startswith("ext_") and isinstance(value, dict):
                members += [(part, f"{name}_{inner}", inner_value) for inner, inner_value in value.items()]
            else:
                members.append((part, name, value))
    if ("PartB", "_typeName", "Log") not in members:
        return ordinary
    members.remove(("PartB", "_typeName", "Log"))
    for part, name, value in members:
        key = f"{part}.{name}"
        if key in LOG_MEMBERS:
            if not isinstance(value, LOG_MEMBERS[key]):
                return ordinary
            found[key] = value
        else:
            attributes[name if part == "PartC" or key == "PartB.eventId" else key] = value
    lengths = {"PartA.ext_dt_traceId": 32, "PartA.ext_dt_spanId": 16}
    if any(len(found.get(key, "0" * length)) != length for key, length in lengths.items()):
        return ordinary
    if not 0 <= found.get("PartB.severityNumber", 0) <= 24:
        return ordinary
    return found or {"PartB": {}}, attributes


def expected_ids(event, roots):
    """Returns the ids of the trace and the span. Records the root of the event's activity in `roots`."""
    activity, related = (None if event[key] == NO_ID else event[key] for key in ("activityId", "relatedActivityId"))
    trace, span = event["labels"].get("TraceId", ""), event["labels"].get("SpanId", "")
    trace = "" if set(trace) == {"0"} else trace
    span = "" if set(span) == {"0"} else span
    if not activity:
        return trace, span
    if related and related != activity:
        roots.setdefault(activity, roots.get(related, related))
    if trace:
        return trace, span
    digits = bytes.fromhex(activity.replace("-", ""))
    return roots.get(activity, activity).replace("-", ""), span or f"{fnv1a(digits) | 1:016x}"


def check_properties(event, record, roots):
    """Yields the differences in the properties of an event, which are everything but its fields. Removes the attributes of
    the properties from the record."""
    found = record.attributes

    def take(key, wanted):
        value = found.pop(key, (None, None))
        if not is_same(wanted, value):
            yield f"{key}: {wanted!r} became {value!r}"

    keywords = int(event["keywords"], 16)
    severity = SEVERITIES.get(event["level"], (1, str(event["level"])))
    message = record.record
    parts = event["log_record"]
    if number := parts.get("PartB.severityNumber"):
        severity = number, parts.get("PartB.severityText", "")
    time = message.observed_time_unix_nano
    if "PartA.time" in parts:
        time = ctf.nanoseconds(parts["PartA.time"].replace("+00:00", "Z"))
    ids = expected_ids(event, roots)
    if "PartA.ext_dt_traceId" in parts:
        ids = parts["PartA.ext_dt_traceId"], parts["PartA.ext_dt_spanId"]
    yield from take("thread.id", event["tid"])
    yield from take("thread.name", event["thread"] or None)
    yield from take("cpu.logical_number", event["cpu"])
    yield from take("eventheader.id", event["id"] or None)
    yield from take("eventheader.version", event["version"] or None)
    yield from take("eventheader.opcode", event["opcode"] or None)
    yield from take("eventheader.keyword", None if not keywords else hex(keywords) if keywords >> 63 else
                    keywords if keywords <= 2**53 else str(keywords))
    yield from take("eventheader.tag", event.get("tag"))
    yield from take("eventheader.activity_id", event["activityId"])
    yield from take("eventheader.related_activity_id", event["relatedActivityId"])
    yield from take("nettrace.error", event.get("error"))
    yield from take("nettrace.stack", event.get("stack"))
    for key, value in event["labels"].items():
        if key not in LABELS:
            yield from take(f"nettrace.label.{key}", value)
    info = event.get("threadInfo", {})
    for key, value in info.items():
        if key not in RESOURCE:
            yield from take(f"nettrace.thread.{key}", value)
    for wanted, got in (((message.severity_number, message.severity_text), severity),
                        (message.event_name, name_of(event)),
                        (message.time_unix_nano, time),
                        ((message.trace_id.hex(), message.span_id.hex()), ids),
                        (message.flags, parts.get("PartA.ext_dt_traceFlags", 0)),
                        (record.scope_attributes.get("eventheader.group", (None, None))[1], event.get("group"))):
        if wanted != got:
            yield f"{got!r} became {wanted!r}"
    for key, attribute in RESOURCE.items():
        if info.get(key) and record.resource.get(attribute) != ("string_value", info[key]):
            yield f"{key}: {info[key]!r} became {record.resource.get(attribute)!r}"
    for key, attribute in (("role", "service.name"), ("roleInstance", "service.instance.id")):
        wanted = parts.get(f"PartA.ext_cloud_{key}")
        if wanted and record.resource.get(attribute) != ("string_value", wanted):
            yield f"{key}: {wanted!r} became {record.resource.get(attribute)!r}"


def check_event(event, record, roots):
    """Yields the differences between a record and the event that dump shows."""
    yield from check_properties(event, record, roots)
    payload = dict(event["attributes"])
    if event["log_record"]:
        # PartB has the body of a log record. A field named like an attribute of this project has a prefix in the export.
        payload = {f"field.{name}" if name == "thread.id" else name: value for name, value in payload.items()}
        body = event["log_record"].get("PartB.body")
        if not is_same(body, otlp_receiver.value_of(record.record.body)):
            yield f"the body is {record.record.body} instead of {body!r}"
    elif record.record.HasField("body"):
        name = next((name for name in payload if name in MESSAGES), None)
        if name is None or not is_same(payload.pop(name), otlp_receiver.value_of(record.record.body)):
            yield f"the body is {record.record.body}, which is not the field of the message"
    if not are_same(payload, record.attributes):
        for name in {**payload, **record.attributes}:
            ours, theirs = payload.get(name), record.attributes.get(name, (None, None))
            if not is_same(ours, theirs):
                yield f"field {name}: {ours!r} became {theirs!r}"


def expected_spans(events):
    """Returns the spans of the events that dump shows, and the number of those without a start or a stop."""
    roots, window, spans, incomplete = {}, collections.defaultdict(list), [], 0
    for event in events:
        trace, span = expected_ids(event, roots)
        activity, related = event["activityId"], event["relatedActivityId"]
        parts = event["log_record"]
        if "PartA.ext_dt_traceId" in parts:
            trace, span = parts["PartA.ext_dt_traceId"], parts["PartA.ext_dt_spanId"]
        if event["opcode"] not in (1, 2) or activity is None or not trace or not span:
            continue
        time = max(ctf.nanoseconds(event["time"]), 0)
        if event["opcode"] == 1:
            parent, link = "", None
            if window[activity]:
                parent = window[activity][-1]["span"]
                span = f"{fnv1a(str(int(parent, 16)).encode()) | 1:016x}"
            elif related and related not in (NO_ID, activity):
                opened = window[related]
                if opened and opened[-1]["trace"] == trace:
                    parent = opened[-1]["span"]
                else:
                    digits = bytes.fromhex(related.replace("-", ""))
                    link = ((opened[-1]["trace"], opened[-1]["span"]) if opened else
                            (roots.get(related, related).replace("-", ""), f"{fnv1a(digits) | 1:016x}"))
            name = name_of(event)
            if name.endswith(("Start", "start", "Begin", "begin")):
                name = re.sub("[/._: -]*$", "", name[:-len("Start")])
            window[activity].append({"provider": event["provider"], "trace": trace, "span": span, "parent": parent, "link": link,
                                     "name": name or name_of(event), "start": time, "end": time, "id": event["id"],
                                     "payload": event["attributes"]})
            continue
        begun = [each for each in window[activity] if each["provider"] == event["provider"]]
        if not begun:
            incomplete += 1
            continue
        window[activity].remove(begun[-1])
        begun[-1].update(end=max(begun[-1]["start"], time), id=event["id"] or begun[-1]["id"],
                         payload={**begun[-1]["payload"], **{key: value for key, value in event["attributes"].items()
                                                              if value is not None}})
        spans.append({**begun[-1], "incomplete": False})
    left = [{**each, "incomplete": True} for opened in window.values() for each in opened]
    return spans + left, incomplete + len(left)


def check_spans(args, messages, file, events):
    """Yields the differences between the spans of a file and those that follow from its dump."""
    wanted, incomplete = expected_spans(events)
    for to in ("otlp-spans", "otlp-spans-json"):
        out = args.out / f"{file.stem}.{to}"
        said = subprocess.run([args.nettrace, "export", "--to", to, "--processes", "--account", file, "-o", out], check=True,
                              stderr=subprocess.PIPE, text=True).stderr
        said = said if "without the other end" in said else ""
        if (f" {incomplete} event" in said) != (incomplete != 0):
            yield f"{to}: {incomplete} events lack their start or stop, but the export printed '{said}'"
        read_requests = otlp_receiver.read_protobuf if to == "otlp-spans" else otlp_receiver.read_json
        found = [(scope.scope.name, span) for request, _ in read_requests(messages, out, spans=True)
                 for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans]
        if len(found) != len(wanted):
            yield f"{to}: {len(found)} spans instead of {len(wanted)}"
        left = collections.defaultdict(list)
        for scope, span in found:
            left[scope, span.span_id.hex(), span.start_time_unix_nano].append(span)
        for span in wanted:
            same = left[span["provider"], span["span"], span["start"]]
            if not same:
                yield f"{to}: no span for {span}"
                continue
            got = same.pop(0)
            attributes = otlp_receiver.attributes(got.attributes)
            facts = {"trace": got.trace_id.hex(), "parent": got.parent_span_id.hex(), "name": got.name,
                     "end": got.end_time_unix_nano, "incomplete": "nettrace.span.incomplete" in attributes,
                     "link": next(((each.trace_id.hex(), each.span_id.hex()) for each in got.links), None)}
            for key, value in facts.items():
                if span[key] != value:
                    yield f"{to}: {span['name']}: {key}: {value!r} instead of {span[key]!r}"
            if got.kind != 1:
                yield f"{to}: {span['name']}: kind {got.kind} instead of 1"
            for key, value in span["payload"].items():
                if value is not None and not key.startswith("thread.") and not is_same(value, attributes.get(key, (None, None))):
                    yield f"{to}: {span['name']}: {key} is {attributes.get(key)} instead of {value!r}"


def name_of(event):
    return event["log_record"].get("PartB.name", event["name"])


def key_of_event(event):
    return max(ctf.nanoseconds(event["time"]), 0), event["provider"], name_of(event), event["pid"], event["tid"]


def key_of_record(record):
    return (record.record.observed_time_unix_nano, record.scope, record.record.event_name,
            record.resource.get("process.pid", (None, None))[1], record.attributes.get("thread.id", (None, None))[1])


def check(args, messages, file):
    """Returns the differences between both exports of a file and its dump, and the number of its events."""
    out = subprocess.run([args.nettrace, "dump", "--json", "--processes", "--account", file], check=True,
                         stdout=subprocess.PIPE).stdout
    events = [json.loads(line, parse_float=decimal.Decimal) for line in out.splitlines()]
    for event in events:
        event["log_record"], event["attributes"] = log_record(event["payload"])
    records, wrong = read(args, messages, file, "otlp")
    same, more = read(args, messages, file, "otlp-json")
    wrong += more
    uids = {record.attributes.pop("log.record.uid")[1] for record in records}
    if uids != {record.attributes.pop("log.record.uid")[1] for record in same}:
        wrong.append("otlp and otlp-json have different uids")
    if len(uids) != len(records):
        wrong.append(f"{len(records)} records have only {len(uids)} different uids")
    both = [sorted(map(repr, each)) for each in (records, same)]
    wrong += [f"otlp-json: {a} became {b}" for a, b in zip(*both, strict=False) if a != b]
    exported = collections.Counter(record for request, _ in otlp_receiver.read_protobuf(messages, args.out / f"{file.stem}.otlp")
                                   for record in encoded(request))
    wrong += check_shipped(args, messages, file, exported)
    if len(records) != len(same):
        wrong.append(f"{len(records)} records in protobuf, {len(same)} in otlp-json")
    lost = [record for record in records if record.scope == "nettrace"]
    if (total := sum(record.attributes["count"][1] for record in lost)) != commands.info(args.nettrace, file)["lost"]:
        wrong.append(f"the records state {total} lost events, unlike nettrace info")
    if any(record.record.event_name != "LostEvents" or record.record.severity_number != 13 for record in lost):
        wrong.append("the record of a loss is not named LostEvents, or does not have severity 13")
    queues = collections.defaultdict(collections.deque)
    for record in records:
        if record.scope != "nettrace":
            queues[key_of_record(record)].append(record)
    roots = {}
    for event in events:
        queue = queues[key_of_event(event)]
        if not queue:
            wrong.append(f"no record for {event}")
            continue
        wrong += [f"{event['time']} {event['name']}: {text}" for text in check_event(event, queue.popleft(), roots)]
    wrong += [f"a record without an event: {record}" for queue in queues.values() for record in queue]
    wrong += check_spans(args, messages, file, events)
    if (found := sum(bool(event["log_record"]) for event in events)) != LOG_RECORDS.get(file.stem, 0):
        wrong.append(f"{found} log records in Common Schema instead of {LOG_RECORDS.get(file.stem, 0)}")
    return wrong, len(events)


def main():
    parser = script.parser(__doc__, "nettrace", "generate", "random", "out")
    parser.add_argument("--size", type=int, default=300, help="of random traces")
    parser.add_argument("--seeds", type=int, default=4, help="number of random traces")
    args = parser.parse_args()
    seeds = range(1, args.seeds + 1)
    args.out.mkdir(parents=True, exist_ok=True)
    messages = otlp_receiver.compile_messages(args.out / "messages")
    subprocess.run([args.generate, args.out], check=True)
    subprocess.run([args.random, args.out, str(args.size), *map(str, seeds)], check=True)
    passed, total = True, 0
    for name in [*FILES, *(f"random-{seed}" for seed in seeds)]:
        wrong, events = check(args, messages, args.out / f"{name}.nettrace")
        total += events
        print(f"{name}: {events} events, {len(wrong)} differences")
        for text in wrong[:MAX_SHOWN]:
            print(f"  {text[:500]}")
        passed &= not wrong
    print(f"{total} events in total")
    return passed


if __name__ == "__main__":
    script.main(main)
