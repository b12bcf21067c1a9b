#!/bin/bash
# ./run demo: records the example service and shows what it wrote. Here, on a kernel with user_events,
# else in the VM.
set -euo pipefail
if [ $# -gt 0 ]; then
  echo "usage: ./run demo"
  case $1 in -h | --help) exit 0 ;; *) exit 2 ;; esac
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/build.sh
folder=$PWD/build/demo
mkdir -p "$folder"

# Whether it has them, and whether tracefs is mounted, only root sees.
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
  echo "no user_events for us on this kernel ($(uname -r)): recording in the VM"
  scripts/vm.py --out "$folder" -- scripts/demo_session.sh /out/example.nettrace
fi
echo
echo "the file: $folder/example.nettrace"
echo "more of it: build/bin/nettrace dump --json build/demo/example.nettrace"
