"""A file of code has at most 600 lines; look for the second idea in a longer one."""

import sources

MOST_LINES = 600


def check(root):
    problems = []
    for path in sources.code_files(root, "include", "src", "cuda", "bench", "tests", "examples"):
        count = len(path.read_text(encoding="utf-8").splitlines())
        if count > MOST_LINES:
            problems.append(f"{path.relative_to(root)}: {count} lines, more than {MOST_LINES}")
    return problems


PLANTS = [
    ("600 lines", {"src/base/a.cpp": "\n" * 600}, None),
    ("601 lines", {"tests/unit/base/a_test.cpp": "\n" * 601}, "a_test.cpp: 601 lines"),
]

if __name__ == "__main__":
    sources.main(check, PLANTS)
