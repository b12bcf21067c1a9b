#!/usr/bin/python3
"""Tests that `nettrace ship`, which is killed at random, delivers each event to a receiver that fails at random. The
records must be those that `nettrace export --to otlp` writes, read with Google's implementation of Protocol Buffers. A
record may arrive again, unchanged, only if an answer was lost or the process was killed."""

import collections
import json
import random
import shutil
import signal
import subprocess
import sys
import time

from support import otlp_server
from support import script

import otlp_receiver

FILES = ("types", "quirks", "labels", "activities", "names", "lost", "common-schema")
SEEDS = range(1, 5)
SECONDS = [f"20261126T12{n // 60:02}{n % 60:02}.000000Z" for n in range(3600)]
PARTIAL = b"\x0a\x02\x08\x00"  # a partial success that rejects nothing
FAULTS = (otlp_server.Reply(503), otlp_server.Reply(429, headers={"Retry-After": "0"}), otlp_server.Reply(502, b"<html>"),
          otlp_server.Reply(504), otlp_server.Closed(stores=False), otlp_server.Closed(stores=True), otlp_server.Cut(stores=True),
          otlp_server.Reply(body=PARTIAL))
LARGEST = 15000  # maximum bytes of a request with several records; the receiver refuses larger ones with status 413


def records_of(request):
    """Yields the uid of each record of a request, and the record with its resource and scope."""
    for resource in request.resource_logs:
        for scope in resource.scope_logs:
            for record in scope.log_records:
                [uid] = [pair.value.string_value for pair in record.attributes if pair.key == "log.record.uid"]
                yield uid, (resource.resource.SerializeToString(deterministic=True),
                            scope.scope.SerializeToString(deterministic=True), record.SerializeToString(deterministic=True))


