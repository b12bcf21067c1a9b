#!/bin/bash
# ./run package: builds the Debian packages; see usage() below.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: ./run package [--output DIR] [--version VERSION] [--arch ARCH]

Builds the Debian packages of this checkout, and the source package, into dist/, and has lintian check them. The checkout
itself stays as it is: a copy of its files, also of those not committed, is built in build-package/.

  --output DIR       where they go, in place of dist/; packages that are there already are removed
  --version VERSION  build them with this version, in place of that in debian/changelog
  --arch ARCH        arm64, s390x or i386: cross-built, without the source package and that of the documentation, into
                     dist/ARCH/. Needs root: it is done in a Debian root that is made for it the first time, in ~/.cache

examples:
  ./run package
  apt-get install ./dist/nettraced_*.deb ./dist/nettrace-tools_*.deb
  ./run package --arch arm64

exit status: 0 they are built and lintian has found neither error nor warning, 1 not so, 2 wrong usage
TEXT
}

output='' version='' arch='' root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
while [ $# -gt 0 ]; do
  case $1 in
    --output | --version | --arch)
      [ $# -gt 1 ] || { usage >&2; exit 2; }
      printf -v "${1#--}" %s "$2"
      shift 2
      ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
done
cross=() options=()
if [ -n "$arch" ]; then
  [ -e "$root/scripts/cross/$arch.ini" ] || { usage >&2; exit 2; }
  cross=("$root/scripts/cross/in_root.sh" "$arch")
  options=(--build=any "--host-arch=$arch")
  "${cross[@]}" true
fi
output=$(realpath -m -- "${output:-$root/dist/$arch}")
cd "$root"

# Always the same folder, because its name is part of what ccache compares; so one build at a time.
work=$root/build-package
mkdir -p "$work" "$output"
exec 9>"$work/lock"
flock 9
rm -rf "$work/source" "$work"/nettraced_* "$work"/*.deb
mkdir "$work/source"
# What is deleted and not yet committed is listed, and not there.
git -c safe.directory='*' ls-files -z --cached --others --exclude-standard |
  while IFS= read -r -d '' file; do [ ! -e "$file" ] && [ ! -L "$file" ] || printf '%s\0' "$file"; done |
  tar --create --null --no-recursion --files-from=- | tar --extract --directory "$work/source"
cd "$work/source"
[ -z "$version" ] || sed -i "1s/(.*)/($version)/" debian/changelog

# debhelper gives the build an empty home, in which there is no cache.
CCACHE_DIR=$(ccache --get-config cache_dir)
export CC="ccache gcc" CXX="ccache g++" CCACHE_DIR
DEB_BUILD_OPTIONS="parallel=$(nproc) ${DEB_BUILD_OPTIONS:-}"
export DEB_BUILD_OPTIONS
# packages.txt has what is needed, build-essential has more.
"${cross[@]}" dpkg-buildpackage --no-sign --no-check-builddeps "${options[@]}" >"$work/build.log" 2>&1 || {
  tail -n 40 "$work/build.log" >&2
  echo "package: the build failed; all it said is in $work/build.log" >&2
  exit 1
}
lintian --fail-on error,warning --tag-display-limit 0 --allow-root ../*.changes >&2
rm -f "$output"/*.deb "$output"/*.dsc "$output"/*.tar.xz "$output"/*.buildinfo "$output"/*.changes
find .. -maxdepth 1 \( -name '*.deb' -o -name '*.dsc' -o -name '*.tar.xz' -o -name '*.buildinfo' -o -name '*.changes' \) \
  -exec mv -t "$output/" {} +
rm -rf "$work/source"
printf '%s\n' "$output"/*.deb
