"""Layouts, and cutting units into shards: layout.h."""

import ctypes
import json
from ctypes import byref

from . import _structs as c
from ._library import lib
from ._structs import DType, Stage, TextForm
from ._tensors import addresses, as_tensor, view_of


class Layout:
    """
    How tensors become flat buffers, shards and buckets; an immutable value.

    tensors   dicts with the members of zc_tensor: name, unit, count, dtype, and gradient_dtype, frozen, group, tied_to.
    uses      optional dicts with the members of zc_use: tensor (index), offset, count, unit.
    Others    the members of zc_layout_config. `stage` may be 0, 1, 2 or 3.
    """

    def __init__(self, tensors, ranks, stage=Stage.STAGE_3, uses=None, **config):
        listed = [c.filled(c.zc_tensor, tensor) for tensor in tensors]
        array = (c.zc_tensor * max(1, len(listed)))(*listed)
        stage = Stage.STAGE_0 if stage == 0 else stage
        made = c.filled(c.zc_layout_config, {"ranks": ranks, "stage": stage, **config})
        if uses is not None:
            use_array = (c.zc_use * max(1, len(uses)))(*[c.filled(c.zc_use, use) for use in uses])
            made.uses, made.use_count = use_array, len(uses)
        self._handle = ctypes.c_void_p()
        lib.zc_layout_create(array, len(listed), byref(made), byref(self._handle))
        self.names = [tensor.name.decode() for tensor in listed]
        self._counts = [tensor.count for tensor in listed]
        self._dtypes = [DType(tensor.dtype) for tensor in listed]

    def __del__(self):
        if getattr(self, "_handle", None):
            lib.zc_layout_destroy(self._handle)

    def _told(self, function, struct, *index):
        made = c.filled(struct, {})
        function(self._handle, *index, byref(made))
        return c.as_dict(made)

    def info(self):
        return self._told(lib.zc_layout_get_info, c.zc_layout_info)

    def unit(self, unit):
        return self._told(lib.zc_layout_get_unit, c.zc_unit_info, self.unit_index(unit))

    def use(self, use):
        return self._told(lib.zc_layout_get_use, c.zc_use_info, use)

    def buffer(self, buffer):
        return self._told(lib.zc_layout_get_buffer, c.zc_buffer_info, buffer)

    def bucket(self, bucket):
        return self._told(lib.zc_layout_get_bucket, c.zc_bucket_info, bucket)

    def unit_index(self, unit):
        """Units are given by name or number."""
        if not isinstance(unit, str):
            return unit
        index = ctypes.c_size_t()
        lib.zc_layout_find_unit(self._handle, unit.encode(), byref(index))
        return index.value

    def unit_uses(self, unit):
        """Indices of the uses of a unit, in order."""
        unit, found = self.unit_index(unit), []
        for position in range(self.unit(unit)["use_count"]):
            use = ctypes.c_size_t()
            lib.zc_layout_unit_use(self._handle, unit, position, byref(use))
            found.append(use.value)
        return found

    def tensor_of(self, use):
        """(count, storage dtype) of a use."""
        info = self.use(use)
        return info["in_tensor"]["count"], self._dtypes[info["tensor"]]

    def pieces(self, rank, buffer):
        """Runs of real elements in a rank's shard: dicts of tensor, tensor_offset, shard_offset, count."""
        first, count = ctypes.POINTER(c.zc_piece)(), ctypes.c_size_t()
        lib.zc_layout_pieces(self._handle, rank, buffer, byref(first), byref(count))
        return [c.as_dict(first[i]) for i in range(count.value)]

    def text(self, form=TextForm.PLAIN):
        needed = ctypes.c_size_t()
        lib.zc_layout_print(self._handle, form, None, 0, byref(needed))
        text = ctypes.create_string_buffer(needed.value)
        lib.zc_layout_print(self._handle, form, text, needed.value, byref(needed))
        return text.value.decode()

    def json(self):
        return json.loads(self.text(TextForm.JSON))

    def partition(self, rank, unit, full, shards):
        """Copy what `rank` owns of a unit into the rank's shards; see zc_partition."""
        full = self.unit_tensors(unit, full)
        shards = self.shard_tensors(shards, writable=True)
        lib.zc_partition(
            self._handle, rank, self.unit_index(unit), self.pointers(full), self.pointers(shards)
        )

    def view(self, unit, buffers):
        """
        The tensors of a unit where they lie in whole flat buffers, such as Window.view gives: a read-only memoryview for every
        use, valid as long as the buffers; f16 and bf16 as 16-bit numbers, fp8 as bytes. See zc_layout_view.
        """
        info, uses, whole = self.info(), self.unit_uses(unit), []
        if len(buffers) != info["buffer_count"]:
            raise ValueError(f"the layout has {info['buffer_count']} buffers; {len(buffers)} were given")
        for index, owner in enumerate(buffers):
            buffer = self.buffer(index)
            whole.append(
                None if owner is None
                else self._checked(
                    owner, False, info["ranks"] * buffer["shard_count"], DType(buffer["dtype"]), f"buffer {index}"
                )
            )  # fmt: skip
        found = (ctypes.c_void_p * max(1, len(uses)))()
        lib.zc_layout_view(self._handle, self.unit_index(unit), self.pointers(whole), found, len(uses))
        return [view_of(address, *self.tensor_of(use)) for address, use in zip(found, uses)]

    pointers = staticmethod(addresses)

    def unit_tensors(self, unit, full, writable=False):
        """The tensors of a unit, one per use, None for a tie; counts and dtypes are those of the layout."""
        uses = self.unit_uses(unit)
        if len(full) != len(uses):
            raise ValueError(f"unit {unit} has {len(uses)} uses; {len(full)} tensors were given")
        return [
            None if owner is None else self._checked(owner, writable, *self.tensor_of(use), f"use {use} of unit {unit}")
            for owner, use in zip(full, uses)
        ]

    def shard_tensors(self, shards, writable=False):
        """One shard per buffer, None where the rank has no part."""
        count = self.info()["buffer_count"]
        if len(shards) != count:
            raise ValueError(f"the layout has {count} buffers; {len(shards)} shards were given")
        found = []
        for index, owner in enumerate(shards):
            info = self.buffer(index)
            found.append(
                None if owner is None
                else self._checked(owner, writable, info["shard_count"], DType(info["dtype"]), f"buffer {index}")
            )  # fmt: skip
        return found

    @staticmethod
    def _checked(owner, writable, count, dtype, what):
        tensor = as_tensor(owner, dtype=dtype, writable=writable)
        if tensor.count != count:
            raise ValueError(f"{what} has {count} elements of {dtype.name}; {tensor.count} were given")
        return tensor
