#!/usr/bin/env bash
# Build the library, the program zc and the GPT example, then train with four processes: one command from a fresh clone.
#   bash examples/quickstart.sh [options of the example]     --threads: four threads instead
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
(
  cd "$top"
  bash cmake/need_packages.sh g++ cmake ninja-build nlohmann-json3-dev libcli11-dev libfmt-dev \
    libboost-dev libsodium-dev
  cmake --preset release -D ZC_BUILD_TESTS=OFF
  cmake --build --preset release --parallel "$(nproc)" --target zerocomm zc_gpt zc
) >&2
gpt=$top/build/release/examples/gpt/zc_gpt
for option in "$@"; do
  case $option in
    --threads | --id | --make-id | --help | -h) exec "$gpt" "$@" ;; # no job of processes, or one that the caller starts
  esac
done
exec "$top/build/release/bin/zc" run -n 4 --prefix never -- "$gpt" "$@" # rank 0 alone prints; errors name their rank
