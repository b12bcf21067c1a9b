#!/bin/bash
# Process 1 of the test VM, started by scripts/vm.py. Lays a writable overlay, kept in memory, over the
# host's read-only root, mounts what a Linux system has, runs one command, and leaves its output and
# exit status in the folder the host shares under the tag "control":
#   argv, env  (from the host) NUL-terminated strings     cwd  (from the host) a folder
#   tty  (from the host, if there) use /dev/hvc0, with these rows and columns
#   stdout, stderr, status  (for the host)
set -u
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
share_options=trans=virtio,version=9p2000.L,msize=512000,access=client,cache=none

if [ "${1:-}" != in-overlay ]; then
  mount -t tmpfs tmpfs /mnt
  mkdir /mnt/upper /mnt/work /mnt/root
  mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work overlay /mnt/root
  cd /mnt/root && exec switch_root . "$0" in-overlay
fi

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mountpoint -q /dev || mount -t devtmpfs devtmpfs /dev
# devtmpfs leaves these links to udev.
ln -s /proc/self/fd /dev/fd
ln -s fd/0 /dev/stdin
ln -s fd/1 /dev/stdout
ln -s fd/2 /dev/stderr
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tracefs tracefs /sys/kernel/tracing
mount -t debugfs debugfs /sys/kernel/debug
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir -p /run/control /run/lock /out
mount -t 9p -o "$share_options" control /run/control
mount -t 9p -o "$share_options" out /out
ip link set lo up
echo vm >/proc/sys/kernel/hostname

mapfile -d '' -t argv </run/control/argv
mapfile -d '' -t environment </run/control/env
cwd=$(</run/control/cwd)
for folder in /tmp /var/tmp; do
  # A checkout below /tmp must stay visible; the overlay keeps that /tmp writable, too.
  case $cwd/ in
    "$folder"/*) ;;
    *) mount -t tmpfs -o mode=1777 tmpfs "$folder" ;;
  esac
done
cd "$cwd" || exit 1

# The limits are those of Debian's systemd; the kernel's own hard limit is 4096.
ulimit -Hn 524288
ulimit -Sn 1024

if [ -e /run/control/tty ]; then
  read -r rows columns </run/control/tty
  # Held open: the terminal's last close forgets its size.
  exec 8<>/dev/hvc0
  stty rows "$rows" columns "$columns" <&8
  setsid -c env -i "${environment[@]}" "${argv[@]}" </dev/hvc0 >/dev/hvc0 2>&1
  status=$?
else
  # Through pipes, so that a command may open /dev/stdout or /dev/stderr again without truncating it.
  mkfifo /run/stdout /run/stderr
  cat </run/stdout >>/run/control/stdout &
  copies=$!
  cat </run/stderr >>/run/control/stderr &
  copies="$copies $!"
  env -i "${environment[@]}" "${argv[@]}" </dev/null >/run/stdout 2>/run/stderr
  status=$?
  # A process that the command left behind may hold the pipes open: it gets two seconds.
  for ((i = 0; i < 20; i++)); do
    # shellcheck disable=SC2086
    kill -0 $copies 2>/dev/null || break
    sleep 0.1
  done
fi
sync
echo "$status" >/run/control/status.partial
mv /run/control/status.partial /run/control/status
# The host ends the machine as soon as it has seen the status; this is for when it is gone.
sleep 10
echo o >/proc/sysrq-trigger
sleep 10
