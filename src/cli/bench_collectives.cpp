#include "cli/bench_collectives.hpp"

#include <algorithm>

namespace zerocomm::cli {
namespace {

constexpr CollectiveInfo kCollectives[] = {
    // name, reduces, rooted, uneven, out, in, same_result, in_blocks
    {Collective::all_reduce, "all_reduce", true, false, false, true, true, true, false},
    {Collective::reduce_scatter, "reduce_scatter", true, false, false, true, true, false, true},
    {Collective::all_gather, "all_gather", false, false, false, true, true, true, true},
    {Collective::broadcast, "broadcast", false, true, false, false, true, true, false},
    {Collective::reduce, "reduce", true, true, false, true, true, false, false},
    {Collective::all_to_all, "all_to_all", false, false, false, true, true, false, true},
    {Collective::barrier, "barrier", false, false, false, true, false, false, false},
    {Collective::reduce_scatter_v, "reduce_scatter_v", true, false, true, true, true, false, true},
    {Collective::all_gather_v, "all_gather_v", false, false, true, true, true, true, true},
    {Collective::all_to_all_v, "all_to_all_v", false, false, true, true, true, false, true},
};

struct Alias {
  const char* name;
  Collective collective;
};
constexpr Alias kAliases[] = {{"alltoall", Collective::all_to_all}, {"alltoallv", Collective::all_to_all_v}};

template <class Value>
struct Name {
  Value value;
  const char* nccl;
};
constexpr Name<zc_dtype> kDtypes[] = {
    {ZC_DTYPE_F32, "float"},     {ZC_DTYPE_F64, "double"}, {ZC_DTYPE_F16, "half"},
    {ZC_DTYPE_BF16, "bfloat16"}, {ZC_DTYPE_I32, "int32"},  {ZC_DTYPE_I64, "int64"},
    {ZC_DTYPE_I8, "int8"},       {ZC_DTYPE_U8, "uint8"},   {ZC_DTYPE_F8E4M3, "f8e4m3"},
};
constexpr Name<zc_op> kOps[] = {
    {ZC_OP_SUM, "sum"}, {ZC_OP_PROD, "prod"}, {ZC_OP_MAX, "max"},
    {ZC_OP_MIN, "min"}, {ZC_OP_AVG, "avg"},   {ZC_OP_PREMUL_SUM, "mulsum"},
};
constexpr zc_dtype kDtypeList[] = {ZC_DTYPE_I8,  ZC_DTYPE_U8,  ZC_DTYPE_I32,  ZC_DTYPE_I64,   ZC_DTYPE_F16,
                                   ZC_DTYPE_F32, ZC_DTYPE_F64, ZC_DTYPE_BF16, ZC_DTYPE_F8E4M3};
constexpr zc_op kOpList[] = {ZC_OP_SUM, ZC_OP_PROD, ZC_OP_MAX, ZC_OP_MIN, ZC_OP_AVG, ZC_OP_PREMUL_SUM};

bool is_integer(zc_dtype dtype) {
  return dtype == ZC_DTYPE_I8 || dtype == ZC_DTYPE_U8 || dtype == ZC_DTYPE_I32 || dtype == ZC_DTYPE_I64;
}

}  // namespace

std::span<const CollectiveInfo> all_collectives() { return kCollectives; }

const CollectiveInfo& info_of(Collective collective) { return kCollectives[static_cast<std::size_t>(collective)]; }

std::optional<Collective> collective_of(std::string_view name) {
  for (const CollectiveInfo& info : kCollectives)
    if (name == info.name) return info.collective;
  for (const Alias& alias : kAliases)
    if (name == alias.name) return alias.collective;
  return std::nullopt;
}

std::string bench_dtype_name(zc_dtype dtype) {
  for (const auto& row : kDtypes)
    if (row.value == dtype) return row.nccl;
  return zc_dtype_name(dtype);
}

std::string bench_op_name(zc_op op) {
  for (const auto& row : kOps)
    if (row.value == op) return row.nccl;
  return zc_op_name(op);
}

std::optional<zc_dtype> bench_dtype_of(std::string_view name) {
  for (const auto& row : kDtypes)
    if (name == row.nccl || name == zc_dtype_name(row.value)) return row.value;
  return std::nullopt;
}

std::optional<zc_op> bench_op_of(std::string_view name) {
  for (const auto& row : kOps)
    if (name == row.nccl || name == zc_op_name(row.value)) return row.value;
  return std::nullopt;
}

std::span<const zc_dtype> bench_dtypes() { return kDtypeList; }
std::span<const zc_op> bench_ops() { return kOpList; }

bool can_reduce(zc_dtype dtype, zc_op op) {
  if (dtype == ZC_DTYPE_F8E4M3) return false;
  return !is_integer(dtype) || (op != ZC_OP_AVG && op != ZC_OP_PREMUL_SUM);
}

std::size_t bench_count(Collective collective, std::size_t bytes, std::size_t element_bytes, int ranks) {
  if (collective == Collective::barrier) return 0;
  const std::size_t count = bytes / element_bytes, parts = static_cast<std::size_t>(ranks);
  // Peers cut every vector into equal blocks, so all collectives of one size have one count.
  return std::max(count / parts, std::size_t{1}) * parts;
}

double bus_factor(Collective collective, int ranks) {
  const double n = ranks;
  switch (collective) {
    case Collective::all_reduce:
      return 2 * (n - 1) / n;
    case Collective::broadcast:
    case Collective::reduce:
      return 1;
    case Collective::barrier:
      return 0;
    default:
      return (n - 1) / n;
  }
}

StreamShape stream_shape(Collective collective, BenchPlace place, std::size_t count, int ranks) {
  const std::size_t block = count / static_cast<std::size_t>(ranks);
  switch (collective) {
    case Collective::all_reduce:
      return {ranks, ranks, block};
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_v:
    case Collective::reduce:
      return {ranks, 1, block};
    case Collective::all_gather:
    case Collective::all_gather_v:
      return {1, place == BenchPlace::in ? ranks - 1 : ranks, block};
    case Collective::broadcast:
      return {1, ranks - 1, block};
    case Collective::all_to_all:
    case Collective::all_to_all_v:
      return {1, 1, count};
    case Collective::barrier:
      break;
  }
  return {};
}

double bound_count(Collective collective, BenchPlace place, std::size_t count, int ranks) {
  const StreamShape shape = stream_shape(collective, place, count, ranks);
  return static_cast<double>(ranks) * (shape.reads + shape.writes) * static_cast<double>(shape.run);
}

std::vector<std::size_t> block_counts(std::size_t count, int ranks, bool skewed, int root) {
  const auto parts = static_cast<std::size_t>(ranks);
  std::vector<std::size_t> counts(parts, skewed ? 0 : count / parts);
  if (skewed) counts[static_cast<std::size_t>(root)] = count;
  return counts;
}

}  // namespace zerocomm::cli
