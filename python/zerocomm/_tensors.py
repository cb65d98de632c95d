"""Memory of others, as the library needs it: address, count, dtype; by the buffer protocol or DLPack, never copied."""

import ctypes

from ._structs import DType

ITEM_BYTES = {
    DType.F64: 8, DType.F32: 4, DType.F16: 2, DType.BF16: 2, DType.I64: 8, DType.I32: 4, DType.U8: 1, DType.I8: 1,
    DType.F8E4M3: 1,
}  # fmt: skip

# Letters of the buffer protocol; those of C types are of the sizes of 64-bit Linux.
_FORMATS = {
    "d": DType.F64, "f": DType.F32, "e": DType.F16, "q": DType.I64, "l": DType.I64, "i": DType.I32, "B": DType.U8,
    "b": DType.I8,
}  # fmt: skip
_LETTERS = {DType.F64: "d", DType.F32: "f", DType.I64: "q", DType.I32: "i", DType.U8: "B", DType.I8: "b"}
_LETTERS.update({DType.BF16: "H", DType.F16: "H", DType.F8E4M3: "B"})

# (code, bits) of DLPack.
_DLPACK = {
    (2, 64): DType.F64, (2, 32): DType.F32, (2, 16): DType.F16, (4, 16): DType.BF16, (0, 64): DType.I64,
    (0, 32): DType.I32, (1, 8): DType.U8, (0, 8): DType.I8, (10, 8): DType.F8E4M3,
}  # fmt: skip
_CPU = 1
_READ_ONLY, _COPIED = 1, 2


class _PyBuffer(ctypes.Structure):
    _fields_ = [
        ("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int), ("ndim", ctypes.c_int), ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p), ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p),
    ]  # fmt: skip


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class _DLVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("dl_tensor", _DLTensor),
    ]  # fmt: skip


_api = ctypes.pythonapi
_api.PyObject_GetBuffer.argtypes = [ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int]
_api.PyBuffer_Release.argtypes = [ctypes.POINTER(_PyBuffer)]
_api.PyBuffer_Release.restype = None
_api.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p


class Tensor:
    """A contiguous run of elements that stays where it is while this object lives."""

    __slots__ = ("address", "count", "dtype", "writable", "_keep")

    def __init__(self, address, count, dtype, writable, keep):
        self.address, self.count, self.dtype, self.writable, self._keep = address, count, dtype, writable, keep


def as_tensor(owner, dtype=None, writable=False):
    """
    See memory as a Tensor: anything with the buffer protocol (bytearray, array, NumPy) or DLPack on the CPU.

    `dtype` says what the elements are where the owner cannot: bf16 in an array of 16-bit numbers, anything in bytes.
    TypeError, ValueError: another device, an unknown dtype, gaps between elements, or read-only where it is written.
    """
    if isinstance(owner, Tensor):
        found = owner
        if dtype is not None and dtype != owner.dtype:
            raise TypeError(f"the tensor is {owner.dtype.name}, not {DType(dtype).name}")
    else:
        try:
            view = memoryview(owner)
        except (TypeError, ValueError, BufferError) as failure:
            if not hasattr(owner, "__dlpack__"):
                raise TypeError(
                    f"{type(owner).__name__} has neither the buffer protocol nor __dlpack__: {failure}"
                ) from None
            found = _from_dlpack(owner, dtype)
        else:
            found = _from_buffer(view, dtype)
    if writable and not found.writable:
        raise ValueError(f"the library would write into this {type(owner).__name__}, but it is read-only")
    return found


def _count(total_bytes, item_bytes, found, dtype, what):
    """Elements, once the caller's dtype has been compared with what the owner says."""
    if dtype is None:
        if found is None:
            raise TypeError(f"elements of {what} are nothing the library knows; say dtype=")
        return total_bytes // item_bytes, found
    dtype = DType(dtype)
    if found == dtype or item_bytes == 1 or ITEM_BYTES[dtype] == item_bytes:
        if total_bytes % ITEM_BYTES[dtype]:
            raise ValueError(f"{total_bytes} bytes are no whole number of {dtype.name}")
        return total_bytes // ITEM_BYTES[dtype], dtype
    raise TypeError(f"elements of {what} are not {dtype.name}")


def _from_buffer(view, dtype):
    if not view.c_contiguous:
        raise ValueError(f"memory with gaps: shape {view.shape}, strides {view.strides}; make it contiguous")
    if view.format[:1] in (">", "!"):
        raise TypeError(f"elements of format {view.format!r} are not in the byte order of this machine")
    letter = view.format.lstrip("@=<")
    found = _FORMATS.get(letter) if letter and ITEM_BYTES.get(_FORMATS.get(letter)) == view.itemsize else None
    count, dtype = _count(view.nbytes, view.itemsize, found, dtype, f"format {view.format!r}")
    raw = _PyBuffer()
    _api.PyObject_GetBuffer(view, ctypes.byref(raw), 0)
    address = raw.buf
    _api.PyBuffer_Release(ctypes.byref(raw))  # `view` itself keeps the memory where it is
    return Tensor(address, count, dtype, not view.readonly, view)


def _from_dlpack(owner, dtype):
    device, _ = owner.__dlpack_device__()
    if device != _CPU:
        raise TypeError(f"the tensor is on device {int(device)} of DLPack's list; only the CPU (1) can be used")
    try:
        capsule = owner.__dlpack__(max_version=(1, 0))
    except TypeError:  # before version 1.0
        capsule = owner.__dlpack__()
    flags = 0
    if _api.PyCapsule_IsValid(capsule, b"dltensor_versioned"):
        pointer = _api.PyCapsule_GetPointer(capsule, b"dltensor_versioned")
        versioned = _DLVersioned.from_address(pointer)
        if versioned.major != 1:
            raise TypeError(f"DLPack version {versioned.major}.{versioned.minor} is not known")
        flags, tensor = versioned.flags, versioned.dl_tensor
    else:
        tensor = _DLTensor.from_address(_api.PyCapsule_GetPointer(capsule, b"dltensor"))
    shape = tensor.shape[: tensor.ndim]
    expected = 1
    for i in reversed(range(tensor.ndim)) if tensor.strides and 0 not in shape else ():
        if shape[i] != 1 and tensor.strides[i] != expected:
            raise ValueError(f"memory with gaps: shape {shape}, strides {tensor.strides[: tensor.ndim]}")
        expected *= shape[i]
    elements = 1
    for extent in shape:
        elements *= extent
    found = _DLPACK.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    item_bytes = (tensor.bits * tensor.lanes + 7) // 8
    what = f"DLPack code {tensor.code} with {tensor.bits} bits"
    count, dtype = _count(elements * item_bytes, item_bytes, found, dtype, what)
    address = (tensor.data or 0) + tensor.byte_offset
    # The capsule is not marked as used: its own destructor gives the tensor back when `keep` goes.
    return Tensor(address, count, dtype, not flags & (_READ_ONLY | _COPIED), (owner, capsule))


def view_of(address, count, dtype, writable=False):
    """Memory of the library as a memoryview; f16 and bf16 as 16-bit numbers, fp8 as bytes."""
    if not count:
        return memoryview(b"").cast(_LETTERS[DType(dtype)])
    memory = (ctypes.c_char * (count * ITEM_BYTES[DType(dtype)])).from_address(address)
    view = memoryview(memory).cast("B").cast(_LETTERS[DType(dtype)])
    return view if writable else view.toreadonly()


def addresses(tensors):
    """An array of pointers for C."""
    return (ctypes.c_void_p * max(1, len(tensors)))(*[tensor.address if tensor else None for tensor in tensors])
