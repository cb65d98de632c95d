"""Words that are kept out of the code, and where."""

import re

import sources

OURS = ("include", "src", "cuda", "examples")

# (folders, files excepted, pattern, what is wrong with it)
RULES = [
    (
        ("include",),
        (),
        re.compile(r"[\w*&\]>]\s*\b(size|len)\s*[,);=\[]"),
        "'{0}' does not say its unit: count is elements, everything else _bytes, _ns, _ranks",
    ),
    (OURS, ("src/base/config.cpp",), re.compile(r"\b(getenv|secure_getenv)\b"), "{0} belongs to src/base/config.cpp"),
]


def check(root):
    problems = []
    for folders, excepted, pattern, text in RULES:
        for path in sources.code_files(root, *folders):
            name = str(path.relative_to(root))
            if name in excepted:
                continue
            for number, line in sources.lines_of(path):
                for match in pattern.finditer(line):
                    problems.append(f"{name}:{number}: {text.format(match.group(1))}")
    return problems


def header(line):
    return {"include/zerocomm/a.h": "#pragma once\n" + line + "\n"}


PLANTS = [
    ("parameter called size", header("int zc_f(void *p, size_t size);"), "include/zerocomm/a.h:2: 'size'"),
    ("parameter called len", header("int zc_f(size_t len, void *p);"), "'len'"),
    ("member called size", header("struct zc_a { size_t size; };"), "'size'"),
    ("size as part of a name, or a method", header("size_t zc_comm_size(int x_size); size_t size() const;"), None),
    ("size inside src", {"src/base/a.cpp": "void f(int size);\n"}, None),
    ("getenv elsewhere", {"src/comm/a.cpp": 'auto x = std::getenv("A");\n'}, "src/comm/a.cpp:1: getenv"),
    ("getenv in its place", {"src/base/config.cpp": 'auto x = std::getenv("A");\n'}, None),
    ("getenv in a comment", {"src/comm/a.cpp": "// never getenv\n"}, None),
]

if __name__ == "__main__":
    sources.main(check, PLANTS)
