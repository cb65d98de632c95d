"""Every installed header compiles alone: *.h as strict C99 and as C++20, *.hpp as C++20."""

import os
import subprocess

import sources

WARNINGS = ["-fsyntax-only", "-pedantic-errors", "-Wall", "-Wextra", "-Werror"]
C99 = [os.environ.get("ZC_CC", "cc"), "-x", "c", "-std=c99", "-Wstrict-prototypes", *WARNINGS]
CXX20 = [os.environ.get("ZC_CXX", "c++"), "-x", "c++", "-std=c++20", *WARNINGS]


def check(root):
    problems = []
    for path in sources.code_files(root, "include"):
        name = path.relative_to(root / "include")
        for command in [C99, CXX20] if path.suffix == ".h" else [CXX20]:
            # Twice: the guard is part of the promise.
            result = subprocess.run(
                [*command, "-I", str(root / "include"), "-"],
                input=f"#include <{name}>\n#include <{name}>\nint zc_not_empty;\n",
                text=True,
                capture_output=True,
                check=False,
            )
            if result.returncode:
                problems.append(f"<{name}> with {' '.join(command[2:4])}:\n{result.stderr}")
    return problems


def header(text):
    return {"include/zerocomm/a.h": "#ifndef A\n#define A\n" + text + "\n#endif\n"}


PLANTS = [
    ("clean", header("#include <stddef.h>\nint zc_f(size_t count);"), None),
    ("missing include", header("int zc_f(size_t count);"), "-std=c99"),
    ("C11 in a C99 header", header("int zc_f(void);\n_Static_assert(1, \"\");"), "c -std=c99"),
    ("empty parameter list", header("int zc_f();"), "c -std=c99"),
    ("word of C++ as a name", header("int zc_f(int class);"), "c++ -std=c++20"),
    ("no guard", {"include/zerocomm/a.h": "struct zc_a { int x; };\n"}, "redefinition"),
    ("twin that needs an include", {"include/zerocomm/a.hpp": "#pragma once\nstd::string f();\n"}, "c++ -std=c++20"),
]

if __name__ == "__main__":
    sources.main(check, PLANTS)
