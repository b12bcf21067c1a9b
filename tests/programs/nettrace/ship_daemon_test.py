#!/usr/bin/python3
"""Tests that `nettrace ship` sends the files of nettraced while nettraced writes, rotates and deletes them."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest
import unittest.mock

from support import otlp_server
from support import script
from support.daemon import nettraced

ARGS = script.options(__doc__, "nettrace", "nettraced", "service")
DEADLINE = 60
EVENTS = 100
KEPT = 3


class ShipDaemonTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="ship-daemon-")
        self.addCleanup(holder.cleanup)
        folder = pathlib.Path(holder.name)
        environment = {"EVENTHEADER_TRANSPORT": "ring", "EVENTHEADER_SOCKET": str(folder / "events")}
        patch = unittest.mock.patch.dict(os.environ, environment)
        patch.start()
        self.addCleanup(patch.stop)
        settings = f'[session.shop]\nselect = ["Ring_*:*"]\ncompression = true\nfiles.keep_files = {KEPT}\n'
        self.daemon = nettraced.Daemon(ARGS.nettraced, ARGS.nettrace, {"shop": settings})
        self.addCleanup(self.daemon.close)
        self.daemon.start()
        self.written = 0
        self.receiver = otlp_server.Receiver()
        self.addCleanup(self.receiver.close)
        self.command = [ARGS.nettrace, "ship", "--json", "--encoding", "json", "--retry-wait", "10ms", "--to", self.receiver.url,
                        "--state", folder / "state.json", self.daemon.path / "state" / "shop"]

    def write_file(self):
        """Writes events, and completes their file."""
        subprocess.run([ARGS.service, str(EVENTS)], check=True, stdout=subprocess.DEVNULL)
        self.written += EVENTS
        nettraced.until(lambda: self.daemon.status("shop")["events"] == self.written, DEADLINE, lambda: self.daemon.status("shop"))
        self.daemon.ask("rotate", "shop")

    def test_files_are_sent_and_deleted_ones_are_counted(self):
        with subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ship:
            for _ in range(2):
                self.write_file()
            nettraced.until(lambda: len(self.receiver.stored) == self.written, DEADLINE, lambda: len(self.receiver.stored))
            before = len(self.receiver.requests)
            self.receiver.choose = lambda number, body: otlp_server.Reply(503)
            self.write_file()
            nettraced.until(lambda: len(self.receiver.requests) > before, DEADLINE, lambda: before)
            # `nettrace ship` has the file that it is sending open, so it sends all of it although nettraced deletes it.
            for _ in range(KEPT + 2):
                self.write_file()
            self.receiver.choose = lambda number, body: None
            arrive = self.written - 2 * EVENTS
            # One more record states what is missing.
            nettraced.until(lambda: len(self.receiver.stored) == arrive + 1, 2 * DEADLINE, lambda: len(self.receiver.stored))
            ship.send_signal(signal.SIGTERM)
            out, said = ship.communicate(timeout=DEADLINE)
        self.assertEqual(ship.returncode, 0, said)
        counts = json.loads(out)
        self.assertEqual((counts["accepted"], counts["missingSections"], counts["missingEvents"]), (arrive + 1, 2, 2 * EVENTS), said)
        self.assertFalse(counts["complete"])
        self.assertEqual(len(set(self.receiver.stored)), arrive + 1)
        [loss] = [each for _, _, body in self.receiver.requests[before:] for each in otlp_server.json_losses(body)
                  if each["log.record.uid"] in self.receiver.stored and "nettrace.lost_sections" in each]
        self.assertEqual((loss["count"], loss["nettrace.lost_sections"]), (str(2 * EVENTS), "2"))
        self.assertIn("2 sections with 200 events were deleted before they were sent", said)


if __name__ == "__main__":
    script.run_cases()
