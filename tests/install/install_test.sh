#!/usr/bin/env bash
# install_test.sh find_package|pkg_config|no_extra_files BUILD_FOLDER : install into an empty prefix, move it to another place, and
# use what lies there.
set -euo pipefail

way=$1
build=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install "$build" --prefix "$scratch/first" >"$scratch/log" || { cat "$scratch/log"; exit 1; }
prefix=$scratch/moved
mv "$scratch/first" "$prefix"

case $way in
  find_package)
    if [[ -e $prefix/bin/zc ]]; then env -u LD_LIBRARY_PATH "$prefix/bin/zc" --version; fi
    cmake -S "$here/consumer" -B "$scratch/consumer" -G Ninja -D CMAKE_PREFIX_PATH="$prefix"
    cmake --build "$scratch/consumer"
    for program in zerocomm_c zerocomm_cpp zerocomm_static_c zerocomm_static_cpp; do "$scratch/consumer/$program"; done
    if readelf -d "$scratch/consumer/zerocomm_static_c" | grep libzerocomm; then
      echo "the program with the archive needs the shared library"
      exit 1
    fi
    ;;
  pkg_config)
    pc=$(find "$prefix" -name zerocomm.pc)
    library=$(dirname "$(dirname "$pc")")
    export PKG_CONFIG_PATH=${pc%/*}
    c=(cc -std=c99 -pedantic-errors -Wall -Werror "$here/consumer/main.c")
    cpp=(c++ -std=c++20 -pedantic-errors -Wall -Werror "$here/consumer/main.cpp")
    # shellcheck disable=SC2046 # the flags are several words
    if [[ -e $library/libzerocomm.so ]]; then
      "${c[@]}" $(pkg-config --cflags --libs zerocomm) -pthread -o "$scratch/shared_c"
      "${cpp[@]}" $(pkg-config --cflags --libs zerocomm) -pthread -o "$scratch/shared_cpp"
      LD_LIBRARY_PATH=$library "$scratch/shared_c"
      LD_LIBRARY_PATH=$library "$scratch/shared_cpp"
      rm "$library"/libzerocomm.so*  # the archive alone from here on
    fi
    # shellcheck disable=SC2046
    "${c[@]}" $(pkg-config --static --cflags --libs zerocomm) -o "$scratch/static_c"
    # shellcheck disable=SC2046
    "${cpp[@]}" $(pkg-config --static --cflags --libs zerocomm) -o "$scratch/static_cpp"
    "$scratch/static_c"
    "$scratch/static_cpp"
    ;;
  no_extra_files)
    # Nothing but the public headers, the libraries with their description files, the program and the licence.
    extra=$(cd "$prefix" && find . -type f -o -type l | grep -vE \
      '^\./(include/zerocomm/[a-z_]+\.hp{0,2}|lib.*/libzerocomm\.(a|so[.0-9]*)|lib.*/cmake/zerocomm/zerocomm[A-Za-z-]+\.cmake|lib.*/pkgconfig/zerocomm\.pc|bin/zc|share/doc/.*/LICENSE)$' || true)
    [[ -z $extra ]] || { echo "installed beside what is promised: $extra"; exit 1; }
    missing=$(comm -13 <(cd "$prefix/include/zerocomm" && ls | sort) <(cd "$here/../../include/zerocomm" && ls | sort))
    [[ -z $missing ]] || { echo "headers that are not installed: $missing"; exit 1; }
    if grep -rl "$scratch/first\|$build" "$prefix" --include=*.cmake --include=*.pc; then
      echo "these files name the place of the build or of the first installation"
      exit 1
    fi
    ;;
  *)
    echo "unknown way: $way" >&2
    exit 2
    ;;
esac
