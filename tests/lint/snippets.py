"""
Every piece of code in the pages is run, or says why not.

    snippets.py ROOT                                 classifies the fences of README.md, CONTRIBUTING.md and docs/*.md
    snippets.py --run ROOT BUILD LIBRARY ZC PAGE     compiles and runs those of one page, in order, in one empty folder

What may stand behind the three backquotes:

    text                   no code. `text output` right behind a `sh` is what that prints, to the letter
    c | cpp | python FILE  a file; blocks of one name follow each other in it. It is run by the `sh` blocks of the page
    c | cpp                a whole program: compiled, then run by two processes
    python                 a whole program, run by one process
    sh                     commands, with cc, zc and the library at hand; the first that fails is an error
    LANGUAGE not run: WHY  not run

A comment before a block of C gives it what it lacks: `<!-- snippet ranks=6`, then a program in which a line `...` stands for the
block, then `-->`.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
from typing import NamedTuple

import sources

LANGUAGES = ("c", "cpp", "python", "sh")
FENCE = re.compile(
    r"(?:<!-- snippet(?: ranks=(?P<ranks>\d+))?\n(?P<frame>(?:(?!-->).)*?)\n?-->\n)?"
    r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```[ ]*$",
    re.MULTILINE | re.DOTALL,
)  # fmt: skip
COMPILE = {"c": ["cc", "-std=gnu99"], "cpp": ["c++", "-std=c++20"]}
# A fragment may leave a status alone that a program would look at.
FLAGS = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-result", "-ffp-contract=off"]


class Snippet(NamedTuple):
    line: int
    info: str
    body: str
    ranks: int
    frame: str
    output: str  # of the `text output` behind it, or None


def snippets(text):
    found = list(FENCE.finditer(text))
    result = []
    for match, following in zip(found, [*found[1:], None]):
        output = None
        if following and following["info"] == "text output" and not text[match.end() : following.start()].strip():
            output = following["body"]
        line = text.count("\n", 0, match.start("info")) + 1
        body = textwrap.dedent(match["body"])
        result.append(Snippet(line, match["info"].strip(), body, int(match["ranks"] or 2), match["frame"], output))
    return result


def pages(root):
    return [path for path in [root / "README.md", root / "CONTRIBUTING.md", *sorted(root.glob("docs/*.md"))] if path.exists()]


def fault(snippet):
    language, _, rest = snippet.info.partition(" ")
    if language == "text":
        return None if rest in ("", "output") else f"`{snippet.info}`: text may only be followed by `output`"
    if language not in LANGUAGES:
        return f"a block is marked `{snippet.info}`; it may be text, {', '.join(LANGUAGES)}"
    if rest.startswith("not run"):
        return None if re.fullmatch(r"not run: \S.*", rest) else "`not run` needs a reason: `not run: it takes an hour`"
    if rest and (language == "sh" or not re.fullmatch(r"[\w./-]+\.\w+", rest)):
        return f"`{snippet.info}`: {rest!r} is no name of a file"
    if language in COMPILE and not rest and "int main(" not in (snippet.frame or snippet.body):
        return "neither the block nor a comment before it has a main"
    if snippet.frame and "\n...\n" not in f"\n{snippet.frame}\n":
        return "the comment before the block has no line `...`"
    return None


def check(root):
    problems = []
    for path in pages(root):
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(root)
        if len(re.findall(r"(?m)^ *```", text)) % 2:
            problems.append(f"{name}: a block has no end")
        problems += [f"{name}:{s.line}: {fault(s)}" for s in snippets(text) if fault(s)]
    return problems


def run_snippet(snippet, folder, zc):
    """What went wrong, or None."""
    language, _, rest = snippet.info.partition(" ")
    if language == "text" or rest.startswith("not run"):
        return None
    body = snippet.body
    if snippet.frame:
        body = f"\n{snippet.frame}\n".replace("\n...\n", "\n" + body, 1)
    if rest:
        (folder / rest).parent.mkdir(parents=True, exist_ok=True)
        with open(folder / rest, "a", encoding="utf-8") as file:
            file.write(body)
        return None
    source = folder / f"block{snippet.line}.{language}"
    source.write_text(body, encoding="utf-8")
    commands = {"sh": [["bash", "-euo", "pipefail", str(source)]], "python": [[sys.executable, str(source)]]}
    if language in COMPILE:
        program = str(source.with_suffix(""))
        commands[language] = [
            [*COMPILE[language], *FLAGS, str(source), "-o", program, "-lzerocomm", "-lm", "-pthread"],
            [zc, "run", "-n", str(snippet.ranks), "--", program],
        ]
    for command in commands[language]:
        result = subprocess.run(command, cwd=folder, text=True, capture_output=True, timeout=100, check=False)
        if result.returncode:
            return f"exit status {result.returncode}\n{result.stdout}{result.stderr}"
    if snippet.output is not None and result.stdout != snippet.output:
        return f"the page says it prints\n{snippet.output}but it prints\n{result.stdout}"
    return None


def run_page(root, build, library, zc, page):
    """The folder looks like a fresh clone with a build in build/release, and cc finds the headers and the library."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for name in ("tests", "examples", "python", "include"):
            (folder / name).symlink_to(root / name)
        (folder / "build").mkdir()
        (folder / "build/release").symlink_to(build)
        places = {
            "PATH": str(pathlib.Path(zc).parent), "CPATH": str(root / "include"),
            "LIBRARY_PATH": str(pathlib.Path(library).parent), "LD_LIBRARY_PATH": str(pathlib.Path(library).parent),
            "PYTHONPATH": str(root / "python"),
        }  # fmt: skip
        for name, place in places.items():
            os.environ[name] = os.pathsep.join(filter(None, [place, os.environ.get(name)]))
        os.environ["ZC_LIBRARY"], os.environ["PYTHONDONTWRITEBYTECODE"] = library, "1"
        for snippet in snippets((root / page).read_text(encoding="utf-8")):
            wrong = run_snippet(snippet, folder, zc)
            if wrong:
                print(f"{page}:{snippet.line}: {wrong}")
                return 1
    return 0


