#!/usr/bin/env bash
# packages_test.sh inspect|fresh_root BUILD_FOLDER SOURCE : build the Debian packages; look at them, or install them into a fresh
# Debian and compile and run the consumers there. Exit status 77: it cannot be done here, and the output says why.
set -euo pipefail

way=$1
source=$3
here=$source/tests/install
build=$2/packages_test

skip() {
  echo "skipped: $*"
  exit 77
}
command -v dpkg-shlibdeps >/dev/null || skip "dpkg-shlibdeps (package dpkg-dev) is not installed"

# Settings as those of the build beside: a compiler cache then has every object.
same=()
for name in CMAKE_C_COMPILER CMAKE_CXX_COMPILER CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER ZC_WERROR ZC_WITH_TCP; do
  line=$(grep -E "^$name:" "$2/CMakeCache.txt" | tail -n 1 || true)
  [[ -z $line ]] || same+=(-D "$line")
done
cmake -S "$source" -B "$build" -G Ninja -D CMAKE_BUILD_TYPE=Release -D CMAKE_INSTALL_PREFIX=/usr -D ZC_BUILD_TESTS=OFF \
  -D ZC_BUILD_EXAMPLES=OFF -D ZC_BUILD_TOOLS=ON "${same[@]}" >"$build.log" || { cat "$build.log"; exit 1; }
cmake --build "$build" >"$build.log" || { cat "$build.log"; exit 1; }
rm -rf "$build/packages"
(cd "$build" && cpack) >"$build.log" 2>&1 || { cat "$build.log"; exit 1; }
packages=("$build"/packages/{libzerocomm0,libzerocomm-dev,zerocomm-tools}_*.deb)
[[ $(find "$build/packages" -name '*.deb' | wc -l) == 3 ]] || { ls "$build/packages"; exit 1; }

# expect TEXT PACKAGE COMMAND... : the output of dpkg-deb has a line that begins with TEXT.
expect() {
  local text=$1 package=$2 output
  shift 2
  output=$(dpkg-deb "$@")
  grep -qE -- "$text" <<<"$output" || { printf '%s: no line like "%s" in\n%s\n' "$package" "$text" "$output"; exit 1; }
}

inspect() {
  local runtime=${packages[0]} development=${packages[1]} tools=${packages[2]} version triplet
  version=$(dpkg-deb -f "$runtime" Version)
  triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
  expect '^ Package: libzerocomm0$' "$runtime" -I "$runtime"
  expect '^ Depends: .*libc6 \(>= .*libstdc\+\+6 \(>= ' "$runtime" -I "$runtime"
  expect '^libzerocomm 0 libzerocomm0 \(>= ' "$runtime" -I "$runtime" shlibs
  expect '^activate-noawait ldconfig$' "$runtime" -I "$runtime" triggers
  expect "\./usr/lib/$triplet/libzerocomm\.so\.0 -> libzerocomm\.so\.$version$" "$runtime" -c "$runtime"
  expect "^libzerocomm0 \(= $version\)(, libsodium-dev)?$" "$development" -f "$development" Depends
  for file in "lib/$triplet/libzerocomm.so -> libzerocomm.so.0" "lib/$triplet/libzerocomm.a" "include/zerocomm/zerocomm.h" \
    "include/zerocomm/zerocomm.hpp" "lib/$triplet/pkgconfig/zerocomm.pc" "lib/$triplet/cmake/zerocomm/zerocommConfig.cmake"; do
    expect "\./usr/${file//./\\.}$" "$development" -c "$development"
  done
  expect "^libzerocomm0 \(= $version\), .*libfmt9" "$tools" -f "$tools" Depends
  expect '^-rwxr-xr-x root/root .*\./usr/bin/zc$' "$tools" -c "$tools"
  # No path twice, nobody's but root's, a copyright in each, and nothing with debug information or a path of the build.
  local twice
  twice=$(for package in "${packages[@]}"; do dpkg-deb -c "$package" | awk '$1 !~ /^d/ { print $6 }'; done | sort | uniq -d)
  [[ -z $twice ]] || { echo "in two packages: $twice"; exit 1; }
  for package in "${packages[@]}"; do
    expect "\./usr/share/doc/$(dpkg-deb -f "$package" Package)/copyright$" "$package" -c "$package"
    if dpkg-deb -c "$package" | grep -v ' root/root '; then exit 1; fi
    rm -rf "$build/unpacked"
    dpkg-deb -x "$package" "$build/unpacked"
    if grep -rlF "$build" "$build/unpacked"; then
      echo "these files of $package name the build folder"
      exit 1
    fi
  done
}

fresh_root() {
  local mirror suite
  ((EUID == 0)) || skip "a fresh root needs root"
  command -v debootstrap >/dev/null || skip "debootstrap is not installed"
  suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
  mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' | awk -v suite="$suite" '$2 == suite { print $1; exit }')
  [[ -n $mirror ]] || skip "apt has no source for $suite"
  root=$(mktemp -d)  # not local: the trap outlives the function
  trap 'rm -rf --one-file-system "$root"' EXIT
  debootstrap --variant=minbase --include=g++,pkg-config,cmake,ninja-build "$suite" "$root" "$mirror" >"$build.log" 2>&1 ||
    { tail -n 20 "$build.log"; skip "debootstrap could not make a root from $mirror"; }
  cp "${packages[@]}" "$root/root/"
  cp -r "$here/consumer" "$root/root/consumer"
  chroot "$root" bash -euxc '
    cd /root
    apt-get install -q -y --no-install-recommends ./*.deb </dev/null
    dpkg --audit
    cc -std=c99 -pedantic-errors consumer/main.c $(pkg-config --cflags --libs zerocomm) -pthread -o c
    c++ -std=c++20 -pedantic-errors consumer/main.cpp $(pkg-config --cflags --libs zerocomm) -pthread -o cpp
    ./c
    ./cpp
    cmake -S consumer -B build -G Ninja && cmake --build build
    for program in build/zerocomm_c build/zerocomm_cpp build/zerocomm_static_c build/zerocomm_static_cpp; do $program; done
    zc info | head -n 12
    apt-get purge -q -y libzerocomm0 </dev/null
    left=$(find / -xdev \( -name "libzerocomm*" -o -path "*include/zerocomm*" -o -name zc \) -not -path "/root/*" -not -path "/proc/*")
    [[ -z $left ]] || { echo "left after purge: $left"; exit 1; }
  '
}

"$way"
echo "nothing to report"
