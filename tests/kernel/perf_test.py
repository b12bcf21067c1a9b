#!/usr/bin/python3
"""Compares `perf record` and `nettrace record` on the same tracepoints at the same time. nettrace must have recorded each
event of perf with the same fields, and perf each event of nettrace. Text that perf script shows for numbers must be the
same as nettrace's.

perf's events are read from the bytes of its samples with the tracepoints' format files, without code of this project.
The recordings are nested: perf runs inside nettrace's, the workload inside perf's. Needs root, tracefs and perf."""

import collections
import datetime
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from support import commands
from support import script
from support.kernel import perf_data
from support.kernel import tracepoints

ARGS = script.options(__doc__, "nettrace")
WORKLOAD = pathlib.Path(__file__).parent.parent / "support/kernel/workload.py"

SYSTEMS = """block capability csd exceptions ext4 fib fib6 filelock filemap ipi irq kmem mmap mmap_lock napi net percpu
    qdisc raw_syscalls rcu readahead sched signal skb sock task tcp timer timestamp tlb udp vmalloc workqueue
    writeback""".split()
SYSTEM_CALLS = """openat close read write futex mmap munmap clone clone3 execve exit_group wait4 sendto recvfrom connect
    rename unlink epoll_wait newfstatat getpid ioctl fcntl""".split()
# Tracepoints that are left out: the workload does not hit them, or the whole machine hits them all the time.
LEFT_OUT = re.compile("""
    block:(blk_zone|blkdev|disk_zone) | filelock:(break|generic|leases|time) | net:(napi_gro|.*_list)
    | ext4:ext4_(collapse|insert|punch|zero|fc|mballoc|es_shrink|fsmap|getfsmap|prefetch|ind_map|journalled|lazy|load)
    | ext4:ext4_(nfs|trim) | sched:.*numa | tcp:tcp_(ao|hash) | .*_error
    | kmem:(rss_stat|mm_page|kmem_cache) | exceptions:page_fault_user""", re.VERBOSE)
MIN_ATTACHED = 200
MIN_HIT = 60