class Test:
    def __init__(self, args):
        self.args = args
        self.messages = otlp_receiver.compile_messages(args.out / "messages")
        self.random = random.Random(args.seed)
        self.spool = args.out / "spool"
        shutil.rmtree(self.spool, ignore_errors=True)
        self.spool.mkdir(parents=True)
        self.state = self.spool.parent / "state" / "state.json"
        shutil.rmtree(self.state.parent, ignore_errors=True)
        self.state.parent.mkdir()
        self.expected = {}  # records by uid
        self.arrived = collections.defaultdict(list)
        self.last = set()  # uids of the last request that was stored
        self.may_repeat = set()
        self.receiver = otlp_server.Receiver(self.choose, self.read)
        self.wrong = []

    def make_files(self, copies):
        """Puts files into the spool, and reads the records that they become."""
        subprocess.run([self.args.generate, self.args.out], check=True)
        seeds = [*SEEDS, *range(100, 100 + copies)]
        subprocess.run([self.args.random, self.args.out, "300", *map(str, seeds)], check=True)
        for number, name in enumerate([*FILES, *(f"random-{seed}" for seed in seeds)]):
            file = self.args.out / f"{name}.nettrace"
            shutil.copy(file, self.spool / f"s-{SECONDS[number]}.nettrace")
            out = file.with_suffix(".otlp")
            subprocess.run([self.args.nettrace, "export", "--to", "otlp", file, "-o", out], check=True, capture_output=True)
            for request, _ in otlp_receiver.read_protobuf(self.messages, out):
                for uid, record in records_of(request):
                    # Files of different seeds may have events with the same thread, time and number, and so the same uid.
                    self.expected.setdefault(uid, []).append(record)

    def choose(self, _number, body):
        """Returns the receiver's answer to a request; None for success."""
        time.sleep(0.002)
        if len(body) > LARGEST and len(list(records_of(self.messages.ExportLogsServiceRequest.FromString(body)))) > 1:
            return otlp_server.Reply(413)
        return self.random.choice(FAULTS) if self.random.random() < 0.1 else None

    def read(self, body):
        """Stores a request; returns its uids."""
        records = list(records_of(self.messages.ExportLogsServiceRequest.FromString(body)))
        for uid, record in records:
            self.arrived[uid].append(record)
        self.last = {uid for uid, _ in records}
        return [uid for uid, _ in records]

    def ship(self, *options):
        return subprocess.Popen([self.args.nettrace, "ship", "--to", self.receiver.url, "--state", self.state, "--json",
                                 "--retry-wait", "1ms", "--request-size", "20000", *options, self.spool],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def kill(self):
        """Runs the program until the receiver has some more requests, and kills it at a random moment."""
        wanted = len(self.receiver.requests) + self.random.randrange(40)
        deadline = time.monotonic() + 2
        with self.ship() as process:
            while len(self.receiver.requests) < wanted and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(self.random.uniform(0, 0.02))
            process.send_signal(signal.SIGKILL)
            process.communicate()
        time.sleep(0.05)  # the receiver may still be storing the last request
        with self.receiver.lock:
            self.may_repeat |= self.last

    def finish(self):
        """Ships the rest, and returns the counts and the messages."""
        with self.ship("--once") as process:
            out, said = process.communicate()
        if process.returncode != 0:
            self.wrong.append(f"ship --once: exit code {process.returncode} instead of 0: {said[-2000:]}")
        return json.loads(out), said

    def check(self):
        may_repeat = self.may_repeat | self.receiver.unanswered
        missing = self.expected.keys() - self.arrived.keys()
        if missing:
            self.wrong.append(f"{len(missing)} of {len(self.expected)} records did not arrive")
        for uid, records in self.arrived.items():
            wanted = self.expected.get(uid, [])
            if set(records) != set(wanted):
                self.wrong.append(f"{uid}: the receiver got {records} instead of {wanted}")
            if len(records) > len(wanted) and uid not in may_repeat:
                self.wrong.append(f"{uid}: arrived {len(records)} times instead of {len(wanted)}, although no answer was lost")
        totals = json.loads(self.state.read_text(encoding="utf-8"))["totals"]
        if (totals["rejected"], totals["refused"], totals["lostFiles"]) != (0, 0, 0):
            self.wrong.append(f"the state has rejected, refused or lost files: {totals}")


def check_missing_sections(args):
    """Tests that sections that were deleted before they were sent are reported."""
    test = Test(args)
    test.choose = test.receiver.choose = lambda _number, _body: None
    info = json.loads(subprocess.run([args.nettrace, "info", "--json", args.out / "account.nettrace"], check=True,
                                     stdout=subprocess.PIPE).stdout)
    section = info["continues"]
    shutil.copy(args.out / "empty.nettrace", test.spool / f"s-{SECONDS[0]}.nettrace")
    shutil.copy(args.out / "account.nettrace", test.spool / f"s-{SECONDS[1]}.nettrace")
    with test.ship("--once") as process:
        out, said = process.communicate()
    test.receiver.close()
    counts = json.loads(out)
    expected = {"missingSections": section["section"] - 1, "missingEvents": section["eventsBefore"] + section["lostBefore"]}
    print(f"missing sections: {expected}")
    if counts["missingSections"] == 0 or any(counts[key] != value for key, value in expected.items()):
        test.wrong.append(f"missing sections: ship counted {counts} instead of {expected}")
    if "according to the next file" not in said or process.returncode != 1:
        test.wrong.append(f"missing sections: exit code {process.returncode} instead of 1, or no message: {said}")
    return test.wrong


def main():
    parser = script.parser(__doc__, "nettrace", "generate", "random", "out")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    print(f"seed {args.seed}")
    test = Test(args)
    test.make_files(copies=args.kills // 2)
    for _ in range(args.kills):
        test.kill()
    counts, _ = test.finish()
    test.receiver.close()
    test.check()
    arrived = sum(map(len, test.arrived.values()))
    print(f"{len(test.expected)} records, {arrived - len(test.expected)} repeated, {len(test.receiver.requests)} requests, "
          f"{args.kills} kills, {counts['accepted']} records after the last kill")
    wrong = test.wrong + check_missing_sections(args)
    for text in wrong[:10]:
        print(f"  {text[:500]}", file=sys.stderr)
    return not wrong


if __name__ == "__main__":
    script.main(main)
