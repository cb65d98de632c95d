"""Who may include whom. This table is the rule; CONTRIBUTING.md explains it."""

import re

import sources

PUBLIC = "any installed header"
VALUES = {"export.h", "status.h", "types.h", "version.h"}

# folder: (folders of src it may include besides itself, installed headers it may include)
TABLE = {
    "base": (set(), VALUES),
    "schedule": ({"base"}, VALUES),
    "shard": ({"base"}, VALUES | {"layout.h", "estimate.h"}),
    "zero": ({"base", "shard"}, VALUES | {"layout.h", "zero.h"}),
    "topo": ({"base"}, VALUES),
    "device": ({"base"}, VALUES),
    "transport": ({"base", "topo", "device"}, VALUES | {"comm.h"}),
    "boot": ({"base", "topo", "transport"}, VALUES | {"comm.h", "store.h"}),
    "comm": ({"base", "schedule", "topo", "device", "transport", "boot"}, PUBLIC),
    "engine": ({"base", "shard", "zero"}, PUBLIC),
    "capi": ({"base", "schedule", "topo", "device", "transport", "boot", "comm", "shard", "zero", "engine"}, PUBLIC),
    "cli": (set(), PUBLIC),
}

# External libraries, and the one folder of src that may know each.
EXTERNAL = {"CLI": "cli", "nlohmann": "cli", "fmt": "cli", "boost": "boot", "sodium.h": "boot"}

# Pure folders decide and never act; what they reach through other headers counts too.
PURE = {"schedule", "shard", "zero"}
IMPURE_HEADER = re.compile(
    r"(thread|mutex|shared_mutex|atomic|condition_variable|future|semaphore|latch|barrier|stop_token|chrono|c?time"
    r"|time\.h|fstream|iostream|filesystem|random|cstdlib|stdlib\.h|csignal|signal\.h|pthread\.h|unistd\.h|fcntl\.h"
    r"|dlfcn\.h|(sys|linux|asm|arpa|net|netinet)/.*|(cuda|nccl|uc[pst]/).*)"
)
IMPURE_CODE = [
    (re.compile(r"(?<![\w.>])(getenv|setenv|fopen|printf|fprintf|puts|perror)\s*\("), "{0}"),
    (re.compile(r"\b(thread_local|random_device)\b"), "{0}"),
    (re.compile(r"^\s*static\s+(?!const\b|constexpr\b|inline\b)[\w:<>,\s*&]+?\s*[\w\]]\s*(=|;|\{)"), "static state"),
]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def includes(path):
    """Triples (line number, is it quoted, name) of the include lines of a file."""
    for number, line in sources.lines_of(path, keep_strings=True):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1) == '"', match.group(2)


def check_row(where, folder, quoted, name):
    """The complaint about one include line of a file of src/folder, or None."""
    folders, headers = TABLE[folder]
    first, _, rest = name.partition("/")
    if first == "zerocomm":
        if headers is not PUBLIC and rest not in headers:
            return f"{where}: src/{folder} may not include <{name}>"
    elif quoted:
        if not rest:
            return f'{where}: write "{folder}/{name}": includes are relative to src'
        if first != folder and first not in folders:
            return f'{where}: src/{folder} may not include "{name}"'
    elif EXTERNAL.get(first, folder) != folder:
        return f"{where}: <{name}> belongs to src/{EXTERNAL[first]} alone"
    return None


def check_reach(root, path):
    """Complaints about impure headers that a file reaches, with the way there."""
    seen, queue = set(), [(path, [])]
    while queue:
        here, way = queue.pop()
        way = way + [str(here.relative_to(root))]
        for number, quoted, name in includes(here):
            if quoted and (root / "src" / name).is_file():
                if name not in seen:
                    seen.add(name)
                    queue.append((root / "src" / name, way))
            elif not quoted and IMPURE_HEADER.fullmatch(name):
                yield f"{' -> '.join(way)}:{number}: <{name}> is not for a pure folder"


def check_pure(root, path):
    yield from check_reach(root, path)
    for number, line in sources.lines_of(path):
        for pattern, text in IMPURE_CODE:
            match = pattern.search(line)
            if match:
                yield f"{path.relative_to(root)}:{number}: {text.format(match.group(1))} is not for a pure folder"


def check(root):
    problems = []
    for path in sources.code_files(root, "src"):
        parts = path.relative_to(root).parts
        folder = parts[1] if len(parts) > 2 else ""
        if folder not in TABLE:
            problems.append(f"{path.relative_to(root)}: no row of the layer table says what src/{folder} may include")
            continue
        for number, quoted, name in includes(path):
            problems.append(check_row(f"{path.relative_to(root)}:{number}", folder, quoted, name))
        if folder in PURE:
            problems.extend(check_pure(root, path))
    for path in sources.code_files(root, "include", "examples"):
        for number, quoted, name in includes(path):
            # An example may have headers of its own, in its folder or one above.
            own = any((folder / name).is_file() for folder in path.parents if folder.is_relative_to(root / "examples"))
            if quoted and not own or not quoted and (root / "src" / name).is_file():
                problems.append(f'{path.relative_to(root)}:{number}: "{name}" is not an installed header')
    return [problem for problem in problems if problem]


def plant(path, text):
    return {path: text + "\n"}


PLANTS = [
    ("legal includes", plant("src/comm/a.cpp", '#include "comm/a.hpp"\n#include "base/math.hpp"\n#include <thread>'), None),
    ("upward include", plant("src/base/a.hpp", '#include "comm/b.hpp"'), 'src/base/a.hpp:1: src/base may not include "comm/b.hpp"'),
    ("engine reaches into comm", plant("src/engine/a.cpp", '\n#include "comm/b.hpp"'), "src/engine/a.cpp:2"),
    ("cli reaches into shard", plant("src/cli/a.cpp", '#include "shard/b.hpp"'), "src/cli may not"),
    ("include beside the file", plant("src/base/a.cpp", '#include "math.hpp"'), 'write "base/math.hpp"'),
    ("installed header too high", plant("src/schedule/a.cpp", "#include <zerocomm/comm.h>"), "<zerocomm/comm.h>"),
    ("external library", plant("src/comm/a.cpp", "#include <fmt/core.h>"), "belongs to src/cli"),
    ("folder without a row", plant("src/misc/a.cpp", ""), "src/misc"),
    ("thread in a pure folder", plant("src/zero/a.cpp", "#include <thread>"), "<thread> is not for a pure folder"),
    (
        "atomic reached through base",
        {"src/shard/a.cpp": '#include "base/wait.hpp"\n', "src/base/wait.hpp": "#include <atomic>\n"},
        "src/shard/a.cpp -> src/base/wait.hpp:1: <atomic>",
    ),
    ("environment in a pure folder", plant("src/schedule/a.cpp", 'auto x = getenv("A");'), "getenv"),
    ("static state in a pure folder", plant("src/schedule/a.cpp", "static int calls = 0;"), "static state"),
    ("constants and functions", plant("src/schedule/a.cpp", "static constexpr int kA = 0;\nstatic int f() { return kA; }"), None),
    ("include in a comment", plant("src/base/a.cpp", '// #include "comm/a.hpp"\n/*\n#include "comm/b.hpp"\n*/'), None),
    ("example reaches into src", plant("examples/a.cpp", '#include "base/math.hpp"'), "not an installed header"),
    ("example with a header of its own", {"examples/a.cpp": '#include "b.hpp"\n', "examples/b.hpp": ""}, None),
]

if __name__ == "__main__":
    sources.main(check, PLANTS)
