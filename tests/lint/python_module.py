"""
`python_module.py ROOT`: what python/zerocomm/_structs.py says of enumerations, structs and functions is what the installed
headers say: values, names, order, places and sizes, by the C compiler.
"""

import ctypes
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

CC = os.environ.get("ZC_CC", "cc")
KINDS = {ctypes.c_int32: "4", ctypes.c_size_t: "8", ctypes.c_uint64: "8", ctypes.c_double: "double"}


def module(root):
    spec = importlib.util.spec_from_file_location("structs", root / "python/zerocomm/_structs.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def compiled(root, arguments, source):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "a.c")
        path.write_text("#include <stddef.h>\n#include <stdio.h>\n#include <zerocomm/zerocomm.h>\n" + source)
        command = [CC, "-std=c99", "-I", str(root / "include"), str(path), *arguments]
        if "-E" in arguments:
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout
        program = str(pathlib.Path(folder, "a"))
        result = subprocess.run([*command, "-o", program], check=False, capture_output=True, text=True)
        if result.returncode:
            return result.stderr
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout


def members(body):
    """Names of the members of a struct's body, in order; of function pointers and arrays too."""
    found = []
    for declaration in body.split(";"):
        function = re.search(r"\(\s*\*\s*(\w+)\s*\)", declaration)
        if function:
            found.append(function.group(1))
        elif declaration.strip():
            found += [re.search(r"(\w+)\s*(\[.*\])?\s*$", name).group(1) for name in declaration.split(",")]
    return found


def kind_of(parameter):
    if "*" in parameter or re.search(r"_fn\b", parameter):
        return "pointer"
    if "double" in parameter:
        return "double"
    return "8" if re.search(r"\b(size_t|u?int64_t)\b", parameter) else "4"


def check_structs(found, headers, root):
    problems, lines, expected = [], [], []
    for name, struct in found.STRUCTS.items():
        body = re.search(r"struct %s\s*\{([^}]*)\}" % name, headers)
        if not body:
            problems.append(f"{name}: the headers have no such struct")
            continue
        names = [field for field, _ in struct._fields_]
        if names != members(body.group(1)):
            problems.append(f"{name}: members are {members(body.group(1))}, the module has {names}")
            continue
        lines.append(f'printf("{name} %zu\\n", sizeof(struct {name}));')
        expected.append(f"{name} {ctypes.sizeof(struct)}")
        for field in names:
            place = getattr(struct, field)
            lines.append(
                f'printf("{name}.{field} %zu %zu\\n", offsetof(struct {name}, {field}), sizeof ((struct {name}*)0)->{field});'
            )
            expected.append(f"{name}.{field} {place.offset} {place.size}")
    return problems + compare(root, lines, expected)


def check_enums(found, headers, root):
    problems, lines, expected = [], [], []
    for enum, (prefix, special) in found.ENUMS.items():
        names = [special.get(constant.name, prefix + constant.name) for constant in enum]
        bodies = [re.findall(r"\b(ZC_\w+)\s*=", body) for body in re.findall(r"enum \w+\s*\{([^}]*)\}", headers)]
        constants = next((body for body in bodies if names[0] in body), [])
        problems += [f"{enum.__name__}: the headers have no {name}" for name in names if name not in constants]
        missing = [name for name in constants if name not in names and not name.endswith("_FORCE_INT_")]
        problems += [f"{enum.__name__}: the module lacks {name}" for name in missing]
        for name, constant in zip(names, enum):
            if name in constants:
                lines.append(f'printf("{name} %d\\n", (int){name});')
                expected.append(f"{name} {int(constant)}")
    for name in ("NONE", "POLL"):
        lines.append(f'printf("{name} %d\\n", (int)ZC_{name});')
        expected.append(f"{name} {getattr(found, name)}")
    return problems + compare(root, lines, expected)


def compare(root, lines, expected):
    told = compiled(root, [], "int main(void) {\n" + "\n".join(lines) + "\nreturn 0;\n}\n").splitlines()
    if len(told) != len(expected):
        return ["the program that prints what the compiler makes of the headers failed:", *told[:10]]
    return [f"the headers say {said!r}, the module {ours!r}" for said, ours in zip(told, expected) if said != ours]


def check_functions(found, headers):
    problems = []
    for name, parameters in found.FUNCTIONS.items():
        declared = re.search(r"zc_status\s+%s\s*\(([^;]*)\)\s*;" % name, headers)
        if not declared:
            problems.append(f"{name}: the headers declare no such function that returns a zc_status")
            continue
        said = [kind_of(parameter) for parameter in declared.group(1).split(",")]
        ours = [KINDS.get(kind, "pointer") for kind in parameters]
        if said != ours:
            problems.append(f"{name}: the headers say {said}, the module {ours}")
    declared = set(re.findall(r"\b(zc_\w+)\s*\([^;()]*\)\s*;", headers))
    known = {*found.FUNCTIONS, *found.OTHERS, *found.LEFT_OUT}
    problems += [f"{name}: is in the headers, and the module neither has it nor leaves it out" for name in declared - known]
    problems += [f"{name}: is left out, and no header has it" for name in (found.OTHERS | found.LEFT_OUT) - declared]
    problems += [f"{name}: is left out, and used" for name in found.LEFT_OUT & {*found.FUNCTIONS, *found.OTHERS}]
    return sorted(problems)


def check(root):
    found = module(root)
    headers = re.sub(r"__attribute__\s*\(\(.*?\)\)\)?", "", compiled(root, ["-E", "-P"], ""))
    headers = headers[headers.index("zc_scope") :]
    return check_structs(found, headers, root) + check_enums(found, headers, root) + check_functions(found, headers)


def self_test(top):
    """A copy of the headers and of the module, changed in one place each."""
    plants = [
        ("types.h", "ZC_OP_MAX = 4", "ZC_OP_MAX = 14", "ZC_OP_MAX 14"),
        ("types.h", "ZC_OP_MAX = 4,", "ZC_OP_MAX = 4, ZC_OP_XOR = 8,", "Op: the module lacks ZC_OP_XOR"),
        ("comm.h", "int32_t requests;", "int64_t requests;", "zc_comm_config.requests"),
        ("norm.h", "double norm;", "double norm; double planted;", "zc_norm: members are"),
        ("layout.h", "size_t tensor_offset; /**< first", "size_t first_element; /**< first", "zc_piece: members are"),
        ("zero.h", "zc_zero_scale(zc_zero *zero, double factor)", "zc_zero_scale(zc_zero *zero, size_t factor)", "zc_zero_scale:"),
        ("coll.h", "zc_status zc_barrier(", "int zc_barrier(", "zc_barrier: the headers declare no such function"),
        ("window.h", "typedef struct zc_window zc_window;", "typedef struct zc_window zc_window; ZC_API int zc_planted(int a);",
         "zc_planted: is in the headers"),
        ("request.h", "zc_request_wait_all(", "zc_request_wait_each(", "zc_request_wait_all: is left out, and no header has it"),
    ]  # fmt: skip
    wrong = []
    for header, before, after, expected in [("types.h", "", "", None), *plants]:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "python/zerocomm").mkdir(parents=True)
            (root / "include/zerocomm").mkdir(parents=True)
            (root / "python/zerocomm/_structs.py").write_text((top / "python/zerocomm/_structs.py").read_text())
            for path in (top / "include/zerocomm").glob("*.h"):
                text = path.read_text()
                if path.name == header:
                    assert before in text, before
                    text = text.replace(before, after, 1)
                (root / "include/zerocomm" / path.name).write_text(text)
            problems = check(root)
        if not (any(expected in line for line in problems) if expected else not problems):
            wrong.append(f"{after!r} in {header}: expected {expected!r}, got {problems[:5]}")
    print("\n".join(wrong) or f"{len(plants)} plants found")
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1] == "--self-test":
        sys.exit(self_test(pathlib.Path(__file__).resolve().parents[2]))
    problems = check(pathlib.Path(sys.argv[1]))
    print("\n".join(problems) or "nothing to report")
    sys.exit(1 if problems else 0)
