"""
The binary interface, compared with what is committed beside this file.

    abi.py check SOURCE [LIBRARY]     fails when a function is gone or has changed, or a public type
    abi.py update SOURCE [LIBRARY]    writes symbols.txt and zerocomm.abi anew
    abi.py --self-test

symbols.txt: the functions of LIBRARY with their version nodes, as nm sees them. zerocomm.abi: signatures and types. They come
from a library of empty functions, made from the installed headers and compiled with debug information: so the answer is the
same for every build type and compiler flag, and private types are not in it. Additions are listed and pass; so is a member
at the end of a struct that begins with struct_size.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
HOW = "If the change is meant: cmake --build BUILD --target update_abi, and say in CHANGELOG.md what callers must do."
DECLARED = re.compile(r'(__attribute__\(\(visibility\("default"\)\)\)[^;{]*\));')
# abidiff: 1 error, 2 usage, 4 change, 8 incompatible change.
ERRORS, CHANGES = 3, 12


def run(*command, **options):
    return subprocess.run(command, text=True, capture_output=True, check=True, **options).stdout


def hollow_library(source, folder):
    """A shared library that has every declared function, with debug information, and does nothing."""
    cc = os.environ.get("ZC_CC", "cc")
    text = run(cc, "-E", "-x", "c", "-std=c99", "-I", str(source / "include"), str(source / "include/zerocomm/zerocomm.h"))
    text, count = DECLARED.subn(r"\1 { __builtin_trap(); }", text)
    if count == 0:
        raise SystemExit("no public function found in the headers")
    code, library = folder / "hollow.c", folder / "libzerocomm.so"
    code.write_text(text, encoding="utf-8")
    script = f"-Wl,--version-script={source / 'cmake/zerocomm.map'},-soname=libzerocomm.so.0"
    run(cc, "-w", "-std=gnu2x", "-g", "-O0", "-shared", "-fPIC", "-nostdlib", script, "-o", str(library), str(code))
    return library


def dump(source, folder):
    library = hollow_library(source, folder)
    return run("abidw", "--no-show-locs", "--no-corpus-path", "--no-comp-dir-path", "--type-id-style", "hash", str(library))


def symbols(library):
    """Lines "name node", sorted."""
    rows = [line.split() for line in run("nm", "-D", "--defined-only", "--with-symbol-versions", str(library)).splitlines()]
    return sorted(row[-1].replace("@@", " ") for row in rows if row[-2] != "A")


def compare_symbols(old, new):
    gone = sorted(set(old) - set(new))
    added = sorted(set(new) - set(old))
    return [f"gone: {line}" for line in gone], [f"added: {line}" for line in added]


def compare_dumps(old, new):
    """(does it break, report) of two dumps."""
    command = ["abidiff", "--no-unreferenced-symbols", "--suppressions", str(HERE / "zerocomm.abignore"), str(old), str(new)]
    result = subprocess.run(command, text=True, capture_output=True, check=False)
    if result.returncode & ERRORS:
        raise SystemExit(f"abidiff failed:\n{result.stdout}{result.stderr}")
    # Added functions alone are a change that breaks nobody.
    summary = re.search(r"Functions changes summary: (\d+) Removed, (\d+) Changed", result.stdout)
    breaks = bool(result.returncode & CHANGES) and (
        summary is None or summary.groups() != ("0", "0") or bool(result.returncode & 8)
    )
    changed = compare_structs(structs(old), structs(new))
    return breaks or bool(changed), "\n".join([result.stdout, *changed])


def structs(path):
    """Of every public struct its bits and its members (name, offset in bits, type), in order."""
    tree = xml.etree.ElementTree.parse(path)
    typedefs = {node.get("type-id"): node.get("name") for node in tree.iter("typedef-decl")}
    result = {}
    for node in tree.iter("class-decl"):
        if node.get("is-declaration-only") != "yes":
            members = [
                (member.find("var-decl").get("name"), int(member.get("layout-offset-in-bits")), member.find("var-decl").get("type-id"))
                for member in node.iter("data-member")
            ]
            result[typedefs.get(node.get("id"), node.get("name"))] = (int(node.get("size-in-bits")), members)
    return result


def compare_structs(old, new):
    """
    What has changed in old structs, beside members that were appended to a struct that begins with struct_size: those must lie
    behind the old end, for what an old caller has in its padding is nobody's value. (abidiff would let more pass with them.)
    """
    found = []
    for name, (bits, members) in old.items():
        new_bits, new_members = new.get(name, (0, []))
        if new_members[: len(members)] != members:
            found.append(f"{name}: members are gone, or have another type or place")
        elif members[0][0] != "struct_size" and (new_bits, new_members) != (bits, members):
            found.append(f"{name}: has grown, and callers cannot say which one they have")
        elif any(offset < bits for _, offset, _ in new_members[len(members) :]):
            found.append(f"{name}: a new member lies in the padding of the old struct")
    return found


def check(source, library):
    gone = []
    if library:
        gone, added = compare_symbols((HERE / "symbols.txt").read_text().splitlines(), symbols(library))
        print("\n".join(gone + added))
    with tempfile.TemporaryDirectory() as name:
        new = pathlib.Path(name) / "new.abi"
        new.write_text(dump(source, pathlib.Path(name)), encoding="utf-8")
        breaks, report = compare_dumps(HERE / "zerocomm.abi", new)
    print(report)
    if gone or breaks:
        print(HOW)
    return 1 if gone or breaks else 0


def update(source, library):
    if library:
        (HERE / "symbols.txt").write_text("\n".join(symbols(library)) + "\n")
    with tempfile.TemporaryDirectory() as name:
        (HERE / "zerocomm.abi").write_text(dump(source, pathlib.Path(name)), encoding="utf-8")
    return 0


HEADER = """
#define ZC_API __attribute__((visibility("default")))
typedef enum zc_e { ZC_A = 1, ZC_B = 2, ZC_E_FORCE_INT_ = 0x7fffffff } zc_e;
typedef struct zc_options { unsigned long struct_size; int x; long y; } zc_options;
typedef struct zc_info { unsigned long struct_size; int x; } zc_info;
typedef struct zc_span { unsigned long offset, count; } zc_span;
typedef struct zc_comm zc_comm;
ZC_API int zc_f(zc_comm *comm, const zc_options *options, zc_e e);
ZC_API int zc_g(const zc_span *span, zc_info *info);
"""

# What changes, (old text, new text), does it break.
PLANTS = [
    ("nothing", ("", ""), False),
    ("a new function", ("ZC_API int zc_g", "ZC_API int zc_h(void);\nZC_API int zc_g"), False),
    ("a function that is gone", ("ZC_API int zc_g(const zc_span *span, zc_info *info);", ""), True),
    ("another parameter", ("zc_e e)", "zc_e e, int more)"), True),
    ("a wider parameter", ("ZC_API int zc_g", "ZC_API long zc_g"), True),
    ("a member at the end of options", ("long y;", "long y; long z;"), False),
    ("a member in the middle of options", ("int x;", "int x; long z;"), True),
    ("a member that is gone", ("long y;", ""), True),
    ("a member that is wider", ("int x;", "long x;"), True),
    ("a member at the end of a plain struct", ("offset, count;", "offset, count, more;"), True),
    ("a member in the padding at the end of options", ("x; } zc_info", "x, z; } zc_info"), True),
    ("another number of an enumerator", ("ZC_B = 2", "ZC_B = 3"), True),
    ("a new enumerator", ("ZC_B = 2", "ZC_B = 2, ZC_C = 3"), False),
]


def self_test():
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)

        def dump_of(text):
            (root / "include/zerocomm").mkdir(parents=True, exist_ok=True)
            (root / "cmake").mkdir(exist_ok=True)
            (root / "include/zerocomm/zerocomm.h").write_text(text)
            (root / "cmake/zerocomm.map").write_text("ZEROCOMM_0.1 { global: zc_*; local: *; };\n")
            return dump(root, root)

        old = root / "old.abi"
        old.write_text(dump_of(HEADER))
        for what, (before, after), breaks in PLANTS:
            new = root / "new.abi"
            new.write_text(dump_of(HEADER.replace(before, after, 1)))
            found, report = compare_dumps(old, new)
            if found != breaks:
                wrong.append(f"{what}: {'passes' if breaks else 'fails'}\n{report}")
    if compare_symbols(["zc_a N1", "zc_b N1"], ["zc_a N2", "zc_b N1", "zc_c N2"]) != (
        ["gone: zc_a N1"],
        ["added: zc_a N2", "added: zc_c N2"],
    ):
        wrong.append("symbols")
    print("\n".join(wrong) or f"{len(PLANTS)} plants judged as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1] == "--self-test":
        sys.exit(self_test())
    action = {"check": check, "update": update}[sys.argv[1]]
    sys.exit(action(pathlib.Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None))
