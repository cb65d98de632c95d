"""
Schedules, estimates and conversions of the Python module, stores that are Python, ranks that are processes, and what an
interrupt does to a wait.
    ZC_LIBRARY=.../libzerocomm.so PYTHONPATH=python python3 tests/unit/python/edges_test.py
"""

import array
import ctypes
import gc
import signal
import subprocess
import sys
import threading
import unittest

import zerocomm
from zerocomm import Collective, DType, Error, Finding, Status

from ranks import floats, on_ranks, two_units

SECOND_NS = 1_000_000_000


class Pure(unittest.TestCase):
    def test_estimates(self):
        # f32: parameters, gradients and two moments, 16 bytes an element, cut by four as the stage says.
        for stage, expected in ((0, 16000), (1, 10000), (2, 7000), (3, 4000)):
            found = zerocomm.estimate_count(1000, 4, stage)
            self.assertEqual(found["state_bytes"], expected, stage)
        self.assertEqual(zerocomm.estimate_count(1000, 4, 3, moment_bytes_per_element=zerocomm.NO_MOMENTS)["state_bytes"], 2000)
        layout = two_units(2, 3)
        shard, owned = layout.buffer(0)["shard_count"], sum(piece["count"] for piece in layout.pieces(0, 0))
        found = zerocomm.estimate_layout(layout, 0)
        self.assertEqual((found["parameter_bytes"], found["moment_bytes"]), (4 * shard, 8 * owned))
        with self.assertRaises(Error) as caught:
            zerocomm.estimate_layout(layout, 2)
        self.assertEqual(caught.exception.status, Status.ARGUMENT)

    def test_what_ctypes_would_cut_or_take_for_an_address_is_refused(self):
        def body(comm):
            values = floats(1, 2)
            for options in ({"algorithm": 3}, {"schedule": 3}):
                with self.assertRaises(TypeError):
                    comm.all_reduce(values, **options)
            with self.assertRaises(OverflowError):
                comm.all_reduce(values, tag=2**64 + 3, request=True)
            with self.assertRaisesRegex(ctypes.ArgumentError, "does not fit in 32 bits"):
                comm.broadcast(values, root=2**32)
            with self.assertRaisesRegex(ValueError, "1 ranks need as many counts; 2 were given"):
                comm.all_gather_v(values, floats(0, 0), [1, 1])
            with self.assertRaisesRegex(ValueError, "as many counts"):
                comm.all_to_all_v(values, [2], floats(0, 0), [])
            with self.assertRaisesRegex(ValueError, "as many counts"):
                comm.reduce_scatter_v(values, floats(0, 0), [])

        on_ranks(1, body)
        with self.assertRaises(TypeError):
            zerocomm.Communicator.threads(2, topology=5)
        with self.assertRaises(OverflowError):
            zerocomm.Communicator.threads(2, requests=2**32 + 8)

    def test_requests_in_flight_can_be_listed(self):
        def body(comm):
            comm.all_reduce(floats(1), request=True)
            for request in comm.requests:
                request.wait()
            self.assertEqual(comm.requests, [])

        on_ranks(2, body)

    def test_conversion_rounds_to_nearest_even(self):
        bits = array.array("H", [0] * 4)
        zerocomm.cast(floats(1, 1 + 2**-8, 1 + 3 * 2**-8, -2), zerocomm.as_tensor(bits, dtype=DType.BF16))
        self.assertEqual(list(bits), [0x3F80, 0x3F80, 0x3F82, 0xC000])
        with self.assertRaisesRegex(ValueError, "destination has 1 elements; 2 are needed"):
            zerocomm.cast(floats(1, 2), floats(0))

    def test_schedules_are_made_read_proved_and_run(self):
        names = [row["name"] for row in zerocomm.Schedule.catalogue() if row["collective"] == Collective.ALL_GATHER]
        self.assertIn("ring", names)
        ring = zerocomm.Schedule(collective=Collective.ALL_GATHER, ranks=3, algorithm="ring")
        self.assertEqual((ring.info()["ranks"], ring.info()["algorithm"]), (3, "ring"))
        self.assertEqual(zerocomm.Schedule.parse(ring.text()).text(), ring.text())
        verdict, text = ring.verify()
        self.assertTrue(verdict["is_proved"], text)
        self.assertEqual(verdict["findings"][3], Finding.HOLDS)
        self.assertEqual(ring.cost()["messages_sent"], 2)
        with self.assertRaises(Error) as caught:
            zerocomm.Schedule.parse(ring.text() + "planted")
        self.assertEqual(caught.exception.status, Status.ARGUMENT)
        self.assertIn("line", caught.exception.text)

        def body(comm):
            found, asked = floats(*[0] * 3), floats(*[0] * 3)
            own = zerocomm.Schedule.parse(ring.text().replace("ring", "mine"))
            comm.all_gather(floats(comm.rank), found, schedule=own)
            request = comm.all_gather(floats(10 + comm.rank), asked, schedule=own, request=True, tag=1)
            del own
            gc.collect()
            request.wait()
            self.assertEqual(list(asked), [10, 11, 12])
            self.assertEqual(comm.node(comm.rank), 0)
            comm.stats_reset()
            self.assertEqual(comm.stats()["collectives"], 0)
            return list(found)

        self.assertEqual(on_ranks(3, body), [[0, 1, 2]] * 3)


