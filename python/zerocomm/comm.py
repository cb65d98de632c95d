"""Communicators, collectives and requests: comm.h, coll.h and request.h."""

import ctypes
from ctypes import byref

from . import _structs as c
from ._callbacks import StoreFunctions
from ._library import Error, lib
from ._structs import Op, Status
from ._tensors import as_tensor
from .schedule import Schedule

# Buffers of requests whose communicator died or was destroyed under them: never freed, as peers may still look there.
_abandoned = []


def unique_id():
    """Bytes that ranks share to find each other: Communicator(ranks=, rank=, id=)."""
    made = c.zc_unique_id()
    lib.zc_unique_id_create(byref(made))
    return bytes(made)


class Communicator:
    """
    One rank's handle on a group of ranks. Communicator() asks the launcher (zc run, torchrun, mpirun) who this rank is;
    Communicator(ranks=4, rank=1, id=...) says it. Use it in a `with`, or call destroy(); a process that ends without is
    PEER_LOST for the others.

    Options: zc_comm_config. `store` may be an object with put(key, value), get(key), which returns bytes or None, remove(key)
    and, if it likes, progress(): how the ranks find each other; called while the communicator is made and not after. What one
    of them raises is raised here.
    """

    def __init__(self, **config):
        if isinstance(config.get("id"), (bytes, bytearray)):
            if len(config["id"]) != ctypes.sizeof(c.zc_unique_id):
                raise ValueError("id is not what unique_id() has made")
            config["id"] = ctypes.pointer(c.zc_unique_id.from_buffer_copy(config["id"]))
        store = StoreFunctions(config["store"]) if config.get("store") is not None else None
        if store:
            config["store"] = ctypes.addressof(store.struct)
        handle = ctypes.c_void_p()
        try:
            lib.zc_comm_create(byref(c.filled(c.zc_comm_config, config)), byref(handle))
        except Error as error:
            if store and store.first:
                raise store.first from error
            raise
        self._attach(handle, [])

    @classmethod
    def threads(cls, ranks, **config):
        """Communicators of `ranks` threads of this process; each is used by one thread at a time."""
        handles = (ctypes.c_void_p * max(1, ranks))()
        lib.zc_comm_create_threads(ranks, byref(c.filled(c.zc_comm_config, config)), handles)
        made, lent = [], []
        for handle in handles:
            comm = cls.__new__(cls)
            comm._attach(ctypes.c_void_p(handle), lent)
            made.append(comm)
        return made

    def split(self, color, key=0, **config):
        """A communicator of the ranks of one colour, in the order of their keys; None for the colour NONE. Collective."""
        handle = ctypes.c_void_p()
        lib.zc_comm_split(self._handle, color, key, byref(c.filled(c.zc_comm_config, config)), byref(handle))
        if not handle:
            return None
        child = Communicator.__new__(Communicator)
        child._attach(handle, self._lent)
        return child

    def _attach(self, handle, lent):
        # `lent`: memory that other ranks may look into while any communicator that shares the list is there.
        self._handle, self._requests, self._lent = handle, set(), lent
        rank, ranks = ctypes.c_int32(), ctypes.c_int32()
        lib.zc_comm_rank(handle, byref(rank))
        lib.zc_comm_size(handle, byref(ranks))
        self.rank, self.size = rank.value, ranks.value

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.destroy()

    def destroy(self):
        """Detach this rank, after its engines. Requests in flight are waited for by their owner first."""
        if not self._handle:
            return
        if self._requests and self.status() == Status.OK:
            raise Error(Status.STATE, f"{len(self._requests)} requests are in flight; wait for them", "destroy")
        _abandoned.extend(self._requests)
        handle, self._handle = self._handle, None
        self._requests = set()
        lib.zc_comm_destroy(handle)
        self._lent = []

    def status(self):
        """The status that killed the communicator, or Status.OK."""
        try:
            lib.zc_comm_status(self._handle)
        except Error as error:
            return error.status
        return Status.OK

    def abort(self):
        lib.zc_comm_abort(self._handle)

    def note(self, label, value=0):
        lib.zc_comm_note(self._handle, label.encode(), value)

    def info(self):
        return self._told(lib.zc_comm_get_info, c.zc_comm_info)

    def stats(self):
        return self._told(lib.zc_comm_stats, c.zc_stats)

    def ledger(self):
        return self._told(lib.zc_comm_ledger, c.zc_ledger)

    def stats_reset(self):
        lib.zc_comm_stats_reset(self._handle)

    def node(self, rank):
        """Index of the node that a rank is on."""
        node = ctypes.c_int32()
        lib.zc_comm_node(self._handle, rank, byref(node))
        return node.value

    def _told(self, function, struct):
        made = c.filled(struct, {})
        function(self._handle, byref(made))
        return c.as_dict(made)

    @property
    def requests(self):
        """The requests in flight, in no order."""
        return list(self._requests)

    # Collectives. Without `recv` they work in place. With request=True they return a Request at once.

    def all_reduce(self, send, recv=None, op=Op.SUM, **options):
        send, recv = self._pair(send, recv)
        self._same(send.count, recv.count, "recv")
        return self._reduction(lib.zc_all_reduce, send, recv, send.count, op, options)

    def reduce_scatter(self, send, recv, op=Op.SUM, **options):
        send, recv = self._pair(send, recv)
        self._same(send.count, recv.count * self.size, "send")
        return self._reduction(lib.zc_reduce_scatter, send, recv, recv.count, op, options)

    def reduce_scatter_v(self, send, recv, counts, op=Op.SUM, **options):
        send, recv = self._pair(send, recv)
        array = self._counts(counts)
        self._same(send.count, sum(counts), "send")
        self._same(recv.count, counts[self.rank], "recv")
        return self._reduction(lib.zc_reduce_scatter_v, send, recv, array, op, options)

    def all_gather(self, send, recv, **options):
        send, recv = self._moved(send, recv)
        self._same(recv.count, send.count * self.size, "recv")
        return self._call(lib.zc_all_gather, [send, recv], [send.count, send.dtype], options)

    def all_gather_v(self, send, recv, counts, **options):
        send, recv = self._moved(send, recv)
        array = self._counts(counts)
        self._same(send.count, counts[self.rank], "send")
        self._same(recv.count, sum(counts), "recv")
        return self._call(lib.zc_all_gather_v, [send, recv], [array, send.dtype], options)

    def broadcast(self, buffer, root=0, **options):
        buffer = as_tensor(buffer, writable=self.rank != root)
        return self._call(lib.zc_broadcast, [buffer], [buffer.count, buffer.dtype, root], options)

    def reduce(self, send, recv=None, op=Op.SUM, root=0, **options):
        if self.rank == root:
            send, recv = self._pair(send, recv)
            self._same(send.count, recv.count, "recv")
        else:
            send, recv = as_tensor(send), None
        return self._reduction(lib.zc_reduce, send, recv, send.count, op, options, root)

    def all_to_all(self, send, recv=None, **options):
        send, recv = self._moved(send, recv)
        self._same(recv.count, send.count, "recv")
        if send.count % self.size:
            raise ValueError(f"{send.count} elements are no whole number of blocks for {self.size} ranks")
        return self._call(lib.zc_all_to_all, [send, recv], [send.count // self.size, send.dtype], options)

    def all_to_all_v(self, send, send_counts, recv, recv_counts, **options):
        send, recv = self._moved(send, recv)
        arrays = self._counts(send_counts), self._counts(recv_counts)
        self._same(send.count, sum(send_counts), "send")
        self._same(recv.count, sum(recv_counts), "recv")
        places = [send.address, arrays[0], recv.address, arrays[1], send.dtype]
        return self._start(lib.zc_all_to_all_v, places, options, (send, recv, arrays))

    def gather_to_root(self, send, recv=None, root=0, **options):
        send, recv = self._rooted(send, recv, root)
        if recv:
            self._same(recv.count, send.count * self.size, "recv")
        return self._call(lib.zc_gather_to_root, [send, recv], [send.count, send.dtype, root], options)

    def scatter_from_root(self, send, recv, root=0, **options):
        recv = as_tensor(recv, writable=True)
        send = as_tensor(send) if self.rank == root else None
        if send:
            self._same(send.count, recv.count * self.size, "send")
            self._same_dtype(send, recv)
        return self._call(lib.zc_scatter_from_root, [send, recv], [recv.count, recv.dtype, root], options)

    def send(self, buffer, to, **options):
        buffer = as_tensor(buffer)
        return self._call(lib.zc_send, [buffer], [buffer.count, buffer.dtype, to], options)

    def recv(self, buffer, source, **options):
        buffer = as_tensor(buffer, writable=True)
        return self._call(lib.zc_recv, [buffer], [buffer.count, buffer.dtype, source], options)

    def barrier(self, **options):
        return self._call(lib.zc_barrier, [], [], options)

    def gather(self, layout, unit, shards, full, **options):
        """Gather one unit of a Layout from the shards of all ranks; see zc_gather."""
        full = layout.unit_tensors(unit, full, writable=True)
        shards = layout.shard_tensors(shards)
        arrays = layout.pointers(shards), layout.pointers(full)
        options, _ = self._options(options)
        lib.zc_gather(self._handle, layout._handle, layout.unit_index(unit), *arrays, byref(options))

    @staticmethod
    def _same(found, expected, what):
        if found != expected:
            raise ValueError(f"{what} has {found} elements; {expected} are needed")

    @staticmethod
    def _same_dtype(a, b):
        if a.dtype != b.dtype:
            raise TypeError(f"send is {a.dtype.name}, recv is {b.dtype.name}")

    def _counts(self, counts):
        if len(counts) != self.size:
            raise ValueError(f"{self.size} ranks need as many counts; {len(counts)} were given")
        return (ctypes.c_size_t * len(counts))(*[c.in_range(ctypes.c_size_t, one, "a count") for one in counts])

    @staticmethod
    def _pair(send, recv):
        recv = as_tensor(send if recv is None else recv, writable=True)
        return as_tensor(send), recv

    def _moved(self, send, recv):
        send, recv = self._pair(send, recv)
        self._same_dtype(send, recv)
        return send, recv

    def _rooted(self, send, recv, root):
        return self._moved(send, recv) if self.rank == root else (as_tensor(send), None)

    def _reduction(self, function, send, recv, counts, op, options, *root):
        if recv and recv.dtype != send.dtype:
            options.setdefault("output_dtype", recv.dtype)
        return self._call(function, [send, recv], [counts, send.dtype, op, *root], options)

    def _options(self, options):
        """The option struct, and where the library is to put a request (or None)."""
        options = dict(options)
        holder = ctypes.c_void_p() if options.pop("request", False) else None
        if options.get("schedule") is not None:
            if not isinstance(options["schedule"], Schedule):
                raise TypeError(f"schedule is a Schedule, not {options['schedule']!r}")
            options["schedule"] = options["schedule"]._handle
        made = c.filled(c.zc_coll_options, options)
        if holder is not None:
            made.request = ctypes.pointer(holder)
        return made, holder

    def _call(self, function, tensors, arguments, options):
        places = [tensor.address if tensor else None for tensor in tensors]
        return self._start(function, [*places, *arguments], options, (tensors, arguments))

    def _start(self, function, arguments, options, keep):
        made, holder = self._options(options)
        # Before the call: an interrupt may come when it has begun, and then nobody else holds its buffers.
        request = None if holder is None else Request(self, holder, (keep, options))
        try:
            function(self._handle, *arguments, byref(made))
        except Error:
            self._requests.discard(request)
            raise
        return request


class Request:
    """
    One call in flight. Its buffers stay where they are until it is over, whether this object is kept or not. A communicator with
    requests in flight is not destroyed: Communicator.requests has those that a program lost sight of.
    """

    def __init__(self, comm, holder, keep):
        self._comm, self._holder, self._keep = comm, holder, keep
        comm._requests.add(self)

    def _ask(self, function, *arguments):
        """Calls, and lets the buffers go if the request is over, however it ended."""
        try:
            function(byref(self._holder), *arguments)
        finally:
            if not self._holder:
                self._comm._requests.discard(self)
                self._keep = None

    def test(self):
        """Is it over? Raises how it ended if that was an error."""
        done = ctypes.c_int32()
        self._ask(lib.zc_request_test, byref(done))
        return bool(done.value)

    def wait(self):
        self._ask(lib.zc_request_wait)

    def cancel(self):
        """Take it back before all ranks have come; Error with status STATE if they have."""
        self._ask(lib.zc_request_cancel)
