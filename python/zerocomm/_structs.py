"""The enumerations, structs and functions of the C headers that the module uses. tests/lint/python_module.py compares them."""

import ctypes
import enum
import operator
from ctypes import POINTER, c_char, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p


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


class Collective(enum.IntEnum):
    NONE, ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, BARRIER, REDUCE, ALL_TO_ALL = range(8)
    GATHER_TO_ROOT, SCATTER_FROM_ROOT = 8, 9


class Finding(enum.IntEnum):
    UNKNOWN, HOLDS, BROKEN = range(3)


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
    Collective: ("ZC_COLLECTIVE_", {}),
    Finding: ("ZC_FINDING_", {}),
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
    (zc_allocator, "gather_allocator"), (c_int32, "shared_views"),
)  # fmt: skip
zc_zero_piece = _struct(
    "zc_zero_piece", (c_size_t, "tensor tensor_offset count buffer state_offset"),
    (c_void_p, "parameter master gradient"),
)  # fmt: skip
zc_zero_stats = _struct(
    "zc_zero_stats", SIZE,
    (c_uint64, "hits late_hits misses prefetches prefetches_wasted evictions buckets_reduced buckets_before_end"),
    (c_uint64, "buckets_padding_bytes slices_own slices_helped gathered_peak_bytes budget_bytes budget_peak_bytes"),
    (c_uint64, "generation gather_logical_bytes reduce_logical_bytes views"),
)  # fmt: skip
zc_zero_ledger = _struct(
    "zc_zero_ledger", SIZE,
    (c_size_t, "parameter_bytes gradient_bytes master_bytes slot_bytes gather_bytes control_bytes total_bytes"),
    (c_size_t, "caller_gather_bytes"),
)  # fmt: skip
zc_gradient_piece = _struct(
    "zc_gradient_piece", SIZE, (c_size_t, "use tensor tensor_offset count"), (c_int32, "dtype"), (c_void_p, "data")
)
zc_reducer_config = _struct(
    "zc_reducer_config", SIZE, (c_int32, "gradient_slots micro_steps accumulation absent launch slices poison"),
    (c_double, "gradient_divisor"), (c_int64, "deadline_ns"), (c_void_p, "pre_reduce pre_reduce_context"),
)  # fmt: skip
zc_reducer_stats = _struct(
    "zc_reducer_stats", SIZE, (c_uint64, "buckets_reduced buckets_before_end buckets_padding_bytes slices_own slices_helped"),
    (c_uint64, "slot_peak_bytes reduce_logical_bytes"),
)  # fmt: skip
zc_reducer_ledger = _struct("zc_reducer_ledger", SIZE, (c_size_t, "gradient_bytes slot_bytes control_bytes total_bytes"))
zc_fetcher_config = _struct(
    "zc_fetcher_config", SIZE, (c_size_t, "budget_bytes max_held_bytes"), (c_int32, "prefetch drop_released poison"),
    (c_int64, "deadline_ns"), (POINTER(c_void_p), "shards"), (zc_allocator, "gather_allocator"),
    (c_int32, "shared_views"),
)  # fmt: skip
zc_fetcher_stats = _struct(
    "zc_fetcher_stats", SIZE, (c_uint64, "hits late_hits misses prefetches prefetches_wasted evictions"),
    (c_uint64, "gathered_peak_bytes budget_bytes generation gather_logical_bytes views"),
)  # fmt: skip
zc_fetcher_ledger = _struct(
    "zc_fetcher_ledger", SIZE, (c_size_t, "parameter_bytes gather_bytes control_bytes total_bytes"),
    (c_size_t, "caller_parameter_bytes caller_gather_bytes"),
)  # fmt: skip
zc_window_config = _struct(
    "zc_window_config", SIZE, (c_size_t, "bytes"), (c_void_p, "memory"), (c_size_t, "word_count"), (c_int32, "contiguous"),
    (POINTER(c_int32), "descriptor"), (c_uint64, "descriptor_offset_bytes"),
)  # fmt: skip
zc_wait_options = _struct(
    "zc_wait_options", SIZE, (c_int64, "deadline_ns"), (c_void_p, "blame"), (c_char_p, "label"), (c_void_p, "extend_ns")
)
zc_window_reduction = _struct(
    "zc_window_reduction", SIZE, (POINTER(c_int64), "source_bytes"), (c_size_t, "count"), (c_int32, "dtype output_dtype"),
    (c_double, "divisor"), (c_int32, "accumulate destination"), (c_size_t, "destination_bytes"), (c_void_p, "to"),
)  # fmt: skip
zc_store = _struct("zc_store", SIZE, (c_void_p, "context put get remove progress"))
zc_estimate_config = _struct(
    "zc_estimate_config", SIZE, (c_size_t, "moment_bytes_per_element"), (c_int32, "micro_steps accumulate_first")
)
zc_estimate = _struct(
    "zc_estimate", SIZE, (c_size_t, "parameter_bytes gradient_bytes master_bytes moment_bytes state_bytes padding_bytes"),
    (c_size_t, "gather_elements reduce_elements logical_bytes"),
)  # fmt: skip
zc_schedule_config = _struct(
    "zc_schedule_config", SIZE, (c_int32, "collective"), (c_char_p, "algorithm"), (c_int32, "ranks root lanes"),
    (c_uint32, "chunks"),
)  # fmt: skip
zc_schedule_info = _struct(
    "zc_schedule_info", SIZE, (c_int32, "collective ranks root lanes"), (c_uint32, "chunks scratch_chunks loss"),
    (c_size_t, "step_count"), (c_char_p, "algorithm"),
)  # fmt: skip
zc_schedule_verdict = _struct(
    "zc_schedule_verdict", SIZE, (c_int32, "is_proved is_canonical"), (c_int32 * 9, "findings")
)
zc_schedule_cost_config = _struct("zc_schedule_cost_config", SIZE, (c_size_t, "count"), (c_uint64, "alpha beta"))
zc_schedule_costs = _struct(
    "zc_schedule_costs", SIZE, (c_uint64, "messages_sent elements_sent messages_received elements_received"),
    (c_uint64, "path_latencies path_elements"),
)  # fmt: skip
zc_algorithm_info = _struct(
    "zc_algorithm_info", SIZE, (c_int32, "collective is_canonical is_one_lane"), (c_char_p, "name")
)
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
    "zc_layout_print": [P, E, P, N, P], "zc_partition": [P, E, N, P, P], "zc_layout_view": [P, N, P, P, N], "zc_gather": [P, P, N, P, P, P],
    "zc_zero_create": [P, P, P, P], "zc_zero_destroy": [P], "zc_zero_load": [P, N, P, E, E],
    "zc_zero_begin": [P, c_char_p, E], "zc_zero_acquire": [P, N, P, N, P], "zc_zero_release": [P, N, P],
    "zc_zero_prefetch": [P, N], "zc_zero_grad_ready": [P, N, P, P], "zc_zero_grad_absent": [P, N],
    "zc_zero_end": [P], "zc_zero_norm": [P, P], "zc_zero_scale": [P, c_double], "zc_zero_update_begin": [P],
    "zc_zero_cast": [P], "zc_zero_publish": [P, P], "zc_zero_publish_unchanged": [P],
    "zc_zero_pieces": [P, P, P, P], "zc_zero_export": [P, N, E, P], "zc_zero_get_stats": [P, P],
    "zc_zero_get_ledger": [P, P],
    "zc_zero_grad_buffer": [P, N, P], "zc_zero_state": [P, E, N, P, P], "zc_zero_blockers": [P, N, E, P, N, P],
    "zc_reducer_create": [P, P, P, P], "zc_reducer_destroy": [P], "zc_reducer_begin": [P, E],
    "zc_reducer_grad_ready": [P, N, P, P], "zc_reducer_grad_absent": [P, N], "zc_reducer_end": [P],
    "zc_reducer_output": [P, N, P, P], "zc_reducer_pieces": [P, P, P, P], "zc_reducer_norm": [P, P],
    "zc_reducer_scale": [P, c_double], "zc_reducer_blockers": [P, N, E, P, N, P], "zc_reducer_get_stats": [P, P],
    "zc_reducer_get_ledger": [P, P],
    "zc_fetcher_create": [P, P, P, P], "zc_fetcher_destroy": [P], "zc_fetcher_begin": [P, c_char_p],
    "zc_fetcher_acquire": [P, N, P, N, P], "zc_fetcher_release": [P, N, P], "zc_fetcher_prefetch": [P, N],
    "zc_fetcher_end": [P], "zc_fetcher_shard": [P, N, P, P], "zc_fetcher_update_begin": [P],
    "zc_fetcher_publish": [P, P], "zc_fetcher_publish_unchanged": [P], "zc_fetcher_get_stats": [P, P],
    "zc_fetcher_get_ledger": [P, P],
    "zc_mem_alloc": [P, N, P], "zc_mem_free": [P, P], "zc_cast": [P, E, P, E, N],
    "zc_window_create": [P, P, P], "zc_window_destroy": [P], "zc_window_ptr": [P, E, P, P], "zc_window_view": [P, P, P, P],
    "zc_window_signal": [P, U64], "zc_window_wait": [P, E, U64, P], "zc_window_read": [P, E, N, P, N, U64, P],
    "zc_window_load": [P, E, N, P], "zc_window_store": [P, E, N, U64], "zc_window_add": [P, E, N, U64, P],
    "zc_window_compare_swap": [P, E, N, U64, U64, P], "zc_window_reduce": [P, P],
    "zc_estimate_layout": [P, E, P, P], "zc_estimate_count": [N, E, E, E, P, P],
    "zc_schedule_create": [P, P], "zc_schedule_parse": [c_char_p, P], "zc_schedule_destroy": [P],
    "zc_schedule_text": [P, P, N, P], "zc_schedule_get_info": [P, P], "zc_schedule_verify": [P, P, P, N, P],
    "zc_schedule_cost": [P, E, P, P], "zc_schedule_algorithm": [N, P],
    "zc_comm_node": [P, E, P], "zc_comm_stats_reset": [P],
}  # fmt: skip

