#!/bin/bash
# ./run build: makes the release build in build/. The programs are then in build/bin.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: ./run build

Builds the product with optimization in build/. The programs are in build/bin.

exit status: 0 built, 1 failed, 2 wrong usage
TEXT
}

case ${1:-} in
  '') ;;
  -h | --help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The Debian packages are built with the same options. The unity build compiles several sources as one, which takes a
# fifth of the time.
[ -f build/build.ninja ] || meson setup build --buildtype=release -Doptimization=2 -Dunity=on -Dunity_size=8
ninja -C build
echo "the programs are in $PWD/build/bin"