ATTEMPTS = 3
# MiB of each ring. The rings of up to 32 CPUs take 128 MiB together.
RING = max(4, 1 << (128 // os.cpu_count()).bit_length() - 1) if os.cpu_count() < 128 else 4
# Maximum difference of the two times of a hit, in ns. The recorders see the hit one after the other. Interrupts, and the
# host of a virtual machine, may delay the second recorder.
MAX_DIFFERENCE = 250_000_000
# Maximum difference, in ns, of 99 of 100 hits.
USUAL_DIFFERENCE = 1_000_000
MAX_SHOWN = 10


def selected():
    chosen = [point for point in tracepoints.of(SYSTEMS) if not LEFT_OUT.search(str(point))]
    for call in SYSTEM_CALLS:
        for name in (f"sys_enter_{call}", f"sys_exit_{call}"):
            if (tracepoints.EVENTS / "syscalls" / name).exists():
                chosen.append(tracepoints.Tracepoint("syscalls", name))
    return chosen


class Recording:
    """The events that both recorders wrote, and the threads that belong to them."""

    def __init__(self, folder, chosen):
        self.file = folder / "trace.nettrace"
        self.perf_file = folder / "perf.data"
        pids = folder / "pids"
        times = folder / "times"
        # The shell becomes perf by exec, so perf has the pid of the shell. Its parent is nettrace.
        perf = ["perf", "record", "--quiet", "--all-cpus", "--clockid", "mono", "--raw-samples", "--no-buildid",
                "--mmap-pages", f"{RING}M", "--output", self.perf_file,
                *(word for point in chosen for word in ("-e", str(point))),
                "--", sys.executable, WORKLOAD, folder, times]
        command = ["sh", "-c", f'echo $$ $PPID > {pids}; exec "$@"', "sh", *perf]
        commands.record(ARGS.nettrace, self.file, map(str, chosen), map(str, command), ["--ring-size", f"{RING}M"])
        self.recorders = {int(word) for word in pids.read_text().split()}
        self.start, self.end = (int(word) for word in times.read_text().split())
        self.samples, self.lost = perf_data.read(self.perf_file)
        info = commands.info(ARGS.nettrace, self.file)
        self.lost += info["lost"]
        # nettrace's recording begins before perf's and ends after it, so only the time of perf's samples is compared.
        times = [sample.time for sample in self.samples]
        sync = datetime.datetime.strptime(info["syncTime"][:26], "%Y-%m-%dT%H:%M:%S.%f")
        sync_ticks = int(info["syncTicks"])
        self.around_perfs = []
        for option, time in (("--since", min(times) - MAX_DIFFERENCE), ("--until", max(times) + MAX_DIFFERENCE)):
            moment = sync + datetime.timedelta(microseconds=(time - sync_ticks) // 1000)
            self.around_perfs += [option, moment.isoformat(timespec="microseconds") + "Z"]


class Event:
    """One event, of either recorder."""

    __slots__ = ("time", "cpu", "point", "values", "symbols", "payload", "match")

    def __init__(self, time, cpu, point, values):
        self.time, self.cpu, self.point, self.values = time, cpu, point, values
        self.symbols = self.payload = self.match = None

    def key(self):
        return self.cpu, self.point, self.values

    def __str__(self):
        fields = ", ".join(f"{field.name}={value}" for field, value in zip(self.point.fields, self.values))
        return f"{self.time} cpu {self.cpu} {self.point}: {fields}"


def same_form(field, value):
    """Converts a field's value to a form in which both recorders can be compared."""
    if isinstance(value, list):
        return tuple(same_form(field, element) for element in value)
    if field.type == "char" and isinstance(value, str) and (field.array or field.located):
        return value
    number = int(value, 0) if isinstance(value, str) else int(value)
    return number & ((1 << 8 * field.element) - 1)


def perf_events(recording, by_id):
    """Returns perf's events without repetitions, and the number of repeated samples. On a busy machine, perf writes some
    hundred samples twice. Equal samples are one hit: a CPU does not hit a tracepoint twice in a nanosecond."""
    events = {}
    samples = 0
    for sample in recording.samples:
        point = by_id[int.from_bytes(sample.raw[:2], "little")]
        pid = int.from_bytes(sample.raw[4:8], "little", signed=True)
        if pid in recording.recorders:
            continue
        values = tuple(same_form(field, field.value(sample.raw)) for field in point.fields)
        samples += 1
        event = Event(sample.time, sample.cpu, point, values)
        events.setdefault((event.time, event.key()), event)
    return list(events.values()), samples - len(events)


def our_events(recording, by_name, problems):
    events = []
    for line in commands.dump(ARGS.nettrace, recording.file, *recording.around_perfs):
        point = by_name.get((line["provider"], line["name"]))
        if point is None:
            problems.append(f"nettrace recorded an event of a tracepoint that was not selected: {line}")
            continue
        if line["tid"] in recording.recorders:
            continue
        payload = line["payload"]
        if list(payload) != [field.name for field in point.fields]:
            problems.append(f"{point}: the event has the fields {list(payload)} instead of those of the format file")
            continue
        values = tuple(same_form(field, payload[field.name]) for field in point.fields)
        time = int(line["labels"].get("OriginalTimestamp", line["timestamp"]))
        event = Event(time, line["cpu"], point, values)
        event.symbols = line.get("symbols", {})
        event.payload = payload
        events.append(event)
    return events


def match(theirs, ours):
    """Matches each event of perf with the event of ours that has the same values and is nearest in time."""
    groups = collections.defaultdict(list)
    for event in sorted(ours, key=lambda event: event.time):
        groups[event.key()].append(event)
    places = collections.Counter()
    for event in sorted(theirs, key=lambda event: event.time):
        key = event.key()
        group, place = groups.get(key, ()), places[key]
        while place + 1 < len(group) and abs(group[place + 1].time - event.time) < abs(group[place].time - event.time):
            place += 1
        if place < len(group) and abs(group[place].time - event.time) <= MAX_DIFFERENCE:
            event.match, group[place].match = group[place], event
            place += 1
        places[key] = place


def difference(event, others):
    """Returns the event, and the fields in which the nearest event of the other recorder has different values."""
    near = min((other for other in others if (other.cpu, other.point) == (event.cpu, event.point)),
               key=lambda other: abs(other.time - event.time), default=None)
    if near is None:
        return f"{event}; the other recorder has no event of this tracepoint on this CPU"
    fields = [f"{field.name}={value}"
              for field, value, own in zip(event.point.fields, near.values, event.values) if value != own]
    return (f"{event}; the other recorder's nearest event is {near.time - event.time} ns later, with "
            f"{', '.join(fields) or 'equal values'}")


def check_fields(recording, theirs, ours, problems):
    match(theirs, ours)
    for side, events, others in (("only perf has", theirs, ours), ("perf does not have", ours, theirs)):
        for event in events:
            if event.match is None and recording.start <= event.time <= recording.end:
                shown = difference(event, others) if len(problems) < MAX_SHOWN else event
                problems.append(f"{side} {shown}")


def words_of_perf(recording):
    """Yields, for each event that perf script shows, (CPU, time, tracepoint) and the text of its fields."""
    command = ["perf", "script", "--input", recording.perf_file, "--ns", "--fields", "cpu,time,event,trace"]
    line_of = re.compile(r"^\s*\[(\d+)\]\s+(\d+)\.(\d{9}):\s+(\w+:\w+):\s?(.*)$")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          errors="replace") as process:
        for line in process.stdout:
            found = line_of.match(line)
            if found:
                cpu, seconds, nanoseconds, name, text = found.groups()
                yield (int(cpu), int(seconds) * 1_000_000_000 + int(nanoseconds), name), text


def shown_words(text):
    """Returns, by name, the words that follow "NAME=". A format may have a name twice, as in "zone name=%s
    upper_zone name=%s"."""
    words = collections.defaultdict(list)
    for name, word in re.findall(r"(\w+)=([A-Za-z_][^\s,;)\]]*)", text):
        words[name].append(word)
    return words


def check_symbols(recording, theirs, problems):
    """Compares our symbols with perf script's text. Returns the number of symbols, and of their fields."""
    events = {(event.cpu, event.time, str(event.point)): event.match for event in theirs}
    compared, fields = 0, set()
    for key, text in words_of_perf(recording):
        event = events.get(key)
        if event is None or "FAILED TO PARSE" in text:
            continue
        for name, symbol in event.symbols.items():
            if is_kernel_address(event.point, name) and symbol.split("+")[0] not in text:
                continue  # perf may choose another one of several symbols at an address
            compared += 1
            fields.add((str(event.point), name))
            missing = [word for word in symbol.split(" ") if word not in text]
            if missing:
                problems.append(f"{event.point}: {name} is {symbol!r}, but perf script shows {text!r}")
        for name, words in shown_words(text).items():
            # The value 0 is not compared: for 0, libtraceevent prints the name of a flag whose value it does not know.
            if (name in event.payload and event.payload[name] not in (0, "0x0") and
                    not any(shows(event, name, word) for word in words)):
                problems.append(f"{event.point}: perf script shows {name}={words}; nettrace shows {event.symbols.get(name)!r}")
    return compared, fields


def is_kernel_address(point, name):
    return re.search(rf"%p[sSB].*\bREC->{name}\b", point.print_format) is not None


def shows(event, name, word):
    """Returns whether we show `word` for the field: as its text, its symbol, or its number in hexadecimal."""
    value = event.payload[name]
    symbol = event.symbols.get(name, "")
    if isinstance(value, str) and value.startswith(word):
        return True
    if word in symbol.split(" ") or word in symbol or is_kernel_address(event.point, name):
        return True
    try:
        return int(word, 16) == int(value, 0) if isinstance(value, str) else int(word, 16) == value
    except (ValueError, TypeError):
        return False


def record(folder, chosen):
    for attempt in range(ATTEMPTS):
        recording = Recording(folder, chosen)
        if recording.lost == 0:
            return recording
        print(f"attempt {attempt + 1}: {recording.lost} events were lost; recording again", flush=True)
    return recording


def check():
    if os.geteuid() != 0:
        raise script.Skipped("perf of the whole machine needs root")
    if shutil.which("perf") is None:
        raise script.Skipped("there is no perf (the package linux-perf)")
    if not tracepoints.EVENTS.exists():
        raise script.Skipped("tracefs is not mounted at /sys/kernel/tracing")
    chosen = selected()
    by_id = {point.id: point for point in chosen}
    by_name = {(point.system, point.name): point for point in chosen}
    problems = []
    if len(chosen) < MIN_ATTACHED:
        problems.append(f"this kernel has only {len(chosen)} of the selected tracepoints; the test needs {MIN_ATTACHED}")
    with tempfile.TemporaryDirectory(prefix="perf-test-") as name:
        recording = record(pathlib.Path(name), chosen)
        if recording.lost:
            problems.append(f"{recording.lost} events were lost in the last of {ATTEMPTS} attempts; none may be lost")
        ours = our_events(recording, by_name, problems)
        theirs, repeated = perf_events(recording, by_id)
        check_fields(recording, theirs, ours, problems)
        compared, named = check_symbols(recording, theirs, problems)
    matched = [event for event in theirs if event.match is not None]
    apart = sorted(abs(event.match.time - event.time) for event in matched)
    if apart and apart[len(apart) * 99 // 100] > USUAL_DIFFERENCE:
        problems.append(f"the times of one hit in a hundred differ by {apart[len(apart) * 99 // 100]} ns or more; "
                        f"at most {USUAL_DIFFERENCE} ns are usual")
    hit = {event.point for event in matched}
    values = sum(len(event.values) for event in matched)
    arrays = {(str(event.point), field.name) for event in matched
              for field, value in zip(event.point.fields, event.values) if isinstance(value, (tuple, str)) and value}
    print(f"{len(chosen)} tracepoints attached, {len(hit)} hit: {len(matched)} events with {values} values are equal, "
          f"those of {len(arrays)} array and text fields among them; {compared} symbols of {len(named)} fields are "
          f"perf script's; {repeated} samples of perf's are there twice")
    if len(hit) < MIN_HIT:
        problems.append(f"the workload hit only {len(hit)} tracepoints; the test needs {MIN_HIT}")
    if not arrays or not compared:
        problems.append(f"{len(arrays)} array and text fields and {compared} symbols were compared; the test needs both")
    print("\n  ".join([f"{len(problems)} problems", *problems[:MAX_SHOWN]]))
    return not problems


if __name__ == "__main__":
    script.main(check)