# What returns something else, and is used too.
OTHERS = {"zc_version", "zc_version_text", "zc_last_error", "zc_dtype_bytes", "zc_schedule_algorithm_count"}

# What the module does without; __init__.py says so to its readers.
LEFT_OUT = {
    # Of C alone: functions that the library calls from inside of its own waits, for engines of one's own.
    "zc_comm_wait", "zc_progress_add", "zc_progress_remove",
    # Python has them: a loop over Request.wait, NumPy, math.fsum, the names of the enumerations.
    "zc_request_wait_all", "zc_reduce_local", "zc_exact_sum_add_squares", "zc_exact_sum_round", "zc_dtype_name",
    "zc_op_name", "zc_collective_name", "zc_status_name", "zc_status_text", "zc_status_scope", "zc_status_comm_usable",
    "zc_status_buffers_defined",
    # `zc info` prints the first; the log goes to stderr.
    "zc_info", "zc_comm_flight", "zc_log_set",
}  # fmt: skip


_INTEGERS = (c_int32, c_int64, c_uint32, c_uint64, c_size_t)


def in_range(kind, value, what):
    """`value` as an integer that `kind` can hold; ctypes itself would take the lowest bits of any."""
    number, bits = operator.index(value), 8 * ctypes.sizeof(kind)
    low = 0 if kind(-1).value > 0 else -(1 << bits - 1)
    if not low <= number < low + (1 << bits):
        raise OverflowError(f"{what}: {number} does not fit in {bits} bits that begin at {low}")
    return number


def checked_parameter(kind):
    """A type of an argument that refuses what ctypes would cut, or take for an address."""

    class Checked:
        @staticmethod
        def from_param(value):
            if kind is c_char_p:
                if not isinstance(value, (bytes, type(None))):
                    raise TypeError(f"a text is needed, not {value!r}")
                return kind.from_param(value)
            return kind(in_range(kind, value, "an argument"))

    return Checked if kind in _INTEGERS or kind is c_char_p else kind


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
        if value is not None and known[name] in _INTEGERS:
            value = in_range(known[name], value, f"{struct.__name__}.{name}")
        if known[name] is c_char_p and not isinstance(value, (bytes, type(None))):
            raise TypeError(f"{struct.__name__}.{name} is a text, not {value!r}")
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
