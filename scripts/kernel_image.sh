#!/bin/bash
# Prints the path of a kernel image with user_events: $EVENTHEADER_VM_KERNEL, else the one in the
# user's cache folder, which is built first, from Debian's kernel source, where it is missing.
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
config=$repository/tests/vm/kernel.config
source_version=6.12

if [ -n "${EVENTHEADER_VM_KERNEL:-}" ]; then
  if [ ! -r "$EVENTHEADER_VM_KERNEL" ]; then
    echo "kernel: EVENTHEADER_VM_KERNEL=$EVENTHEADER_VM_KERNEL cannot be read; unset it to have a kernel built" >&2
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

# Two runs at once build it once.
exec 9>"$cache/kernel.lock"
flock -n 9 || { say "another run is building it; waiting"; flock 9; }
if [ -r "$image" ]; then
  echo "$image"
  exit
fi

"$repository/scripts/packages.sh" kernel >&2
work=$(mktemp -d "$cache/kernel-build.XXXXXX")
trap 'rm -rf "$work"' EXIT
log=$cache/kernel-build.log
failed() {
  say "the build failed; the end of $log:"
  tail -n 20 "$log" >&2
  exit 1
}

say "building Linux $source_version with user_events for the test VM: once, 5 to 10 minutes (log: $log)"
say "unpacking Debian's source"
tar -C "$work" --strip-components=1 -xf "/usr/src/linux-source-$source_version.tar.xz" >"$log" 2>&1 || failed
cd "$work"
{ make tinyconfig && scripts/kconfig/merge_config.sh -m .config "$config" && make olddefconfig; } \
  >>"$log" 2>&1 </dev/null || failed

# Without these the tests would be about another kernel.
for option in USER_EVENTS PERF_EVENTS NET_9P_VIRTIO OVERLAY_FS; do
  grep -q "^CONFIG_$option=y" .config || { say "this source cannot have CONFIG_$option" | tee -a "$log" >&2; failed; }
done

make -j"$(nproc)" bzImage >>"$log" 2>&1 </dev/null 9>&- &
build=$!
# About so many lines the log has in the end: progress, not precision.
total_lines=2450
while kill -0 "$build" 2>/dev/null; do
  sleep 15
  lines=$(wc -l <"$log")
  percent=$((lines * 100 / total_lines))
  say "compiling, about $((percent < 99 ? percent : 99)) %"
done
wait "$build" || failed

cp arch/x86/boot/bzImage "$image.partial"
mv "$image.partial" "$image"
say "built: $image"
echo "$image"
