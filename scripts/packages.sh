#!/bin/bash
# Installs the packages of packages.txt that are missing for the purposes named as arguments.
set -euo pipefail
list=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/packages.txt

mapfile -t wanted < <(awk -v purposes=" $* " '!/^#/ && NF && index(purposes, " " $2 " ") { print $1 }' "$list")
# dpkg-query fails if it does not know one of the packages. That package is missing, too.
installed=$(dpkg-query --show --showformat='${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null |
  awk '$2 == "installed" { print $1 }') || true
mapfile -t missing < <(grep -vxF "$installed" < <(printf '%s\n' "${wanted[@]}") || true)
[ ${#missing[@]} -gt 0 ] || exit 0

sudo=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "run: these Debian packages are missing, and installing them needs root or sudo: ${missing[*]}" >&2
    exit 1
  }
  sudo=(sudo)
fi

echo "run: installing Debian packages: ${missing[*]}" >&2
# Output goes to stderr: the caller's stdout belongs to the command that needs the packages.
{
  "${sudo[@]}" apt-get -q -o Acquire::Retries=5 update &&
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get -q -y -o Acquire::Retries=5 -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 install --no-install-recommends "${missing[@]}"
} </dev/null >&2 || {
  echo "run: the installation failed; it needs network access and Debian 12 (bookworm and bookworm-security)" >&2
  echo "     to install by hand: apt-get update && apt-get install ${missing[*]}" >&2
  exit 1
}
