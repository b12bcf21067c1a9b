#!/bin/bash
# The part of ./run demo that needs user_events: demo_session.sh FILE
set -euo pipefail
file=$1

show() {
  echo
  echo "\$ $*"
  "$@"
}

# The tracepoints are given by their exact names, so that they are registered before the service starts and its first
# event is recorded, too.
show build/bin/nettrace record -o "$file" \
  -e ExampleService_L4K1 -e ExampleService_L4K2 -e ExampleService_L2K2 \
  -- build/bin/example-service --events 5 --threads 4
show build/bin/nettrace dump "$file"
show build/bin/nettrace info "$file"
