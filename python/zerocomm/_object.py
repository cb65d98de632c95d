"""What windows, engines, reducers and fetchers have in common: a handle, its end, and structs that are asked for."""

import contextlib
import ctypes
from ctypes import byref

from . import _structs as c
from ._library import Error
from ._structs import DType
from ._tensors import view_of


@contextlib.contextmanager
def lent(comm, tensors):
    """
    Keeps tensors that a call hands to other ranks, unless the call is refused: until all communicators of the list are gone.
    It is done before the call, as an interrupt may come when the call is through.
    """
    held = [tensor for tensor in tensors if tensor is not None]
    if held:
        comm._lent.append(held)
    try:
        yield
    except Error:
        if held:
            comm._lent.remove(held)
        raise


class Attached:
    """An object of the library that belongs to one rank. Use it in a `with`, or call destroy()."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.destroy()

    def _told(self, function, struct, *index):
        made = c.filled(struct, {})
        function(self._handle, *index, byref(made))
        return c.as_dict(made)

    def _blockers(self, function, bucket, rank):
        count, capacity = ctypes.c_size_t(), 0
        while True:  # a snapshot: there may be more at the second look
            uses = (ctypes.c_size_t * max(1, capacity))()
            function(self._handle, bucket, rank, uses, capacity, byref(count))
            if count.value <= capacity:
                return list(uses[: count.value])
            capacity = count.value

    def _array(self, function, dtype, *index):
        """Memory of the library that a function tells by address and count, to be written."""
        first, count = ctypes.c_void_p(), ctypes.c_size_t()
        function(self._handle, *index, byref(first), byref(count))
        return view_of(first.value, count.value, dtype, writable=True)

    def _acquired(self, function, unit):
        """The tensors of a unit of `self.layout` as read-only memoryviews."""
        uses = self.layout.unit_uses(unit)
        pointers = (ctypes.c_void_p * max(1, len(uses)))()
        function(self._handle, self.layout.unit_index(unit), pointers, len(uses), None)
        return [view_of(pointers[i], *self.layout.tensor_of(use)) for i, use in enumerate(uses)]

    def _hand_over(self, function, use, gradient):
        """A use's gradient, compared with the layout, and kept in `self._gradients` unless it is refused."""
        info = self.layout.use(use)
        kind = DType(self.layout.buffer(info["buffer"])["gradient_dtype"])
        tensor = self.layout._checked(gradient, False, info["in_tensor"]["count"], kind, f"gradient of use {use}")
        self._gradients.append(tensor)
        try:
            function(self._handle, use, tensor.address, None)
        except Error:
            self._gradients.remove(tensor)
            raise
