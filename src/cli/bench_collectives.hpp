// The collectives that zc bench measures: names, sizes as nccl-tests counts them, bandwidth rules, memory traffic.
#pragma once

#include <zerocomm/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zerocomm::cli {

enum class Collective : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  all_to_all,
  barrier,
  reduce_scatter_v,
  all_gather_v,
  all_to_all_v,
};

enum class BenchPlace : std::uint8_t { out, in };

struct CollectiveInfo {
  Collective collective;
  const char* name;
  bool reduces;
  bool rooted;
  bool uneven;       // takes counts
  bool out, in;      // forms that exist
  bool same_result;  // all ranks get the same elements
  bool in_blocks;    // its count is that of a block, one of `ranks`
};

std::span<const CollectiveInfo> all_collectives();
const CollectiveInfo& info_of(Collective collective);
std::optional<Collective> collective_of(std::string_view name);

// Names of nccl-tests ("float", "mulsum"), which the table shows; ours ("f32", "premul_sum") are taken as well.
std::string bench_dtype_name(zc_dtype dtype);
std::string bench_op_name(zc_op op);
std::optional<zc_dtype> bench_dtype_of(std::string_view name);
std::optional<zc_op> bench_op_of(std::string_view name);
std::span<const zc_dtype> bench_dtypes();
std::span<const zc_op> bench_ops();
// Can elements of this type be combined so?
bool can_reduce(zc_dtype dtype, zc_op op);

// Elements that a size of `bytes` stands for: whole blocks, and at least one element a rank.
std::size_t bench_count(Collective collective, std::size_t bytes, std::size_t element_bytes, int ranks);

// Factor from algorithm bandwidth (size / time) to bus bandwidth, which says how busy the link of a rank is.
double bus_factor(Collective collective, int ranks);

// What a rank must read and write at least, in runs of `run` elements: the same shape as a plain stream over its own
// memory. Of all ranks together that is ranks * (reads + writes) * run elements.
struct StreamShape {
  int reads = 0;
  int writes = 0;
  std::size_t run = 0;
};
StreamShape stream_shape(Collective collective, BenchPlace place, std::size_t count, int ranks);
// Elements moved from and to memory at least, by all ranks.
double bound_count(Collective collective, BenchPlace place, std::size_t count, int ranks);

// How many elements each rank has of the `count`: the same, or all of them on `root`.
std::vector<std::size_t> block_counts(std::size_t count, int ranks, bool skewed, int root);

}  // namespace zerocomm::cli
