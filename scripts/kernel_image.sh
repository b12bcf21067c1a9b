#!/bin/bash
# Prints the path of a kernel image with user_events; see usage() below.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: scripts/kernel_image.sh

Prints the path of the kernel image that the test VM boots: $EVENTHEADER_VM_KERNEL if it is set, else the image in the
cache folder (~/.cache/nettraced, or nettraced in $XDG_CACHE_HOME). A missing image is built first, from Debian's kernel
source: 5 to 10 minutes. Progress goes to standard error. A build that is interrupted or killed leaves nothing in the
cache folder, and its compilers end with it.

exit status: 0 the path was printed, 1 no image could be made, 2 wrong usage
TEXT
}

case $#${1:-} in
  0) ;;
  1-h | 1--help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
config=$repository/tests/vm/kernel.config
source_version=6.12

if [ -n "${EVENTHEADER_VM_KERNEL:-}" ]; then
  if [ ! -r "$EVENTHEADER_VM_KERNEL" ]; then
    echo "kernel: EVENTHEADER_VM_KERNEL=$EVENTHEADER_VM_KERNEL cannot be read; unset it to build a kernel" >&2
    exit 1
  fi
  echo "$EVENTHEADER_VM_KERNEL"
  exit
fi

cache=${XDG_CACHE_HOME:-$HOME/.cache}/nettraced
image=$cache/bzImage-$source_version-$(sha256sum "$config" | cut -c1-12)
if [ -r "$image" ]; then
  echo "$image"
  exit
fi

say() { echo "kernel: $*" >&2; }
mkdir -p "$cache"

# The lock makes sure that two runs at the same time build the image only once.
exec 9>"$cache/kernel.lock"
flock -n 9 || { say "another run is building the kernel; waiting"; flock 9; }
if [ -r "$image" ]; then
  echo "$image"
  exit
fi
# This run holds the lock, so these files are left from runs that ended without cleaning up.
rm -rf "$cache"/kernel-build.?????? "$cache"/kernel-build.??????.log "$cache"/bzImage*.partial

"$repository/scripts/packages.sh" kernel >&2 9>&-
work=$(mktemp -d "$cache/kernel-build.XXXXXX")
log=$work.log

# Starts the guard, a background process. It reads the ids of the build's process groups, one on each line, until this
# script ends or is killed, which closes the pipe. Then the guard kills the last group and removes the folder. It holds
# the lock until this is done.
# shellcheck disable=SC2016  # The inner shell expands the variables.
exec 8> >(exec setsid bash -c '
  trap "" INT TERM HUP
  group=
  while read -r line; do group=$line; done
  [ -z "$group" ] || kill -KILL -- "-$group" 2>/dev/null
  # A compiler that is ending may still create a file.
  until rm -rf "$0" "$0.log" 2>/dev/null; do sleep 0.1; done
' "$work" >/dev/null 2>&1)
guard=$!
trap 'exec 8>&-; wait "$guard"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

failed() {
  mv "$log" "$cache/kernel-build.log"
  say "the build failed; the end of $cache/kernel-build.log:"
  tail -n 20 "$cache/kernel-build.log" >&2
  exit 1
}

# Prints the progress of the running command.
progress() { :; }

# Runs a command in a separate process group, which the guard kills when this script ends, and prints its progress.
run() {
  setsid "$@" >>"$log" 2>&1 </dev/null 8>&- 9>&- &
  local command=$! ticks=0
  echo "$command" >&8
  while kill -0 "$command" 2>/dev/null; do
    # The sleep is short, because bash handles a signal only after it.
    sleep 0.5
    ticks=$((ticks + 1))
    [ $((ticks % 30)) -ne 0 ] || progress $((ticks / 2))
  done
  local status=0
  wait "$command" || status=$?
  echo >&8
  return "$status"
}

say "building Linux $source_version with user_events for the test VM: once, 5 to 10 minutes (log: $log)"
say "unpacking Debian's source"
run tar -C "$work" --strip-components=1 -xf "/usr/src/linux-source-$source_version.tar.xz" || failed
cd "$work"
say "configuring"
{ run make tinyconfig && run scripts/kconfig/merge_config.sh -m .config "$config" && run make olddefconfig; } || failed

# The tests and the VM need these options. make olddefconfig drops options that the source does not have.
for option in USER_EVENTS PERF_EVENTS NET_9P_VIRTIO OVERLAY_FS; do
  grep -q "^CONFIG_$option=y" .config || { say "this kernel source does not support CONFIG_$option" 2>&1 | tee -a "$log" >&2; failed; }
done

# Approximate number of lines in the log of a build, by which the progress is estimated.
total_lines=2020
progress() {
  local percent=$(($(wc -l <"$log") * 100 / total_lines))
  say "compiling, about $((percent < 99 ? percent : 99)) % after $1 s"
}
say "compiling"
run make -j"$(nproc)" bzImage || failed

# The folder is in the cache, so the rename is atomic.
mv arch/x86/boot/bzImage "$image"
say "built: $image"
echo "$image"
