"""
Windows, reducer, fetcher and hooks of the Python module, and how long what is handed over lives.
    ZC_LIBRARY=.../libzerocomm.so PYTHONPATH=python python3 tests/unit/python/parts_test.py
"""

import array
import fcntl
import gc
import os
import threading
import time
import unittest
import weakref

import zerocomm
from zerocomm import NONE, POLL, DType, Error, Phase, Status

from ranks import floats, np, on_ranks, two_units

SECOND_NS = 1_000_000_000


def value_of(use, element, rank):
    return 8 * use + element + rank


class Windows(unittest.TestCase):
    def test_bytes_words_and_waits(self):
        def body(comm):
            with zerocomm.Window(comm, bytes=8 * (1 + comm.rank), word_count=3) as window:
                mine = window.ptr(comm.rank).cast("q")
                self.assertEqual(list(mine), [0] * (1 + comm.rank))
                self.assertEqual(len(window.ptr(1 - comm.rank)), 8 * (2 - comm.rank))
                if comm.rank == 1:
                    with self.assertRaises(Error) as caught:
                        window.wait(0, 1, deadline_ns=POLL)
                    self.assertEqual(caught.exception.status, Status.AGAIN)
                    comm.barrier()
                    found = array.array("q", [0])
                    window.read(0, found, generation=1, deadline_ns=5 * SECOND_NS)
                    self.assertEqual(found[0], 77)
                    self.assertEqual(window.add(0, 1, 5), 0)
                    self.assertEqual(window.add(0, 1, -1), 5)
                    self.assertEqual(window.compare_swap(0, 2, 0, 9), 0)
                    self.assertEqual(window.compare_swap(0, 2, 0, 8), 9)
                    window.store(0, 0, 3)
                    window.signal(2)
                    with self.assertRaises(Error) as caught:
                        window.signal(1)
                    self.assertEqual(caught.exception.status, Status.STATE)
                    with self.assertRaises(Error) as caught:
                        window.read(0, found, offset_bytes=8)
                    self.assertEqual(caught.exception.status, Status.ARGUMENT)
                else:
                    comm.barrier()
                    mine[0] = 77
                    window.signal(1)
                    window.wait(1, 2, label="rank 1 to be through")
                    self.assertEqual([window.load(0, word) for word in range(3)], [3, 4, 9])
                with self.assertRaisesRegex(TypeError, "blame"):
                    window.wait(0, 0, blame=None)
                comm.barrier()

        on_ranks(2, body)

    def test_who_never_signals_is_named(self):
        def body(comm):
            window = zerocomm.Window(comm, bytes=4)
            if comm.rank == 0:
                with self.assertRaises(Error) as caught:
                    window.wait(1, 1, deadline_ns=30_000_000)
                return caught.exception
            while comm.status() == Status.OK:
                time.sleep(0.001)

        error = on_ranks(2, body)[0]
        self.assertEqual((error.status, error.function), (Status.TIMEOUT, "zc_window_wait"))
        self.assertIn("rank 1", error.text)

    def test_sums_over_memory_of_the_caller(self):
        def body(comm):
            memory = floats(comm.rank, 10 * comm.rank, -1, -1)
            window = zerocomm.Window(comm, memory=memory, word_count=1)
            comm.barrier()
            if comm.rank == 2:
                window.reduce([0, NONE, 0], 2, DType.F32, destination=1, destination_bytes=8, divisor=2.0)
                with self.assertRaisesRegex(ValueError, "3 ranks need as many offsets; 1 were given"):
                    window.reduce([0], 2, DType.F32)
            comm.barrier()
            window.destroy()
            return list(memory)

        self.assertEqual(on_ranks(3, body), [[0, 0, -1, -1], [1, 10, 1, 10], [2, 20, -1, -1]])

    def test_memory_lives_as_long_as_anybody_can_read_it(self):
        comms = zerocomm.Communicator.threads(2)
        windows, memory = [None, None], [floats(1, 2, 3), floats(4, 5)]
        gone = [weakref.ref(one) for one in memory]

        def make(rank):
            windows[rank] = zerocomm.Window(comms[rank], memory=memory[rank])

        threads = [threading.Thread(target=make, args=(rank,)) for rank in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        del memory
        windows[0].destroy()
        comms[0].destroy()
        gc.collect()
        self.assertIsNotNone(gone[0]())
        found = floats(0, 0, 0)
        windows[1].read(0, found)
        self.assertEqual(list(found), [1, 2, 3])
        windows[1].destroy()
        comms[1].destroy()
        gc.collect()
        self.assertEqual([one() for one in gone], [None, None])

    def test_parts_that_lie_end_to_end_are_seen_where_they_lie(self):
        layout = zerocomm.Layout(
            [{"name": "w", "unit": "u", "count": 5, "dtype": DType.F32}, {"name": "v", "unit": "u", "count": 3, "dtype": DType.F32}],
            ranks=2, placement=zerocomm.Placement.FLAT,
        )  # fmt: skip

        def body(comm):
            count = layout.buffer(0)["shard_count"]
            with zerocomm.Window(comm, bytes=4 * count, contiguous=1) as window:
                shard = window.ptr(comm.rank).cast("f")
                layout.partition(comm.rank, "u", [floats(1, 2, 3, 4, 5), floats(6, 7, 8)], [shard])
                whole = window.view()
                self.assertTrue(whole.readonly)
                self.assertEqual(len(whole), 2 * 4 * count)
                first, second = layout.view("u", [whole])
                self.assertEqual((list(first), list(second)), ([1, 2, 3, 4, 5], [6, 7, 8]))
                with self.assertRaisesRegex(ValueError, "buffer 0 has"):
                    layout.view("u", [window.ptr(0)])
                before = comm.stats()["moved_bytes"]
                window.view(deadline_ns=SECOND_NS)
                self.assertEqual(comm.stats()["moved_bytes"], before)
                comm.barrier()
            with zerocomm.Window(comm, bytes=4) as window, self.assertRaises(Error) as caught:
                window.view()
            self.assertEqual(caught.exception.status, Status.UNSUPPORTED)

        on_ranks(2, body)

    def test_what_is_refused_keeps_nothing(self):
        def body(comm):
            memory = floats(1)
            with self.assertRaises(Error) as caught:
                zerocomm.Window(comm, memory=memory, word_count=1 + comm.rank)
            status = caught.exception.status
            del caught  # its traceback has the memory
            gone = weakref.ref(memory)
            del memory
            gc.collect()
            self.assertIsNone(gone())
            with self.assertRaisesRegex(ValueError, "memory has 4 bytes; bytes= says 8"):
                zerocomm.Window(comm, memory=floats(1), bytes=8)
            with self.assertRaisesRegex(ValueError, "read-only"):
                zerocomm.Window(comm, memory=b"1234")
            return status

        self.assertEqual(on_ranks(2, body), [Status.MISMATCH] * 2)

    def test_adopted_memfd(self):
        def body(comm):
            descriptor = os.memfd_create("adopted", os.MFD_ALLOW_SEALING)
            os.write(descriptor, bytes(4096) + bytes([comm.rank + 1] * 16))
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
            window = zerocomm.Window(comm, descriptor=descriptor, bytes=16, descriptor_offset_bytes=4096)
            os.close(descriptor)
            found = bytearray(16)
            window.read(1 - comm.rank, found)
            comm.barrier()
            window.destroy()
            return bytes(found)

        self.assertEqual(on_ranks(2, body), [bytes([2] * 16), bytes([1] * 16)])


class Reducers(unittest.TestCase):
    def step(self, comm, reducer, layout, phase=Phase.ONLY, absent=()):
        reducer.begin(phase)
        for use in reversed(range(3)):
            if use in absent:
                reducer.grad_absent(use)
                continue
            count, _ = layout.tensor_of(use)
            reducer.grad_ready(use, floats(*[value_of(use, e, comm.rank) for e in range(count)]))
        gc.collect()
        reducer.end()

    def test_means_come_in_shards_and_as_pieces(self):
        def body(comm, stage):
            layout = two_units(2, stage)
            with zerocomm.Reducer(comm, layout) as reducer:
                self.step(comm, reducer, layout, absent=(1,))
                pieces, count = reducer.pieces()
                self.assertEqual(count, sum(piece.count for piece in pieces))
                found = {}
                for piece in pieces:
                    for i in range(piece.count):
                        found[piece.tensor, piece.tensor_offset + i] = piece.gradient[i]
                output = reducer.output(0)
                if stage != 0:
                    for piece in layout.pieces(comm.rank, 0):
                        for i in range(piece["count"]):
                            key = piece["tensor"], piece["tensor_offset"] + i
                            self.assertEqual(output[piece["shard_offset"] + i], found[key])
                self.assertEqual(reducer.norm()["sum_squares"], float(sum(x * x for x in self.means().values())))
                reducer.scale(0.5)
                self.assertEqual([output[i] for i in range(len(output))], list(reducer.output(0)))
                self.assertEqual(pieces[0].gradient[0], found[pieces[0].tensor, pieces[0].tensor_offset] / 2)
                self.assertGreater(reducer.stats()["buckets_reduced"], 0)
                self.assertGreater(reducer.ledger()["gradient_bytes"], 0)
                return found

        for stage in (0, 2, 3):
            shards = on_ranks(2, lambda comm, stage=stage: body(comm, stage))
            if stage == 0:
                self.assertEqual(shards[0], shards[1])
            else:
                self.assertFalse(shards[0].keys() & shards[1].keys())
            self.assertEqual({**shards[0], **shards[1]}, self.means())

    @staticmethod
    def means():
        """Of two ranks, use 1 absent."""
        counts = {0: 5, 1: 3, 2: 7}
        return {
            (use, e): 0.0 if use == 1 else value_of(use, e, 0) + 0.5 for use, count in counts.items() for e in range(count)
        }

    def test_gradients_live_until_end_and_no_longer(self):
        def body(comm):
            layout = two_units(2, 2)
            with zerocomm.Reducer(comm, layout) as reducer:
                reducer.begin()
                gradient = floats(*[1] * 5)
                gone = weakref.ref(gradient)
                reducer.grad_ready(0, gradient)
                del gradient
                gc.collect()
                self.assertIsNotNone(gone())
                reducer.grad_absent(1)
                with self.assertRaises(Error) as caught:
                    reducer.grad_ready(1, floats(1, 2, 3))
                self.assertEqual(len(reducer._gradients), 1)  # what was refused is not kept
                with self.assertRaises(Error) as caught:
                    reducer.end()
                self.assertEqual(caught.exception.status, Status.ARGUMENT)
                self.assertIn("v", caught.exception.text)
                self.assertEqual(reducer.blockers(0, comm.rank), [2])
                reducer.grad_absent(2)
                self.assertIsNotNone(gone())
                reducer.end()
                self.assertIsNone(gone())
                with self.assertRaisesRegex(ValueError, "gradient of use 0 has 5 elements of F32; 2 were given"):
                    reducer.grad_ready(0, floats(1, 2))
                with self.assertRaises(Error) as caught:
                    reducer.begin(Phase.EVAL)
                return caught.exception.status

        self.assertEqual(on_ranks(2, body), [Status.ARGUMENT] * 2)

    def test_a_hook_sees_every_piece_and_its_exception_comes_at_end(self):
        def body(comm):
            layout, seen = two_units(2, 2), []

            def double(piece):
                seen.append((piece.use, piece.tensor_offset, piece.count, piece.dtype))
                for i in range(piece.count):
                    piece.data[i] *= 2

            with zerocomm.Reducer(comm, layout, pre_reduce=double) as reducer:
                del double
                self.step(comm, reducer, layout)
                self.assertEqual(sum(count for _, _, count, _ in seen), 15)
                self.assertEqual({dtype for _, _, _, dtype in seen}, {DType.F32})
                for piece in reducer.pieces()[0]:
                    for i in range(piece.count):
                        mean = value_of(piece.tensor, piece.tensor_offset + i, 0) + 0.5
                        self.assertEqual(piece.gradient[i], 2 * mean)

            def fail(piece):
                raise ZeroDivisionError(f"use {piece.use}")

            for kind in (zerocomm.Reducer, zerocomm.Engine):
                with kind(comm, layout, pre_reduce=fail if comm.rank == 1 else None) as part:
                    part.begin() if kind is zerocomm.Reducer else part.begin("train", Phase.ONLY)
                    for use in range(3):
                        part.grad_ready(use, floats(*[1] * layout.tensor_of(use)[0]))
                    if comm.rank == 1:
                        with self.assertRaisesRegex(ZeroDivisionError, "use "):
                            part.end()
                    else:
                        part.end()
                    comm.barrier()

        on_ranks(2, body)


class Fetchers(unittest.TestCase):
    full = {"first": [floats(*range(5)), floats(7, 8, 9)], "second": [floats(*range(20, 27))]}

    def update(self, fetcher, factor=1):
        layout, comm = fetcher.layout, fetcher.comm
        fetcher.update_begin()
        shard = fetcher.shard(0)
        for unit, tensors in self.full.items():
            layout.partition(comm.rank, unit, [floats(*[factor * x for x in one]) for one in tensors], [shard])
        fetcher.publish()

    def check_unit(self, fetcher, unit, factor=1):
        with fetcher.held(unit) as tensors:
            self.assertTrue(all(tensor.readonly for tensor in tensors))
            self.assertEqual([list(one) for one in tensors], [[factor * x for x in one] for one in self.full[unit]])

    def test_units_come_whole_and_ahead_of_their_use(self):
        def body(comm):
            with zerocomm.Fetcher(comm, two_units(2, 3)) as fetcher:
                for factor in (1, 2):
                    self.update(fetcher, factor)
                    for _ in range(1 + comm.rank):  # ranks need not make the same visits
                        fetcher.begin("generate")
                        self.check_unit(fetcher, "first", factor)
                        fetcher.prefetch("second")
                        self.check_unit(fetcher, "second", factor)
                        fetcher.end()
                fetcher.publish_unchanged()
                stats = fetcher.stats()
                self.assertEqual(stats["generation"], 3)
                self.assertEqual(stats["hits"] + stats["late_hits"] + stats["misses"], 4 * (1 + comm.rank))
                self.assertGreater(stats["hits"], 0)
                self.assertEqual(fetcher.ledger()["caller_parameter_bytes"], 0)
                with self.assertRaises(Error) as caught:
                    fetcher.acquire("first")
                self.assertEqual(caught.exception.status, Status.STATE)
                with self.assertRaises(Error) as caught:
                    fetcher.release("second")
                comm.barrier()
                return caught.exception.status

        self.assertEqual(on_ranks(2, body), [Status.STATE] * 2)

    def test_shards_of_the_caller_live_as_long_as_anybody_can_fetch_them(self):
        def body(comm):
            layout = two_units(2, 3)
            shard = floats(*[0] * layout.buffer(0)["shard_count"])
            gone = weakref.ref(shard)
            with self.assertRaisesRegex(ValueError, "the layout has 1 buffers; 2 shards were given"):
                zerocomm.Fetcher(comm, layout, shards=[shard, shard])
            fetcher = zerocomm.Fetcher(comm, layout, shards=[shard])
            self.assertEqual(fetcher.ledger()["caller_parameter_bytes"], 4 * len(shard))
            del shard
            gc.collect()
            self.update(fetcher)
            fetcher.begin()
            self.check_unit(fetcher, "second")
            fetcher.end()
            fetcher.destroy()
            gc.collect()
            self.assertIsNotNone(gone())
            return gone

        found = on_ranks(2, body)
        gc.collect()
        self.assertEqual([one() for one in found], [None, None])

    def test_a_budget_that_holds_no_unit_says_what_the_least_is(self):
        def body(comm):
            with self.assertRaises(Error) as caught:
                zerocomm.Fetcher(comm, two_units(2, 3), budget_bytes=4)
            return caught.exception

        for error in on_ranks(2, body):
            self.assertEqual(error.status, Status.BUDGET)
            self.assertRegex(error.text, r"\d+ bytes")

    @unittest.skipUnless(np, "no NumPy")
    def test_large_units_with_numpy(self):
        counts = {"a": 10007, "b": 4099}

        def body(comm):
            layout = zerocomm.Layout(
                [{"name": u, "unit": u, "count": n, "dtype": DType.F32} for u, n in counts.items()], ranks=2
            )
            values = {u: np.arange(n, dtype=np.float32) * (3 if u == "b" else 1) for u, n in counts.items()}
            gradients = {u: values[u] + np.float32(comm.rank) for u in counts}
            with zerocomm.Fetcher(comm, layout) as fetcher, zerocomm.Reducer(comm, layout) as reducer:
                fetcher.update_begin()
                shard = np.asarray(fetcher.shard(0))
                for unit, whole in values.items():
                    layout.partition(comm.rank, unit, [whole], [shard])
                fetcher.publish()
                fetcher.begin()
                for unit, whole in values.items():
                    with fetcher.held(unit) as [tensor]:
                        np.testing.assert_array_equal(np.asarray(tensor), whole)
                fetcher.end()
                reducer.begin()
                for use, unit in enumerate(counts):
                    reducer.grad_ready(use, gradients[unit])
                reducer.end()
                for piece in reducer.pieces()[0]:
                    whole = list(values.values())[piece.tensor] + np.float32(0.5)
                    run = slice(piece.tensor_offset, piece.tensor_offset + piece.count)
                    np.testing.assert_array_equal(np.asarray(piece.gradient), whole[run])
                comm.barrier()

        on_ranks(2, body)


class Engines(unittest.TestCase):
    def test_gradient_buffers_states_and_blockers(self):
        def body(comm):
            layout = two_units(2, 1)
            with zerocomm.Engine(comm, layout) as engine:
                for unit, tensors in Fetchers.full.items():
                    engine.load(unit, tensors)
                engine.begin()
                buffer = engine.grad_buffer(0)
                for i in range(5):
                    buffer[i] = value_of(0, i, comm.rank)
                engine.grad_ready(0, buffer)
                self.assertEqual(sorted(engine.blockers(0, comm.rank)), [1, 2])
                engine.grad_absent(1)
                engine.grad_absent(2)
                engine.end()
                for piece in engine.pieces()[0]:
                    for i in range(piece.count):
                        mean = value_of(0, piece.tensor_offset + i, 0) + 0.5 if piece.tensor == 0 else 0
                        self.assertEqual(piece.gradient[i], mean)
                with self.assertRaises(Error) as caught:
                    engine.state(zerocomm.State.PARAMETER, 0)
                self.assertEqual(caught.exception.status, Status.UNSUPPORTED)
                engine.publish_unchanged()
                comm.barrier()
            with zerocomm.Engine(comm, two_units(2, 3)) as engine:
                self.assertEqual(len(engine.state(zerocomm.State.PARAMETER, 0)), layout.buffer(0)["shard_count"])
                with self.assertRaises(Error) as caught:
                    engine.grad_buffer(0)
                comm.barrier()
                return caught.exception.status

        self.assertIn(Status.UNSUPPORTED, on_ranks(2, body))


if __name__ == "__main__":
    unittest.main()
