#!/usr/bin/python3
"""Measures what `nettrace ship` costs for an event of 8 fields, 3 of them text, with a receiver on the same machine that
discards requests. The floor for CPU time is `nettrace export --to otlp` of the same file. The floor for the bytes of an
event is its size in that export. The floor for peak memory is that of a file with a tenth of
the events.

  bench_ship.py --nettrace PATH [--events N] [--json]
"""

import http.server
import json
import pathlib
import subprocess
import tempfile
import threading

from bench.export import bench_export
from support import bench_report
from support import script
from support import trace_bytes


class Discard(http.server.BaseHTTPRequestHandler):
    """Accepts all requests, and stores nothing."""
    protocol_version = "HTTP/1.1"
    bytes_read = 0

    def log_message(self, *_):
        pass

    def do_POST(self):
        Discard.bytes_read += len(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


def main():
    parser = script.parser(__doc__, "nettrace")
    parser.add_argument("--events", type=int, default=1_000_000, help="a multiple of 100000")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.events <= 0 or args.events % 100_000:
        parser.error("--events must be a multiple of 100000")
    bench_report.head(args.json, f"{args.events} events of 8 fields")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Discard)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="bench-ship-") as folder:
        measure(pathlib.Path(folder), args, f"http://127.0.0.1:{server.server_address[1]}")
    server.shutdown()


def measure(folder, args, url):
    few, all_of_them = folder / "few.nettrace", folder / "all.nettrace"
    for file, events in ((few, args.events // 10), (all_of_them, args.events)):
        trace_bytes.write_long(file, events // bench_export.EVENTS_OF_INTERVAL, bench_export.FIELDS, bench_export.payload(),
                               bench_export.EVENTS_OF_INTERVAL)
    nanoseconds = 1e9 / args.events
    out = folder / "otlp"
    floor, _ = bench_export.run([args.nettrace, "export", "--to", "otlp", all_of_them, "-o", out])
    size = out.stat().st_size / args.events
    for compression in ("gzip", "zstd", "none"):
        options = ["--to", url, "--compression", compression]
        _, least = bench_export.run([args.nettrace, "ship", "--once", *options, "--state", folder / f"few-{compression}", few])
        Discard.bytes_read = 0
        state = folder / f"all-{compression}"
        seconds, memory = bench_export.run([args.nettrace, "ship", "--once", *options, "--state", state, all_of_them])
        accepted = json.loads(state.read_text(encoding="utf-8"))["totals"]["accepted"]
        if accepted != args.events:
            raise subprocess.SubprocessError(f"the receiver accepted {accepted} events; {args.events} were sent")
        for what, unit, value, least_value in (
                ("CPU time of an event, floor: export --to otlp", "ns", seconds * nanoseconds, floor * nanoseconds),
                ("size of an event, floor: export --to otlp", "bytes", Discard.bytes_read / args.events, size),
                ("memory, floor: a tenth of the events", "MiB", memory, least)):
            bench_report.row("ship", args.json, f"{compression}: {what}", unit, value, least_value)


if __name__ == "__main__":
    main()
