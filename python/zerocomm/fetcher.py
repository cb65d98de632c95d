"""The parameter part of the engine alone: fetcher.h."""

import contextlib
import ctypes
from ctypes import byref

from . import _structs as c
from ._library import lib
from ._object import Attached, lent
from ._structs import DType


class Fetcher(Attached):
    """
    Parameters of a Layout in per-rank shards, gathered unit by unit, ahead of their use; creation is collective.
    Options: zc_fetcher_config.

    shards   by buffer: this rank's shard, None where it has no element. Memory as for Window(memory=), kept alive as long;
             the default is the library's own, zeroed.

    The first values come like all others: update_begin, write shard(), publish.
    """

    def __init__(self, comm, layout, shards=None, **config):
        self.comm, self.layout = comm, layout
        self._handle, tensors = ctypes.c_void_p(), []
        made = c.filled(c.zc_fetcher_config, config)
        if shards is not None:
            tensors = layout.shard_tensors(shards, writable=True)
            made.shards = layout.pointers(tensors)
        with lent(comm, tensors):
            lib.zc_fetcher_create(comm._handle, layout._handle, byref(made), byref(self._handle))

    def destroy(self):
        """Detach, before the communicator. Memory that the fetcher handed out must not be touched any more."""
        if self._handle:
            handle, self._handle = self._handle, None
            lib.zc_fetcher_destroy(handle)

    def begin(self, name="pass"):
        """Open a pass, local to this rank. Passes of one name share a recorded order for prefetching."""
        lib.zc_fetcher_begin(self._handle, name.encode())

    def end(self):
        lib.zc_fetcher_end(self._handle)

    def acquire(self, unit):
        """The unit's tensors as read-only memoryviews, one per use, valid until release. Threads: any."""
        return self._acquired(lib.zc_fetcher_acquire, unit)

    def release(self, unit):
        lib.zc_fetcher_release(self._handle, self.layout.unit_index(unit), None)

    @contextlib.contextmanager
    def held(self, unit):
        """with fetcher.held("layer") as tensors: acquire, and release at the end."""
        tensors = self.acquire(unit)
        try:
            yield tensors
        finally:
            self.release(unit)

    def prefetch(self, unit):
        """Fetch a unit ahead. Error AGAIN: no room, or its owners have not published; nothing happened."""
        lib.zc_fetcher_prefetch(self._handle, self.layout.unit_index(unit))

    def shard(self, buffer):
        """This rank's shard of a buffer: a memoryview that is written between update_begin and publish alone."""
        dtype = DType(self.layout.buffer(buffer)["dtype"])
        return self._array(lib.zc_fetcher_shard, dtype, buffer)

    def update_begin(self):
        """Wait until no rank reads the generation that is about to be overwritten. Then shards may be written."""
        lib.zc_fetcher_update_begin(self._handle)

    def publish(self):
        lib.zc_fetcher_publish(self._handle, None)

    def publish_unchanged(self):
        lib.zc_fetcher_publish_unchanged(self._handle)

    def stats(self):
        return self._told(lib.zc_fetcher_get_stats, c.zc_fetcher_stats)

    def ledger(self):
        return self._told(lib.zc_fetcher_get_ledger, c.zc_fetcher_ledger)
