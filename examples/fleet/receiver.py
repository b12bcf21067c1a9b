#!/usr/bin/python3
"""A small receiver of OTLP/HTTP in JSON, in place of an OpenTelemetry collector: writes each log record as a line.

  examples/fleet/receiver.py --port-file receiver.port --output records.jsonl
"""

import argparse
import gzip
import http.server
import json
import os
import pathlib
import signal
import sys
import threading

MAX_BODY = 64 << 20  # bytes


def records_of(request):
    """Yields the records of a request, each with its host, service and scope."""
    for resource in request.get("resourceLogs", []):
        attributes = {pair["key"]: pair["value"].get("stringValue") for pair in resource["resource"].get("attributes", [])}
        for scope in resource.get("scopeLogs", []):
            for record in scope.get("logRecords", []):
                yield {"host": attributes.get("host.name"), "service": attributes.get("service.name"),
                       "scope": scope.get("scope", {}).get("name"), **record}


def handler_of(output):
    lock = threading.Lock()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            size = int(self.headers.get("Content-Length", 0))
            if size > MAX_BODY or self.headers.get("Content-Type") != "application/json":
                self.reply(413 if size > MAX_BODY else 415)
                return
            body = self.rfile.read(size)
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            # Writes the records before the answer: the sender treats records as stored when it receives the answer.
            with lock, open(output, "a", encoding="utf-8") as file:
                for record in records_of(json.loads(body)):
                    file.write(json.dumps(record) + "\n")
            self.reply(200)

        def reply(self, status):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_words):
            pass

    return Handler


def main():
    parser = argparse.ArgumentParser(description="Writes the log records that it receives to a file, one per line.")
    parser.add_argument("--port-file", required=True, metavar="FILE", help="file to write the port to")
    parser.add_argument("--output", required=True, metavar="FILE", help="file to append the records to")
    args = parser.parse_args()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler_of(args.output))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    pathlib.Path(f"{args.port_file}.partial").write_text(str(server.server_port), encoding="utf-8")
    os.rename(f"{args.port_file}.partial", args.port_file)
    server.serve_forever()


if __name__ == "__main__":
    main()
