#!/bin/bash
# The part of ./run demo that records: demo_session.sh FILE
set -euo pipefail
file=$1

show() {
  echo
  echo "\$ $*"
  "$@"
}

# With user_events, tracepoints that are given by their exact names are registered before the service starts, so that its
# first event is recorded, too.
show build/bin/nettrace record -o "$file" \
  -e ExampleService_L4K1 -e ExampleService_L4K2 -e ExampleService_L2K2 \
  -- build/bin/example-service --events 5 --threads 4
show build/bin/nettrace dump "$file"
show build/bin/nettrace info "$file"
