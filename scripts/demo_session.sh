#!/bin/bash
# The part of ./run demo that needs user_events: demo_session.sh FILE
set -euo pipefail
file=$1

show() {
  echo
  echo "\$ $*"
  "$@"
}

show build/bin/nettrace record -o "$file" -e ExampleService -- build/bin/example-service --events 5 --threads 4
show build/bin/nettrace dump "$file"
show build/bin/nettrace info "$file"
