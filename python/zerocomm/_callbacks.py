"""Functions of Python that the library calls. An exception in one waits until the call of the library is over."""

import ctypes
from typing import NamedTuple

from . import _structs as c
from ._structs import DType, Status
from ._tensors import view_of

_PRE_REDUCE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(c.zc_gradient_piece))
_TEXT, _ROOM, _SIZE = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t
_PUT = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, _TEXT, _ROOM, _SIZE)
_GET = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, _TEXT, _ROOM, _SIZE, ctypes.POINTER(_SIZE))
_REMOVE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, _TEXT)
_PROGRESS = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


class GradientPiece(NamedTuple):
    """What a pre_reduce function gets: `data` is the library's copy, to be read and written until the function returns."""

    use: int
    tensor: int
    tensor_offset: int
    count: int
    dtype: DType
    data: memoryview


class _Failures:
    """The first exception of some functions."""

    def __init__(self):
        self.first = None

    def note(self, failure):
        self.first = self.first or failure

    def raise_first(self):
        failure, self.first = self.first, None
        if failure is not None:
            raise failure


class PreReduce(_Failures):
    """config["pre_reduce"] of an engine or reducer, replaced by its address."""

    def __init__(self, config):
        super().__init__()
        self._function = config.get("pre_reduce")
        if self._function is not None:
            self._called = _PRE_REDUCE(self._call)
            config["pre_reduce"] = ctypes.cast(self._called, ctypes.c_void_p)

    def _call(self, _context, pointer):
        try:
            piece = pointer[0]
            dtype = DType(piece.dtype)
            data = view_of(piece.data, piece.count, dtype, writable=True)
            self._function(GradientPiece(piece.use, piece.tensor, piece.tensor_offset, piece.count, dtype, data))
        except BaseException as failure:  # handed over by raise_first
            self.note(failure)


class StoreFunctions(_Failures):
    """
    A store of the caller's as the struct zc_store. It has put(key, value), get(key), which returns bytes or None, and
    remove(key), and may have progress(). Keys are str, values bytes.
    """

    def __init__(self, store):
        super().__init__()
        self._store = store
        progress = getattr(store, "progress", None)
        functions = {
            "put": _PUT(lambda _, key, value, count: self._run(store.put, key.decode(), ctypes.string_at(value, count))),
            "get": _GET(self._get),
            "remove": _REMOVE(lambda _, key: self._run(store.remove, key.decode())),
            "progress": _PROGRESS(lambda _: self._run(progress)) if progress else None,
        }
        self._functions = functions  # alive as long as the struct
        addresses = {name: ctypes.cast(f, ctypes.c_void_p) if f else None for name, f in functions.items()}
        self.struct = c.filled(c.zc_store, addresses)

    def _run(self, function, *arguments):
        try:
            function(*arguments)
        except BaseException as failure:  # handed over by raise_first
            self.note(failure)
            return int(Status.SYSTEM)
        return int(Status.OK)

    def _get(self, _, key, room, capacity, count):
        found = []
        status = self._run(lambda: found.append(self._store.get(key.decode())))
        if status != Status.OK:
            return status
        try:
            value = found[0] if found[0] is None else bytes(found[0])
        except TypeError as failure:
            self.note(failure)
            return int(Status.SYSTEM)
        if value is None or len(value) > capacity:
            return int(Status.AGAIN)
        ctypes.memmove(room, value, len(value))
        count[0] = len(value)
        return int(Status.OK)
