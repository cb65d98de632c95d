#include "comm/reduce_leaf.hpp"

#include "base/float_env.hpp"

namespace zerocomm::comm {

void reduce_over_ranks(const Comm& comm, const ReduceLeaf& leaf) noexcept {
  if (leaf.count == 0) return;
  const auto input_count = static_cast<std::size_t>(comm.ranks());
  {
    const DefaultFloatEnv environment;
    if (leaf.output_count == 1)
      device::find_reduce(leaf.dtype, leaf.output_dtype, leaf.op)(leaf.inputs, input_count, leaf.outputs[0], leaf.count,
                                                                  leaf.args);
    else
      device::find_reduce_to_many(leaf.dtype, leaf.output_dtype, leaf.op)(leaf.inputs, input_count, leaf.outputs,
                                                                          leaf.output_count, leaf.count, leaf.args);
  }
  for (std::int32_t rank = 0; rank < comm.ranks(); ++rank)
    if (leaf.inputs[rank] != nullptr) comm.count_moved(rank, leaf.count * zc_dtype_bytes(leaf.dtype), leaf.traffic);
  // The own output is the pass itself; only what goes to others crosses a link.
  // An output that is added to is read as well.
  const std::size_t passes = leaf.args.accumulate ? 2 : 1;
  for (std::size_t i = 0; i < leaf.output_count; ++i)
    if (leaf.output_ranks[i] != comm.rank())
      comm.count_moved(leaf.output_ranks[i], passes * leaf.count * zc_dtype_bytes(leaf.output_dtype), leaf.traffic);
}

}  // namespace zerocomm::comm
