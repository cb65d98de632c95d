"""The enumerations, structs and functions of the C headers that the module uses. tests/lint/python_module.py compares them."""

import ctypes
import enum
from ctypes import POINTER, c_char, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint64, c_void_p


class Status(enum.IntEnum):
    OK, AGAIN = 0, 1
    ARGUMENT, UNSUPPORTED, MISMATCH, ALIGNMENT, OVERFLOW, STATE, BUDGET = 10, 11, 12, 13, 14, 15, 16
    CANCELED = 20
    TIMEOUT, PEER_LOST, TRANSPORT, DEVICE, ABORTED = 30, 31, 32, 33, 34
    NO_MEMORY, SYSTEM, INTERNAL, FORKED = 40, 41, 42, 43


class DType(enum.IntEnum):
    NONE, F64, F32, F16, BF16, I64, I32, U8, I8, F8E4M3 = range(10)


class Op(enum.IntEnum):
    NONE, SUM, AVG, MIN, MAX, PROD, PREMUL_SUM = range(7)


class Switch(enum.IntEnum):
    DEFAULT, ON, OFF = range(3)


class Traffic(enum.IntEnum):
    DEFAULT, DATA, CONTROL = range(3)


class Stage(enum.IntEnum):
    NONE, STAGE_1, STAGE_2, STAGE_3, STAGE_0 = 0, 1, 2, 3, -1


class Placement(enum.IntEnum):
    DEFAULT, PER_UNIT, FLAT = range(3)


class TextForm(enum.IntEnum):
    DEFAULT, PLAIN, JSON = range(3)


class Phase(enum.IntEnum):
    NONE, EVAL, ONLY, FIRST, MIDDLE, LAST = range(6)


class Accumulation(enum.IntEnum):
    DEFAULT, REDUCE_EACH, FIRST = range(3)


class Absent(enum.IntEnum):
    DEFAULT, ERROR, ZERO = range(3)


class Launch(enum.IntEnum):
    DEFAULT, COMPLETE, END = range(3)


class Slices(enum.IntEnum):
    DEFAULT, CLAIMED, STATIC = range(3)


class State(enum.IntEnum):
    NONE, PARAMETER, MASTER, GRADIENT = range(4)


NONE = -1  # ZC_NONE
POLL = -1  # ZC_POLL

# Class -> prefix of its constants in C, and those whose names differ.
ENUMS = {
    Status: ("ZC_", {}),
    DType: ("ZC_DTYPE_", {}),
    Op: ("ZC_OP_", {}),
    Switch: ("ZC_", {"DEFAULT": "ZC_SWITCH_DEFAULT"}),
    Traffic: ("ZC_TRAFFIC_", {}),
    Stage: ("ZC_", {"NONE": "ZC_STAGE_NONE"}),
    Placement: ("ZC_PLACEMENT_", {}),
    TextForm: ("ZC_TEXT_", {}),
    Phase: ("ZC_PHASE_", {}),
    Accumulation: ("ZC_ACCUMULATE_", {"DEFAULT": "ZC_ACCUMULATION_DEFAULT"}),
    Absent: ("ZC_ABSENT_", {}),
    Launch: ("ZC_LAUNCH_", {}),
    Slices: ("ZC_SLICES_", {}),
    State: ("ZC_STATE_", {}),
}

STRUCTS = {}


