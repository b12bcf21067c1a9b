#!/bin/bash
# Runs in the checkout, in a fresh root that was set up as README.md describes (root_test.py). Builds programs in C,
# C++17 and C++20 with pkg-config, with CMake and with a Meson subproject, and runs them. Ends with status 0 if all
# checks pass.
set -euo pipefail
checkout=$PWD examples=$PWD/examples projects=$PWD/tests/programs/examples/projects
work=$(mktemp -d)

# Runs the programs of a folder.
check() {
  (
    cd "$1"
    for service in service_c service_cxx17 service_cxx; do
      ./$service | grep ' 0 failed; '
    done
    ./c_api
    ./write shop.nettrace
    ./read shop.nettrace | grep '^ *10 Example.Shop Request$'
    ./read shop.nettrace | grep '^ *0 lost$'
  )
}

mkdir "$work/pkg-config"
cd "$work/pkg-config"
# The output of pkg-config must be split into words.
# shellcheck disable=SC2046
{
  gcc -std=c11 "$examples/c_service.c" $(pkg-config --cflags --libs eventheader) -o service_c
  g++ -std=c++17 "$examples/cxx17_service.cc" $(pkg-config --cflags --libs eventheader) -o service_cxx17
  g++ -std=c++20 "$examples/logger_bridge.cc" $(pkg-config --cflags --libs eventheader) -o service_cxx
  gcc -std=c11 "$projects/c_api.c" $(pkg-config --cflags --libs eventheader-c) -o c_api
  g++ -std=c++20 "$examples/nettrace/write.cc" $(pkg-config --cflags --libs nettrace) -o write
  g++ -std=c++20 "$examples/nettrace/read.cc" $(pkg-config --cflags --libs --static nettrace-writer) -o read
}
check "$work/pkg-config"

cmake -S "$projects/cmake" -B "$work/cmake" -DEXAMPLES="$examples" -DVERSION="$(pkg-config --modversion eventheader)"
cmake --build "$work/cmake"
check "$work/cmake"

cp -r "$projects/meson" "$work/project"
cp "$projects/c_api.c" "$examples"/{service.cc,c_service.c,cxx17_service.cc,logger_bridge.cc} "$examples"/nettrace/{read,write}.cc "$work/project"
ln -s "$checkout" "$work/project/subprojects/nettraced"
# Uses the subproject instead of the installed libraries.
meson setup "$work/meson" "$work/project" -Doptimization=0 -Ddebug=false --force-fallback-for=eventheader,nettrace
ninja -C "$work/meson" service service_c service_cxx17 service_cxx c_api write read
check "$work/meson"
echo "all as it should be"
