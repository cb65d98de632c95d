"""
Pages of docs/ that are made from the sources are what the sources say.
    generated_pages.py ROOT             fails if a page differs
    generated_pages.py --update ROOT    writes them
"""

import pathlib
import re
import sys

import sources

UPDATE = "python3 tests/lint/generated_pages.py --update ."
NOTE = "<!-- Made by `{}` from {}. Do not edit. -->\n"
ROW = re.compile(r"X\((\w+), (\d+), (\w+), ([01]), ([01]),\s*((?:\"[^\"]*\"\s*)+)\)")
SCOPES = {"NONE": "nothing", "CALL": "the call", "REQUEST": "the operation", "COMM": "the communicator", "PROCESS": "the process"}


def text_of(literals):
    """String literals that stand side by side."""
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)).replace('\\"', '"')


def statuses(root):
    text = (root / "include/zerocomm/status.h").read_text().replace("\\\n", "\n")
    text = text[text.index("#define ZC_STATUS_LIST(X)") : text.index("/** Outcome of a call. */")]
    return [(*row[:5], text_of(row[5])) for row in ROW.findall(text)]


def errors_page(root):
    rows = statuses(root)
    parts = re.split(r"(?m)^## (\w+)\n", (root / "docs/errors.in.md").read_text())
    advice = {name: text.strip() for name, text in zip(parts[1::2], parts[2::2])}
    problems = [f"docs/errors.in.md has no section {row[0]}" for row in rows if row[0] not in advice]
    problems += [f"docs/errors.in.md: {name} is no status" for name in advice if name not in [row[0] for row in rows]]
    yes = {"0": "no", "1": "yes"}
    lines = [NOTE.format(UPDATE, "ZC_STATUS_LIST and docs/errors.in.md"), "# Errors\n"]
    lines += [
        "Every function returns a `zc_status`. `zc_last_error()` is the text of this thread's last error: what was asked, what",
        "was found, on which rank. The first error that kills a communicator is recorded once, and all ranks get that record.\n",
        "| status | number | meaning | what it ends | outputs defined | communicator usable |",
        "|---|---|---|---|---|---|",
    ]
    for name, number, scope, defined, usable, meaning in rows:
        lines.append(
            f"| [`ZC_{name}`](#zc_{name.lower()}) | {number} | {meaning} | {SCOPES[scope]} | {yes[defined]} | {yes[usable]} |"
        )
    lines += [
        "\n`zc_status_name`, `_text`, `_scope`, `_buffers_defined` and `_comm_usable` give the same at run time. Outputs are defined",
        "after an error in the sense that they were left as they were.",
    ]
    lines += [f"\n## ZC_{row[0]}\n\n{advice.get(row[0], '')}" for row in rows]
    return "\n".join(lines) + "\n", problems


def variables(root):
    text = (root / "src/base/config.cpp").read_text()
    table = text[text.index("kVariables[] = {") : text.index("};")]
    rows = re.findall(r"\{\s*((?:\"(?:[^\"\\]|\\.)*\"\s*)+),\s*((?:\"(?:[^\"\\]|\\.)*\"\s*)+),\s*((?:\"(?:[^\"\\]|\\.)*\"\s*)+)\}", table)
    return [tuple(text_of(cell) for cell in row) for row in rows]


def plain(comment):
    return " ".join(re.sub(r"(?m)^\s*\*", " ", comment or "").split())


MEMBER = re.compile(r"(?:/\*\*(?!<)(?P<before>.*?)\*/\s*)?(?P<code>[^;/]+);\s*(?:/\*\*<(?P<after>.*?)\*/)?", re.DOTALL)


def named_in(code):
    """(type, names) of a member's declaration."""
    function = re.search(r"\(\s*\*\s*(\w+)\s*\)", code)
    if function:
        return "function", [function.group(1)]
    kind, stars, names = re.fullmatch(r"(.*?\w)\s*(\**(?:\s*const\s*\*+)*)\s*(\w+(?:,\s*\w+)*)", code).groups()
    return (kind + " " + stars).strip(), names.replace(",", " ").split()


def option_structs(root):
    """(header, struct, its comment, rows) of every struct by which a caller says what it wants."""
    found = []
    texts = {
        path.name: re.sub(r"/\*(?!\*).*?\*/", "", path.read_text(), flags=re.DOTALL)
        for path in sorted((root / "include/zerocomm").glob("*.h"))
    }
    enum = r"/\*\*((?:(?!\*/).)*)\*/\s*typedef enum (zc_\w+)"
    enums = {name: plain(comment) for text in texts.values() for comment, name in re.findall(enum, text, re.DOTALL)}
    pattern = r"(?:/\*\*((?:(?!\*/).)*)\*/\s*)?(?:typedef )?struct (zc_\w+_config|zc_\w+_options|zc_tensor|zc_use)\s*\{(.*?)\n\}"
    for header, text in texts.items():
        for comment, name, body in re.findall(pattern, text, re.DOTALL):
            rows = []
            for member in MEMBER.finditer(body):
                kind, names = named_in(" ".join(member["code"].split()))
                meaning = plain(member["after"]) or plain(member["before"]) or enums.get(kind, "")
                rows += [(one, kind, meaning) for one in names if one != "struct_size"]
            found.append((header, name, plain(comment), rows))
    return found


