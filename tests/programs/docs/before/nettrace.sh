#!/bin/bash
# Runs before each example: makes the files that it reads, and in the VM also a service, a daemon with the sessions web
# and box, a process 1234 and a cgroup.
if [ ! -e trace.nettrace ]; then
  example-nettrace-write trace.nettrace
  cp trace.nettrace a.nettrace
  cp trace.nettrace b.nettrace
  mkdir shop
  cp a.nettrace b.nettrace shop
  zstd -q trace.nettrace
  head -c -20 trace.nettrace >cut.nettrace
  printf '\x10\0\x04FxT\x16\0' >trace.fxt
  # An event with a stack, and the mapping of its code.
  base64 -d >stacks.nettrace <<'BASE64'
TmV0dHJhY2UAAAAABgAAAAAAAAAoAAAB6gcLAAYAFQAKAAAAAAAAAAAAAAAAAAAAAMqaOwAAAAAIAAAAAAAAAIkAAAMAAHMAARBVbml2ZXJzYW
wuU3lzdGVtAw5Qcm9jZXNzTWFwcGluZwYABAACSWQVDgAMU3RhcnRBZGRyZXNzFQwACkVuZEFkZHJlc3MVDAAKRmlsZU9mZnNldBULAAhGaWxl
TmFtZRMXDAAKTWV0YWRhdGFJZBUAABAAAgRTaG9wAQRTYWxlAAAAAA8AAAYNAAEBBHNob3ACkiEDkiEcAAAFAQAAAAEAAAAQAAAAEBBAAAAAAA
AAEUAAAAAAAD8AAAIUAAEAAQAAAAAAAAACAAAAAAAAAJ8BAAEAAQABABcBgKCAAv+/gAKAIAkAL2Jpbi9zaG9wAJ8CAAEAAQEBAAAAAAAA
BASE64
fi
# Examples of ship need a receiver. An export does not write into an existing folder; an import reads that folder.
case $NEXT in
  "nettrace ship"* | *:4318*)
    printf 'Authorization: Bearer TOKEN\n' >headers
    python3 -m support.otlp_server 4318 &
    until (exec 3<>/dev/tcp/127.0.0.1/4318) 2>/dev/null; do sleep 0.1; done
    ;;
  "nettrace export"*) rm -rf trace.ctf tables dataset ;;
  "nettrace import"*) [ -e trace.ctf ] || nettrace export --to ctf trace.nettrace -o trace.ctf ;;
esac

prepare_vm() {
  ln -s "$(command -v service)" service
  printf 'all:\n\t@true\n' >Makefile
  mkdir -p /sys/fs/cgroup/nginx.service /etc/nettraced /run/nettraced /var/lib/nettraced /var/lib/prometheus/node-exporter
  echo +pids >/sys/fs/cgroup/cgroup.subtree_control
  printf '[session.debug]\nselect = ["sched:sched_switch"]\n' >debug.toml
  cat >/etc/nettraced/examples.toml <<'TOML'
[daemon]
look_group = ""
[session.web]
select = ["sched:sched_switch"]
[session.box]
select = ["sched:sched_switch"]
[session.box.flight]
keep_bytes = "4M"
TOML
  eventheader register MyCompany_MyService --levels 1-4 --keywords 0x1
  nettraced 2>nettraced.log &
  until nettrace ctl wait box --timeout 10s; do sleep 0.1; done 2>/dev/null
  until [ -e /proc/1234 ]; do
    echo 1233 >/proc/sys/kernel/ns_last_pid
    sleep infinity &
  done
}

if [ "$PLACE" = vm ]; then
  clean() {
    rmdir /sys/fs/cgroup/nginx.service
    echo -pids >/sys/fs/cgroup/cgroup.subtree_control
    rm /etc/nettraced/examples.toml
  }
  [ -e Makefile ] || prepare_vm
  # Some examples stop or start the session web, so each example gets it in the state that it needs.
  case $NEXT in
    "nettrace ctl start web") nettrace ctl stop web ;;
    *" web"*) nettrace ctl start web || true ;;
    *" --journal"*)
      mkdir -p /run/systemd/journal /run/log
      /lib/systemd/systemd-journald &
      until [ -n "$(ls /run/log/journal/*/*.journal)" ]; do sleep 0.1; done
      ;;
  esac 2>/dev/null
fi
