"""The gradient part of the engine alone: reducer.h."""

import ctypes
from ctypes import byref
from typing import NamedTuple

from . import _structs as c
from ._callbacks import PreReduce
from ._library import lib
from ._object import Attached
from ._structs import DType, Phase
from ._tensors import view_of


class ReducedPiece(NamedTuple):
    """A run of reduced gradients of this rank: `gradient` is f32 memory of the reducer, to be read and written."""

    tensor: int
    tensor_offset: int
    count: int
    buffer: int
    state_offset: int
    gradient: memoryview


class Reducer(Attached):
    """
    Gradients of a Layout, reduced in buckets into shards; creation is collective. Options: zc_reducer_config.

    `pre_reduce` may be a function of Python: it gets every GradientPiece before it is summed, from any thread that is in the
    library, and must not call this module. What it raises is raised by end().
    After a mismatch inside a pass the reducer can only be destroyed.
    """

    def __init__(self, comm, layout, **config):
        self.comm, self.layout = comm, layout
        self._handle, self._gradients = ctypes.c_void_p(), []
        self._hook = PreReduce(config)
        made = c.filled(c.zc_reducer_config, config)
        lib.zc_reducer_create(comm._handle, layout._handle, byref(made), byref(self._handle))

    def destroy(self):
        """Detach, before the communicator. Memory that the reducer handed out must not be touched any more."""
        if self._handle:
            handle, self._handle = self._handle, None
            lib.zc_reducer_destroy(handle)
            self._gradients = []

    def begin(self, phase=Phase.ONLY):
        """Open a pass: ONLY, or FIRST, any MIDDLE, LAST. The reduced gradients of the step before are replaced."""
        lib.zc_reducer_begin(self._handle, phase)

    def grad_ready(self, use, gradient):
        """Hand over a use's gradient. It is kept alive until end; do not write into it before. Threads: any."""
        self._hand_over(lib.zc_reducer_grad_ready, use, gradient)

    def grad_absent(self, use):
        lib.zc_reducer_grad_absent(self._handle, use)

    def end(self):
        """Close the pass. Collective. ARGUMENT: gradients are missing; the pass stays open."""
        lib.zc_reducer_end(self._handle)
        self._gradients.clear()
        self._hook.raise_first()

    def output(self, buffer):
        """This rank's reduced gradients of a buffer: one writable f32 memoryview, until destroy."""
        return self._array(lib.zc_reducer_output, DType.F32, buffer)

    def pieces(self):
        """(runs of real elements of all buffers, their elements)."""
        first, count, state_count = ctypes.POINTER(c.zc_zero_piece)(), ctypes.c_size_t(), ctypes.c_size_t()
        lib.zc_reducer_pieces(self._handle, byref(first), byref(count), byref(state_count))
        found = []
        for i in range(count.value):
            piece = first[i]
            gradient = view_of(piece.gradient, piece.count, DType.F32, writable=True)
            found.append(
                ReducedPiece(
                    piece.tensor, piece.tensor_offset, piece.count, piece.buffer, piece.state_offset, gradient
                )
            )  # fmt: skip
        return found, state_count.value

    def norm(self):
        """Norm of all reduced gradients after a step's last pass. Collective."""
        return self._told(lib.zc_reducer_norm, c.zc_norm)

    def scale(self, factor):
        lib.zc_reducer_scale(self._handle, factor)

    def blockers(self, bucket, rank):
        """Uses that keep a bucket from being complete on a rank, now."""
        return self._blockers(lib.zc_reducer_blockers, bucket, rank)

    def stats(self):
        return self._told(lib.zc_reducer_get_stats, c.zc_reducer_stats)

    def ledger(self):
        return self._told(lib.zc_reducer_get_ledger, c.zc_reducer_ledger)
