#!/bin/bash
# Process 1 of the test VM. scripts/vm.py boots the VM and passes FOLDER: the host's root, or a folder within it. This
# script lays a writable overlay in memory over the read-only FOLDER, and mounts the file systems of a Linux system. It
# runs one command, and leaves its output and exit status in the folder that the host shares under the tag "control".
# The files in the shared folder:
#   argv, env  (from the host) NUL-terminated strings     cwd  (from the host) a folder
#   tty  (from the host, if there) use /dev/hvc0, with these rows and columns
#   systemd  (from the host, if there) systemd boots and starts this script again, which runs the command
#   files  (from the host, if there) a tree that is copied over the root
#   stdout, stderr, status  (for the host)
set -u
export PATH=/usr/sbin:/usr/bin:/sbin:/bin

lay_overlay() {
  local root=$1 init=$0
  mount -t tmpfs tmpfs /mnt
  mkdir /mnt/upper /mnt/work /mnt/root
  mount -t overlay -o "lowerdir=$root,upperdir=/mnt/upper,workdir=/mnt/work" overlay /mnt/root
  if [ "$root" != / ]; then
    init=/vm-init.sh
    cp "$0" "/mnt/root$init"
  fi
  cd /mnt/root && exec switch_root . "$init" in-overlay
}

mount_what_init_needs() {
  local share_options=trans=virtio,version=9p2000.L,msize=512000,access=client,cache=none
  mount -t proc proc /proc
  mount -t sysfs sysfs /sys
  mountpoint -q /dev || mount -t devtmpfs devtmpfs /dev
  # devtmpfs does not have these links, which udev would make.
  ln -s /proc/self/fd /dev/fd
  ln -s fd/0 /dev/stdin
  ln -s fd/1 /dev/stdout
  ln -s fd/2 /dev/stderr
  mkdir -p /dev/pts /dev/shm
  mount -t devpts devpts /dev/pts
  mount -t tmpfs -o mode=1777 tmpfs /dev/shm
  mount -t tmpfs -o mode=755 tmpfs /run
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
  mkdir -p /run/control /run/lock /out
  mount -t 9p -o "$share_options" control /run/control
  mount -t 9p -o "$share_options" out /out
  # A minimal root has no iproute2.
  ! command -v ip >/dev/null || ip link set lo up
  echo vm >/proc/sys/kernel/hostname
  cwd=$(</run/control/cwd)
  for folder in /tmp /var/tmp; do
    # A checkout below /tmp must stay visible. The overlay keeps /tmp writable in this case, too.
    case $cwd/ in
      "$folder"/*) ;;
      *) mount -t tmpfs -o mode=1777 tmpfs "$folder" ;;
    esac
  done
  if [ -e /run/control/files ]; then
    cp -a --no-preserve=ownership /run/control/files/. /
  fi
}

mount_what_systemd_mounts() {
  mount -t tracefs tracefs /sys/kernel/tracing
  mount -t debugfs debugfs /sys/kernel/debug
  # The limits are those of Debian's systemd; the kernel's own hard limit is 4096.
  ulimit -Hn 524288
  ulimit -Sn 1024
}

# Boots vm.target with the units in its folder vm.target.wants. Ordinary services start after basic.target and
# sysinit.target, which are reduced to the journal, users, files and tracefs, because all of the host's units take
# minutes.
become_systemd() {
  local units=/run/systemd/system wants=/etc/systemd/system/sysinit.target.wants
  rm -rf {/etc,/usr/lib}/systemd/system/{sysinit,sockets,timers,paths}.target.wants
  mkdir -p "$wants" "$units"
  for unit in systemd-journald.service systemd-sysusers.service systemd-tmpfiles-setup.service \
    sys-kernel-tracing.mount sys-kernel-debug.mount; do
    ln -s "/lib/systemd/system/$unit" "$wants/$unit"
  done
  cat >"$units/vm.target" <<UNIT
[Unit]
Description=What the test VM is to have
Requires=basic.target
Wants=vm.service
UNIT
  cat >"$units/vm.service" <<UNIT
[Unit]
Description=The command that the test VM runs
[Service]
Type=exec
ExecStart=/bin/bash $0 in-systemd
Delegate=yes
OOMPolicy=continue
UNIT
  : >/etc/fstab
  # /tmp may contain the checkout, so it must not be emptied.
  ln -sf /dev/null /etc/tmpfiles.d/tmp.conf
  # The host may be a container; the VM is not.
  rm -f /.dockerenv
  # Makes systemd-sysusers run, as after an installation.
  rm -f /etc/.updated
  echo 0123456789abcdef0123456789abcdef >/etc/machine-id
  exec /lib/systemd/systemd --unit=vm.target --log-target=kmsg --log-level=notice --show-status=0
}

run_command() {
  mapfile -d '' -t argv </run/control/argv
  mapfile -d '' -t environment </run/control/env
  cd "$(</run/control/cwd)" || exit 1
  if [ -e /run/control/tty ]; then
    read -r rows columns </run/control/tty
    # The descriptor stays open, because the last close of the terminal resets its size.
    exec 8<>/dev/hvc0
    stty rows "$rows" columns "$columns" <&8
    setsid -c env -i "${environment[@]}" "${argv[@]}" </dev/hvc0 >/dev/hvc0 2>&1
    status=$?
    return
  fi
  # The output goes through pipes, so that a command may open /dev/stdout or /dev/stderr again without truncating it.
  mkfifo /run/stdout /run/stderr
  cat </run/stdout >>/run/control/stdout &
  copies=$!
  cat </run/stderr >>/run/control/stderr &
  copies="$copies $!"
  env -i "${environment[@]}" "${argv[@]}" </dev/null >/run/stdout 2>/run/stderr
  status=$?
  # If a process that the command left running holds the pipes open, the script waits at most two seconds.
  for ((i = 0; i < 20; i++)); do
    # shellcheck disable=SC2086
    kill -0 $copies 2>/dev/null || break
    sleep 0.1
  done
}

case ${1:-} in
  in-overlay)
    mount_what_init_needs
    [ ! -e /run/control/systemd ] || become_systemd
    mount_what_systemd_mounts
    ;;
  in-systemd) ;;
  *) lay_overlay "$1" ;;
esac

run_command
sync
echo "$status" >/run/control/status.partial
mv /run/control/status.partial /run/control/status
# The host ends the machine as soon as it sees the status. The poweroff is for a host that no longer exists.
sleep 10
echo o >/proc/sysrq-trigger
sleep 10
