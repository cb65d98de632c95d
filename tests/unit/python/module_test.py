"""
The Python module against the library; with NumPy where there is one, and without.
    ZC_LIBRARY=.../libzerocomm.so PYTHONPATH=python python3 tests/unit/python/module_test.py
"""

import array
import ctypes
import gc
import unittest
import weakref

import zerocomm
from zerocomm import _tensors
from zerocomm import DType, Error, Op, Phase, Status

from ranks import floats, np, on_ranks, two_units


class Capsule:
    """A DLPack producer made by hand."""

    def __init__(self, memory, code, bits, shape, strides=None, flags=None, device=1):
        self.device, self.alive = device, memory
        tensor = _tensors._DLTensor(
            data=ctypes.addressof(memory), device_type=device, ndim=len(shape), code=code, bits=bits, lanes=1
        )
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        tensor.shape = self.shape
        if strides:
            self.strides = (ctypes.c_int64 * len(strides))(*strides)
            tensor.strides = self.strides
        self.versioned = flags is not None
        self.struct = tensor
        if self.versioned:
            self.struct = _tensors._DLVersioned(major=1, minor=0, flags=flags, dl_tensor=tensor)

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, **arguments):
        if arguments and not self.versioned:
            raise TypeError("no such argument")
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        name = b"dltensor_versioned" if self.versioned else b"dltensor"
        self.name = ctypes.c_char_p(name)
        return new(ctypes.addressof(self.struct), self.name, None)


class Tensors(unittest.TestCase):
    def test_memory_is_seen_where_it_lies(self):
        memory = floats(1, 2, 3)
        tensor = zerocomm.as_tensor(memory)
        self.assertEqual((tensor.address, tensor.count, tensor.dtype), (memory.buffer_info()[0], 3, DType.F32))
        self.assertTrue(tensor.writable)
        for letter, dtype in (("d", DType.F64), ("i", DType.I32), ("q", DType.I64), ("b", DType.I8), ("B", DType.U8)):
            self.assertEqual(zerocomm.as_tensor(array.array(letter, [1])).dtype, dtype)

    def test_elements_can_be_told(self):
        bits = array.array("H", [0x3F80, 0x4000])
        self.assertEqual(zerocomm.as_tensor(bits, dtype=DType.BF16).count, 2)
        self.assertEqual(zerocomm.as_tensor(bytearray(12), dtype=DType.F32).count, 3)
        with self.assertRaisesRegex(TypeError, "dtype="):
            zerocomm.as_tensor(bits)
        with self.assertRaisesRegex(TypeError, "not F64"):
            zerocomm.as_tensor(floats(1, 2), dtype=DType.F64)
        with self.assertRaisesRegex(ValueError, "whole number"):
            zerocomm.as_tensor(bytearray(7), dtype=DType.F32)

    def test_what_cannot_be_used_is_refused(self):
        with self.assertRaisesRegex(ValueError, "read-only"):
            zerocomm.as_tensor(b"abc", writable=True)
        with self.assertRaisesRegex(ValueError, "gaps"):
            zerocomm.as_tensor(memoryview(floats(1, 2, 3, 4))[::2])
        with self.assertRaisesRegex(TypeError, "neither"):
            zerocomm.as_tensor([1.0, 2.0])

    def test_memory_cannot_move_while_a_tensor_holds_it(self):
        memory = bytearray(8)
        tensor = zerocomm.as_tensor(memory)
        with self.assertRaises(BufferError):
            memory.extend(b"x")
        del tensor
        memory.extend(b"x")

    def test_dlpack_by_hand(self):
        memory = (ctypes.c_uint16 * 6)()
        tensor = zerocomm.as_tensor(Capsule(memory, 4, 16, (2, 3)), writable=True)
        self.assertEqual((tensor.address, tensor.count, tensor.dtype), (ctypes.addressof(memory), 6, DType.BF16))
        self.assertEqual(zerocomm.as_tensor(Capsule(memory, 2, 16, (2, 3), (3, 1), flags=0)).dtype, DType.F16)
        self.assertEqual(zerocomm.as_tensor(Capsule(memory, 2, 16, (0, 3))).count, 0)
        for arguments, text in (
            ({"strides": (1, 2)}, "gaps"),
            ({"flags": 1}, "read-only"),
            ({"flags": 2}, "read-only"),
            ({"device": 2}, "device 2"),
        ):
            with self.assertRaisesRegex((TypeError, ValueError), text):
                zerocomm.as_tensor(Capsule(memory, 4, 16, (2, 3), **arguments), writable=True)
        with self.assertRaisesRegex(TypeError, "code 5"):
            zerocomm.as_tensor(Capsule(memory, 5, 16, (2, 3)))

    @unittest.skipUnless(np, "no NumPy")
    def test_dlpack_of_numpy_is_given_back(self):
        class OnlyDLPack:
            def __init__(self, owner):
                self.owner = owner

            def __dlpack__(self):
                return self.owner.__dlpack__()

            def __dlpack_device__(self):
                return self.owner.__dlpack_device__()

        memory = np.arange(6, dtype=np.float64).reshape(2, 3)
        tensor = zerocomm.as_tensor(OnlyDLPack(memory))
        self.assertEqual((tensor.address, tensor.count, tensor.dtype), (memory.ctypes.data, 6, DType.F64))
        gone = weakref.ref(memory)
        del memory
        self.assertIsNotNone(gone())
        del tensor
        gc.collect()
        self.assertIsNone(gone())


