"""`compile_fail.py ROOT`: what the C++ twins must refuse does not compile, and says why; what is legal does compile."""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

HEADERS = "#include <zerocomm/zerocomm.hpp>\n#include <list>\n#include <ranges>\n#include <vector>\n"

# What the snippets use.
PREAMBLE = """
extern zc::CommView comm;
extern zc::Comm mine;
extern zc::Request request;
extern const zc::Zero zero;
extern std::vector<float> v;
extern const std::vector<float> c;
extern std::vector<double> d;
extern std::vector<zc::bf16> h;
extern std::vector<zc::f8e4m3> bytes;
extern std::vector<bool> bits;
extern std::vector<unsigned> u;
extern std::list<float> list;
void f() {
"""

STRIDED = """
auto strided = std::views::iota(std::size_t{0}, v.size() / 2) |
               std::views::transform([](std::size_t i) -> float& { return v[2 * i]; });
"""

# What, code, and a text of the compiler's report; None where it must compile.
CASES = [
    ("legal calls", "zc::all_reduce(comm, c, v, ZC_OP_SUM, {.tag = 1}); zc::all_reduce(comm, h, v, ZC_OP_AVG);"
     "zc::all_gather(mine, std::span(v).first(1), v, {.request = &request}); zc::broadcast(comm, bytes, 0);"
     "zc::send(comm, c, 1); zc::recv(comm, v, 1); zero.grad_ready(0, c); zc::Comm moved = std::move(mine);", None),
    # Garbage from every second element, where a library sees a pointer and a count alone.
    ("strided view sent", STRIDED + "zc::all_reduce(comm, strided, v, ZC_OP_SUM);", "must lie end to end"),
    ("strided view received", STRIDED + "zc::all_gather(comm, c, strided);", "must lie end to end"),
    ("list", "zc::broadcast(comm, list, 0);", "must lie end to end"),
    ("vector of bool", "zc::broadcast(comm, bits, 0);", "must lie end to end"),
    ("const output", "zc::all_reduce(comm, v, c, ZC_OP_SUM);", "an output is written"),
    ("span of const as output", "zc::recv(comm, std::span<const float>(v), 0);", "an output is written"),
    ("broadcast into const", "zc::broadcast(comm, c, 0);", "an output is written"),
    ("other element type moved", "zc::all_gather(comm, v, d);", "must have the same element type"),
    ("bf16 moved into float", "zc::all_to_all(comm, h, v);", "must have the same element type"),
    ("float reduced into double", "zc::all_reduce(comm, v, d, ZC_OP_SUM);", "the result of a reduction has the element type"),
    ("computing with bytes", "zc::reduce(comm, bytes, bytes, ZC_OP_SUM, 0);", "never computed with"),
    ("element without a dtype", "zc::broadcast(comm, u, 0);", "no zc_dtype belongs to this element type"),
    ("gradient without a dtype", "zero.grad_ready(0, u);", "no zc_dtype belongs to this element type"),
    ("temporary", "zc::all_reduce(comm, std::vector<float>(3), v, ZC_OP_SUM);", "is a temporary"),
    ("pointer and count", "zc::all_reduce(comm, v.data(), v, ZC_OP_SUM);", "must lie end to end"),
    ("copied communicator", "zc::Comm copy = mine;", "deleted"),
    ("copied request", "zc::Request copy = request;", "deleted"),
    ("unknown option", "zc::barrier(comm, {.tags = 1});", "CollOptions"),
    ("shared memory of strings", "zc::Memory<std::vector<int>> memory;", "plain values alone"),
    ("result not looked at", "request.test();", "nodiscard"),
]  # fmt: skip


def compiler(include):
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wsign-conversion", "-Werror"]
    return [os.environ.get("ZC_CXX", "c++"), "-std=c++20", *warnings, "-I", str(include)]


def judge(include, header, case):
    what, code, expected = case
    command = [*compiler(include), "-include", str(header), "-fsyntax-only", "-x", "c++", "-"]
    result = subprocess.run(command, input=PREAMBLE + code + "\n}\n", text=True, capture_output=True, check=False)
    if expected is None:
        return f"{what}: does not compile\n{result.stderr}" if result.returncode else None
    if not result.returncode:
        return f"{what}: compiles, and must not"
    if expected not in result.stderr:
        return f"{what}: the compiler does not say '{expected}':\n{result.stderr}"
    return None


def check(include, cases):
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        # Compiled once for all cases.
        header = pathlib.Path(folder) / "headers.hpp"
        header.write_text(HEADERS, encoding="utf-8")
        command = [*compiler(include), "-x", "c++-header", str(header), "-o", f"{header}.gch"]
        subprocess.run(command, check=True)
        return [problem for problem in pool.map(lambda case: judge(include, header, case), cases) if problem]


def self_test():
    """A header that checks nothing must be found out."""
    with tempfile.TemporaryDirectory() as folder:
        header = pathlib.Path(folder) / "zerocomm" / "zerocomm.hpp"
        header.parent.mkdir()
        header.write_text(
            "#include <span>\n#include <utility>\nnamespace zc { struct Any { template <class... T> void grad_ready(T&&...) const {} };\n"
            "using CommView = Any; using Comm = Any; using Request = Any; using Zero = Any;\n"
            "struct bf16 {}; struct f8e4m3 {};\n"
            "template <class... T> void broadcast(T&&...) {} }\n"
        )
        named = {case[0]: case for case in CASES}
        found = check(header.parent.parent, [named["broadcast into const"], named["legal calls"]])
    print("\n".join(found))
    return not (len(found) == 2 and "compiles, and must not" in found[0] and "does not compile" in found[1])


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    problems = check(pathlib.Path(sys.argv[1]) / "include", CASES)
    print("\n".join(problems) or "nothing to report")
    sys.exit(1 if problems else 0)
