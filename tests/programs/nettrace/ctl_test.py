#!/usr/bin/python3
"""Tests `nettrace ctl` as a user runs it, with a server whose sessions do not record (control_server.cc)."""

import fcntl
import json
import os
import pty
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import unittest

from support import control
from support import script

ARGS = script.options(__doc__, "nettrace", "server")


def on_terminal(command, columns):
    """Returns what the command prints on a terminal of this width, and its exit code."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave) as process:
        os.close(slave)
        text = b""
        while True:
            try:
                some = os.read(master, 65536)
            except OSError:  # the terminal's other end is closed
                break
            if not some:
                break
            text += some
    os.close(master)
    return text.decode(), process.returncode


class CtlTest(unittest.TestCase):
    def setUp(self):
        manager = control.serving(ARGS.server)
        self.socket = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        self.ctl = control.Control(ARGS.nettrace, self.socket)

    def check_printable(self, text):
        for c in text:
            self.assertFalse(c < " " and c not in "\r\n" or "\x7f" <= c < "\xa0" or c == "\u202e", repr(text))

    def test_list_names_the_sessions(self):
        self.assertEqual(self.ctl("list").split("\n"),
                         ["SESSION  KIND    STATE", "box      flight  running", "web      files   suspended", ""])
        sessions = [json.loads(line) for line in self.ctl("list", "--json").splitlines()]
        self.assertEqual([(s["name"], s["kind"]) for s in sessions], [("box", "flight"), ("web", "files")])

    def test_status_is_a_table(self):
        lines = self.ctl("status").splitlines()
        self.assertEqual(lines[0].split(), ["SESSION", "STATE", "SINCE", "EVENTS", "EVENTS/S", "LOST", "WRITTEN", "FILES",
                                            "LAST", "ERROR"])
        web = lines[2].split()
        self.assertEqual(web[:2] + web[3:9], ["web", "suspended", "1.23M", "12.3k", "5000", "3.0", "MB", "14"])
        self.assertTrue(web[9].startswith("eeee"))
        self.assertEqual(lines[1].split()[-1], "-")
        for width in (40, 80, 120):
            text, code = on_terminal([*self.ctl.command, "status"], width)
            self.assertEqual(code, 0)
            self.check_printable(text)
            self.assertEqual(max(map(len, text.splitlines())), width, text)

    def test_status_of_a_session_has_every_property(self):
        text = self.ctl("status", "web")
        self.check_printable(text)
        for part in ("web: suspended since ", "1,234,567, 12.3k/s", "5,000 (1,000 because of a slow output)",
                     "14 files, 0 B", "/web-1.nettrace.partial", "(not known)", "Shop*:5", "its format cannot be read",
                     "(elsewhere)", "997 per second on each busy CPU", "times in which threads have no CPU",
                     ": user,max=30", "warnings:", "has no names", "e" * 200 + "\\u001b[2J"):
            self.assertIn(part, text)
        both = self.ctl("status", "web", "box")
        self.assertIn("a flight recorder", both)
        self.assertIn("64 MB", both)
        web = json.loads(self.ctl("status", "--json", "web"))
        self.assertEqual((web["events"], web["state"], web["errorTime"]), (1234567, "suspended", web["started"]))
        # The table has the places with the most losses, and a last row for all other places.
        shown = [line.split() for line in text.split("where events were lost:\n")[1].splitlines()[1:22]]
        self.assertEqual(sum(int(row[0].replace(",", "")) for row in shown), 5000)

    def test_services_are_a_table_with_the_refused_ones(self):
        text = self.ctl("services")
        self.check_printable(text)
        lines = text.splitlines()
        self.assertEqual(lines[0].split(), ["PID", "USER", "NAME", "CONNECTED", "RING", "EVENTS", "LOST", "TRACEPOINTS", "SESSIONS"])
        row = lines[1].split()
        self.assertEqual(row[:2] + row[-8:], ["4242", "1000", "00s", "1.0", "MB", "1.23M", "5000", "2", "box", "web"])
        self.assertEqual(lines[2].split()[0], "4343")
        self.assertEqual(lines[3], "Refused connections of services:")
        self.assertRegex(lines[4], "^  user 1001, process 77: 12 connections, the last one [0-9]+s ago: the service sent no valid "
                                   "region: .*; use a libeventheader")
        text, code = on_terminal([*self.ctl.command, "services"], 60)
        self.assertEqual(code, 0)
        self.assertLessEqual(max(map(len, text.splitlines()[:2])), 60)

    def test_services_of_a_process_have_all_details(self):
        text = self.ctl("services", "4242")
        self.check_printable(text)
        for part in ("process 4242: shop", "/usr/bin/shop", "/system.slice/shop.service", "1,234,567",
                     "4,999 because its ring was full", "1 in signal handlers", "Shop_L4K1   box web", "Shop_L5K1   -"):
            self.assertIn(part, text)
        text = self.ctl("services", "4343")
        self.check_printable(text)
        self.assertRegex(text, "ring +0 B, inline: the service cannot share memory: ")
        self.assertIn("process 1 is not connected", self.ctl("services", "1", expect=1))
        reply = json.loads(self.ctl("services", "--json"))
        self.assertEqual(set(reply), {"socket", "whyNone", "services", "refused"})
        self.assertEqual([s["pid"] for s in reply["services"]], [4242, 4343])
        self.assertEqual(reply["refused"][0]["count"], 12)

    def test_errors_are_named_and_the_rest_is_done(self):
        ran = self.ctl.run("status", "none", "web")
        self.assertEqual(ran.returncode, 1)
        self.assertEqual(ran.stderr, "nettrace ctl status: there is no session 'none'\n")
        self.assertIn("web: suspended", ran.stdout)
        self.assertIn("writes no files", self.ctl("rotate", "box", expect=1))
        self.assertIn("no session 'e\\u001b'", self.ctl("stop", "e\x1b", expect=1))

    def test_sessions_are_changed(self):
        self.assertEqual(self.ctl("stop", "web", "box"), "")
        self.assertEqual(self.ctl("list").split("\n")[1:3], ["box      flight  stopped", "web      files   stopped"])
        self.assertEqual(self.ctl("start", "web"), "")
        self.assertEqual(self.ctl("rotate", "web"), "/files/web-15\n")
        self.assertEqual(self.ctl("snapshot", "box", "--after", "1.5s"), "/files/box-after-1.5s\n")
        self.assertEqual(self.ctl("reload"), "")
        self.assertEqual(self.ctl("start", "--from", "-", stdin="[session.new]\n"), "new\n")
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write("[session.x]\n")
            file.flush()
            self.assertEqual(self.ctl("start", "--from", file.name, expect=1).splitlines(),
                             [f"nettrace ctl start: {file.name}: the request:1: 'x' is no key",
                              f"nettrace ctl start: {file.name}: the request:2: no selector"])
        self.assertIn("No such file", self.ctl("start", "--from", "/none", expect=1))

    def test_wait_has_a_separate_code_for_the_timeout(self):
        self.assertEqual(self.ctl("wait", "box"), "")
        self.assertEqual(json.loads(self.ctl("wait", "web", "--events", 5, "--files", 14, "--json"))["name"], "web")
        self.assertIn("session web is suspended", self.ctl("wait", "web", "--timeout", "10ms", expect=124))
        self.assertIn("is not a state", self.ctl("wait", "web", "--state", "on", expect=1))

    def test_usage(self):
        for arguments in ((), ("fly",), ("start",), ("stop",), ("tail",), ("start", "web", "--from", "x"),
                          ("wait", "web", "--timeout", "soon"), ("snapshot", "box", "--after", "-1s"),
                          ("wait", "web", "--events", "-1")):
            self.assertNotEqual(self.ctl(*arguments, expect=2), "", arguments)
        for command in ("list", "services", "status", "start", "stop", "rotate", "snapshot", "reload", "tail", "wait", "metrics"):
            text = self.ctl(command, "--help")
            self.assertIn(f"nettrace ctl {command}", text)
            self.assertIn("Example", text)

    def test_a_daemon_that_is_not_there_is_started_by_systemctl(self):
        missing = control.Control(ARGS.nettrace, "/tmp/no-such-socket")
        self.assertIn("systemctl start nettraced", missing("list", expect=1))
        # A daemon that was killed leaves its socket file.
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as dead:
            dead.bind(folder + "/control")
            dead.close()
            self.assertIn("systemctl start nettraced",
                          control.Control(ARGS.nettrace, folder + "/control")("list", expect=1))

    def test_a_daemon_that_talks_nonsense_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
            server.bind(folder + "/control")
            server.listen()
            for reply in (b"", b"\0", b"[]\0", b"{}\0", b'{"parameters":{"sessions":[1]}}\0', b'{"error":"a.B"}\0',
                          b'{"parameters":{"sessions":{}}}\0', b"{\xff}\0", b"[" * 100000 + b"\0"):
                command = [ARGS.nettrace, "ctl", "list", "--socket", folder + "/control"]
                with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as client:
                    connection = server.accept()[0]
                    request = connection.recv(65536)
                    self.assertEqual(json.loads(request.removesuffix(b"\0")),
                                     {"method": "net.nettrace.Collector.List", "parameters": {}})
                    connection.sendall(reply)
                    connection.close()
                    output, error = client.communicate()
                self.assertEqual((client.returncode, output), (1, b""), reply)
                self.assertTrue(error.startswith(b"nettrace ctl list: "), error)
                if reply and b"error" not in reply:
                    self.assertRegex(error, rb"^nettrace ctl list: nettraced: its reply .*; restart nettraced after an upgrade\n$")

    def test_tail_is_immediate_and_has_its_end(self):
        with subprocess.Popen([*self.ctl.command, "tail", "web"], stdout=subprocess.PIPE) as tail, \
                subprocess.Popen([ARGS.nettrace, "dump", "--json", "-"], stdin=tail.stdout,
                                 stdout=subprocess.PIPE) as dump:
            tail.stdout.close()
            # dump prints the event although the stream has not ended.
            self.assertEqual(json.loads(dump.stdout.readline())["name"], "Event")
            self.assertIsNone(tail.poll())
            tail.send_signal(signal.SIGINT)
            self.assertEqual(dump.communicate()[0], b"")
            # tail wrote the end of the stream after SIGINT, so dump succeeds.
            self.assertEqual((dump.wait(), tail.wait()), (0, 0))

    def test_tail_ends_quietly_with_its_reader(self):
        with subprocess.Popen([*self.ctl.command, "tail", "web"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as tail:
            tail.stdout.read(1)
            tail.stdout.close()
            self.assertEqual((tail.wait(20), tail.stderr.read()), (-signal.SIGPIPE, b""))

    def test_tail_is_not_for_a_terminal(self):
        text, code = on_terminal([*self.ctl.command, "tail", "web"], 80)
        self.assertEqual(code, 2)
        self.assertIn("nettrace dump -", text)
        self.assertIn("no session 'none'", self.ctl("tail", "none", expect=1))

    def test_other_clients_can_read_the_interface(self):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.socket))
            client.sendall(b'{"method":"org.varlink.service.GetInfo"}\0'
                           b'{"method":"org.varlink.service.GetInterfaceDescription",'
                           b'"parameters":{"interface":"net.nettrace.Collector"}}\0')
            client.shutdown(socket.SHUT_WR)
            replies = client.makefile("rb").read().split(b"\0")
        info = json.loads(replies[0])["parameters"]
        self.assertEqual(info["version"], "1.2.3")
        self.assertEqual(info["interfaces"], ["org.varlink.service", "net.nettrace.Collector"])
        self.assertIn("method Tail(session: string) -> ()", json.loads(replies[1])["parameters"]["description"])


if __name__ == "__main__":
    script.run_cases()
