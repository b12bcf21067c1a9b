#!/bin/bash
# ./run demo: records the example service and shows its events, on this machine if the kernel has user_events, else in
# the VM.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: ./run demo

Builds the product, records an example service and shows the recorded events. It runs on this kernel if the kernel has
user_events, else in the VM. The recording is build/demo/example.nettrace.

exit status: 0 done, 1 failed, 2 wrong usage
TEXT
}

case ${1:-} in
  '') ;;
  -h | --help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/build.sh
folder=$PWD/build/demo
mkdir -p "$folder"

# Only root can see whether the kernel has user_events, and whether tracefs is mounted.
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
has_user_events() {
  "${as_root[@]}" sh -c '[ -e /sys/kernel/tracing/user_events_data ] ||
    { mount -t tracefs tracefs /sys/kernel/tracing && [ -e /sys/kernel/tracing/user_events_data ]; }' 2>/dev/null
}

if has_user_events; then
  echo "this kernel ($(uname -r)) has user_events: recording here"
  "${as_root[@]}" scripts/demo_session.sh "$folder/example.nettrace"
else
  echo "user_events are not available on this kernel ($(uname -r)): recording in the VM"
  scripts/vm.py --out "$folder" -- scripts/demo_session.sh /out/example.nettrace
fi
echo
echo "the file: $folder/example.nettrace"
echo "to see all fields: build/bin/nettrace dump --json build/demo/example.nettrace"
