#!/usr/bin/python3
"""Tests the example of a fleet as its guide describes it, and that the metrics of its dashboard exist."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from support import documents
from support import script

ARGS = script.options(__doc__, "source", "nettrace", "nettraced", "library")
EXAMPLE = ARGS.source / "examples/fleet"
HOSTS = ("front", "stock", "payment")
REQUESTS = 20


class FleetTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory(prefix="fleet-")
        cls.addClassCleanup(holder.cleanup)
        cls.folder = pathlib.Path(holder.name) / "fleet"
        environment = os.environ | {
            "PATH": f"{ARGS.nettrace.parent}:{ARGS.nettraced.parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ARGS.source / "libeventheader/python"), "LD_LIBRARY_PATH": str(ARGS.library.parent)}
        cls.done = subprocess.run([EXAMPLE / "fleet.sh", cls.folder], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=120, check=False, env=environment)

    def test_one_query_follows_a_request_across_the_hosts(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        lines = self.done.stdout.splitlines()
        self.assertEqual(lines[:2], [f"{REQUESTS} of {REQUESTS} requests answered", f"{2 * 3 * REQUESTS} records received"])
        rows = [line.split() for line in lines[3:]]
        self.assertEqual([row[:4] for row in rows],
                         [[str(depth), f"FleetShop_{host}", "Request", "200"] for depth, host in enumerate(HOSTS)])
        times = [int(row[4]) for row in rows]
        self.assertEqual(times, sorted(times, reverse=True))

    def test_the_guide_shows_its_output(self):
        block, statement = documents.taken_by(__file__, ARGS.source)
        self.assertIn("'dataset/*/*.parquet'", statement.text)
        def shape(line):
            return re.sub(r"\d+", "N", " ".join(line.split()))
        self.assertEqual([shape(line) for line in self.done.stdout.splitlines()],
                         [shape(line) for line in block.text.splitlines()[1:]])

    def test_the_receiver_has_each_event_once(self):
        records = [json.loads(line) for line in (self.folder / "records.jsonl").read_text(encoding="utf-8").splitlines()]
        self.assertEqual(len({uid(record) for record in records}), 2 * 3 * REQUESTS)
        for host in HOSTS:
            self.assertEqual(sum(record["scope"] == f"FleetShop_{host}" for record in records), 2 * REQUESTS)

    def test_the_data_set_has_a_partition_for_each_host(self):
        for host in HOSTS:
            data = (self.folder / f"dataset/machine={host}/events.parquet").read_bytes()
            self.assertEqual((data[:4], data[-4:]), (b"PAR1", b"PAR1"))
            self.assertIn(f"FleetShop_{host}".encode(), data)

    def test_each_metric_of_the_dashboard_exists(self):
        dashboard = json.loads((EXAMPLE / "grafana.json").read_text(encoding="utf-8"))
        expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        expressions += [variable["query"] for variable in dashboard["templating"]["list"]]
        used = set(re.findall(r"\bnettraced_\w+", " ".join(expressions)))
        self.assertGreater(len(used), 5)
        for host in HOSTS:
            metrics = (self.folder / host / "metrics").read_text(encoding="utf-8")
            self.assertEqual(used - set(re.findall(r"^nettraced_\w+", metrics, flags=re.MULTILINE)), set())
            self.assertIn(f'nettraced_session_events_total{{session="shop"}} {2 * REQUESTS}\n', metrics)


def uid(record):
    [value] = [pair["value"]["stringValue"] for pair in record["attributes"] if pair["key"] == "log.record.uid"]
    return value


if __name__ == "__main__":
    script.run_cases()
