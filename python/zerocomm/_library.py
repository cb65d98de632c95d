"""Finds libzerocomm.so, gives its functions their types, and turns their statuses into exceptions."""

import ctypes
import os
import pathlib

from ._structs import FUNCTIONS, Status, checked_parameter

VERSION = (0, 1)  # the interface that _structs describes


class Error(Exception):
    """A call of the library that was refused or failed: `status`, `text` (zc_last_error), and the `function`."""

    def __init__(self, status, text, function):
        super().__init__(f"{function}: {Status(status).name}: {text}")
        self.status, self.text, self.function = Status(status), text, function


def _candidates():
    """ZC_LIBRARY alone if it is set; else what the dynamic linker finds, and then the builds of this checkout."""
    named = os.environ.get("ZC_LIBRARY")
    if named:
        return [named]
    top = pathlib.Path(__file__).resolve().parents[2]
    builds = [*top.glob("build/src/libzerocomm.so"), *sorted(top.glob("build/*/src/libzerocomm.so"))]
    return ["libzerocomm.so.0", "/usr/local/lib/libzerocomm.so.0", *map(str, builds)]


def _load():
    failures = []
    for name in _candidates():
        try:
            library = ctypes.CDLL(name)
        except OSError as failure:
            failures.append(str(failure))
            continue
        found = divmod(library.zc_version() // 100, 100)
        if found != VERSION:
            raise ImportError(f"{name} has version {found[0]}.{found[1]}; this module needs {VERSION[0]}.{VERSION[1]}")
        missing = [function for function in FUNCTIONS if not hasattr(library, function)]
        if missing:
            raise ImportError(f"{name} is older than this module: it has no {', '.join(missing)}")
        return library
    raise ImportError(
        "libzerocomm.so was not found; install it, or set ZC_LIBRARY to its path. Tried: " + "; ".join(failures)
    )


def _check(status, function, _arguments):
    if status != Status.OK:
        raise Error(status, lib.zc_last_error().decode(errors="replace"), function.__name__)
    return status


lib = _load()
for _name, _parameters in FUNCTIONS.items():
    _function = getattr(lib, _name)
    _function.argtypes = [checked_parameter(kind) for kind in _parameters]
    _function.restype, _function.errcheck = ctypes.c_int32, _check
lib.zc_last_error.restype = ctypes.c_char_p
lib.zc_version_text.restype = ctypes.c_char_p
lib.zc_schedule_algorithm_count.restype = ctypes.c_size_t
lib.zc_dtype_bytes.restype, lib.zc_dtype_bytes.argtypes = ctypes.c_size_t, [ctypes.c_int32]
