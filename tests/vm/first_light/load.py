"""What load_service writes, derived from (thread, number) alone, and the check that a recording of it
shows every event once and right."""

import collections
import json
import subprocess

PROVIDER = "FirstLight"
TRACEPOINTS = ("FirstLight_L4K1", "FirstLight_L5K2", "FirstLight_L3K4")
MAX_SHOWN = 20


def expected(thread, number):
    """The event that thread `thread` (0, 1, …) writes as its `number`th, as far as it does not vary."""
    event = {"provider": PROVIDER, "version": 0, "opcode": 0, "activityId": None, "relatedActivityId": None}
    ids = {"thread": thread, "number": number}
    shape = number % 3
    if shape == 0:
        return event | {"name": "Numbers", "level": 4, "keywords": 1,
                        "payload": ids | {"square": number * number, "negative": -number}}
    if shape == 1:
        text = f"thread {thread}, " + ("größe" if number % 5 == 0 else "number") + f" {number}"
        return event | {"name": "Text", "level": 5, "keywords": 2,
                        "payload": ids | {"text": text, "ratio": number / 8, "odd": number % 2 == 1}}
    event |= {"name": "Active", "level": 3, "keywords": 4, "version": 2, "opcode": 9,
              "activityId": activity_id(thread, number), "payload": ids}
    if number % 2 == 1:
        event["relatedActivityId"] = activity_id(thread, number - 1)
    return event


def activity_id(thread, number):
    return f"{thread:08x}-{number >> 16:04x}-{number & 0xffff:04x}-8000-0123456789ab"


class Recording:
    """A recording of one run of load_service: its events, and how many the file says were lost."""

    def __init__(self, nettrace, file):
        self._dump = [nettrace, "dump", "--json", file]
        self.info = json.loads(subprocess.run([nettrace, "info", "--json", file], stdout=subprocess.PIPE,
                                              check=True).stdout)

    def events(self):
        """One at a time: a whole recording is large for a small machine."""
        with subprocess.Popen(self._dump, stdout=subprocess.PIPE) as dump:
            for line in dump.stdout:
                yield json.loads(line)
        if dump.returncode != 0:
            raise subprocess.CalledProcessError(dump.returncode, self._dump)


def differences(recording, service):
    """Texts that say what is wrong with the events of `recording`, at most MAX_SHOWN, and how many events
    were right. `service`: what load_service printed. Missing events are not differences."""
    texts = []
    seen = set()
    right = 0
    last = collections.defaultdict(int)  # Timestamp of each thread's latest event.
    order = collections.defaultdict(list)
    for event in recording.events():
        payload = event["payload"]
        key = (payload.get("thread"), payload.get("number"))
        problem = _difference(event, key, service)
        if problem is None and key in seen:
            problem = "it is there twice"
        seen.add(key)
        if problem is None:
            right += 1
            order[key[0]].append((event["timestamp"], key[1]))
            last[key[0]] = event["timestamp"]
        elif len(texts) < MAX_SHOWN:
            texts.append(f"thread {key[0]} number {key[1]}: {problem}: {json.dumps(event)}")
    for thread, stamps in order.items():
        numbers = [number for _, number in sorted(stamps)]
        if numbers != sorted(numbers):
            texts.append(f"the events of thread {thread} are not in the order in which it wrote them")
    return texts, right


def _difference(event, key, service):
    thread, number = key
    if not isinstance(thread, int) or not 0 <= thread < len(service["threads"]):
        return "there is no such thread"
    wrote = service["threads"][thread]
    if not isinstance(number, int) or not 0 <= number < wrote["written"]:
        return "it was never written"
    actual = {"pid": event["pid"], "tid": event["tid"], "thread": event["thread"]}
    wanted = {"pid": service["pid"], "tid": wrote["tid"], "thread": wrote["name"]}
    for name, value in expected(thread, number).items():
        wanted[name] = value
        actual[name] = event.get(name)
    actual["keywords"] = int(event["keywords"], 16)
    for name, value in wanted.items():
        # Also the order of the fields, and true is not 1.
        if json.dumps(actual[name]) != json.dumps(value):
            return f"{name} is {actual[name]!r} instead of {value!r}"
    return None
