"""`cases.py ROOT`: the tests that docs/cases.md names are there."""

import pathlib
import re
import sys

CPP = re.compile(r"\b(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)")


def known(tests):
    """Suite.name of every test of C++ and Python under a folder."""
    found = set()
    for path in [*tests.rglob("*.cpp"), *tests.rglob("*.hpp")]:
        found |= {f"{suite}.{name}" for suite, name in CPP.findall(path.read_text(encoding="utf-8"))}
    for path in tests.rglob("*_test.py"):
        suite = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            if opened := re.match(r"class (\w+)", line):
                suite = opened.group(1)
            if named := re.match(r"\s+def (test_\w+)", line):
                found.add(f"{suite}.{named.group(1)}")
    return found


def check(text, tests):
    problems = []
    for row in re.findall(r"^\|(?!-)(.*)\|$", text, re.MULTILINE)[1:]:
        names = re.findall(r"`(\w+\.\w+)`", row.split("|")[-1])
        problems += [f"docs/cases.md: there is no test {name}" for name in names if name not in tests]
        if not names:
            problems.append(f"docs/cases.md: no test in the row {row.strip()[:60]!r}")
    return problems


def self_test():
    head = "| what | here | test |\n|---|---|---|\n"
    tests = {"Suite.is_there"}
    good = check(head + "| a | b | `Suite.is_there` |\n", tests)
    gone = check(head + "| a | b | `Suite.is_there`, `Suite.is_gone` |\n", tests)
    none = check(head + "| a | b | the tests |\n", tests)
    right = not good and gone == ["docs/cases.md: there is no test Suite.is_gone"] and len(none) == 1
    print("2 plants found" if right else f"{good} {gone} {none}")
    return 0 if right else 1


if __name__ == "__main__":
    if sys.argv[1] == "--self-test":
        sys.exit(self_test())
    top = pathlib.Path(sys.argv[1])
    problems = check((top / "docs/cases.md").read_text(encoding="utf-8"), known(top / "tests"))
    print("\n".join(problems) or "nothing to report")
    sys.exit(1 if problems else 0)
