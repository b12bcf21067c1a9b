#!/usr/bin/python3
"""Prints the number of events that each session of nettraced has lost. Calls the method List over nettraced's control
socket (docs/reference/control.md). By default, root and members of the group tracing may call it.

  control.py [SOCKET]
"""

import json
import socket
import sys


def call(path, method, **parameters):
    """Returns the parameters of the reply. Raises RuntimeError if the reply is an error."""
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(path)
        control.sendall(json.dumps({"method": method, "parameters": parameters}).encode() + b"\0")
        reply = bytearray()
        while not reply.endswith(b"\0"):
            piece = control.recv(65536)
            if not piece:
                raise RuntimeError(f"{path}: nettraced closed the connection before the end of its reply")
            reply += piece
    reply = json.loads(reply[:-1])
    if "error" in reply:
        raise RuntimeError(f"{reply['error']}: {reply.get('parameters', {}).get('message', '')}")
    return reply["parameters"]


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "/run/nettraced/control"
    for session in call(path, "net.nettrace.Collector.List")["sessions"]:
        print(session["name"], session["state"], f"{session['events']} events, {session['lost']} lost")


if __name__ == "__main__":
    main()
