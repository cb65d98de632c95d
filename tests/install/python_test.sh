#!/usr/bin/env bash
# python_test.sh BUILD_FOLDER PYTHON : the Python module and its example, away from this checkout, on an installed library
# that the dynamic linker finds.
set -euo pipefail

build=$1
python=$2
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install "$build" --prefix "$scratch/prefix" >"$scratch/log" || { cat "$scratch/log"; exit 1; }
mkdir "$scratch/examples"
cp -r "$top/python" "$scratch/python"
cp "$top/examples/ctypes_gather.py" "$scratch/examples"
unset ZC_LIBRARY
library=$(find "$scratch/prefix" -name 'libzerocomm.so.0')
LD_LIBRARY_PATH=$(dirname "$library") "$python" "$scratch/examples/ctypes_gather.py" 4
