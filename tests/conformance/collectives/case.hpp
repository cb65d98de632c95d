// One call of one collective, as all ranks make it: its arguments, its inputs, and what it must give.
#pragma once

#include "support/exact_data.hpp"

#include <zerocomm/coll.h>

#include <cstdint>
#include <string>
#include <vector>

namespace zerocomm::test {

enum class Form : std::uint8_t {
  all_reduce,
  reduce,
  reduce_scatter,
  reduce_scatter_v,
  all_gather,
  all_gather_v,
  broadcast,
  all_to_all,
  all_to_all_v,
  gather_to_root,
  scatter_from_root,
};
inline constexpr std::size_t kFormCount = 11;

constexpr bool reduces(Form form) { return form <= Form::reduce_scatter_v; }
constexpr bool has_counts(Form form) {
  return form == Form::reduce_scatter_v || form == Form::all_gather_v || form == Form::all_to_all_v;
}
constexpr bool has_root(Form form) {
  return form == Form::reduce || form == Form::broadcast || form >= Form::gather_to_root;
}
// Does every rank get the same?
constexpr bool replicates(Form form) {
  return form == Form::all_reduce || form == Form::all_gather || form == Form::all_gather_v || form == Form::broadcast;
}

struct Case {
  Form form = Form::all_reduce;
  zc_dtype dtype = ZC_DTYPE_F32;
  zc_dtype output = ZC_DTYPE_F32;
  zc_op op = ZC_OP_SUM;
  double premul = 1;                // as it goes into the options
  std::size_t count = 0;            // of the forms without counts
  std::vector<std::size_t> counts;  // one per rank, of the _v forms
  bool uneven = false;              // of all_to_all_v: what goes from a to b is not what goes from b to a
  std::int32_t ranks = 1;
  std::int32_t root = 0;
  std::uint64_t seed = 1;
  // Where buffers lie; these change no result.
  bool in_place = false;
  bool shifted = false;  // one element behind an aligned address; empty buffers are NULL
  bool request = false;  // made with a request, and waited for
};

std::string describe(const Case& what);

// Elements of rank `rank`'s block in the vector of all blocks, and elements before it.
std::size_t block_count(const Case& what, std::int32_t rank);
std::size_t block_offset(const Case& what, std::int32_t rank);
// Of all_to_all_v: elements that `from` sends to `to`.
std::size_t pair_count(const Case& what, std::int32_t from, std::int32_t to);
std::size_t send_count(const Case& what, std::int32_t rank);
std::size_t recv_count(const Case& what, std::int32_t rank);

// May the call be made at all: is there such a reduction, and such an in-place form?
bool is_supported(zc_dtype dtype, zc_dtype output, zc_op op);
bool is_legal(const Case& what);

// What each rank brings and what each must get, by the schedule that specifies the collective.
struct Prepared {
  std::vector<Bytes> inputs;
  std::vector<Bytes> outputs;
};
Prepared prepare(const Case& what);

// One rank's part: makes the call and checks result, canaries, and that inputs are as they were. Throws RankFailure.
void run_case(zc_comm* comm, std::int32_t rank, const Case& what, const Prepared& prepared);

}  // namespace zerocomm::test
