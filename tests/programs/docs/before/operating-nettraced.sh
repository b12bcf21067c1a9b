#!/bin/bash
# Writes the settings of the session that the guide uses.
printf '[session.shop]\nselect = ["Shop"]\n' >/etc/nettraced/shop.toml
clean() {
  rm /etc/nettraced/shop.toml
  systemctl reload nettraced
}
