#!/bin/bash
# ./run demo: records the example service and shows its events, on this machine or in the VM.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: ./run demo [--vm]

Builds the product, records an example service and shows the recorded events. The service uses user_events if this
kernel has them, else rings in shared memory. The recording is build/demo/example.nettrace.

options:
  --vm   record in a virtual machine whose kernel has user_events

exit status: 0 done, 1 failed, 2 wrong usage
TEXT
}

in_vm=
case ${1:-} in
  '') ;;
  --vm) in_vm=yes ;;
  -h | --help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac
[ $# -le 1 ] || { usage >&2; exit 2; }
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/build.sh
folder=$PWD/build/demo
mkdir -p "$folder"

# Only root can see whether the kernel has user_events, and can mount tracefs if necessary.
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
has_user_events() {
  "${as_root[@]}" sh -c '[ -e /sys/kernel/tracing/user_events_data ] ||
    { mount -t tracefs tracefs /sys/kernel/tracing && [ -e /sys/kernel/tracing/user_events_data ]; }' 2>/dev/null
}

if [ -n "$in_vm" ]; then
  echo "recording in the VM, through user_events"
  scripts/vm.py --out "$folder" -- scripts/demo_session.sh /out/example.nettrace
elif has_user_events; then
  echo "this kernel ($(uname -r)) has user_events: recording through them"
  "${as_root[@]}" env EVENTHEADER_TRANSPORT=user_events scripts/demo_session.sh build/demo/example.nettrace
else
  echo "this kernel ($(uname -r)) has no user_events, or only root may use them: recording through rings in shared memory"
  # Other users cannot see that the kernel has no user_events.
  [ "$(id -u)" -eq 0 ] || export EVENTHEADER_TRANSPORT=ring
  # The socket is not at the default path, which nettraced may use.
  EVENTHEADER_SOCKET=build/demo/events scripts/demo_session.sh build/demo/example.nettrace
fi
echo
echo "the file: build/demo/example.nettrace"
echo "to see all fields: build/bin/nettrace dump --json build/demo/example.nettrace"
