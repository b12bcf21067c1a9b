#!/usr/bin/python3
"""Sends mutated messages to the control socket of a running nettraced for --seconds, over many connections. After each
batch, the daemon must answer correctly, and its memory, threads and descriptors must stay within limits. At the end it
must stop with exit status 0. The sessions record if root has perf events and tracefs; otherwise they fail, and only the
socket is tested. --seed repeats the messages of an earlier run."""

import copy
import json
import os
import pathlib
import random
import re
import socket
import time
import unittest

from support import script
from support.daemon import nettraced

ARGS = script.options(__doc__, "nettrace", "nettraced", "corpus", seconds=10, seed=0, memory=64)
SEED = ARGS.seed or time.time_ns() % 2**32
# MiB of resident memory. The daemon may have 40 connections, each with a message of up to 1 MiB.
MEMORY = ARGS.memory
# Maximum number of threads, and of descriptors, that the daemon may have in addition to those before the first batch.
# Some threads and descriptors end later than the connection that they serve.
SPARE = 8
SESSIONS = ("box", "off", "web")
SELECT = 'select = ["sched:sched_process_exec"]\n'
SETTINGS = (f'[session.web]\n{SELECT}[session.web.files]\nkeep_files = 4\n'
            f'[session.off]\nstart = false\n{SELECT}'
            f'[session.box]\n{SELECT}[session.box.flight]\nkeep_bytes = "1M"\n'
            '[session.box.files]\nkeep_files = 4\n')
INTERFACE = "net.nettrace.Collector"
VALUES = (None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, -2**63, 1e308, 0.5, "", "\0", "web", "box", "off", "new",
          "running", "web" * 30, "x" * 5000, "\ud7ff\u202e\x1b[2J", "../web", "%s%n", [], {}, [[]], {"": {}}, {"": ""})
NAMES = ("", "session", "method", "parameters", "after", "state", "files", "events", "timeout", "settings", "interface",
         "upgrade", "oneway", "x" * 300, "\0", "é")
BYTES = (b"", b"\0", b"\0\0", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"{", b"}", b"[", b'"', b"\\u0000", b"\\ud800",
         b'"":1,', b"1e999", b"-", b"\n", b" " * 5000)


def nested(depth, form):
    """Returns the JSON text of arrays or objects in one another."""
    before, after = {"array": (b"[", b"]"), "object": (b'{"":', b"}")}[form]
    return before * depth + b"1" + after * depth


def sessions_text(name):
    return f"[session.{name}]\n{SELECT}"


def seeds():
    """Returns valid requests, and the messages of the corpus."""
    calls = [("List", {}), ("Metrics", {}), ("Services", {}), ("Reload", {}),
             ("StartFrom", {"settings": sessions_text("new")}),
             ("StartFrom", {"settings": "[session.wrong]\nselct = 1\n"})]
    for name in SESSIONS:
        calls += [(method, {"session": name}) for method in ("Status", "Start", "Stop", "Rotate", "Tail")]
        calls += [("Snapshot", {"session": name, "after": 1}),
                  ("Wait", {"session": name, "state": "stopped", "files": 1, "events": 1, "timeout": 20})]
    result = [{"method": f"{INTERFACE}.{name}", "parameters": parameters} for name, parameters in calls]
    result += [{"method": "org.varlink.service.GetInfo"}]
    result += [request | {"upgrade": True} for request in result if request["method"].endswith("Tail")]
    result = [json.dumps(request).encode() for request in result]
    for path in sorted(ARGS.corpus.iterdir()):
        # The first byte selects the rights of the fuzzer's client.
        result += [message for message in path.read_bytes()[1:].split(b"\0") if message]
    return result


