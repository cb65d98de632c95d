"""The ZeRO engine: zero.h."""

import contextlib
import ctypes
from ctypes import byref
from typing import NamedTuple

from . import _structs as c
from ._library import lib
from ._structs import NONE, DType, Phase, State
from ._tensors import as_tensor, view_of


class Piece(NamedTuple):
    """A run of elements that this rank updates. `master` and `gradient` are f32 memory of the engine, to be written."""

    tensor: int
    tensor_offset: int
    count: int
    buffer: int
    state_offset: int
    master: memoryview
    gradient: memoryview


class Engine:
    """Parameters, gradients and optimizer state of a Layout, cut over a Communicator. Options: zc_zero_config."""

    def __init__(self, comm, layout, **config):
        self.comm, self.layout = comm, layout
        self._handle, self._gradients = ctypes.c_void_p(), []
        made = c.filled(c.zc_zero_config, config)
        lib.zc_zero_create(comm._handle, layout._handle, byref(made), byref(self._handle))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.destroy()

    def destroy(self):
        """Detach, before the communicator. Memory that the engine handed out must not be touched any more."""
        if self._handle:
            handle, self._handle = self._handle, None
            lib.zc_zero_destroy(handle)
            self._gradients = []

    def load(self, unit, full, dtype=DType.NONE, root=NONE):
        """Load one unit's values; `full` is None on ranks other than `root`. dtype F32: everything is given in f32."""
        pointers = None
        if full is not None:
            uses = self.layout.unit_uses(unit)
            if len(full) != len(uses):
                raise ValueError(f"unit {unit} has {len(uses)} uses; {len(full)} tensors were given")
            tensors = []
            for owner, use in zip(full, uses):
                count, stored = self.layout.tensor_of(use)
                kind = dtype or stored
                tensors.append(None if owner is None else self.layout._checked(owner, False, count, kind, f"use {use}"))
            pointers = self.layout.pointers(tensors)
        lib.zc_zero_load(self._handle, self.layout.unit_index(unit), pointers, dtype, root)

    def begin(self, name="train", phase=Phase.ONLY):
        lib.zc_zero_begin(self._handle, name.encode(), phase)

    def end(self):
        lib.zc_zero_end(self._handle)
        self._gradients.clear()

    def acquire(self, unit):
        """The unit's tensors as read-only memoryviews, one per use, valid until release."""
        uses = self.layout.unit_uses(unit)
        pointers = (ctypes.c_void_p * max(1, len(uses)))()
        lib.zc_zero_acquire(self._handle, self.layout.unit_index(unit), pointers, len(uses), None)
        return [view_of(pointers[i], *self.layout.tensor_of(use)) for i, use in enumerate(uses)]

    def release(self, unit):
        lib.zc_zero_release(self._handle, self.layout.unit_index(unit), None)

    @contextlib.contextmanager
    def held(self, unit):
        """with engine.held("layer") as tensors: acquire, and release at the end."""
        tensors = self.acquire(unit)
        try:
            yield tensors
        finally:
            self.release(unit)

    def prefetch(self, unit):
        lib.zc_zero_prefetch(self._handle, self.layout.unit_index(unit))

    def grad_ready(self, use, gradient):
        """Hand over a use's gradient. It is kept alive until end; do not write into it before."""
        info = self.layout.use(use)
        kind = DType(self.layout.buffer(info["buffer"])["gradient_dtype"])
        tensor = self.layout._checked(gradient, False, info["in_tensor"]["count"], kind, f"gradient of use {use}")
        lib.zc_zero_grad_ready(self._handle, use, tensor.address, None)
        self._gradients.append(tensor)

    def grad_absent(self, use):
        lib.zc_zero_grad_absent(self._handle, use)

    def norm(self):
        made = c.filled(c.zc_norm, {})
        lib.zc_zero_norm(self._handle, byref(made))
        return c.as_dict(made)

    def scale(self, factor):
        lib.zc_zero_scale(self._handle, factor)

    def pieces(self):
        """(what this rank updates, elements of moments it needs)."""
        first, count, state_count = ctypes.POINTER(c.zc_zero_piece)(), ctypes.c_size_t(), ctypes.c_size_t()
        lib.zc_zero_pieces(self._handle, byref(first), byref(count), byref(state_count))
        found = []
        for i in range(count.value):
            piece = first[i]
            found.append(
                Piece(
                    piece.tensor, piece.tensor_offset, piece.count, piece.buffer, piece.state_offset,
                    view_of(piece.master, piece.count, DType.F32, writable=True),
                    view_of(piece.gradient, piece.count, DType.F32, writable=True),
                )
            )  # fmt: skip
        return found, state_count.value

    def update_begin(self):
        lib.zc_zero_update_begin(self._handle)

    def cast(self):
        lib.zc_zero_cast(self._handle)

    def publish(self):
        lib.zc_zero_publish(self._handle, None)

    def publish_unchanged(self):
        lib.zc_zero_publish_unchanged(self._handle)

    def export(self, tensor, destination, state=State.PARAMETER):
        """Copy one whole tensor (number or name) into `destination`."""
        if isinstance(tensor, str):
            index = ctypes.c_size_t()
            lib.zc_layout_find_tensor(self.layout._handle, tensor.encode(), byref(index))
            tensor = index.value
        kind = DType.F32 if state == State.MASTER else self.layout._dtypes[tensor]
        count = self.layout._counts[tensor]
        target = self.layout._checked(destination, True, count, kind, f"tensor {self.layout.names[tensor]}")
        lib.zc_zero_export(self._handle, tensor, state, target.address)

    def stats(self):
        return self._told(lib.zc_zero_get_stats, c.zc_zero_stats)

    def ledger(self):
        return self._told(lib.zc_zero_get_ledger, c.zc_zero_ledger)

    def _told(self, function, struct):
        made = c.filled(struct, {})
        function(self._handle, byref(made))
        return c.as_dict(made)
