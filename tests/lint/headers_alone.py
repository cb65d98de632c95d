"""Every installed header compiles alone: *.h as strict C99 and as C++20, *.hpp as C++20. Its macros are ZC_, or none."""

import os
import re
import subprocess

import sources

WARNINGS = ["-fsyntax-only", "-pedantic-errors", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Wsign-conversion", "-Werror"]
C99 = [os.environ.get("ZC_CC", "cc"), "-x", "c", "-std=c99", "-Wstrict-prototypes", *WARNINGS]
CXX20 = [os.environ.get("ZC_CXX", "c++"), "-x", "c++", "-std=c++20", *WARNINGS]


MACRO = re.compile(r"^\s*#\s*define\s+(\w+)", re.MULTILINE)


def foreign_macros(path):
    """Macros that a user of the header would get without having asked: a twin has none, a C header those of the prefix."""
    for name in MACRO.findall(sources.bare(path.read_text(encoding="utf-8"))):
        if path.suffix == ".hpp" or not name.startswith(("ZC_", "ZEROCOMM_")):
            yield name


def check(root):
    problems = []
    for path in sources.code_files(root, "include"):
        problems += [f"{path.relative_to(root)}: leaks the macro {name}" for name in foreign_macros(path)]
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
    return {"include/zerocomm/a.h": "#ifndef ZC_A\n#define ZC_A\n" + text + "\n#endif\n"}


PLANTS = [
    ("clean", header("#include <stddef.h>\nint zc_f(size_t count);"), None),
    ("missing include", header("int zc_f(size_t count);"), "-std=c99"),
    ("C11 in a C99 header", header("int zc_f(void);\n_Static_assert(1, \"\");"), "c -std=c99"),
    ("empty parameter list", header("int zc_f();"), "c -std=c99"),
    ("word of C++ as a name", header("int zc_f(int class);"), "c++ -std=c++20"),
    ("macro without a prefix", header("#define zc_max 1"), "leaks the macro zc_max"),
    ("macro of a twin", {"include/zerocomm/a.hpp": "#pragma once\n#define ZC_B 1\n"}, "leaks the macro ZC_B"),
    ("conversion", header("static inline int zc_f(long a) { return a; }"), "-Werror=conversion"),
    ("no guard", {"include/zerocomm/a.h": "struct zc_a { int x; };\n"}, "redefinition"),
    ("twin that needs an include", {"include/zerocomm/a.hpp": "#pragma once\nstd::string f();\n"}, "c++ -std=c++20"),
]

if __name__ == "__main__":
    sources.main(check, PLANTS)
