"""
`symbols.py LIBRARY INCLUDE`: the library exports what the installed headers declare ZC_API, all of it and nothing else.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import sources

DECLARED = re.compile(r"\bZC_API\b[^;]*?\b(\w+)\s*\(")


def check(library, include):
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", "--format=posix", str(library)], text=True, capture_output=True, check=True
    ).stdout
    rows = [line.split() for line in listing.splitlines()]
    # Type A is the name of a version node, not a symbol that a program could use.
    exported = {row[0].partition("@")[0] for row in rows if row[1] != "A"}
    declared = set()
    for path in sources.code_files(include, "."):
        text = re.sub(r"(?m)^\s*#.*(\\\n.*)*$", "", sources.bare(path.read_text(encoding="utf-8")))
        declared.update(DECLARED.findall(text))
    problems = [f"{name}: exported, but its name does not begin with zc_" for name in exported if not name.startswith("zc_")]
    problems += [f"{name}: exported, but declared in no installed header" for name in exported - declared]
    problems += [f"{name}: declared in an installed header, but not exported" for name in declared - exported]
    return sorted(problems)


def self_test():
    """Three functions: one in order, one exported beside the header, one promised and missing."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "a.h").write_text("#define ZC_API\nZC_API int zc_good(void);\nZC_API const char *zc_missing(int x);\n")
        (root / "a.c").write_text("int zc_good(void) { return 0; }\nint planted(void) { return 0; }\n")
        command = [os.environ.get("ZC_CC", "cc"), "-shared", "-fPIC", "-o", str(root / "liba.so"), str(root / "a.c")]
        subprocess.run(command, check=True)
        found = check(root / "liba.so", root)
    expected = [
        "planted: exported, but declared in no installed header",
        "planted: exported, but its name does not begin with zc_",
        "zc_missing: declared in an installed header, but not exported",
    ]
    print("\n".join(found))
    return found != expected


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    problems = check(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
    print("\n".join(problems) or "nothing to report")
    sys.exit(1 if problems else 0)
