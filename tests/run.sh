#!/usr/bin/env bash
# Build everything and run the tests. From any directory, as often as you like:
#   bash tests/run.sh [--full] [--preset NAME]
# --full adds the long tests and LibTorch's example; NAME is a preset of CMakePresets.json (default: release).
set -euo pipefail

full=no
preset=release
while (($#)); do
  case $1 in
    --full) full=yes ;;
    --preset)
      preset=${2:?--preset needs a name}
      shift
      ;;
    *)
      echo "usage: bash tests/run.sh [--full] [--preset NAME]" >&2
      exit 2
      ;;
  esac
  shift
done

cd "$(dirname "${BASH_SOURCE[0]}")/.."
packages=()
if [[ $full == yes ]]; then packages=(libtorch-dev zlib1g-dev dataset-fashion-mnist); fi
bash cmake/need_packages.sh g++ cmake ninja-build ccache libgtest-dev librapidcheck-dev nlohmann-json3-dev \
  libcli11-dev libfmt-dev libboost-dev libsodium-dev python3 python3-numpy pkg-config openmpi-bin mpich abigail-tools \
  "${packages[@]}"

cmake --preset "$preset"
cmake --build --preset "$preset" --parallel "$(nproc)"

# ThreadSanitizer of g++ 12 does not start where the kernel randomises addresses by more than 28 bits.
runner=()
if [[ $preset == tsan ]] && setarch -R true 2>/dev/null; then runner=(setarch -R); fi

# Two tests of one name would share their labels, and one of them might never run.
twice=$("${runner[@]}" ctest --preset "$preset" --show-only=json-v1 | python3 -c '
import collections, json, sys
names = collections.Counter(test["name"] for test in json.load(sys.stdin)["tests"])
print(*[name for name, count in names.items() if count > 1], sep="\n")')
if [[ -n $twice ]]; then
  printf 'these tests have a name that is not theirs alone:\n%s\n' "$twice" >&2
  exit 1
fi

choice=()
if [[ $full == no ]]; then choice=(--label-exclude '^full$'); fi
"${runner[@]}" ctest --preset "$preset" "${choice[@]}"
