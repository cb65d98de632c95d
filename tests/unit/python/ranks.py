"""What the tests of the Python module share: ranks that are threads, and small arrays."""

import array
import threading

import zerocomm
from zerocomm import DType

try:
    import numpy as np
except ImportError:
    np = None


def on_ranks(ranks, body, **config):
    """Results of body(comm) on thread ranks; the first exception of any."""
    comms = zerocomm.Communicator.threads(ranks, **config)
    results, failures = [None] * ranks, []

    def run(rank):
        try:
            results[rank] = body(comms[rank])
        except Exception as failure:  # handed to the caller below
            failures.append(failure)
            comms[rank].abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for comm in comms:
        comm.destroy()
    if failures:
        raise failures[0]
    return results


def floats(*values):
    return array.array("f", values)


def two_units(ranks, stage, dtype=DType.F32):
    return zerocomm.Layout(
        [
            {"name": "w", "unit": "first", "count": 5, "dtype": dtype},
            {"name": "b", "unit": "first", "count": 3, "dtype": dtype},
            {"name": "v", "unit": "second", "count": 7, "dtype": dtype},
        ],
        ranks=ranks,
        stage=stage,
    )
