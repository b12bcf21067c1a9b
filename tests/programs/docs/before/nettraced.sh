#!/bin/bash
# Writes settings. Makes nettraced run in the background, so that the next example can connect to it.
mkdir -p settings state run /etc/nettraced
printf '[daemon]\nlook_group = ""\n' >settings/daemon.toml
printf '[session.shop]\nselect = ["Shop"]\n' >shop.toml
nettraced() {
  if [ "${1-}" = --check-config ]; then
    command nettraced "$@"
  else
    command nettraced "$@" &
    until [ -S run/control ]; do sleep 0.1; done
  fi
}
