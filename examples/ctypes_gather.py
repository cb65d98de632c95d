"""
ZeRO stage 3 by hand, from Python: every rank keeps a shard, gathers a unit when it needs it, and updates its shard alone.

    python3 examples/ctypes_gather.py [RANKS]               starts its own ranks (default 3)
    zc run -n 4 -- python3 examples/ctypes_gather.py        or runs under a launcher

Needs NumPy and libzerocomm.so: installed, built in this checkout, or named by ZC_LIBRARY.
"""

import multiprocessing
import os
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import zerocomm  # noqa: E402

SHAPES = {"embedding": {"table": (50, 16)}, "block": {"weight": (16, 48), "bias": (48,), "norm": (16,)}}


def train(comm):
    """True if what this rank gathers is what it should be, to the bit."""
    layout = zerocomm.Layout(
        [
            {"name": name, "unit": unit, "count": int(np.prod(shape)), "dtype": zerocomm.DType.F32}
            for unit, tensors in SHAPES.items()
            for name, shape in tensors.items()
        ],
        ranks=comm.size,
        stage=3,
    )
    random = np.random.default_rng(1)  # the same numbers on all ranks
    full = {
        unit: [random.standard_normal(shape, np.float32) for shape in tensors.values()]
        for unit, tensors in SHAPES.items()
    }
    shard = np.empty(layout.buffer(0)["shard_count"], np.float32)  # all are f32: one buffer, one shard per rank
    for unit in SHAPES:
        layout.partition(comm.rank, unit, full[unit], [shard])

    gathered = [np.empty_like(tensor) for tensor in full["block"]]
    comm.gather(layout, "block", [shard], gathered)
    good = all(np.array_equal(a, b) for a, b in zip(gathered, full["block"]))

    # One step of SGD: gradients of rank r are r + 1 everywhere. Each rank gets the mean of what it owns, and no more.
    pieces = np.empty((comm.size, shard.size), np.float32)
    for rank in range(comm.size):
        for unit in SHAPES:
            gradients = [np.full(tensor.shape, comm.rank + 1, np.float32) for tensor in full[unit]]
            layout.partition(rank, unit, gradients, [pieces[rank]])
    mean = np.empty_like(shard)
    comm.reduce_scatter(pieces, mean, op=zerocomm.Op.AVG)
    shard -= np.float32(0.5) * mean

    comm.gather(layout, "block", [shard], gathered)
    step = np.float32(0.5) * np.float32((comm.size + 1) / 2)
    good = good and all(np.array_equal(a, b - step) for a, b in zip(gathered, full["block"]))

    answer = np.array([good], np.int32)
    comm.all_reduce(answer, op=zerocomm.Op.MIN)  # in place
    if comm.rank == 0:
        held, whole = shard.size, layout.info()["stored_count"]
        print(f"{comm.size} ranks, each with {held} of {whole} elements:", "equal" if answer[0] else "DIFFERENT")
    return bool(answer[0])


def run_rank(config):
    with zerocomm.Communicator(**config) as comm:
        sys.exit(0 if train(comm) else 1)


def main():
    if {"ZC_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"} & os.environ.keys():
        run_rank({})  # a launcher says who this is
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    job = zerocomm.unique_id()  # bytes: they survive the fork, as communicators do not
    context = multiprocessing.get_context("fork")
    processes = [
        context.Process(target=run_rank, args=({"id": job, "rank": rank, "ranks": ranks},)) for rank in range(ranks)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    sys.exit(0 if all(process.exitcode == 0 for process in processes) else 1)


if __name__ == "__main__":
    main()
