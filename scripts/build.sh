#!/bin/bash
# ./run build: the release build, in build/; the programs are then in build/bin.
set -euo pipefail
if [ $# -gt 0 ]; then
  echo "usage: ./run build"
  case $1 in -h | --help) exit 0 ;; *) exit 2 ;; esac
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."

[ -f build/build.ninja ] || meson setup build --buildtype=release
ninja -C build
echo "the programs are in $PWD/build/bin"
