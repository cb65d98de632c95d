"""The ZeRO engine: zero.h."""

import contextlib
import ctypes
from ctypes import byref
from typing import NamedTuple

from . import _structs as c
from ._callbacks import PreReduce
from ._library import lib
from ._object import Attached
from ._structs import NONE, DType, Phase, State
from ._tensors import view_of


class Piece(NamedTuple):
    """A run of elements that this rank updates. `master` and `gradient` are f32 memory of the engine, to be written."""

    tensor: int
    tensor_offset: int
    count: int
    buffer: int
    state_offset: int
    master: memoryview
    gradient: memoryview


class Engine(Attached):
    """
    Parameters, gradients and optimizer state of a Layout, cut over a Communicator. Options: zc_zero_config.

    `pre_reduce` may be a function of Python, as for Reducer.
    """

    def __init__(self, comm, layout, **config):
        self.comm, self.layout = comm, layout
        self._handle, self._gradients = ctypes.c_void_p(), []
        self._hook = PreReduce(config)
        made = c.filled(c.zc_zero_config, config)
        lib.zc_zero_create(comm._handle, layout._handle, byref(made), byref(self._handle))

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
        self._hook.raise_first()

    def acquire(self, unit):
        """The unit's tensors as read-only memoryviews, one per use, valid until release."""
        return self._acquired(lib.zc_zero_acquire, unit)

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
        self._hand_over(lib.zc_zero_grad_ready, use, gradient)

    def grad_absent(self, use):
        lib.zc_zero_grad_absent(self._handle, use)

    def grad_buffer(self, use):
        """Where a use's gradient can be written so that nothing is copied (stage 1): memory of the engine, for grad_ready."""
        address, info = ctypes.c_void_p(), self.layout.use(use)
        lib.zc_zero_grad_buffer(self._handle, use, byref(address))
        kind = DType(self.layout.buffer(info["buffer"])["gradient_dtype"])
        return view_of(address.value, info["in_tensor"]["count"], kind, writable=True)

    def blockers(self, bucket, rank):
        """Uses that keep a bucket from being complete on a rank, now."""
        return self._blockers(lib.zc_zero_blockers, bucket, rank)

    def norm(self):
        return self._told(lib.zc_zero_norm, c.zc_norm)

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

    def state(self, state, buffer):
        """This rank's shard of a State and buffer, in one piece; Error UNSUPPORTED where it is not apart from the replica."""
        dtype = DType(self.layout.buffer(buffer)["dtype"]) if state == State.PARAMETER else DType.F32
        return self._array(lib.zc_zero_state, dtype, state, buffer)

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