def readme(text):
    return {"README.md": text}


MAIN = "int main(void) { return 0; }\n"
PLANTS = [
    ("marked blocks", readme(f"```text\nx\n```\n```c\n{MAIN}```\n```sh\ntrue\n```\n```text output\n```\n"), None),
    ("no mark", readme("a\n```\nx\n```\n"), "README.md:2: a block is marked ``"),
    ("a language that nobody runs", {"docs/a.md": "```rust\nx\n```\n"}, "docs/a.md:1: a block is marked `rust`"),
    ("a reason", readme("```sh not run: it takes an hour\nx\n```\n"), None),
    ("no reason", readme("```sh not run\nx\n```\n"), "needs a reason"),
    ("a fragment alone", readme("```c\nint x;\n```\n"), "has a main"),
    ("a fragment in its frame", readme(f"<!-- snippet ranks=3\n...\n{MAIN}-->\n```c\nint x;\n```\n"), None),
    ("a frame without a place", readme(f"<!-- snippet\n{MAIN}-->\n```c\nint x;\n```\n"), "no line `...`"),
    ("a file", readme("```c a/b.h\nint x;\n```\n"), None),
    ("no file", readme("```c linenos\nint x;\n```\n"), "no name of a file"),
    ("no end", readme("```text\nint x;\n"), "has no end"),
]


def runs():
    """The runner finds what does not compile, what fails and what prints something else, and lets the rest pass."""
    cases = [
        ("```c x.h\nint a;\n```\n```c x.h\nint b;\n```\n```sh\ngrep -c int x.h\n```\n\n```text output\n2\n```\n", None),
        ("```sh\necho 1\n```\n```text output\n2\n```\n", "it prints\n1"),
        ("```sh\nfalse\ntrue\n```\n", "exit status 1"),
        ("```sh\nfalse | true\n```\n", "exit status 1"),
        ("```sh not run: no\nfalse\n```\n", None),
        ("```python\nassert 1 == 2\n```\n", "AssertionError"),
        (f"```c\nint x\n{MAIN}```\n", "expected"),
    ]
    for text, expected in cases:
        with tempfile.TemporaryDirectory() as folder:
            wrong = [run_snippet(snippet, pathlib.Path(folder), "false") for snippet in snippets(text)]
        wrong = [one for one in wrong if one]
        assert (expected in wrong[0]) if expected else not wrong, (text, wrong)


if __name__ == "__main__":
    if sys.argv[1] == "--run":
        sys.exit(run_page(*map(pathlib.Path, sys.argv[2:4]), *sys.argv[4:]))
    if sys.argv[1] == "--self-test":
        runs()
    sources.main(check, PLANTS)