def config_page(root):
    problems = []
    escape = lambda text: text.replace("|", "\\|")  # noqa: E731
    lines = [NOTE.format(UPDATE, "src/base/config.cpp and the option structs of the headers"), "# Configuration\n"]
    lines += [
        "An option given in the program wins over a variable, and a variable over the default. In option structs a zero means the",
        "default; every zero with a meaning of its own has a named constant that is not zero. `struct_size` is the caller's",
        "`sizeof`: a program built with older headers has a smaller one, and the members it does not know have their defaults.\n",
        "## Variables\n",
        "The library reads these and no others of its own; the launchers' are in [`running.md`](running.md). `zc info` prints",
        "what is set.\n",
        "| variable | value | meaning |",
        "|---|---|---|",
    ]
    lines += [f"| `{name}` | {escape(unit)} | {escape(meaning)} |" for name, unit, meaning in variables(root)]
    for header, name, comment, rows in option_structs(root):
        lines += [f"\n## {name}\n", f"[`{header}`](../include/zerocomm/{header}). {comment}".strip() + "\n"]
        lines += ["| member | type | meaning |", "|---|---|---|"]
        for member, kind, meaning in rows:
            lines.append(f"| `{member}` | `{kind}` | {escape(meaning)} |")
    return "\n".join(lines) + "\n", problems


PAGES = {"docs/errors.md": errors_page, "docs/config.md": config_page}


def check(root):
    problems = []
    for name, make in PAGES.items():
        text, faults = make(root)
        problems += faults
        page = root / name
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            problems.append(f"{name} is not what the sources say; run {UPDATE}")
    return problems


STATUS = """#define ZC_STATUS_LIST(X) \\
  X(OK, 0, NONE, 1, 1, "done") \\
  X(LOST, 31, COMM, 0, 0, "a rank ended; " \\
    "really")
/** Outcome of a call. */
/** Options. */
typedef struct zc_a_config {
  size_t struct_size;
  int32_t a, b; /**< both; default 1 */
  const void *const *what; /**< it */
  int (*call)(void *context, int32_t x); /**< may be | NULL */
} zc_a_config;
"""
VARIABLES = 'kVariables[] = {\n {"ZC_A", "0 or 1",\n "first" " and second"},\n};\n'


def planted(change=lambda text: text, **changes):
    """A small project whose pages are right, and then changed."""
    files = {
        "include/zerocomm/status.h": STATUS,
        "src/base/config.cpp": VARIABLES,
        "docs/errors.in.md": "## OK\n\nfine\n\n## LOST\n\nlook\n",
    }
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        for name, make in PAGES.items():
            files[name] = make(root)[0]
    assert "| `b` | `int32_t` | both; default 1 |" in files["docs/config.md"], files["docs/config.md"]
    assert "| `call` | `function` | may be \\| NULL |" in files["docs/config.md"], files["docs/config.md"]
    assert "| `what` | `const void *const *` | it |" in files["docs/config.md"], files["docs/config.md"]
    assert "| `ZC_A` | 0 or 1 | first and second |" in files["docs/config.md"]
    assert "a rank ended; really | the communicator | no | no |" in files["docs/errors.md"]
    for name in files:
        if name.split("/")[-1].split(".")[0] in changes:
            files[name] = changes[name.split("/")[-1].split(".")[0]](files[name])
    return files


def replaced(before, after):
    return lambda text: text.replace(before, after)


PLANTS = [
    ("pages that are right", planted(), None),
    ("another meaning of a status", planted(status=replaced("ended; ", "died; ")), "docs/errors.md is not what"),
    ("a new member", planted(status=replaced("int32_t a, b;", "int32_t a, b, c;")), "docs/config.md is not what"),
    ("a new variable", planted(config=replaced('{"ZC_A"', '{"ZC_B", "x", "y"}, {"ZC_A"')), "docs/config.md is not what"),
    ("a page edited by hand", planted(errors=replaced("fine", "good")), "docs/errors.md is not what"),
    ("a status without advice", planted(status=replaced('"done")', '"done") X(NEW, 3, CALL, 1, 1, "x")')), "no section NEW"),
]

if __name__ == "__main__":
    if sys.argv[1] == "--update":
        top = pathlib.Path(sys.argv[2])
        for page_name, maker in PAGES.items():
            (top / page_name).write_text(maker(top)[0], encoding="utf-8")
        sys.exit(0)
    sources.main(check, PLANTS)
