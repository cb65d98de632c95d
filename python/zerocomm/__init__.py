"""
ZeroComm from Python: collectives and ZeRO sharding over ctypes, with nothing to build and nothing but the library needed.

Memory is whatever has the buffer protocol (bytearray, array.array, NumPy) or DLPack on the CPU (torch); it is used where it
lies. Names, arguments and rules are those of the C headers; options are keyword arguments called as the members of the C
option structs. An error of the library is zerocomm.Error with status and text; TypeError and ValueError are arguments that
this module refused before it called.
"""

from ._library import Error, lib as _lib
from ._structs import (
    NONE,
    POLL,
    Absent,
    Accumulation,
    DType,
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
from .layout import Layout
from .zero import Engine, Piece

__version__ = _lib.zc_version_text().decode()
__all__ = [
    "NONE", "POLL", "Absent", "Accumulation", "Communicator", "DType", "Engine", "Error", "Launch", "Layout", "Op",
    "Phase", "Piece", "Placement", "Request", "Slices", "Stage", "State", "Status", "Switch", "Tensor", "TextForm",
    "Traffic", "as_tensor", "unique_id",
]  # fmt: skip
