"""The README shows examples/hello.c as it is, and what it prints."""

import pathlib
import subprocess
import sys


def faults(readme, source, output):
    found = []
    if "```c\n" + source + "```" not in readme:
        found.append("README.md does not show examples/hello.c as it is")
    if "```\n" + output + "```" not in readme:
        found.append("README.md does not show what examples/hello.c prints:\n" + output)
    return found


def main():
    if sys.argv[1] == "--self-test":
        good = "```c\nint x;\n```\n```\n42\n```"
        assert not faults(good, "int x;\n", "42\n")
        assert faults(good, "int y;\n", "42\n") and faults(good, "int x;\n", "43\n")
        return 0
    top, program = pathlib.Path(sys.argv[1]), sys.argv[2]
    output = subprocess.run([program], capture_output=True, text=True, check=True, timeout=60).stdout
    found = faults((top / "README.md").read_text(), (top / "examples/hello.c").read_text(), output)
    print("\n".join(found))
    return 1 if found else 0


sys.exit(main())
