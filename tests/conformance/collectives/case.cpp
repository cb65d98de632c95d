#include "collectives/case.hpp"

#include "base/check.hpp"
#include "schedule/catalogue.hpp"
#include "schedule/oracle.hpp"

#include <numeric>

namespace zerocomm::test {
namespace {

constexpr const char* kNames[] = {"all_reduce",   "reduce",         "reduce_scatter",   "reduce_scatter_v",
                                  "all_gather",   "all_gather_v",   "broadcast",        "all_to_all",
                                  "all_to_all_v", "gather_to_root", "scatter_from_root"};
static_assert(std::size(kNames) == kFormCount);

schedule::Collective collective_of(Form form) {
  switch (form) {
    case Form::all_reduce:
    case Form::reduce:
      return schedule::Collective::all_reduce;
    case Form::reduce_scatter:
    case Form::reduce_scatter_v:
      return schedule::Collective::reduce_scatter;
    case Form::all_gather:
    case Form::all_gather_v:
      return schedule::Collective::all_gather;
    default:
      return schedule::Collective::broadcast;
  }
}

// Elements before the block from or to `peer` in the buffer of `rank`.
std::size_t offset_of(const Case& what, std::int32_t rank, std::int32_t peer, bool in_recv) {
  std::size_t sum = 0;
  for (std::int32_t before = 0; before < peer; ++before)
    sum += in_recv ? pair_count(what, before, rank) : pair_count(what, rank, before);
  return sum;
}

// What each rank gets where nothing is computed: blocks in other places.
std::vector<Bytes> permuted(const Case& what, const std::vector<Bytes>& inputs) {
  const std::size_t each = zc_dtype_bytes(what.dtype);
  std::vector<Bytes> outputs;
  for (std::int32_t rank = 0; rank < what.ranks; ++rank) outputs.emplace_back(recv_count(what, rank) * each);
  const auto copy = [&](std::int32_t from, std::size_t source, std::int32_t to, std::size_t destination,
                        std::size_t count) {
    if (count != 0)
      std::memcpy(outputs[static_cast<std::size_t>(to)].data() + destination * each,
                  inputs[static_cast<std::size_t>(from)].data() + source * each, count * each);
  };
  for (std::int32_t rank = 0; rank < what.ranks; ++rank) {
    const std::size_t block = what.count * static_cast<std::size_t>(rank);
    if (what.form == Form::gather_to_root) copy(rank, 0, what.root, block, what.count);
    if (what.form == Form::scatter_from_root) copy(what.root, block, rank, 0, what.count);
    for (std::int32_t to = 0; to < what.ranks; ++to) {
      if (what.form == Form::all_to_all) copy(rank, what.count * static_cast<std::size_t>(to), to, block, what.count);
      if (what.form == Form::all_to_all_v)
        copy(rank, offset_of(what, rank, to, false), to, offset_of(what, to, rank, true), pair_count(what, rank, to));
    }
  }
  return outputs;
}

bool is_small_float(zc_dtype dtype) { return dtype == ZC_DTYPE_F32 || dtype == ZC_DTYPE_F16 || dtype == ZC_DTYPE_BF16; }

}  // namespace

std::string describe(const Case& what) {
  std::string text = format("%s p=%d %s", kNames[static_cast<int>(what.form)], what.ranks, zc_dtype_name(what.dtype));
  if (what.output != what.dtype) text += format("->%s", zc_dtype_name(what.output));
  if (reduces(what.form)) text += format(" %s", zc_op_name(what.op));
  if (what.op == ZC_OP_PREMUL_SUM) text += format(" premul %g", what.premul);
  if (has_root(what.form)) text += format(" root %d", what.root);
  if (has_counts(what.form)) {
    text += " counts";
    for (const std::size_t count : what.counts) text += format(" %zu", count);
  } else {
    text += format(" count %zu", what.count);
  }
  return text + (what.uneven ? " uneven" : "") + (what.in_place ? " in place" : "") + (what.shifted ? " shifted" : "") +
         (what.request ? " request" : "");
}

std::size_t block_count(const Case& what, std::int32_t rank) {
  return has_counts(what.form) ? what.counts[static_cast<std::size_t>(rank)] : what.count;
}

std::size_t block_offset(const Case& what, std::int32_t rank) {
  if (!has_counts(what.form)) return what.count * static_cast<std::size_t>(rank);
  return std::accumulate(what.counts.begin(), what.counts.begin() + rank, std::size_t{0});
}

std::size_t pair_count(const Case& what, std::int32_t from, std::int32_t to) {
  return what.counts[static_cast<std::size_t>((what.uneven ? 2 * from : from) + to) % what.counts.size()];
}

std::size_t send_count(const Case& what, std::int32_t rank) {
  switch (what.form) {
    case Form::all_to_all:
      return what.count * static_cast<std::size_t>(what.ranks);
    case Form::all_to_all_v:
      return offset_of(what, rank, what.ranks, false);
    case Form::scatter_from_root:
      return rank == what.root ? what.count * static_cast<std::size_t>(what.ranks) : 0;
    case Form::gather_to_root:
      return what.count;
    case Form::reduce_scatter:
    case Form::reduce_scatter_v:
      return block_offset(what, what.ranks);
    case Form::broadcast:
      return rank == what.root ? what.count : 0;
    default:
      return block_count(what, rank);
  }
}

std::size_t recv_count(const Case& what, std::int32_t rank) {
  const std::size_t all = what.count * static_cast<std::size_t>(what.ranks);
  switch (what.form) {
    case Form::all_gather:
    case Form::all_gather_v:
      return block_offset(what, what.ranks);
    case Form::all_to_all:
      return all;
    case Form::all_to_all_v:
      return offset_of(what, rank, what.ranks, true);
    case Form::reduce:
      return rank == what.root ? what.count : 0;
    case Form::gather_to_root:
      return rank == what.root ? all : 0;
    default:
      return block_count(what, rank);
  }
}

// The table of the header, written down a second time.
bool is_supported(zc_dtype dtype, zc_dtype output, zc_op op) {
  if (dtype == ZC_DTYPE_F8E4M3 || output == ZC_DTYPE_F8E4M3) return false;
  if (!is_float(dtype) && (op == ZC_OP_AVG || op == ZC_OP_PREMUL_SUM)) return false;
  return dtype == output || (is_small_float(dtype) && is_small_float(output));
}

bool is_legal(const Case& what) {
  if (what.form == Form::all_to_all_v && what.in_place && what.uneven) return false;
  if (!reduces(what.form))
    return what.output == what.dtype && what.op == ZC_OP_SUM && (what.form != Form::broadcast || !what.in_place);
  return is_supported(what.dtype, what.output, what.op) && (!what.in_place || what.dtype == what.output);
}

Prepared prepare(const Case& what) {
  Prepared result;
  for (std::int32_t rank = 0; rank < what.ranks; ++rank)
    result.inputs.push_back(rough_input(what.dtype, what.seed, rank, send_count(what, rank)));
  if (what.form >= Form::all_to_all) {
    result.outputs = permuted(what, result.inputs);
    return result;
  }
  const auto ranks = static_cast<std::uint32_t>(what.ranks);
  const schedule::Key key =
      schedule::make_key(collective_of(what.form), "direct", ranks,
                         what.form == Form::broadcast ? static_cast<std::uint32_t>(what.root) : 0);
  const schedule::Partition partition =
      has_counts(what.form) ? schedule::Partition::of_counts(what.counts)
      : what.form == Form::all_reduce || what.form == Form::reduce || what.form == Form::broadcast
          ? schedule::Partition::even(what.count, key.chunks)
          : schedule::Partition::of_counts(std::vector<std::size_t>(ranks, what.count));
  schedule::Elements elements;
  elements.input = what.dtype;
  elements.output = what.output;
  elements.op = what.op;
  elements.premul = what.premul != 0 ? what.premul : std::signbit(what.premul) ? 0.0 : 1.0;
  result.outputs = schedule::run_oracle(schedule::build(key), partition, elements, result.inputs);
  for (std::int32_t rank = 0; what.form == Form::reduce && rank < what.ranks; ++rank)
    if (rank != what.root) result.outputs[static_cast<std::size_t>(rank)].clear();
  return result;
}

}  // namespace zerocomm::test
