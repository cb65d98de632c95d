#include "collectives/case.hpp"

#include "base/check.hpp"
#include "schedule/catalogue.hpp"
#include "schedule/oracle.hpp"

#include <numeric>

namespace zerocomm::test {
namespace {

constexpr const char* kNames[] = {"all_reduce", "reduce_scatter", "reduce_scatter_v",
                                  "all_gather", "all_gather_v",   "broadcast"};

schedule::Collective collective_of(Form form) {
  switch (form) {
    case Form::all_reduce:
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

bool is_small_float(zc_dtype dtype) { return dtype == ZC_DTYPE_F32 || dtype == ZC_DTYPE_F16 || dtype == ZC_DTYPE_BF16; }

}  // namespace

std::string describe(const Case& what) {
  std::string text = format("%s p=%d %s", kNames[static_cast<int>(what.form)], what.ranks, zc_dtype_name(what.dtype));
  if (what.output != what.dtype) text += format("->%s", zc_dtype_name(what.output));
  if (reduces(what.form)) text += format(" %s", zc_op_name(what.op));
  if (what.op == ZC_OP_PREMUL_SUM) text += format(" premul %g", what.premul);
  if (what.form == Form::broadcast) text += format(" root %d", what.root);
  if (has_counts(what.form)) {
    text += " counts";
    for (const std::size_t count : what.counts) text += format(" %zu", count);
  } else {
    text += format(" count %zu", what.count);
  }
  return text + (what.in_place ? " in place" : "") + (what.shifted ? " shifted" : "");
}

std::size_t block_count(const Case& what, std::int32_t rank) {
  return has_counts(what.form) ? what.counts[static_cast<std::size_t>(rank)] : what.count;
}

std::size_t block_offset(const Case& what, std::int32_t rank) {
  if (!has_counts(what.form)) return what.count * static_cast<std::size_t>(rank);
  return std::accumulate(what.counts.begin(), what.counts.begin() + rank, std::size_t{0});
}

std::size_t send_count(const Case& what, std::int32_t rank) {
  switch (what.form) {
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
  return what.form == Form::all_gather || what.form == Form::all_gather_v ? block_offset(what, what.ranks)
                                                                          : block_count(what, rank);
}

// The table of the header, written down a second time.
bool is_supported(zc_dtype dtype, zc_dtype output, zc_op op) {
  if (dtype == ZC_DTYPE_F8E4M3 || output == ZC_DTYPE_F8E4M3) return false;
  if (!is_float(dtype) && (op == ZC_OP_AVG || op == ZC_OP_PREMUL_SUM)) return false;
  return dtype == output || (is_small_float(dtype) && is_small_float(output));
}

bool is_legal(const Case& what) {
  if (!reduces(what.form))
    return what.output == what.dtype && what.op == ZC_OP_SUM && (what.form != Form::broadcast || !what.in_place);
  return is_supported(what.dtype, what.output, what.op) && (!what.in_place || what.dtype == what.output);
}

Prepared prepare(const Case& what) {
  Prepared result;
  for (std::int32_t rank = 0; rank < what.ranks; ++rank)
    result.inputs.push_back(rough_input(what.dtype, what.seed, rank, send_count(what, rank)));
  const auto ranks = static_cast<std::uint32_t>(what.ranks);
  const schedule::Key key =
      schedule::make_key(collective_of(what.form), "direct", ranks, static_cast<std::uint32_t>(what.root));
  const schedule::Partition partition =
      has_counts(what.form) ? schedule::Partition::of_counts(what.counts)
      : what.form == Form::all_reduce || what.form == Form::broadcast
          ? schedule::Partition::even(what.count, key.chunks)
          : schedule::Partition::of_counts(std::vector<std::size_t>(ranks, what.count));
  schedule::Elements elements;
  elements.input = what.dtype;
  elements.output = what.output;
  elements.op = what.op;
  elements.premul = what.premul != 0 ? what.premul : std::signbit(what.premul) ? 0.0 : 1.0;
  result.outputs = schedule::run_oracle(schedule::build(key), partition, elements, result.inputs);
  return result;
}

}  // namespace zerocomm::test
