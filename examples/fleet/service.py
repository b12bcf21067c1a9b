#!/usr/bin/python3
"""A service of the example: answers requests, and calls the service of the next host for each of them.

  examples/fleet/service.py front --port-file front.port --next stock.port
  examples/fleet/service.py --ask front.port --requests 20

Each host handles a request as an activity, and passes the id of the activity to the next host in the HTTP header
`activity`. The activity of the next host has this id as its related activity. Needs the package python3-eventheader.
"""

import argparse
import http.client
import http.server
import os
import pathlib
import signal
import sys
import time

HEADER = "activity"


def ask(port_file, path, activity):
    """Sends a request to a service; returns the status."""
    connection = http.client.HTTPConnection("127.0.0.1", int(pathlib.Path(port_file).read_text(encoding="utf-8")), timeout=10)
    try:
        connection.request("GET", path, headers={HEADER: activity.id.hex()} if activity else {})
        return connection.getresponse().status
    finally:
        connection.close()


def handler_of(name, next_file):
    """Returns the class of the server's handlers, which write the events of provider FleetShop_<name>."""
    import eventheader

    provider = eventheader.Provider(f"FleetShop_{name}")
    start = provider.event("Request", opcode=eventheader.Opcode.START)
    stop = provider.event("Request", opcode=eventheader.Opcode.STOP)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            caller = self.headers.get(HEADER)
            if caller is None:
                self.answer()
                return
            with eventheader.Activity(bytes.fromhex(caller)):
                self.answer()

        def answer(self):
            with eventheader.Activity() as activity:
                start(path=self.path)
                time.sleep(0.002)
                status = ask(next_file, self.path, activity) if next_file else 200
                stop(status=status)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_words):
            pass

    return Handler


def serve(name, port_file, next_file):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler_of(name, next_file))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # Renaming makes the file appear only after it contains the port.
    partial = f"{port_file}.partial"
    pathlib.Path(partial).write_text(str(server.server_port), encoding="utf-8")
    os.rename(partial, port_file)
    server.serve_forever()


def main():
    parser = argparse.ArgumentParser(description="A service of the example fleet, or its client with --ask.")
    parser.add_argument("name", nargs="?", help="name of the host, a part of the provider's name")
    parser.add_argument("--port-file", metavar="FILE", help="file to write the port of the service to")
    parser.add_argument("--next", metavar="FILE", help="file with the port of the service to call")
    parser.add_argument("--ask", metavar="FILE", help="send requests to the service with the port in FILE")
    parser.add_argument("--requests", type=int, default=20, metavar="N", help="number of requests (20)")
    args = parser.parse_args()
    if args.ask:
        statuses = [ask(args.ask, f"/items/{number}", None) for number in range(args.requests)]
        print(f"{statuses.count(200)} of {args.requests} requests answered")
    elif args.name and args.port_file:
        serve(args.name, args.port_file, args.next)
    else:
        parser.error("give the name of a host and --port-file, or use --ask")


if __name__ == "__main__":
    main()
