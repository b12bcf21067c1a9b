#!/bin/bash
# The variables of the guide's scripts, and with systemd its files and units.
# shellcheck disable=SC2034
name=MyCompany_MyService_L4K1
if [ "$PLACE" = systemd ]; then
  echo "Shop_Payments_L2K1" >/etc/eventheader/registrations.d/shop.conf
  printf '[Service]\nExecStart=sleep infinity\n' >/run/systemd/system/shop.service
  systemctl daemon-reload
  systemctl start shop.service
  # shellcheck disable=SC2034
  pid=$(systemctl show --property MainPID --value shop.service)
  clean() {
    systemctl stop shop.service
    rm /etc/eventheader/registrations.d/shop.conf /run/systemd/system/shop.service
    systemctl daemon-reload
  }
fi
