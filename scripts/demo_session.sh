#!/bin/bash
# The part of ./run demo that needs user_events: demo_session.sh FILE
set -euo pipefail
file=$1

show() {
  echo
  echo "\$ $*"
  "$@"
}

# By their exact names, which are registered before the service starts: its first event is recorded, too.
show build/bin/nettrace record -o "$file" \
  -e ExampleService_L4K1 -e ExampleService_L4K2 -e ExampleService_L2K2 \
  -- build/bin/example-service --events 5 --threads 4
show build/bin/nettrace dump "$file"
show build/bin/nettrace info "$file"