class Mutator:
    """Makes messages from seeds, repeatably for one seed of random numbers."""

    def __init__(self, numbers):
        self.random = numbers
        self.seeds = seeds()

    def stream(self):
        """Returns the bytes to send over one connection: several messages. The last one may be cut."""
        messages = [self.message() for _ in range(self.random.choice((1, 1, 2, 5, 40)))]
        result = b"\0".join(messages) + b"\0"
        if self.random.random() < 0.2:
            result = result[:self.random.randrange(len(result))]
        return result

    def message(self):
        chosen = self.random.choice(self.seeds)
        kind = self.random.random()
        if kind < 0.15:
            return chosen
        if kind < 0.20:
            return self.large()
        if kind < 0.65:
            chosen = self.mutate_json(chosen)
        return self.mutate_bytes(chosen) if kind > 0.55 else chosen

    def large(self):
        """Returns a message that is deep or long."""
        depth = self.random.choice((15, 16, 17, 1000, 400_000))
        form = self.random.choice(("array", "object"))
        parameters = self.random.choice((nested(depth, form), b'{"session":"' + b"a" * depth + b'"}',
                                         b"{" + b'"session":"web",' * depth + b'"session":"web"}',
                                         b'{"settings":"' + b"a.b\\n" * depth + b'"}'))
        method = self.random.choice(("Status", "StartFrom", "Wait", "Stop"))
        return b'{"method":"%s.%s","parameters":%s}' % (INTERFACE.encode(), method.encode(), parameters)

    def mutate_json(self, text):
        try:
            value = json.loads(text)
        except ValueError:
            return text
        for _ in range(self.random.randint(1, 3)):
            value = self.mutate_value(value)
        return json.dumps(value, ensure_ascii=self.random.random() < 0.5).encode(errors="surrogatepass")

    def mutate_value(self, value):
        """Returns the value with a change at one random place in it."""
        if isinstance(value, dict) and value and self.random.random() < 0.8:
            name = self.random.choice(list(value))
            kind = self.random.random()
            if kind < 0.15:
                value[self.random.choice(NAMES)] = copy.deepcopy(self.random.choice(VALUES))
            elif kind < 0.25:
                del value[name]
            elif kind < 0.4:
                value[self.random.choice(NAMES)] = value.pop(name)
            else:
                value[name] = self.mutate_value(value[name])
            return value
        if isinstance(value, str) and self.random.random() < 0.3:
            at = self.random.randint(0, len(value))
            return value[:at] + self.random.choice(("", ".", "\0", "é", "\n", "x" * 100)) + value[at + 1:]
        return copy.deepcopy(self.random.choice(VALUES))

    def mutate_bytes(self, text):
        for _ in range(self.random.randint(1, 4)):
            at = self.random.randint(0, len(text))
            end = min(len(text), at + self.random.choice((0, 1, 1, 8)))
            text = text[:at] + self.random.choice((*BYTES, text[at:at + 20])) + text[end:]
        return text


class Facts:
    """The memory in MiB, threads and descriptors of a process."""

    def __init__(self, pid):
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        self.memory = int(re.search(r"VmRSS:\s*(\d+)", status)[1]) / 1024
        self.threads = int(re.search(r"Threads:\s*(\d+)", status)[1])
        self.descriptors = len(os.listdir(f"/proc/{pid}/fd"))

    def __str__(self):
        return f"{self.memory:.1f} MiB, {self.threads} threads, {self.descriptors} descriptors"


