#!/usr/bin/env bash
# Build the library, the program zc and the GPT example, then train: one command from a fresh clone.
#   bash examples/quickstart.sh [options of the example]
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
(
  cd "$top"
  bash cmake/need_packages.sh g++ cmake ninja-build nlohmann-json3-dev libcli11-dev libfmt-dev
  cmake --preset release -D ZC_BUILD_TESTS=OFF
  cmake --build --preset release --parallel "$(nproc)" --target zerocomm zc_gpt zc
) >&2
exec "$top/build/release/examples/gpt/zc_gpt" "$@"
