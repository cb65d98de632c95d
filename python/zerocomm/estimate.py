"""Closed formulas for memory and traffic of a ZeRO stage: estimate.h."""

from ctypes import byref

from . import _structs as c
from ._library import lib
from ._structs import DType, Stage

NO_MOMENTS = 2**64 - 1  # ZC_ESTIMATE_NO_MOMENTS


def estimate_layout(layout, rank, **config):
    """Bytes of one rank and what one step moves, to the byte; a dict with the members of zc_estimate."""
    made, told = c.filled(c.zc_estimate_config, config), c.filled(c.zc_estimate, {})
    lib.zc_estimate_layout(layout._handle, rank, byref(made), byref(told))
    return c.as_dict(told)


def estimate_count(parameter_count, ranks, stage=Stage.STAGE_3, dtype=DType.F32, **config):
    """The same from a parameter count alone: no tensors, no padding. `stage` may be 0, 1, 2 or 3."""
    made, told = c.filled(c.zc_estimate_config, config), c.filled(c.zc_estimate, {})
    stage = Stage.STAGE_0 if stage == 0 else stage
    lib.zc_estimate_count(parameter_count, ranks, stage, dtype, byref(made), byref(told))
    return c.as_dict(told)