class Collectives(unittest.TestCase):
    def test_every_collective(self):
        def body(comm):
            r, n = comm.rank, comm.size
            mine = array.array("i", [10 * r, 10 * r + 1])
            out = {}

            def room(count):
                return array.array("i", [-1] * count)

            out["all_reduce"] = room(2)
            comm.all_reduce(mine, out["all_reduce"])
            out["in_place"] = array.array("i", mine)
            comm.all_reduce(out["in_place"], op=Op.MAX)
            out["reduce_scatter"] = room(1)
            comm.reduce_scatter(array.array("i", range(n)), out["reduce_scatter"])
            out["reduce_scatter_v"] = room(r)
            comm.reduce_scatter_v(array.array("i", range(3)), out["reduce_scatter_v"], [0, 1, 2])
            out["all_gather"] = room(2 * n)
            comm.all_gather(mine, out["all_gather"])
            out["all_gather_v"] = room(3)
            comm.all_gather_v(array.array("i", [r] * r), out["all_gather_v"], [0, 1, 2])
            out["broadcast"] = array.array("i", mine)
            comm.broadcast(out["broadcast"], root=1)
            out["reduce"] = room(2)
            comm.reduce(mine, out["reduce"], root=2)
            out["all_to_all"] = room(n)
            comm.all_to_all(array.array("i", [10 * r + i for i in range(n)]), out["all_to_all"])
            out["all_to_all_v"] = room(n * r)
            send = array.array("i", [10 * r + to for to in range(n) for _ in range(to)])
            comm.all_to_all_v(send, [0, 1, 2], out["all_to_all_v"], [r] * n)
            out["gather_to_root"] = room(2 * n)
            comm.gather_to_root(mine, out["gather_to_root"], root=1)
            out["scatter_from_root"] = room(1)
            comm.scatter_from_root(array.array("i", [7, 8, 9]), out["scatter_from_root"], root=0)
            comm.barrier()
            out["sent"] = room(1)
            if r == 0:
                comm.send(array.array("i", [77]), to=2, tag=5)
            if r == 2:
                comm.recv(out["sent"], source=0, tag=5)
            child = comm.split(r % 2, key=-r)
            out["child"] = [child.rank, child.size]
            child.destroy()
            self.assertEqual(comm.info()["transport"], "threads")
            self.assertGreater(comm.stats()["collectives"], 10)
            self.assertGreater(comm.ledger()["total_bytes"], 0)
            return {name: list(value) for name, value in out.items()}

        results = on_ranks(3, body)
        everywhere = {
            "all_reduce": [30, 33], "in_place": [20, 21], "all_gather": [0, 1, 10, 11, 20, 21],
            "all_gather_v": [1, 2, 2], "broadcast": [10, 11],
        }  # fmt: skip
        for rank, found in enumerate(results):
            for name, expected in everywhere.items():
                self.assertEqual(found[name], expected, name)
            self.assertEqual(found["reduce_scatter"], [3 * rank])
            self.assertEqual(found["reduce_scatter_v"], [[], [0], [3, 6]][rank])
            self.assertEqual(found["reduce"], [30, 33] if rank == 2 else [-1, -1])
            self.assertEqual(found["all_to_all"], [rank, 10 + rank, 20 + rank])
            self.assertEqual(found["all_to_all_v"], [10 * source + rank for source in range(3) for _ in range(rank)])
            self.assertEqual(found["gather_to_root"], [0, 1, 10, 11, 20, 21] if rank == 1 else [-1] * 6)
            self.assertEqual(found["scatter_from_root"], [7 + rank])
            self.assertEqual(found["sent"], [77] if rank == 2 else [-1])
            self.assertEqual(found["child"], [[1, 2], [0, 1], [0, 2]][rank])

    def test_output_dtype_follows_the_buffer(self):
        def body(comm):
            out = floats(0)
            comm.all_reduce(zerocomm.as_tensor(array.array("H", [0x3F80]), dtype=DType.BF16), out)
            return out[0]

        self.assertEqual(on_ranks(2, body), [2.0, 2.0])

    def test_errors_carry_status_and_text(self):
        def body(comm):
            with self.assertRaises(Error) as caught:
                comm.all_reduce(floats(*[1] * (3 + comm.rank)))
            comm.barrier()  # the communicator lives
            return caught.exception

        for error in on_ranks(2, body):
            self.assertEqual((error.status, error.function), (Status.MISMATCH, "zc_all_reduce"))
            self.assertIn("count", error.text)

    def test_wrong_arguments_are_refused_before_the_call(self):
        [comm] = zerocomm.Communicator.threads(1)
        with comm:
            with self.assertRaisesRegex(ValueError, "4 are needed"):
                comm.reduce_scatter_v(floats(1, 2, 3), floats(1, 2, 3, 4), [4])
            with self.assertRaisesRegex(TypeError, "no option 'deadline'"):
                comm.barrier(deadline=3)
            with self.assertRaisesRegex(ValueError, "read-only"):
                comm.all_reduce(bytes(4))
            with self.assertRaisesRegex(TypeError, "send is I32, recv is F32"):
                comm.all_gather(array.array("i", [1]), floats(0))


