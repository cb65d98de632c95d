#!/usr/bin/env bash
# need_packages.sh PACKAGE... : install the Debian packages that are missing; touch no network when none is.
set -euo pipefail

if ! command -v dpkg-query >/dev/null; then
  echo "not a Debian system; make sure that you have the equivalents of: $*" >&2
  exit 0
fi
missing=()
for package in "$@"; do
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $state == installed ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "missing packages: ${missing[*]}; install them as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q </dev/null
"${as_root[@]}" apt-get install -q -y --no-install-recommends "${missing[@]}" </dev/null
