#!/bin/bash
# ./run package: builds the Debian packages; see usage() below.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: ./run package [--output DIR] [--version VERSION] [--arch ARCH]

Builds the Debian packages and the source package of this checkout in dist/, and checks them with lintian. Prints the
progress to standard error. The checkout does not change: a copy of its files, including uncommitted ones, is built in
build-package/.

  --output DIR       write the packages to DIR instead of dist/; existing packages there are removed
  --version VERSION  version of the packages, instead of that in debian/changelog
  --arch ARCH        cross-build for arm64, s390x or i386 into dist/ARCH/, without source and documentation packages.
                     Needs root: the build runs in a Debian root, which the first run makes in ~/.cache

examples:
  ./run package
  apt-get install ./dist/nettraced_*.deb ./dist/nettrace-tools_*.deb
  ./run package --arch arm64

exit status: 0 built, and lintian found neither errors nor warnings; 1 failed; 2 wrong usage
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

# The folder is always the same, because ccache compares its name. Only one build can run at a time.
work=$root/build-package
mkdir -p "$work" "$output"
exec 9>"$work/lock"
flock 9
rm -rf "$work/source" "$work"/nettraced_* "$work"/*.deb
mkdir "$work/source"
# git also lists files that are deleted and not yet committed; they do not exist.
git -c safe.directory='*' ls-files -z --cached --others --exclude-standard |
  while IFS= read -r -d '' file; do [ ! -e "$file" ] && [ ! -L "$file" ] || printf '%s\0' "$file"; done |
  tar --create --null --no-recursion --files-from=- | tar --extract --directory "$work/source"
cd "$work/source"
[ -z "$version" ] || sed -i "1s/(.*)/($version)/" debian/changelog

# debhelper gives the build an empty home folder, which has no compiler cache.
CCACHE_DIR=$(ccache --get-config cache_dir)
export CC="ccache gcc" CXX="ccache g++" CCACHE_DIR
DEB_BUILD_OPTIONS="parallel=$(nproc) ${DEB_BUILD_OPTIONS:-}"
export DEB_BUILD_OPTIONS
# Writes the log of the build to a file, and prints its steps: each command of debhelper once, and each tenth of the
# steps of ninja.
show_progress() {
  local line tenth last=0 seen=' '
  while IFS= read -r line; do
    printf '%s\n' "$line"
    if [[ $line =~ ^\ +(dh_[a-z_]+) ]]; then
      [[ $seen == *" ${BASH_REMATCH[1]} "* ]] || echo "package: ${BASH_REMATCH[1]}" >&2
      seen+="${BASH_REMATCH[1]} "
    elif [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
      tenth=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
      [ "$tenth" -le "$last" ] || echo "package: ${tenth}0 % of ${BASH_REMATCH[2]} steps are compiled" >&2
      last=$tenth
    fi
  done >"$work/build.log"
}

echo "package: building; the log is $work/build.log" >&2
# Does not check for the packages of Build-Depends: ./run has installed those of packages.txt, which are enough. The check
# would also require build-essential.
"${cross[@]}" dpkg-buildpackage --no-sign --no-check-builddeps "${options[@]}" 2>&1 | show_progress || {
  tail -n 40 "$work/build.log" >&2
  echo "package: the build failed; its whole log is $work/build.log" >&2
  exit 1
}
echo "package: checking the packages with lintian" >&2
lintian --fail-on error,warning --tag-display-limit 0 --allow-root ../*.changes >&2
rm -f "$output"/*.deb "$output"/*.dsc "$output"/*.tar.xz "$output"/*.buildinfo "$output"/*.changes
find .. -maxdepth 1 \( -name '*.deb' -o -name '*.dsc' -o -name '*.tar.xz' -o -name '*.buildinfo' -o -name '*.changes' \) \
  -exec mv -t "$output/" {} +
rm -rf "$work/source"
printf '%s\n' "$output"/*.deb
