"""The events that load_service writes, derived only from (thread, number). Checks that a recording shows every event
once and correctly, and counts all missing events as lost."""

import collections
import json

from support import commands

EVENTS = 20_000
PROVIDER = "Load"
TRACEPOINTS = ("Load_L4K1", "Load_L5K2", "Load_L3K4")
# The tracepoint of load_service --calls.
CALL = "sys_enter_sched_rr_get_interval"
CALL_NUMBER = 148
CALL_TRACEPOINT = f"syscalls:{CALL}"
NUMBER_BITS = 20
MAX_SHOWN = 20


def expected(service, thread, number):
    """Returns event `number` of thread `thread` (0, 1, …), without the members that vary from run to run."""
    return _expected_call(thread, number) if service["calls"] else _expected_event(thread, number)


def _expected_call(thread, number):
    payload = {"__syscall_nr": CALL_NUMBER, "pid": hex(thread + 1 << NUMBER_BITS | number), "interval": "0x0"}
    return {"provider": "syscalls", "name": CALL, "level": 0, "keywords": "0x0", "payload": payload}


def _expected_event(thread, number):
    event = {"provider": PROVIDER, "id": 0, "version": 0, "opcode": 0, "activityId": None, "relatedActivityId": None}
    ids = {"thread": thread, "number": number}
    shape = number % 3
    if shape == 0:
        return event | {"name": "Numbers", "level": 4, "keywords": "0x1",
                        "payload": ids | {"square": number * number, "negative": -number}}
    if shape == 1:
        text = f"thread {thread}, " + ("größe" if number % 5 == 0 else "number") + f" {number}"
        return event | {"name": "Text", "level": 5, "keywords": "0x2",
                        "payload": ids | {"text": text, "ratio": number / 8, "odd": number % 2 == 1}}
    event |= {"name": "Active", "level": 3, "keywords": "0x4", "version": 2, "opcode": 9,
              "activityId": activity_id(thread, number), "payload": ids}
    if number % 2 == 1:
        event["relatedActivityId"] = activity_id(thread, number - 1)
    return event


def activity_id(thread, number):
    return f"{thread:08x}-{number >> 16:04x}-{number & 0xffff:04x}-8000-0123456789ab"


def problems(nettrace, file, service, lossy=None, events=EVENTS, names=True):
    """Returns messages about what is wrong with a recording. `service`: what load_service printed; `lossy`: True if the
    rings were too small, so that something must be lost, False if nothing may be lost, None if both are accepted;
    `events`: the number of events of each thread; `names`: whether the names of threads must be right, too."""
    info = commands.info(nettrace, file)
    texts, right = wrong_events(nettrace, file, service, names)

    def same(what, wanted, got):
        if wanted != got:
            texts.append(f"{what}: {got} instead of {wanted}")

    written = sum(thread["written"] for thread in service["threads"])
    same("events that the service could write", events, written)
    same("events that the service could not write", 0, sum(thread["notWritten"] for thread in service["threads"]))
    same("events shown right", info["events"], right)
    same("events shown and events lost", written, info["events"] + info["lost"])
    if lossy is not None:
        same("whether something was lost", lossy, info["lost"] > 0)
    same("whether the file is complete", True, info["complete"])
    return texts


def wrong_events(nettrace, file, service, names=True):
    """Returns messages about wrong events, at most MAX_SHOWN, and the number of events that were right."""
    texts = []
    seen = set()
    times = collections.defaultdict(list)
    for event in commands.dump(nettrace, file):
        key = key_of(event, service)
        problem = _difference(event, key, service, names) or (key in seen and "the event is in the recording twice")
        if not problem:
            seen.add(key)
            times[key[0]].append((event["timestamp"], key[1]))
        elif len(texts) < MAX_SHOWN:
            texts.append(f"thread {key[0]} number {key[1]}: {problem}: {json.dumps(event)}")
    for thread, stamps in times.items():
        numbers = [number for _, number in sorted(stamps)]
        if numbers != sorted(numbers):
            texts.append(f"the events of thread {thread} are not in the order in which it wrote them")
    return texts, len(seen)


def key_of(event, service):
    """Returns the thread and the number of an event, which together identify the event."""
    payload = event["payload"]
    if not service["calls"]:
        return payload.get("thread"), payload.get("number")
    pid = int(payload.get("pid", "0"), 16)
    return (pid >> NUMBER_BITS) - 1, pid & (1 << NUMBER_BITS) - 1


def _difference(event, key, service, names):
    thread, number = key
    if not isinstance(thread, int) or not 0 <= thread < len(service["threads"]):
        return "the service has no thread with this number"
    wrote = service["threads"][thread]
    if not isinstance(number, int) or not 0 <= number < wrote["written"]:
        return "the service wrote no event with this number"
    if service["processes"]:
        who = {"pid": event["tid"], "thread": f"{wrote['name']}-{number}"}
    else:
        who = {"pid": service["pid"], "tid": wrote["tid"], "thread": wrote["name"]}
    if not names:
        del who["thread"]
    wanted = who | expected(service, thread, number)
    for name, value in wanted.items():
        if event.get(name) != value:
            return f"{name} is {event.get(name)!r} instead of {value!r}"
    if list(event["payload"]) != list(wanted["payload"]):
        return f"the fields are {list(event['payload'])} instead of {list(wanted['payload'])}"
    if not isinstance(event["payload"].get("odd", False), bool):
        return "the field 'odd' must be a boolean"
    return None
