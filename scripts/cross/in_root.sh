#!/bin/bash
# Runs a command in a root where programs for another architecture can be built and run: see usage() below.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: scripts/cross/in_root.sh ARCH COMMAND [ARG...]

Runs a command in this folder in a Debian 12 root (chroot). The root has the cross compiler for ARCH, the libraries of
ARCH that debian/control and the tests need, and qemu-user. The checkout and ../shared have the same paths in it as
here; /tmp is empty. The first run makes the root with mmdebstrap in ~/.cache/nettraced: it downloads about 250 MB, and
the root takes 1 GB. The packages of this machine do not change.

  ARCH  arm64, s390x (big-endian) or i386 (32 bits, whose programs run without qemu)

examples:
  scripts/cross/in_root.sh s390x meson setup --cross-file scripts/cross/s390x.ini build-s390x -Dtests=true -Dwerror=true
  scripts/cross/in_root.sh s390x meson test -C build-s390x --suite unit

exit status: the command's; 1 also if the root cannot be made; 2 wrong usage
TEXT
}

say() { echo "in_root: $*" >&2; }

case ${1:-} in
  arm64) compiler=aarch64-linux-gnu ;;
  s390x) compiler=s390x-linux-gnu ;;
  i386) compiler=i686-linux-gnu ;;
  -h | --help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac
[ $# -gt 1 ] || { usage >&2; exit 2; }
arch=$1
shift
[ "$(id -u)" -eq 0 ] || { say "this script must run as root"; exit 1; }

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/nettraced
packages=g++-$compiler,libc6-dev:$arch,libstdc++-12-dev:$arch,libgtest-dev:$arch,ccache,qemu-user,unzip
# The name contains a hash of the list of packages, so that a change of the list leads to a new root.
root=$cache/root-$arch-$({ echo "$packages"; sed "/^$/q" "$repository/debian/control"; } | sha256sum | cut -c1-12)

# The lock lets one run make the root while other runs wait.
mkdir -p "$cache"
exec 9>"$cache/root-$arch.lock"
flock --shared 9
[ -d "$root" ] || flock 9
if [ ! -d "$root" ]; then
  "$repository/scripts/packages.sh" package >&2
  say "making the root for $arch once; this takes some minutes (log: $root.log)"
  rm -rf --one-file-system "$cache/root-$arch-"*
  # Security and other updates are left out: some architectures do not have them, and a library must have the same
  # version for both architectures.
  # shellcheck disable=SC2016  # apt replaces $(REPO_URI).
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' 'Component: main' | sort -u | head -n 1)
  # apt runs inside the root, by chroot. From outside it would call this machine's dpkg.
  # shellcheck disable=SC2016  # mmdebstrap sets $1 to the root.
  mmdebstrap --variant=minbase --architectures="amd64,$arch" --dpkgopt=force-unsafe-io \
    --aptopt='APT::Install-Recommends "false"' \
    --include="$packages" \
    --customize-hook='mkdir -p "$1/source/debian"' --customize-hook="copy-in '$repository/debian/control' /source/debian" \
    --customize-hook='chroot "$1" apt-get -q --yes --host-architecture '"$arch"' --arch-only build-dep /source' \
    bookworm "$root.new" "deb ${mirror:-http://deb.debian.org/debian} bookworm main" </dev/null >"$root.log" 2>&1 || {
    say "making the root failed; the end of $root.log:"
    tail -n 20 "$root.log" >&2
    rm -rf --one-file-system "$root.new"
    exit 1
  }
  mv "$root.new" "$root"
fi
flock --shared 9

# Only the command sees these mounts; they are removed when it ends.
# shellcheck disable=SC2016  # The inner shell expands the variables.
exec unshare --mount --propagation private bash -euc '
  root=$1 folder=$2 compiler_cache=$3 repository=$4 shared=$5
  shift 5
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount --rbind /sys "$root/sys"
  mount -t tmpfs tmpfs "$root/tmp"
  for there in "$repository" "$shared" "$compiler_cache"; do
    [ -d "$there" ] || continue
    mkdir -p "$root$there"
    mount --bind "$there" "$root$there"
  done
  # The symbolic links in this folder are named like the compilers, and call them by ccache.
  exec chroot "$root" env -C "$folder" -u CC -u CXX -u TMPDIR HOME=/root LC_ALL=C.UTF-8 \
    PATH=/usr/lib/ccache:/usr/sbin:/usr/bin:/sbin:/bin CCACHE_DIR="$compiler_cache" CCACHE_NOHASHDIR=1 "$@"
' in_root "$root" "$PWD" "$(ccache --get-config cache_dir)" "$repository" \
  "$(realpath -ms -- "${SHARED_DIR:-$repository/../shared}")" "$@"
