"""The README shows examples/hello.c as it is, and what four ranks of it print."""

import pathlib
import subprocess
import sys

COMMAND = "$ build/release/bin/zc run -n 4 -- build/release/examples/hello\n"


def faults(readme, source, output):
    found = []
    if "```c\n" + source + "```" not in readme:
        found.append("README.md does not show examples/hello.c as it is")
    if "```text\n" + COMMAND + output + "```" not in readme:
        found.append("README.md does not show how examples/hello.c is run, and what it prints:\n" + COMMAND + output)
    return found


def main():
    if sys.argv[1] == "--self-test":
        good = "```c\nint x;\n```\n```text\n" + COMMAND + "42\n```"
        assert not faults(good, "int x;\n", "42\n")
        assert faults(good, "int y;\n", "42\n") and faults(good, "int x;\n", "43\n")
        return 0
    top, launcher, program = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    command = [launcher, "run", "-n", "4", "--", program]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    found = faults((top / "README.md").read_text(), (top / "examples/hello.c").read_text(), output)
    print("\n".join(found))
    return 1 if found else 0


sys.exit(main())
