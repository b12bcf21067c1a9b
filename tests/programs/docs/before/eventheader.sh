#!/bin/bash
# Runs before each example: makes tracepoints, a program and a package with events, or a unit and a process.
tracepoints=/sys/kernel/tracing/events/user_events

make_package() {
  mkdir -p /etc/eventheader/registrations.d
  echo Shop_Payments_L2K1 >/etc/eventheader/registrations.d/shop.conf
  install -D "$(command -v my-service)" package/usr/bin/my-service
  mkdir package/DEBIAN
  printf 'Package: my-package\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: none\n' >package/DEBIAN/control
  dpkg-deb --build package package.deb
  dpkg --install package.deb
}

run_a_unit() {
  printf '[Service]\nExecStart=sleep infinity\n' >/run/systemd/system/nginx.service
  systemctl daemon-reload
  systemctl start nginx.service
  until [ -e /proc/1234 ]; do
    echo 1233 >/proc/sys/kernel/ns_last_pid
    sleep infinity &
  done
}

# Ends processes that the previous example has left running.
mapfile -t left < <(jobs -p)
if [ "$PLACE" = vm ] && [ "${#left[@]}" -gt 0 ]; then
  kill "${left[@]}"
  wait
fi

case $PLACE in
  vm)
    [ -e package ] || make_package
    [ -e "$tracepoints/MyCompany_MyService_L4K1" ] || eventheader register MyCompany_MyService_L4K1
    ;;
  systemd)
    [ -e /run/systemd/system/nginx.service ] || run_a_unit
    clean() {
      systemctl stop nginx.service
      rm /run/systemd/system/nginx.service
      systemctl daemon-reload
    }
    ;;
esac
