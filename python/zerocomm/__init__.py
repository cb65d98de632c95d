"""
ZeroComm from Python: collectives and ZeRO sharding over ctypes, with nothing to build and nothing but the library needed.

Memory is whatever has the buffer protocol (bytearray, array.array, NumPy) or DLPack on the CPU (torch); it is used where it
lies. Names, arguments and rules are those of the C headers; options are keyword arguments called as the members of the C
option structs. An error of the library is zerocomm.Error with status and text; TypeError and ValueError are arguments that
this module refused before it called.

Lifetime. What is handed over is kept alive by the module as long as the library may touch it: buffers of requests until they
are over, gradients until end, memory of windows and shards of fetchers until all ranks of the process have destroyed their
communicators. Memory that the library hands out is a memoryview that does not keep the library's object alive: nothing may
touch it after release or destroy, as its docstring says. Only layouts and schedules are freed by themselves.

Interrupts. A call that waits is in C, and Python runs no signal handler before it returns: KeyboardInterrupt comes when the
call is over, at the latest at its deadline (deadline_ns=, of the call or the communicator; ZC_DEADLINE_MS). The communicator
is dead then if the deadline has passed. A program that wants to be interrupted at once makes requests and tests them:
`while not request.test(): time.sleep(0.001)`. A process that ends by the interrupt is PEER_LOST for the others.

Left out: zc_comm_wait and zc_progress_add (functions that the library calls while it waits, for engines of one's own);
zc_request_wait_all, zc_reduce_local and the exact sum (a loop, NumPy and math.fsum do it); names and texts of enumerations;
zc_info, zc_comm_flight and zc_log_set (`zc info` prints the first; the log goes to stderr). An option that is a
struct of C functions, such as gather_allocator, is a ctypes struct of the caller's. Streams: there is only host memory.
"""

from ._callbacks import GradientPiece
from ._library import Error, lib as _lib
from ._structs import (
    NONE,
    POLL,
    Absent,
    Accumulation,
    Collective,
    DType,
    Finding,
    Launch,
    Op,
    Phase,
    Placement,
    Slices,
    Stage,
    State,
    Status,
    Switch,
    TextForm,
    Traffic,
)
from ._tensors import Tensor, as_tensor
from .comm import Communicator, Request, unique_id
from .estimate import NO_MOMENTS, estimate_count, estimate_layout
from .fetcher import Fetcher
from .layout import Layout
from .reducer import ReducedPiece, Reducer
from .schedule import Schedule
from .window import Memory, Window, cast
from .zero import Engine, Piece

__version__ = _lib.zc_version_text().decode()
__all__ = [
    "NONE", "NO_MOMENTS", "POLL", "Absent", "Accumulation", "Collective", "Communicator", "DType", "Engine", "Error",
    "Fetcher", "Finding", "GradientPiece", "Launch", "Layout", "Memory", "Op", "Phase", "Piece", "Placement",
    "ReducedPiece", "Reducer", "Request", "Schedule", "Slices", "Stage", "State", "Status", "Switch", "Tensor",
    "TextForm", "Traffic", "Window", "as_tensor", "cast", "estimate_count", "estimate_layout", "unique_id",
]  # fmt: skip
