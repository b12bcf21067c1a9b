#!/usr/bin/python3
"""Tests `nettrace ship` as a user runs it, with a receiver whose answers are chosen. The receiver reads JSON;
tests/conformance reads protobuf."""

import collections
import json
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
import unittest

from support import commands
from support import otlp_server
from support import script

ARGS = script.options(__doc__, "nettrace", "generate", "activities")
TIMES = [f"20261126T1200{n:02}.000000Z" for n in range(60)]


class ShipTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="nettrace-ship-")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.spool = self.folder / "spool"
        self.spool.mkdir()
        self.state = self.folder / "state.json"
        subprocess.run([ARGS.generate, self.folder, "300", "1", "2", "3"], check=True)

    def receiver(self, *replies, **options):
        """Starts a receiver that gives these replies first, and then succeeds."""
        choose = options.pop("choose", lambda number, body: replies[number] if number < len(replies) else None)
        receiver = otlp_server.Receiver(choose, **options)
        self.addCleanup(receiver.close)
        return receiver

    def add(self, seed, number=None):
        """Puts a file of events into the spool; returns its path."""
        path = self.spool / f"shop-{TIMES[seed if number is None else number]}.nettrace"
        shutil.copy(self.folder / f"random-{seed}.nettrace", path)
        return path

    def records(self, *seeds):
        """Returns the number of records to which the files are converted."""
        total = 0
        for seed in seeds:
            path = self.folder / f"random-{seed}.nettrace"
            out = subprocess.run([ARGS.nettrace, "export", "--to", "otlp-json", path, "-o", "-"], check=True,
                                 capture_output=True).stdout
            total += sum(len(otlp_server.json_uids(line)) for line in out.splitlines())
        return total

    def command(self, receiver, *arguments, paths=()):
        url = receiver if isinstance(receiver, str) else receiver.url
        return [ARGS.nettrace, "ship", "--to", url, "--state", self.state, "--encoding", "json", "--json",
                "--retry-wait", "10ms", *map(str, arguments), *(paths or [self.spool])]

    def ship(self, receiver, *arguments, expect=0, paths=(), **options):
        """Ships once; returns the counts and the messages."""
        ran = subprocess.run(self.command(receiver, "--once", *arguments, paths=paths), check=False, capture_output=True,
                             text=True, timeout=120, **options)
        self.assertEqual(ran.returncode, expect, ran.stderr)
        return json.loads(ran.stdout) if ran.stdout else None, ran.stderr

    def check_arrived(self, receiver, records):
        """Checks that all records arrived. A record may arrive more than once only if the answer to it was lost."""
        times = collections.Counter(receiver.stored)
        self.assertEqual(len(times), records)
        self.assertLessEqual({uid for uid, count in times.items() if count > 1}, receiver.unanswered)

    def test_everything_arrives_once(self):
        self.add(1), self.add(2)
        receiver = self.receiver()
        counts, said = self.ship(receiver)
        self.assertEqual(counts["files"], 2)
        self.assertEqual(counts["accepted"], self.records(1, 2))
        self.assertTrue(counts["complete"])
        self.assertIn("sent ", said)
        path, headers, _ = receiver.requests[0]
        self.assertEqual(path, "/v1/logs")
        self.assertEqual((headers["Content-Type"], headers["Content-Encoding"]), ("application/json", "gzip"))
        again, _ = self.ship(receiver)
        self.assertEqual((again["files"], again["requests"]), (0, 0))
        self.add(3)
        self.assertEqual(self.ship(receiver)[0]["files"], 1)
        self.check_arrived(receiver, self.records(1, 2, 3))

    def test_requests_without_compression_and_with_a_path(self):
        file = self.add(1)
        receiver = self.receiver()
        self.ship(receiver.url + "/here", "--compression", "none", paths=[file])
        path, headers, _ = receiver.requests[0]
        self.assertEqual(path, "/here")
        self.assertNotIn("Content-Encoding", headers)
        self.check_arrived(receiver, self.records(1))

    def test_requests_in_zstd(self):
        self.add(1)
        receiver = self.receiver()
        self.ship(receiver, "--compression", "zstd")
        self.assertEqual(receiver.requests[0][1]["Content-Encoding"], "zstd")
        self.check_arrived(receiver, self.records(1))

    def test_activities_are_sent_as_spans(self):
        file = self.spool / "activities.nettrace"
        subprocess.run([ARGS.activities, file, "1", "300"], check=True)
        paths = []
        for signal_name in ("otlp-json", "otlp-spans-json"):
            out = subprocess.run([ARGS.nettrace, "export", "--to", signal_name, file, "-o", "-"], check=True,
                                 capture_output=True).stdout
            paths.append([line for line in out.splitlines() if line])
        wanted = sorted(span for line in paths[1] for span in otlp_server.json_spans(line))
        self.assertGreater(len(wanted), 100)
        providers = {scope["scope"]["name"] for line in paths[1] for resource in json.loads(line)["resourceSpans"]
                      for scope in resource["scopeSpans"]}
        refused = otlp_server.Reply(503)
        receiver = self.receiver(choose=lambda number, body: refused if number % 3 == 0 else None,
                                 read_uids=lambda body: otlp_server.json_spans(body) or otlp_server.json_uids(body))
        options = [word for provider in providers for word in ("--spans", provider)]
        options += ["--request-size", "20000"]
        # A run ends after four requests, and the next run continues there.
        receiver.choose = lambda number, body: None if number < 4 else otlp_server.Reply(401)
        self.ship(receiver, *options, expect=1)
        before = len(receiver.requests)
        receiver.choose = lambda number, body: refused if number % 3 == 0 else None
        counts, said = self.ship(receiver, *options)
        self.assertEqual({path for path, _, _ in receiver.requests[before:]}, {"/v1/logs", "/v1/traces"})
        stored = collections.Counter(receiver.stored)
        self.assertEqual(set(stored.values()), {1})
        self.assertEqual(sorted(each for each in stored if isinstance(each, tuple)), wanted)
        totals = json.loads(self.state.read_text())["totals"]
        self.assertEqual((totals["spans"], totals["accepted"] + totals["spans"]), (len(wanted), len(stored)))
        self.assertIn(" spans of 1 file", said)
        self.assertGreaterEqual(counts["incompleteSpans"], 0)

    def test_spans_need_a_url(self):
        self.assertIn("--spans-to", self.ship("http://127.0.0.1:1/here", "--spans", "P", expect=2)[1])

    def test_export_sends_to_a_url(self):
        receiver = self.receiver(otlp_server.Reply(503))
        headers = self.folder / "headers"
        headers.write_text("X-Key: secret3\n")
        file = self.folder / "random-1.nettrace"
        export = [ARGS.nettrace, "export", "--to", "otlp-json", file, "--retry-wait", "1ms", "-o"]
        ran = subprocess.run([*export, receiver.url, "--header-file", headers], check=True, capture_output=True, text=True)
        self.check_arrived(receiver, self.records(1))
        self.assertEqual(len(receiver.stored), self.records(1))
        self.assertEqual((receiver.requests[0][0], receiver.requests[0][1]["X-Key"]), ("/v1/logs", "secret3"))
        self.assertIn(f"{self.records(1)} records accepted, 0 rejected individually, 0 in refused requests", ran.stderr)
        self.assertNotIn("secret3", ran.stderr)
        receiver.choose = lambda number, body: otlp_server.Reply(400)
        for url, code in ((receiver.url, 1), ("http://127.0.0.1:1", 1), ("http://me:secret@host", 2)):
            ran = subprocess.run([*export, url, "--give-up", "1s"], check=False, capture_output=True, text=True)
            self.assertEqual(ran.returncode, code, ran.stderr)
            self.assertNotIn("secret", ran.stderr)
        for wrong in (["--to", "csv", file, "-o", receiver.url], ["--to", "otlp", file, "-o", "-", "--ca", "x"]):
            ran = subprocess.run([ARGS.nettrace, "export", *wrong], check=False, capture_output=True, text=True)
            self.assertEqual(ran.returncode, 2, ran.stderr)

    def test_metrics_are_written(self):
        file = self.add(1)
        metrics = self.folder / "ship.prom"
        receiver = self.receiver(otlp_server.Reply(401))

        def read():
            text = metrics.read_text()
            self.assertTrue(text.endswith("\n# EOF\n"))
            lines = [line.split() for line in text.splitlines()]
            families = [line[2] for line in lines if line[1] == "TYPE"]
            self.assertEqual(len(set(families)), len(families))
            return {line[0].removeprefix("nettrace_ship_"): float(line[1]) for line in lines if line[0] != "#"}

        self.ship(receiver, "--metrics", metrics, expect=1)
        self.ship(receiver, "--metrics", metrics)
        found = read()
        self.assertEqual((found["accepted_records_total"], found["waiting_files"], found["behind_seconds"], found["failing"]),
                         (self.records(1), 0, 0, 0))
        self.assertEqual(metrics.stat().st_mode & 0o777, 0o644)
        shutil.copy(file, self.spool / "second.nettrace")
        receiver.choose = lambda number, body: otlp_server.Reply(503)
        self.ship(receiver, "--metrics", metrics, "--give-up", "1s", expect=1)
        found = read()
        self.assertEqual((found["waiting_files"], found["failing"]), (1, 1))
        self.assertGreater(found["behind_seconds"], 0)
        self.assertIn("No such file", self.ship(receiver, "--metrics", self.folder / "missing" / "m", "--give-up", "1s",
                                                expect=1)[1])

    def test_credentials_are_not_in_the_command_line_or_environment(self):
        self.add(1)
        headers = self.folder / "headers"
        headers.write_text("Authorization: Bearer secret4\n")
        receiver = self.receiver(choose=lambda number, body: otlp_server.Reply(503, b"no secret4"))
        with subprocess.Popen(self.command(receiver, "--header-file", headers), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as ship:
            self.wait_for(lambda: receiver.requests)
            shown = [pathlib.Path(f"/proc/{ship.pid}/{name}").read_bytes() for name in ("cmdline", "environ")]
            ship.send_signal(signal.SIGTERM)
            ship.communicate(timeout=60)
        self.assertNotIn(b"secret4", b"".join(shown))
        self.assertEqual(receiver.requests[0][1]["Authorization"], "Bearer secret4")
        self.assertNotIn("secret4", self.state.read_text())

    def test_answers_of_wrong_length_are_repeated_or_ignored(self):
        self.add(1)
        receiver = self.receiver(otlp_server.Raw(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"),
                                 otlp_server.Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nx"),
                                 otlp_server.Raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nx"),
                                 otlp_server.Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"))
        counts, _ = self.ship(receiver)
        self.assertGreaterEqual(counts["retries"], 3)
        self.check_arrived(receiver, self.records(1))

    def test_server_of_another_protocol_drops_nothing(self):
        self.add(1)
        receiver = self.receiver(otlp_server.Raw(b"\x00\xff no HTTP\r\n\r\n"))
        counts, said = self.ship(receiver, expect=1)
        self.assertEqual((counts["accepted"], counts["refused"]), (0, 0))
        self.assertIn("the rest was not sent", said)
        self.ship(receiver)
        self.check_arrived(receiver, self.records(1))

    def test_retries_what_may_succeed_later(self):
        self.add(1)
        receiver = self.receiver(otlp_server.Reply(503), otlp_server.Reply(502), otlp_server.Reply(504),
                                 otlp_server.Reply(429, headers={"Retry-After": "1"}), otlp_server.Closed(stores=False),
                                 otlp_server.Closed(stores=True), otlp_server.Cut(stores=True))
        start = time.monotonic()
        counts, said = self.ship(receiver)
        self.assertGreaterEqual(time.monotonic() - start, 1)
        self.assertGreaterEqual(counts["retries"], 6)  # libcurl repeats a request itself if a kept connection is closed
        self.assertIn("the receiver answered 503; retrying", said)
        self.assertIn("answers again", said)
        self.check_arrived(receiver, self.records(1))
        self.assertGreater(len(receiver.stored), self.records(1))

    def test_slow_answer_is_repeated(self):
        self.add(1)
        receiver = self.receiver(otlp_server.Slow(6, stores=False))
        counts, said = self.ship(receiver, "--timeout", "3s")
        self.assertGreaterEqual(counts["retries"], 1)
        self.assertIn("timed out", said)
        self.check_arrived(receiver, self.records(1))

    def test_gives_up_and_continues_later(self):
        self.add(1)
        receiver = self.receiver(choose=lambda number, body: otlp_server.Reply(503) if number else None)
        counts, said = self.ship(receiver, "--give-up", "1s", "--request-size", "10000", expect=1)
        self.assertIn("503; the rest was not sent", said)
        self.assertFalse(counts["complete"])
        receiver.choose = lambda number, body: None
        self.ship(receiver, "--request-size", "10000")
        self.check_arrived(receiver, self.records(1))
        self.assertEqual(len(receiver.stored), self.records(1))

    def test_retry_after_longer_than_the_time_to_give_up_ends_at_once(self):
        self.add(1)
        receiver = self.receiver(otlp_server.Reply(429, headers={"Retry-After": "Fri, 31 Dec 2099 23:59:59 GMT"}))
        self.assertIn("429", self.ship(receiver, expect=1)[1])
        self.assertEqual(len(receiver.requests), 1)

    def test_partial_success_is_counted(self):
        self.add(1)
        body = json.dumps({"partialSuccess": {"rejectedLogRecords": "3", "errorMessage": "too\x1b old"}}).encode()
        receiver = self.receiver(otlp_server.Reply(body=body))
        counts, said = self.ship(receiver, expect=1)
        self.assertEqual(counts["rejected"], 3)
        self.assertEqual(counts["accepted"], self.records(1) - 3)
        self.assertIn("rejected 3 records", said)
        self.assertIn("too\\u001b old", said)
        self.assertEqual(len(receiver.requests), counts["requests"])

    def test_too_large_requests_are_halved(self):
        self.add(1)
        most = 20000
        receiver = self.receiver(choose=lambda number, body: otlp_server.Reply(413) if len(body) > most else None)
        counts, _ = self.ship(receiver)
        self.assertEqual((counts["refused"], counts["accepted"]), (0, self.records(1)))
        self.check_arrived(receiver, self.records(1))
        self.assertEqual(len(receiver.stored), self.records(1))
        self.assertLess(sum(len(body) > most for _, _, body in receiver.requests), len(receiver.requests) / 2)

    def test_a_single_record_that_is_too_large_is_refused(self):
        self.add(1)
        receiver = self.receiver(choose=lambda number, body: otlp_server.Reply(413))
        counts, said = self.ship(receiver, "--request-size", "1", expect=1)
        self.assertEqual((counts["refused"], counts["accepted"]), (self.records(1), 0))
        self.assertIn("refused 1 record: the receiver answered 413", said)

    def test_refused_requests_are_counted_and_not_repeated(self):
        self.add(1)
        receiver = self.receiver(otlp_server.Reply(400, b"bad \x1b[31mthing"), otlp_server.Reply(500, b"broken"))
        counts, said = self.ship(receiver, "--request-size", "10000", expect=1)
        self.assertEqual(counts["refused"] + counts["accepted"], self.records(1))
        self.assertEqual(counts["accepted"], len(receiver.stored))
        self.assertGreater(counts["refused"], 0)
        self.assertNotIn("\x1b", said)
        self.assertIn("the receiver answered 500 (broken)", said)
        self.assertEqual(self.ship(receiver)[0]["requests"], 0)

    def test_credentials_come_from_a_file_and_are_not_printed(self):
        self.add(1)
        headers = self.folder / "headers"
        headers.write_text("# for tests\nAuthorization: Bearer secret1\n")
        receiver = self.receiver(otlp_server.Reply(401))
        counts, said = self.ship(receiver, "--header-file", headers, expect=1)
        self.assertIn("the receiver answered 401", said)
        self.assertNotIn("secret1", said)
        self.assertEqual(counts["accepted"], 0)
        self.ship(receiver, "--header-file", headers)
        self.assertEqual(receiver.requests[-1][1]["Authorization"], "Bearer secret1")
        self.check_arrived(receiver, self.records(1))
        headers.write_text("Authorization\nsecret2\n")
        said = self.ship(receiver, "--header-file", headers, expect=2)[1]
        self.assertIn("line 1: no header", said)
        self.assertNotIn("secret2", said)

    def test_redirect_is_not_followed(self):
        self.add(1)
        other = self.receiver()
        for status in (301, 307):
            receiver = self.receiver(otlp_server.Reply(status, headers={"Location": other.url + "/v1/logs"}))
            self.assertIn("redirects are not followed", self.ship(receiver, expect=1)[1])
        self.assertEqual(other.requests, [])

    def test_endless_answers_end(self):
        self.add(1)
        receiver = self.receiver(otlp_server.Endless(stores=True))
        command = [str(word) for word in self.command(receiver, "--once") if word != "--json"]
        peak = commands.peak_memory(*command)
        self.check_arrived(receiver, self.records(1))
        self.assertLess(peak, 1_000_000)  # KiB; the body has 64 GB
        self.state.unlink()
        receiver = self.receiver(choose=lambda number, body: otlp_server.Endless(stores=False, headers=True))
        self.ship(receiver, "--give-up", "1s", expect=1)

    def test_environment_does_not_choose_a_proxy(self):
        self.add(1)
        other = self.receiver()
        receiver = self.receiver()
        self.ship(receiver, env={**os.environ, "http_proxy": other.url, "HTTP_PROXY": other.url, "ALL_PROXY": other.url})
        self.assertEqual(other.requests, [])

    def test_state_is_used_by_one_process(self):
        receiver = self.receiver()
        with subprocess.Popen(self.command(receiver), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as first:
            self.wait_for(self.state.exists)
            self.assertIn("another nettrace ship uses this file", self.ship(receiver, expect=1)[1])
            first.send_signal(signal.SIGTERM)
            first.communicate()
        self.assertEqual(first.returncode, 0)

    def test_wrong_state_is_refused_and_unwritable_state_sends_nothing(self):
        self.add(1)
        receiver = self.receiver()
        for text in ("", "{}", "[" * 100_000, '{"version":2,"files":[],"sections":[],"totals":{}}'):
            self.state.write_text(text)
            self.assertIn("not a state file of nettrace ship", self.ship(receiver, expect=1)[1])
        self.state = self.folder / "missing" / "state.json"
        self.assertIn("No such file", self.ship(receiver, expect=1)[1])
        self.assertEqual(receiver.requests, [])

    def test_deleted_file_is_counted(self):
        file = self.add(1)
        receiver = self.receiver(choose=lambda number, body: otlp_server.Reply(401))
        self.ship(receiver, expect=1)
        file.unlink()
        self.add(2)
        receiver.choose = lambda number, body: None
        counts, said = self.ship(receiver, expect=1)
        self.assertEqual((counts["lostFiles"], counts["files"]), (1, 1))
        self.assertIn("was deleted before it was sent", said)
        self.assertEqual(counts["accepted"], self.records(2) + 1)
        [loss] = [each for _, _, body in receiver.requests[1:] for each in otlp_server.json_losses(body)
                  if "nettrace.lost_files" in each]
        self.assertEqual((loss["nettrace.lost_name"], loss["nettrace.lost_files"], loss.get("count")),
                         (os.path.realpath(file), "1", None))
        again, _ = self.ship(receiver)
        self.assertEqual((again["lostFiles"], again["requests"]), (0, 0))
        self.assertEqual(json.loads(self.state.read_text())["totals"]["lostFiles"], 1)

    def test_changed_file_is_sent_again(self):
        file = self.add(1)
        receiver = self.receiver()
        self.ship(receiver)
        shutil.copy(self.folder / "random-2.nettrace", file)
        os.utime(file, (1, 1))
        self.assertEqual(self.ship(receiver)[0]["accepted"], self.records(2))

    def test_damaged_and_unreadable_files_are_reported(self):
        file = self.add(1)
        file.write_bytes(file.read_bytes()[:-200])
        (self.spool / "other.nettrace").write_text("no trace")
        (self.spool / "unfinished.nettrace.partial").write_text("no trace")
        receiver = self.receiver()
        counts, said = self.ship(receiver, expect=1)
        self.assertEqual(counts["damagedFiles"], 2)
        self.assertIn("is truncated or damaged", said)
        self.assertIn("other.nettrace: ", said)
        self.assertNotIn("unfinished", said)
        self.assertGreater(len(receiver.stored), 0)
        self.assertIn("No such file", self.ship(receiver, paths=[self.folder / "missing"], expect=2)[1])

    def test_wrong_usage(self):
        for url, message in (("ftp://host", "must begin with http"), ("http://", "no host"),
                             ("http://me:secret@host", "--header-file"), ("http://host/?key=secret", "--header-file")):
            said = self.ship(url, expect=2)[1]
            self.assertIn(message, said)
            self.assertNotIn("secret", said)

    def wait_for(self, condition):
        deadline = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def test_waits_for_new_files_and_ends_at_a_signal(self):
        receiver = self.receiver(otlp_server.Reply(503))
        self.add(1)
        with subprocess.Popen(self.command(receiver), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ship:
            self.wait_for(lambda: len(receiver.stored) == self.records(1))
            partial = self.folder / "new"
            shutil.copy(self.folder / "random-2.nettrace", partial)
            began = time.monotonic()
            partial.rename(self.spool / f"shop-{TIMES[2]}.nettrace")
            self.wait_for(lambda: len(receiver.stored) == self.records(1, 2))
            self.assertLess(time.monotonic() - began, 8)  # without a change, directories are listed every 10 s
            ship.send_signal(signal.SIGTERM)
            out, said = ship.communicate(timeout=60)
        self.assertEqual(ship.returncode, 0, said)
        self.assertEqual(json.loads(out)["accepted"], self.records(1, 2))

    def test_waits_for_a_directory_that_does_not_exist_yet(self):
        receiver = self.receiver()
        later = self.folder / "later"
        with subprocess.Popen(self.command(receiver, paths=[later]), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as ship:
            self.wait_for(self.state.exists)
            self.spool.rename(later)
            self.spool = later
            self.add(1)
            self.wait_for(lambda: len(receiver.stored) == self.records(1))
            ship.send_signal(signal.SIGINT)
            ship.communicate(timeout=60)
        self.assertEqual(ship.returncode, 0)

    def test_signal_ends_a_wait_for_a_retry(self):
        self.add(1)
        receiver = self.receiver(choose=lambda number, body: otlp_server.Reply(429, headers={"Retry-After": "3000"}))
        with subprocess.Popen(self.command(receiver), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as ship:
            self.wait_for(lambda: receiver.requests)
            time.sleep(0.2)
            ship.send_signal(signal.SIGTERM)
            ship.communicate(timeout=30)
        self.assertEqual(ship.returncode, 0)

    def certificate(self):
        """Makes a certificate for 127.0.0.1. Returns the files of the certificate and of its key."""
        if shutil.which("openssl") is None:
            self.skipTest("needs openssl")
        files = self.folder / "cert.pem", self.folder / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-days", "2", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1", "-out", files[0],
                        "-keyout", files[1]], check=True, capture_output=True)
        return files

    def test_certificates_are_checked(self):
        self.add(1)
        cert, key = self.certificate()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        receiver = self.receiver(context=context)
        self.assertIn("certificate", self.ship(receiver, expect=1)[1])
        self.assertEqual(receiver.requests, [])
        self.ship(receiver, "--ca", cert)
        self.check_arrived(receiver, self.records(1))
        # The certificate is for 127.0.0.1 and not for localhost, so `nettrace ship` must refuse this connection.
        self.state.unlink()
        before = len(receiver.requests)
        said = self.ship(receiver.url.replace("127.0.0.1", "localhost"), "--ca", cert, expect=1)[1]
        self.assertRegex(said, "certificate|localhost")
        self.assertEqual(len(receiver.requests), before)

    def test_client_has_a_certificate(self):
        self.add(1)
        cert, key = self.certificate()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        context.load_verify_locations(cert)
        context.verify_mode = ssl.CERT_REQUIRED
        receiver = self.receiver(context=context)
        self.ship(receiver, "--ca", cert, "--give-up", "1s", expect=1)
        self.ship(receiver, "--ca", cert, "--cert", cert, "--key", key)
        self.check_arrived(receiver, self.records(1))


if __name__ == "__main__":
    script.run_cases()
