"""Schedules as plain data: schedule.h."""

import ctypes
from ctypes import byref

from . import _structs as c
from ._library import lib
from ._structs import NONE, Finding


class Schedule:
    """
    What every rank does in a collective; an immutable value. Schedule(collective=Collective.ALL_GATHER, ranks=4) makes one of
    the catalogue (options: zc_schedule_config), Schedule.parse(text) reads one. Collectives take it as schedule=.
    """

    def __init__(self, **config):
        self._handle = ctypes.c_void_p()
        lib.zc_schedule_create(byref(c.filled(c.zc_schedule_config, config)), byref(self._handle))

    @classmethod
    def parse(cls, text):
        """Read what text() writes. Error ARGUMENT names the line."""
        made = cls.__new__(cls)
        made._handle = ctypes.c_void_p()
        lib.zc_schedule_parse(text.encode(), byref(made._handle))
        return made

    @staticmethod
    def catalogue():
        """Rows of the catalogue: dicts of collective, name, is_canonical, is_one_lane."""
        rows = []
        for index in range(lib.zc_schedule_algorithm_count()):
            made = c.filled(c.zc_algorithm_info, {})
            lib.zc_schedule_algorithm(index, byref(made))
            rows.append(c.as_dict(made))
        return rows

    def __del__(self):
        if getattr(self, "_handle", None):
            lib.zc_schedule_destroy(self._handle)

    def info(self):
        made = c.filled(c.zc_schedule_info, {})
        lib.zc_schedule_get_info(self._handle, byref(made))
        return c.as_dict(made)

    def text(self):
        needed = ctypes.c_size_t()
        lib.zc_schedule_text(self._handle, None, 0, byref(needed))
        text = ctypes.create_string_buffer(needed.value)
        lib.zc_schedule_text(self._handle, text, needed.value, byref(needed))
        return text.value.decode()

    def verify(self):
        """(dict of is_proved, is_canonical and nine findings; text). A broken schedule is no exception."""
        verdict, needed = c.filled(c.zc_schedule_verdict, {}), ctypes.c_size_t()
        lib.zc_schedule_verify(self._handle, byref(verdict), None, 0, byref(needed))
        text = ctypes.create_string_buffer(needed.value)
        lib.zc_schedule_verify(self._handle, byref(verdict), text, needed.value, byref(needed))
        told = c.as_dict(verdict)
        told["findings"] = [Finding(finding) for finding in told["findings"]]
        return told, text.value.decode()

    def cost(self, rank=NONE, **config):
        """What a rank sends and receives; NONE: the largest of any. Options: zc_schedule_cost_config."""
        made, told = c.filled(c.zc_schedule_cost_config, config), c.filled(c.zc_schedule_costs, {})
        lib.zc_schedule_cost(self._handle, rank, byref(made), byref(told))
        return c.as_dict(told)