class ControlFuzzTest(unittest.TestCase):
    def setUp(self):
        print(f"seed {SEED}", flush=True)
        self.random = random.Random(SEED)
        self.mutator = Mutator(self.random)
        self.daemon = nettraced.Daemon(ARGS.nettraced, ARGS.nettrace, {"sessions": SETTINGS})
        self.addCleanup(self.daemon.close)
        self.daemon.start()
        self.messages = 0

    def connect(self):
        result = socket.socket(socket.AF_UNIX)
        self.addCleanup(result.close)
        result.settimeout(30)
        result.connect(str(self.daemon.path / "run/control"))
        return result

    def send(self, connection, stream):
        """Sends the bytes. Accepts that the daemon closes the connection, or stops reading while the client does not
        read its replies."""
        connection.settimeout(0.2)
        try:
            connection.sendall(stream)
        except (TimeoutError, BrokenPipeError, ConnectionResetError):
            pass

    def check_replies(self, connection, stream):
        """Reads what the daemon sends, for at most a few seconds, and checks each reply before a NetTrace stream may
        begin."""
        connection.settimeout(1)
        received = b""
        end = time.monotonic() + 3
        try:
            connection.shutdown(socket.SHUT_WR)
            while time.monotonic() < end and (got := connection.recv(65536)):
                received += got
        except OSError:
            pass  # The daemon has closed the connection, or still executes a long request, such as Wait.
        for reply in received.split(b"\0")[:-1]:
            parsed = json.loads(reply)
            self.assertIn("parameters", parsed, stream[:2000])
            if "error" not in parsed and b"Tail" in stream:
                return

    def batch(self):
        """Opens connections, and sends messages over each. Reads the replies of half of them. Returns the connections."""
        connections = []
        end = time.monotonic() + 5
        for _ in range(self.random.choice((1, 10, 30, 60))):
            if time.monotonic() > end:
                break
            stream = self.mutator.stream()
            self.messages += stream.count(b"\0")
            try:
                connection = self.connect()
            except (BlockingIOError, ConnectionRefusedError):
                continue  # The daemon has as many connections as it accepts at once.
            connections.append(connection)
            self.send(connection, stream)
            if self.random.random() < 0.5:
                self.check_replies(connection, stream)
                connection.close()
        return connections

    def ask(self, method, **parameters):
        """Returns the reply to a valid request, or None if the daemon still has too many connections."""
        with self.connect() as connection:
            request = {"method": f"{INTERFACE}.{method}", "parameters": parameters}
            try:
                connection.sendall(json.dumps(request).encode() + b"\0")
            except (BrokenPipeError, ConnectionResetError):
                pass  # The daemon has closed the connection, after a reply with the reason.
            received = b""
            try:
                while not received.endswith(b"\0") and (got := connection.recv(65536)):
                    received += got
            except ConnectionResetError:
                pass
        if not received.endswith(b"\0"):
            return None
        reply = json.loads(received[:-1])
        return None if reply.get("error", "").endswith("ResourceExhausted") else reply

    def require(self, method, **parameters):
        """Returns the reply to a valid request, which must arrive within a minute."""
        end = time.monotonic() + 60
        while (reply := self.ask(method, **parameters)) is None:
            self.assertIsNone(self.daemon.process.poll(), self.daemon.log()[-3000:])
            self.assertLess(time.monotonic(), end, f"the daemon did not reply to {method} within 60 s")
            time.sleep(0.05)
        return reply

    def restore(self):
        """Gives the daemon the sessions and states that its settings have."""
        # Stops all sessions, because a stop also ends requests for snapshots that still wait.
        for session in self.require("List")["parameters"]["sessions"]:
            self.require("Stop", session=session["name"])
        self.require("Start", session="web")
        self.require("Start", session="box")

    def states(self):
        return {session["name"]: session["state"] for session in self.require("List")["parameters"]["sessions"]}

    def check(self, before):
        """Checks that the daemon answers, that its sessions can be brought back to their first states, and that its memory,
        threads and descriptors are within their limits. `before`: the Facts from before the first batch."""
        end = time.monotonic() + 60
        while self.states() != self.before:
            # The states may change again, because the daemon still executes requests of closed connections.
            self.assertLess(time.monotonic(), end, self.states())
            self.restore()
        for name in SESSIONS:
            status = self.require("Status", session=name)["parameters"]["session"]
            self.assertEqual(status["name"], name)
            self.assertEqual(status["kind"], "flight" if name == "box" else "files")
        end = time.monotonic() + 60
        while True:
            facts = Facts(self.daemon.process.pid)
            if (facts.descriptors <= before.descriptors + SPARE and facts.threads <= before.threads + SPARE
                    and facts.memory <= MEMORY):
                return facts
            self.assertLess(time.monotonic(), end, f"more than {MEMORY} MiB, or more than {SPARE} additional threads or "
                            f"descriptors: before: {before}; now: {facts}")
            time.sleep(0.1)

    def test_daemon_survives_any_messages(self):
        self.restore()
        self.before = self.states()
        before = facts = Facts(self.daemon.process.pid)
        end = time.monotonic() + ARGS.seconds
        batches = 0
        while time.monotonic() < end:
            for connection in self.batch():
                connection.close()
            self.restore()
            facts = self.check(before)
            batches += 1
        print(f"{self.before}; {batches} batches, {self.messages} messages; before: {before}; after: {facts}", flush=True)
        # The daemon must stop while clients are connected.
        self.batch()
        self.assertEqual(self.daemon.stop(), 0, self.daemon.log()[-3000:])
        self.assertNotIn("Assertion", self.daemon.log())


if __name__ == "__main__":
    script.run_cases()
