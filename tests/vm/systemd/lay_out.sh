#!/bin/sh
# Makes the tree that is laid over the root of a VM before it boots systemd: the files that a package of the programs
# installs, load_service, and the files in files/. nettraced, eventheader-register and the services are enabled in
# vm.target.
set -eu
if [ $# -ne 5 ]; then
  echo "usage: lay_out.sh MESON BUILD FILES LOAD_SERVICE TREE" >&2
  exit 2
fi
meson=$1 build=$2 files=$3 load_service=$4 tree=$5

rm -rf "$tree"
$meson install -C "$build" --no-rebuild --quiet --strip --tags runtime --destdir "$tree"
install -s "$load_service" "$tree/usr/local/bin/load_service"
cp -r "$files/." "$tree/"
wants=$tree/etc/systemd/system/vm.target.wants
mkdir -p "$wants"
for unit in nettraced eventheader-register; do
  ln -s "/usr/local/lib/systemd/system/$unit.service" "$wants/"
done
for unit in "$files"/etc/systemd/system/*.service; do
  ln -s "../${unit##*/}" "$wants/"
done