class Requests(unittest.TestCase):
    def test_several_in_flight_in_another_order(self):
        def body(comm):
            data = {tag: floats(tag, comm.rank) for tag in range(5)}
            tags = sorted(data, reverse=comm.rank == 1)
            requests = {tag: comm.all_reduce(data[tag], request=True, tag=tag) for tag in tags}
            for tag in sorted(requests):
                requests[tag].wait()
                self.assertTrue(requests[tag].test())  # what is over stays over
            return [list(data[tag]) for tag in sorted(data)]

        for found in on_ranks(2, body):
            self.assertEqual(found, [[2 * tag, 1] for tag in range(5)])

    def test_buffers_live_as_long_as_their_request(self):
        def body(comm):
            buffer = bytearray(8)
            request = comm.all_reduce(zerocomm.as_tensor(buffer, dtype=DType.F32), request=True)
            held = weakref.ref(request)
            del request
            gc.collect()
            self.assertIsNotNone(held())
            with self.assertRaises(BufferError):
                buffer.extend(b"x")
            with self.assertRaises(Error) as caught:
                comm.destroy()
            self.assertEqual(caught.exception.status, Status.STATE)
            request = held()
            request.wait()
            buffer.extend(b"x")  # what is over holds nothing, kept or not
            del request
            gc.collect()
            return held()

        self.assertEqual(on_ranks(2, body), [None, None])

    def test_cancel(self):
        def body(comm):
            if comm.rank == 0:
                request = comm.barrier(request=True, tag=9)
                request.cancel()
            comm.barrier()
            if comm.rank == 1:
                with self.assertRaises(Error) as caught:
                    comm.barrier(request=True, tag=9).wait()
                return caught.exception.status

        self.assertEqual(on_ranks(2, body)[1], Status.CANCELED)


