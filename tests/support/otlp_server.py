"""A receiver of OTLP/HTTP for tests. A test chooses its answers, including wrong answers."""

import ctypes
import gzip
import http.server
import json
import socket
import sys
import threading
import time


class Reply:
    """An answer to a request, and whether the receiver stores the records."""

    def __init__(self, status=200, body=b"", headers=(), stores=None, limit=None):
        self.status, self.body, self.headers, self.limit = status, body, dict(headers), limit
        self.stores = status == 200 if stores is None else stores

    def send(self, handler):
        handler.send_response(self.status)
        for name, value in self.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(self.body)))
        handler.end_headers()
        handler.wfile.write(self.body)


class Closed(Reply):
    """Closes the connection without an answer."""

    def __init__(self, stores):
        super().__init__(stores=stores)

    def send(self, handler):
        handler.close_connection = True
        handler.connection.shutdown(socket.SHUT_RDWR)


class Cut(Closed):
    """Closes the connection in the middle of an answer."""

    def send(self, handler):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n0123")
        super().send(handler)


class Endless(Closed):
    """Sends a body, or with `headers` a header, until the client closes the connection."""

    def __init__(self, stores, headers=False):
        super().__init__(stores)
        self.has_headers = headers

    def send(self, handler):
        handler.close_connection = True
        piece = b"X-More: 0123456789012345678901234567890123456789\r\n" if self.has_headers else b"x" * 65536
        try:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + (b"" if self.has_headers else b"\r\n"))
            for _ in range(1_000_000):
                handler.wfile.write(piece)
        except OSError:
            pass


class Raw(Closed):
    """Writes these bytes, stores the records, and closes the connection."""

    def __init__(self, data):
        super().__init__(stores=True)
        self.data = data

    def send(self, handler):
        try:
            handler.wfile.write(self.data)
            super().send(handler)
        except OSError:
            pass


class Slow(Reply):
    """Answers after some seconds."""

    def __init__(self, seconds, stores):
        super().__init__(stores=stores)
        self.seconds = seconds

    def send(self, handler):
        time.sleep(self.seconds)
        try:
            super().send(handler)
        except OSError:
            pass


def decompress(body, encoding):
    """Returns a body without its compression."""
    if encoding == "gzip":
        return gzip.decompress(body)
    if encoding != "zstd":
        return body
    zstd = ctypes.CDLL("libzstd.so.1")  # Python 3.11 has no module for zstd
    zstd.ZSTD_getFrameContentSize.restype = zstd.ZSTD_decompress.restype = ctypes.c_size_t
    size = zstd.ZSTD_getFrameContentSize(body, ctypes.c_size_t(len(body)))
    if size > 64 << 20:
        raise ValueError(f"the zstd header states {size} bytes or no size; at most 64 MiB are accepted")
    out = ctypes.create_string_buffer(size)
    got = zstd.ZSTD_decompress(out, ctypes.c_size_t(size), body, ctypes.c_size_t(len(body)))
    if got != size:
        raise ValueError("the body is not valid zstd")
    return out.raw


def json_losses(body):
    """Returns the attributes of the records LostEvents of a request in JSON."""
    return [{pair["key"]: next(iter(pair["value"].values())) for pair in record["attributes"]}
            for resource in json.loads(body)["resourceLogs"] for scope in resource["scopeLogs"]
            for record in scope["logRecords"] if record.get("eventName") == "LostEvents" and scope["scope"]["name"] == "nettrace"]


def json_spans(body):
    """Returns the trace id, span id and times of each span of a request in JSON; [] if it has log records."""
    return [(span["traceId"], span["spanId"], span["startTimeUnixNano"], span["endTimeUnixNano"])
            for resource in json.loads(body).get("resourceSpans", []) for scope in resource["scopeSpans"]
            for span in scope["spans"]]


def json_uids(body):
    """Returns the uids of the records of a request in JSON."""
    return [next(pair["value"]["stringValue"] for pair in record["attributes"] if pair["key"] == "log.record.uid")
            for resource in json.loads(body)["resourceLogs"] for scope in resource["scopeLogs"]
            for record in scope["logRecords"]]


class Receiver:
    """Runs until `close`. `choose` returns the Reply to a request, from the number of the request and its body; None means
    success. `read_uids` returns the ids of the log records in a body (the attribute log.record.uid)."""

    def __init__(self, choose=lambda number, body: None, read_uids=json_uids, context=None, port=0):
        self.choose, self.read_uids = choose, read_uids
        self.lock = threading.Lock()
        self.requests = []  # path, headers and body before compression
        self.stored = []  # uids in the order in which they arrived
        self.unanswered = set()  # stored uids whose answer was lost
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                receiver._receive(self)

            def do_GET(self):
                receiver._receive(self)

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", port), Handler)
        if context is not None:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        scheme = "http" if context is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def _receive(self, handler):
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        body = decompress(body, handler.headers.get("Content-Encoding"))
        with self.lock:
            number = len(self.requests)
            self.requests.append((handler.path, dict(handler.headers), body))
            reply = self.choose(number, body) or Reply()
            if reply.stores:
                uids = self.read_uids(body)[:reply.limit]
                self.stored += uids
                if isinstance(reply, Closed):
                    self.unanswered.update(uids)
        reply.send(handler)


def main():
    """Accepts requests at a port until it is killed: otlp_server.py PORT. Succeeds if another receiver has the port."""
    try:
        Receiver(read_uids=lambda body: [], port=int(sys.argv[1]))
    except OSError:
        return
    threading.Event().wait()


if __name__ == "__main__":
    main()
