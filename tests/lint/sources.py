"""What the lint checks share: finding files, blanking comments, reporting, and the self-test harness."""

import pathlib
import re
import sys
import tempfile

CODE = {".h", ".hpp", ".c", ".cpp", ".cu", ".cuh"}
_SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def code_files(root, *folders):
    """Files of code under the folders of root, sorted."""
    found = (path for folder in folders for path in (root / folder).rglob("*") if path.suffix in CODE)
    return sorted(path for path in found if path.is_file())


def bare(text, keep_strings=False):
    """The text with comments (and strings) blanked; every line keeps its number."""

    def blank(match):
        token = match.group(0)
        if token[0] != "/" and (keep_strings or token[0] == "'"):
            return token
        return re.sub(r"[^\n]", " ", token)

    return _SKIPPED.sub(blank, text)


def lines_of(path, keep_strings=False):
    """Pairs (line number, line) of a file without its comments."""
    return enumerate(bare(path.read_text(encoding="utf-8"), keep_strings).split("\n"), start=1)


def main(check, plants):
    """
    `CHECK.py ROOT` prints the violations found under ROOT and fails if there is one.
    `CHECK.py --self-test` plants files in an empty tree: each plant is (what, {path: text}, text that one line of the
    report must contain, or None where the check must stay silent).
    """
    if sys.argv[1:] != ["--self-test"]:
        problems = check(pathlib.Path(sys.argv[1]))
        print("\n".join(problems) or "nothing to report")
        sys.exit(1 if problems else 0)
    wrong = []
    for what, files, expected in plants:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
            problems = check(root)
        good = any(expected in line for line in problems) if expected else not problems
        if not good:
            wrong.append(f"{what}: expected {expected!r}, got {problems}")
    print("\n".join(wrong) or f"{len(plants)} plants judged as expected")
    sys.exit(1 if wrong else 0)