class DictStore:
    """One store for the ranks of one process."""

    def __init__(self, values, fails_on=None):
        self.values, self.fails_on, self.progressed = values, fails_on, 0

    def put(self, key, value):
        if self.fails_on and self.fails_on in ("put", key):
            raise KeyError("planted")
        self.values[key] = value

    def get(self, key):
        if self.fails_on == "get":
            return 3.5  # no bytes
        return self.values.get(key)

    def remove(self, key):
        self.values.pop(key, None)

    def progress(self):
        self.progressed += 1


class Stores(unittest.TestCase):
    def join(self, stores, **config):
        """Ranks that meet over stores: (results, exceptions)."""
        found, failures = [None] * len(stores), [None] * len(stores)

        def run(rank):
            try:
                with zerocomm.Communicator(ranks=len(stores), rank=rank, store=stores[rank], **config) as comm:
                    data = array.array("i", [rank + 1])
                    comm.all_reduce(data)
                    found[rank] = data[0]
                    comm.barrier()
            except Exception as failure:  # looked at by the caller
                failures[rank] = failure

        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(len(stores))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found, failures

    def test_ranks_meet_over_a_dict_and_leave_it_empty(self):
        values = {}
        stores = [DictStore(values) for _ in range(3)]
        found, failures = self.join(stores, init_deadline_ns=20 * SECOND_NS)
        self.assertEqual((found, failures), ([6, 6, 6], [None] * 3))
        self.assertEqual(values, {})
        self.assertTrue(any(store.progressed for store in stores))

    def test_what_a_store_raises_comes_out(self):
        for fails_on, kind in (("put", KeyError), ("get", TypeError)):
            values = {}
            found, failures = self.join(
                [DictStore(values, fails_on), DictStore(values, fails_on)], init_deadline_ns=SECOND_NS // 2
            )
            self.assertEqual(found, [None, None])
            raised = [failure for failure in failures if isinstance(failure, kind)]
            self.assertTrue(raised, failures)
            self.assertIsInstance(raised[0].__cause__, Error)
            self.assertEqual(raised[0].__cause__.status, Status.TRANSPORT)


INTERRUPTED = """
import os, signal, threading, time, zerocomm
comm, other = zerocomm.Communicator.threads(2, deadline_ns=400_000_000)
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
start = time.monotonic()
try:
    {wait}
except KeyboardInterrupt:
    print(comm.status().name, "late" if time.monotonic() - start > 0.35 else "at once", len(comm._requests))
"""


class Interrupts(unittest.TestCase):
    def told(self, wait):
        result = subprocess.run(
            [sys.executable, "-c", INTERRUPTED.format(wait=wait)], capture_output=True, text=True, check=False, timeout=60
        )
        self.assertEqual(result.stderr, "")
        return result.stdout.split()

    def test_a_call_that_waits_is_interrupted_at_its_deadline(self):
        self.assertEqual(self.told("comm.barrier()"), ["TIMEOUT", "late", "0"])

    def test_a_request_that_is_tested_is_interrupted_at_once(self):
        wait = "request = comm.barrier(request=True)\n    while not request.test(): time.sleep(0.001)"
        self.assertEqual(self.told(wait), ["OK", "at", "once", "1"])


PROCESS = """
import array, sys, zerocomm
comm = zerocomm.Communicator(ranks=2, rank=int(sys.argv[1]), id=bytes.fromhex(sys.argv[2]))
memory = zerocomm.Memory(comm, 4096)
assert len(memory.view) == 4096 and not any(memory.view)
window = zerocomm.Window(comm, memory=memory.view)
memory.view.cast("q")[0] = 40 + comm.rank
window.signal(1)
found = array.array("q", [0])
window.read(1 - comm.rank, found, generation=1)
assert found[0] == 41 - comm.rank, found
comm.barrier()
window.destroy()
layout = zerocomm.Layout([{"name": "w", "unit": "w", "count": 9, "dtype": zerocomm.DType.F32}], ranks=2)
shard = memory.view[: 4 * layout.buffer(0)["shard_count"]].cast("f")
fetcher = zerocomm.Fetcher(comm, layout, shards=[shard])
whole = array.array("f", range(9))
fetcher.update_begin()
layout.partition(comm.rank, "w", [whole], [shard])
fetcher.publish()
fetcher.begin()
with fetcher.held("w") as tensors:
    assert list(tensors[0]) == list(whole), list(tensors[0])
fetcher.end()
try:
    zerocomm.Window(comm, memory=bytearray(64))
except zerocomm.Error as error:
    print(error.status.name)
comm.barrier()
fetcher.destroy()
comm.barrier()
memory.free()
comm.destroy()
"""


class Processes(unittest.TestCase):
    def test_windows_and_shards_of_processes_lie_in_memory_of_the_library(self):
        job = zerocomm.unique_id().hex()
        ranks = [
            subprocess.Popen(
                [sys.executable, "-c", PROCESS, str(rank), job], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            for rank in range(2)
        ]
        for rank in ranks:
            out, problems = rank.communicate(timeout=60)
            self.assertEqual((rank.returncode, out.split(), problems), (0, ["ARGUMENT"], ""))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have turned it off for children
    unittest.main()
