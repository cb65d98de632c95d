"""Windows, memory for them, and conversion of elements: window.h and mem.h."""

import ctypes
from ctypes import byref

from . import _structs as c
from ._library import lib
from ._object import Attached, lent
from ._structs import NONE, DType
from ._tensors import as_tensor, view_of


class Memory:
    """
    `byte_count` zeroed bytes that other processes can reach: what Window(memory=) takes of ranks that are processes.

    `view` is the memory as a writable memoryview of bytes. It is never freed by itself, as others may still read it: call
    free() when windows and fetchers over it are gone on all ranks, and touch no view of it afterwards.
    """

    def __init__(self, comm, byte_count):
        self.comm, self._address = comm, ctypes.c_void_p()
        lib.zc_mem_alloc(comm._handle, byte_count, byref(self._address))
        self.view = view_of(self._address.value, byte_count, DType.U8, writable=True)

    def free(self):
        if self._address:
            address, self._address, self.view = self._address, None, None
            lib.zc_mem_free(self.comm._handle, address)


class Window(Attached):
    """
    Memory of every rank that the others can reach, and words to signal with; creation is collective. Options: zc_window_config.

    bytes        what this rank brings; the library allocates it.
    memory       or memory of the caller's: of thread ranks anything with the buffer protocol, of processes Memory.view. It is
                 kept alive until all ranks of this process have destroyed the communicator, as others may read it that long.
    descriptor   or a sealed memfd, with bytes= and descriptor_offset_bytes=.

    Waits take `deadline_ns` and `label`; POLL looks once, and is an Error with status AGAIN if it is too early.
    Threads: any.
    """

    def __init__(self, comm, memory=None, descriptor=None, **config):
        self.comm, self._handle = comm, ctypes.c_void_p()
        made = c.filled(c.zc_window_config, config)
        tensor = None
        if memory is not None:
            tensor = as_tensor(memory, writable=True)
            byte_count = tensor.count * lib.zc_dtype_bytes(tensor.dtype)
            if config.get("bytes", byte_count) != byte_count:
                raise ValueError(f"memory has {byte_count} bytes; bytes= says {config['bytes']}")
            made.memory, made.bytes = tensor.address, byte_count
        if descriptor is not None:
            made.descriptor = ctypes.pointer(ctypes.c_int32(descriptor))
        with lent(comm, [tensor]):
            lib.zc_window_create(comm._handle, byref(made), byref(self._handle))

    def destroy(self):
        """Detach, before the communicator. What ptr() gave must not be touched any more."""
        if self._handle:
            handle, self._handle = self._handle, None
            lib.zc_window_destroy(handle)

    def ptr(self, rank):
        """A rank's part, where it lies, as a writable memoryview of bytes; valid until destroy."""
        memory, count = ctypes.c_void_p(), ctypes.c_size_t()
        lib.zc_window_ptr(self._handle, rank, byref(memory), byref(count))
        return view_of(memory.value, count.value, DType.U8, writable=True)

    def view(self, **options):
        """
        All parts of a contiguous window, end to end in rank order, once every rank has called: a read-only memoryview
        of bytes, valid until destroy. Collective; nothing is moved. Option: deadline_ns.
        """
        made = c.filled(c.zc_coll_options, options)
        memory, count = ctypes.c_void_p(), ctypes.c_size_t()
        lib.zc_window_view(self._handle, byref(memory), byref(count), byref(made))
        return view_of(memory.value, count.value, DType.U8, writable=False)

    def signal(self, generation):
        """Announce a generation of this rank's bytes. Error STATE if it would fall."""
        lib.zc_window_signal(self._handle, generation)

    def wait(self, rank, generation, **options):
        """Wait until `rank` has announced `generation`. Error TIMEOUT names the rank."""
        lib.zc_window_wait(self._handle, rank, generation, byref(self._waiting(options)))

    def read(self, rank, destination, offset_bytes=0, generation=0, **options):
        """Copy bytes of a rank's part into all of `destination`, once it has announced `generation` (0: at once)."""
        target = as_tensor(destination, writable=True)
        byte_count = target.count * lib.zc_dtype_bytes(target.dtype)
        lib.zc_window_read(
            self._handle, rank, offset_bytes, target.address, byte_count, generation, byref(self._waiting(options))
        )

    def load(self, rank, word):
        value = ctypes.c_uint64()
        lib.zc_window_load(self._handle, rank, word, byref(value))
        return value.value

    def store(self, rank, word, value):
        """Write a word of a rank and wake whoever waits."""
        lib.zc_window_store(self._handle, rank, word, value)

    def add(self, rank, word, delta):
        """Add to a word of a rank; what it held before. Numbers are taken modulo 2**64: -1 subtracts one."""
        before = ctypes.c_uint64()
        lib.zc_window_add(self._handle, rank, word, delta % 2**64, byref(before))
        return before.value

    def compare_swap(self, rank, word, expected, desired):
        """What the word held: it has been replaced if that is `expected`."""
        before = ctypes.c_uint64()
        lib.zc_window_compare_swap(self._handle, rank, word, expected, desired, byref(before))
        return before.value

    def reduce(self, source_bytes, count, dtype, destination=NONE, to=None, **options):
        """
        Sum `count` elements over all ranks' parts, in rank order, into a window; see zc_window_reduce.

        source_bytes   per rank: offset in its part, or NONE for zeros.
        destination    a rank, or NONE for the same offset (destination_bytes=) on every rank; `to`: another window.
        Others         output_dtype, divisor, accumulate.
        """
        if len(source_bytes) != self.comm.size:
            raise ValueError(f"{self.comm.size} ranks need as many offsets; {len(source_bytes)} were given")
        made = c.filled(
            c.zc_window_reduction, {"count": count, "dtype": dtype, "destination": destination, **options}
        )
        made.source_bytes = (ctypes.c_int64 * len(source_bytes))(*source_bytes)
        made.to = to._handle if to is not None else None
        lib.zc_window_reduce(self._handle, byref(made))

    @staticmethod
    def _waiting(options):
        for name in ("blame", "extend_ns"):
            if name in options:
                raise TypeError(f"{name} is an option of zc_comm_wait alone")
        return c.filled(c.zc_wait_options, options)


def cast(source, destination):
    """Convert elements between f64, f32, f16 and bf16, one rounding each, to nearest even; bf16 by as_tensor(dtype=)."""
    source, destination = as_tensor(source), as_tensor(destination, writable=True)
    if source.count != destination.count:
        raise ValueError(f"destination has {destination.count} elements; {source.count} are needed")
    lib.zc_cast(source.address, source.dtype, destination.address, destination.dtype, source.count)
