#!/usr/bin/env bash
# install_test.sh find_package|pkg_config|no_extra_files BUILD_FOLDER : install into an empty prefix and use what lies there.
set -euo pipefail

way=$1
build=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix
cmake --install "$build" --prefix "$prefix" >"$scratch/log" || { cat "$scratch/log"; exit 1; }

case $way in
  find_package)
    cmake -S "$here/consumer" -B "$scratch/consumer" -G Ninja -D CMAKE_PREFIX_PATH="$prefix"
    cmake --build "$scratch/consumer"
    "$scratch/consumer/consumer"
    ;;
  pkg_config)
    pc=$(find "$prefix" -name zerocomm.pc)
    library=$(dirname "$(dirname "$pc")")
    static=()
    [[ -e $library/libzerocomm.so ]] || static=(--static)
    flags=$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --define-variable=prefix="$prefix" "${static[@]}" --cflags --libs zerocomm)
    # shellcheck disable=SC2086 # the flags are several words
    cc -std=c99 -pedantic-errors -Wall -Werror "$here/consumer/main.c" $flags -o "$scratch/consumer"
    LD_LIBRARY_PATH=$library "$scratch/consumer"
    ;;
  no_extra_files)
    # Nothing but the public headers, the library with its two description files, the program and the licence.
    extra=$(cd "$prefix" && find . -type f -o -type l | grep -vE \
      '^\./(include/zerocomm/[a-z_]+\.hp{0,2}|lib.*/libzerocomm\.(a|so[.0-9]*)|lib.*/cmake/zerocomm/zerocomm[A-Za-z-]+\.cmake|lib.*/pkgconfig/zerocomm\.pc|bin/zc|share/doc/.*/LICENSE)$' || true)
    [[ -z $extra ]] || { echo "installed beside what is promised: $extra"; exit 1; }
    [[ -e $prefix/include/zerocomm/status.h ]] || { echo "no headers"; exit 1; }
    ;;
  *)
    echo "unknown way: $way" >&2
    exit 2
    ;;
esac
