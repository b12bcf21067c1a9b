#!/bin/bash
# Writes the file that the examples send, and starts a receiver of OTLP.
example-nettrace-write t.nettrace
python3 -m support.otlp_server 4318 &
until (exec 3<>/dev/tcp/127.0.0.1/4318) 2>/dev/null; do sleep 0.1; done