class Layouts(unittest.TestCase):
    def test_a_layout_tells_what_it_is(self):
        layout = two_units(2, 3)
        self.assertEqual(layout.info()["stored_count"], 15)
        self.assertEqual((layout.unit("second")["name"], layout.unit_index("second")), ("second", 1))
        self.assertEqual(layout.unit_uses("first"), [0, 1])
        self.assertEqual(layout.tensor_of(2), (7, DType.F32))
        covered = sum(piece["count"] for rank in range(2) for piece in layout.pieces(rank, 0))
        self.assertEqual(covered, 15)
        self.assertIn("second", layout.text())
        self.assertIsInstance(layout.json(), dict)
        with self.assertRaises(Error) as caught:
            layout.unit("third")
        self.assertEqual(caught.exception.status, Status.ARGUMENT)

    def test_units_come_back_from_shards(self):
        def body(comm):
            layout = two_units(comm.size, 3)
            full = {"first": [floats(*range(5)), floats(7, 8, 9)], "second": [floats(*range(20, 27))]}
            shard = floats(*[0] * layout.buffer(0)["shard_count"])
            for unit, tensors in full.items():
                layout.partition(comm.rank, unit, tensors, [shard])
            for unit, tensors in full.items():
                found = [floats(*[0] * len(tensor)) for tensor in tensors]
                comm.gather(layout, unit, [shard], found)
                self.assertEqual(found, tensors)
            with self.assertRaisesRegex(ValueError, "has 5 elements of F32; 4 were given"):
                layout.partition(comm.rank, "first", [floats(1, 2, 3, 4), floats(1, 2, 3)], [shard])
            return True

        self.assertEqual(on_ranks(3, body), [True] * 3)


class Engines(unittest.TestCase):
    def train(self, comm, stage, dtype):
        """Three steps of SGD whose numbers are exact; what all tensors are at the end."""
        layout = two_units(comm.size, stage, dtype)
        with zerocomm.Engine(comm, layout) as engine:
            engine.load("first", [floats(*range(5)), floats(1, 2, 3)], dtype=DType.F32)
            engine.load("second", [floats(*[4] * 7)] if comm.rank == 0 else None, dtype=DType.F32, root=0)
            pieces, state_count = engine.pieces()
            self.assertEqual(sum(piece.count for piece in pieces), state_count)
            for _ in range(3):
                engine.begin("train", Phase.ONLY)
                with engine.held("first") as (w, b):
                    self.assertTrue(w.readonly)
                    self.assertEqual((len(w), len(b)), (5, 3))
                for use in range(3):
                    count, _ = layout.tensor_of(use)
                    if dtype == DType.F32:
                        engine.grad_ready(use, floats(*[2 * comm.rank] * count))
                    else:  # 0 and 2 in bf16
                        engine.grad_ready(use, array.array("H", [0x4000 * comm.rank] * count))
                gc.collect()  # the engine keeps the gradients
                engine.end()
                self.assertEqual(engine.norm()["sum_squares"], 15.0)
                engine.scale(0.5)
                with self.assertRaises(Error) as caught:
                    engine.publish()
                self.assertEqual(caught.exception.status, Status.STATE)
                engine.update_begin()
                for piece in pieces:
                    for i in range(piece.count):
                        piece.master[i] -= piece.gradient[i]
                engine.cast()
                engine.publish()
            self.assertEqual(engine.stats()["generation"], 3)
            self.assertGreater(engine.ledger()["total_bytes"], 0)
            found = []
            for name, count in (("w", 5), ("b", 3), ("v", 7)):
                found.append(floats(*[0] * count))
                engine.export(name, found[-1], zerocomm.State.MASTER)
            return [list(tensor) for tensor in found]

    def test_all_stages_train_alike(self):
        expected = [[i - 1.5 for i in range(5)], [-0.5, 0.5, 1.5], [2.5] * 7]
        for dtype in (DType.F32, DType.BF16):
            for stage in (0, 1, 2, 3):
                for found in on_ranks(2, lambda comm: self.train(comm, stage, dtype)):
                    self.assertEqual(found, expected, (stage, dtype))


if __name__ == "__main__":
    unittest.main()