def _struct(name, *members):
    """A ctypes structure called as in C; each member is (type, its names)."""
    fields = [(field, kind) for kind, names in members for field in names.split()]
    STRUCTS[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
    return STRUCTS[name]


SIZE = (c_size_t, "struct_size")

zc_unique_id = _struct("zc_unique_id", (c_char * 128, "text"))
zc_comm_config = _struct(
    "zc_comm_config", SIZE, (c_int64, "deadline_ns spin_ns"), (c_char_p, "topology"), (c_int32, "ranks rank"),
    (POINTER(zc_unique_id), "id"), (c_int64, "init_deadline_ns"), (c_int32, "requests helper_thread reproducible"), (c_void_p, "store"),
)  # fmt: skip
zc_comm_info = _struct(
    "zc_comm_info", SIZE, (c_int32, "ranks rank nodes"), (c_int64, "deadline_ns spin_ns"), (c_int32, "reproducible"),
    (c_char_p, "transport schedule private_copy"), (c_uint64, "strangers"),
)  # fmt: skip
zc_stats = _struct(
    "zc_stats", SIZE, (c_uint64, "logical_bytes control_logical_bytes"),
    (c_uint64 * 8, "moved_bytes control_moved_bytes"), (c_uint64, "collectives mismatches sleeps"),
)  # fmt: skip
zc_ledger = _struct("zc_ledger", SIZE, (c_size_t, "control_bytes window_bytes memory_bytes total_bytes"))
zc_coll_options = _struct(
    "zc_coll_options", SIZE, (c_int64, "deadline_ns"), (c_void_p, "stream"), (c_int32, "output_dtype traffic"),
    (c_double, "premul"), (POINTER(c_void_p), "request"), (c_int64, "tag"), (c_char_p, "algorithm"),
    (c_void_p, "schedule"), (c_int32, "reproducible"),
)  # fmt: skip
zc_span = _struct("zc_span", (c_size_t, "offset count"))
zc_tensor = _struct(
    "zc_tensor", SIZE, (c_char_p, "name unit"), (c_size_t, "count"), (c_int32, "dtype gradient_dtype frozen group"),
    (c_char_p, "tied_to"),
)  # fmt: skip
zc_use = _struct("zc_use", SIZE, (c_size_t, "tensor offset count"), (c_char_p, "unit"))
zc_layout_config = _struct(
    "zc_layout_config", SIZE, (c_int32, "ranks stage placement"),
    (c_size_t, "alignment_bytes bucket_bytes persistent_bytes"), (c_int32, "shard_gradient_dtype"),
    (POINTER(zc_use), "uses"), (c_size_t, "use_count"),
)  # fmt: skip
zc_layout_info = _struct(
    "zc_layout_info", SIZE, (c_int32, "ranks stage"),
    (c_size_t, "tensor_count use_count unit_count buffer_count bucket_count"), (c_uint64, "hash"),
    (c_size_t, "stored_count trainable_count stored_bytes padded_bytes largest_unit_bytes largest_bucket_bytes"),
    (c_int32, "placement"),
)  # fmt: skip
zc_unit_info = _struct(
    "zc_unit_info", SIZE, (c_char_p, "name"), (c_size_t, "use_count gathered_bytes"), (c_int32, "persistent")
)
zc_use_info = _struct(
    "zc_use_info", SIZE, (c_size_t, "tensor stored_tensor unit position buffer"), (c_int64, "bucket"),
    (zc_span, "in_tensor"), (c_int64, "flat_offset"),
)  # fmt: skip
zc_buffer_info = _struct(
    "zc_buffer_info", SIZE, (c_int32, "dtype gradient_dtype shard_gradient_dtype frozen group"),
    (c_size_t, "count shard_count"),
)  # fmt: skip
zc_bucket_info = _struct("zc_bucket_info", SIZE, (c_size_t, "buffer use_count count bytes"))
zc_piece = _struct("zc_piece", (c_size_t, "tensor tensor_offset shard_offset count"))
zc_allocator = _struct("zc_allocator", (c_void_p, "allocate deallocate context"))
zc_zero_config = _struct(
    "zc_zero_config", SIZE, (c_size_t, "budget_bytes max_held_bytes"),
    (c_int32, "gradient_slots micro_steps accumulation absent launch slices prefetch drop_released poison"),
    (c_double, "gradient_divisor"), (c_int64, "deadline_ns"), (c_void_p, "pre_reduce pre_reduce_context"),
    (zc_allocator, "gather_allocator"),
)  # fmt: skip
zc_zero_piece = _struct(
    "zc_zero_piece", (c_size_t, "tensor tensor_offset count buffer state_offset"),
    (c_void_p, "parameter master gradient"),
)  # fmt: skip
zc_zero_stats = _struct(
    "zc_zero_stats", SIZE,
    (c_uint64, "hits late_hits misses prefetches prefetches_wasted evictions buckets_reduced buckets_before_end"),
    (c_uint64, "buckets_padding_bytes slices_own slices_helped gathered_peak_bytes budget_bytes budget_peak_bytes"),
    (c_uint64, "generation gather_logical_bytes reduce_logical_bytes"),
)  # fmt: skip
zc_zero_ledger = _struct(
    "zc_zero_ledger", SIZE,
    (c_size_t, "parameter_bytes gradient_bytes master_bytes slot_bytes gather_bytes control_bytes total_bytes"),
    (c_size_t, "caller_gather_bytes"),
)  # fmt: skip
zc_norm = _struct("zc_norm", SIZE, (c_double, "norm sum_squares"), (c_int64, "nan_count inf_count"))

P, E, N, U64 = c_void_p, c_int32, c_size_t, c_uint64  # a pointer, an enum or int32_t, a size_t, a uint64_t

# Function -> parameters. All of these return a zc_status.
FUNCTIONS = {
    "zc_unique_id_create": [P],
    "zc_comm_create": [P, P], "zc_comm_create_threads": [E, P, P], "zc_comm_split": [P, E, E, P, P],
    "zc_comm_destroy": [P],
    "zc_comm_rank": [P, P], "zc_comm_size": [P, P], "zc_comm_status": [P], "zc_comm_abort": [P],
    "zc_comm_get_info": [P, P], "zc_comm_stats": [P, P], "zc_comm_ledger": [P, P],
    "zc_comm_note": [P, c_char_p, U64],
    "zc_all_reduce": [P, P, P, N, E, E, P], "zc_reduce_scatter": [P, P, P, N, E, E, P],
    "zc_reduce_scatter_v": [P, P, P, P, E, E, P], "zc_all_gather": [P, P, P, N, E, P],
    "zc_all_gather_v": [P, P, P, P, E, P], "zc_broadcast": [P, P, N, E, E, P],
    "zc_reduce": [P, P, P, N, E, E, E, P], "zc_all_to_all": [P, P, P, N, E, P],
    "zc_all_to_all_v": [P, P, P, P, P, E, P], "zc_gather_to_root": [P, P, P, N, E, E, P],
    "zc_scatter_from_root": [P, P, P, N, E, E, P], "zc_send": [P, P, N, E, E, P], "zc_recv": [P, P, N, E, E, P],
    "zc_barrier": [P, P],
    "zc_request_test": [P, P], "zc_request_wait": [P], "zc_request_cancel": [P],
    "zc_layout_create": [P, N, P, P], "zc_layout_destroy": [P], "zc_layout_get_info": [P, P],
    "zc_layout_get_unit": [P, N, P], "zc_layout_find_unit": [P, c_char_p, P],
    "zc_layout_find_tensor": [P, c_char_p, P], "zc_layout_unit_use": [P, N, N, P], "zc_layout_get_use": [P, N, P],
    "zc_layout_get_buffer": [P, N, P], "zc_layout_get_bucket": [P, N, P], "zc_layout_pieces": [P, E, N, P, P],
    "zc_layout_print": [P, E, P, N, P], "zc_partition": [P, E, N, P, P], "zc_gather": [P, P, N, P, P, P],
    "zc_zero_create": [P, P, P, P], "zc_zero_destroy": [P], "zc_zero_load": [P, N, P, E, E],
    "zc_zero_begin": [P, c_char_p, E], "zc_zero_acquire": [P, N, P, N, P], "zc_zero_release": [P, N, P],
    "zc_zero_prefetch": [P, N], "zc_zero_grad_ready": [P, N, P, P], "zc_zero_grad_absent": [P, N],
    "zc_zero_end": [P], "zc_zero_norm": [P, P], "zc_zero_scale": [P, c_double], "zc_zero_update_begin": [P],
    "zc_zero_cast": [P], "zc_zero_publish": [P, P], "zc_zero_publish_unchanged": [P],
    "zc_zero_pieces": [P, P, P, P], "zc_zero_export": [P, N, E, P], "zc_zero_get_stats": [P, P],
    "zc_zero_get_ledger": [P, P],
}  # fmt: skip


def filled(struct, values):
    """A struct of the library's with struct_size set and `values` in its members; anything else is a TypeError."""
    made = struct()
    if any(field == "struct_size" for field, _ in struct._fields_):
        made.struct_size = ctypes.sizeof(struct)
    known = dict(struct._fields_)
    for name, value in values.items():
        if name == "struct_size" or name not in known:
            names = ", ".join(field for field in known if field != "struct_size")
            raise TypeError(f"{struct.__name__} has no option {name!r}; it has {names}")
        if isinstance(value, str):
            value = value.encode()
        setattr(made, name, value if value is not None else known[name]())
    return made


def as_dict(struct):
    """The members of a struct of the library's, texts as str."""
    found = {}
    for name, kind in struct._fields_:
        value = getattr(struct, name)
        if name == "struct_size":
            continue
        if isinstance(value, bytes):
            value = value.decode()
        elif isinstance(value, ctypes.Array):
            value = list(value)
        elif isinstance(value, ctypes.Structure):
            value = as_dict(value)
        found[name] = value
    return found
