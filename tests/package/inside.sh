#!/bin/bash
# Runs in the VM, under systemd, in a fresh root (systemd_test.py). Installs the packages of /out/old, lets a service
# write events, installs the packages of /out/new over them, and purges them. Ends with status 0 if all checks pass.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
trap 'echo "inside.sh: line $LINENO: $BASH_COMMAND"; systemctl --no-pager status nettraced || :; journalctl --no-pager -u nettraced | tail -n 30 || :' ERR
unit=nettraced.service
fresh_files=/var/lib/nettraced/example

dpkg --install /out/old/*.deb
systemctl is-enabled --quiet $unit
systemctl is-active --quiet $unit
before=$(systemctl show --property MainPID --value $unit)
old=$(nettraced --version)

# Settings of the administrator, and a service with a separate user that may write events.
cat >/etc/nettraced/example.toml <<TOML
[session.example]
select = ["user_events:ExampleService_L4K1", "user_events:ExampleService_L4K2", "user_events:ExampleService_L2K2"]
TOML
sed -i 's/"1G"/"2G"/' /etc/nettraced/nettraced.toml
useradd --system shop
cat >/etc/systemd/system/shop.service <<UNIT
[Service]
Type=oneshot
User=shop
SupplementaryGroups=user_events
ExecStart=/usr/local/bin/example-service --events 30 --threads 1
UNIT
systemctl daemon-reload
systemctl stop $unit
systemctl start $unit
systemctl start shop.service
systemctl restart $unit
test "$(nettrace dump $fresh_files/*.nettrace | grep -c 'ExampleService')" -eq 30
recorded=$(sha256sum $fresh_files/*.nettrace)

dpkg --install /out/new/*.deb
systemctl is-active --quiet $unit
test "$(systemctl show --property MainPID --value $unit)" != "$before"
test "$(nettraced --version)" != "$old"
nettrace ctl status | grep -q example
grep -q '"2G"' /etc/nettraced/nettraced.toml
test -e /etc/nettraced/example.toml
sha256sum --check --quiet <<<"$recorded"

rm /etc/nettraced/example.toml
dpkg --purge nettraced nettrace-tools
if systemctl is-active --quiet $unit; then false; fi
for gone in /etc/nettraced /var/lib/nettraced /usr/bin/nettraced /lib/systemd/system/$unit \
  /etc/systemd/system/multi-user.target.wants/$unit /run/nettraced /lib/systemd/system/nettraced.socket \
  /etc/systemd/system/sockets.target.wants/nettraced.socket; do
  if [ -e "$gone" ] || [ -L "$gone" ]; then
    echo "inside.sh: $gone is still there"
    exit 1
  fi
done
echo "all as it should be"
