"""
`kernel_levels.py OBJECT...`: objects that are compiled for different instruction sets define no symbol that the linker merges
with that of another: it would keep one copy, and a processor that lacks the instructions might run it.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

LEVEL = re.compile(r"kernels_(\w+?)\.cpp")
# What the linker merges: weak symbols (W, V, w, v) and unique ones (u). References to others are U.
MERGED = "WVwvu"
# A pointer to the personality routine of exceptions: data, and the same in all objects.
SAME_EVERYWHERE = {"DW.ref.__gxx_personality_v0"}


def defined(path):
    """Pairs (type, symbol) of what an object defines for others."""
    command = ["nm", "--defined-only", "--extern-only", "--format=posix", str(path)]
    listing = subprocess.run(command, text=True, capture_output=True, check=True).stdout
    return [(row.split()[1], row.split()[0]) for row in listing.splitlines() if len(row.split()) > 1]


def check(paths):
    problems = []
    for path in paths:
        level = LEVEL.search(path.name)[1]
        # A mangled name holds the name of its namespace with the length before it.
        own = f"6device{len(level)}{level}"
        for kind, symbol in defined(path):
            if own not in symbol and symbol not in SAME_EVERYWHERE:
                merged = "which the linker merges" if kind in MERGED else "which is not of its level"
                problems.append(f"{path.name}: defines {symbol}, {merged}")
    return problems


def self_test():
    """An object that keeps to its namespace, and one that has a copy of a function of everybody."""
    source = """
    inline int shared(int x) { return x + 1; }
    namespace zerocomm::device::LEVEL {
    template <class T> T own(T x) { return x; }
    int call(int x) { return own(x) PLANT; }
    }
    """
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for level, plant in (("avx2", ""), ("avx512", "+ shared(x)")):
            path = pathlib.Path(folder) / f"kernels_{level}.cpp"
            path.write_text(source.replace("LEVEL", level).replace("PLANT", plant))
            command = [os.environ.get("ZC_CXX", "c++"), "-std=c++17", "-O0", "-c", str(path), "-o", f"{path}.o"]
            subprocess.run(command, check=True)
            found += check([pathlib.Path(f"{path}.o")])
    print("\n".join(found))
    return found != ["kernels_avx512.cpp.o: defines _Z6sharedi, which the linker merges"]


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    objects = [pathlib.Path(path) for path in sys.argv[1:] if LEVEL.search(path)]
    problems = check(objects)
    print("\n".join(problems) or f"nothing to report of {len(objects)} objects")
    sys.exit(1 if problems or not objects else 0)
