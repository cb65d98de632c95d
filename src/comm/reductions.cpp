#include "comm/reductions.hpp"

#include "comm/reduce_leaf.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace zerocomm::comm {

bool is_reduction(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter ||
         collective == Collective::reduce_scatter_v || collective == Collective::reduce;
}

bool scatters(const Operation& operation) {
  return operation.collective() == Collective::reduce_scatter || operation.collective() == Collective::reduce_scatter_v;
}

Part reduced_share(const Operation& operation, Form form, std::int32_t ranks, std::int32_t self) {
  const std::size_t element_bytes =
      std::min(zc_dtype_bytes(operation.dtype()), zc_dtype_bytes(operation.output_dtype()));
  if (!scatters(operation)) return line_part(operation.call.count, index(ranks), index(self), element_bytes);
  const Blocks blocks = blocks_of(operation, ranks);
  if (form == Form::spread) return line_part(blocks.total(), index(ranks), index(self), element_bytes);
  return {blocks.offset(self), blocks.count(self)};
}

// In place too: whoever reduces an element is the only one that reads it, and has read it from all before it stores it.
void reduce_elements(const Comm& comm, const Operation& operation, const Peers& peers, device::Stores stores,
                     std::size_t first, std::size_t count) noexcept {
  std::array<const void*, kMostRanks> inputs;
  std::array<void*, kMostRanks> outputs;
  std::array<std::int32_t, kMostRanks> output_ranks;
  std::size_t output_count = 0;
  const auto into = [&](std::int32_t rank, std::size_t offset) {
    outputs[output_count] = at(peers.recv(rank), offset, operation.output_dtype());
    output_ranks[output_count++] = rank;
  };
  const auto reduce = [&](std::size_t begin, std::size_t end) {
    for (std::int32_t rank = 0; rank < comm.ranks(); ++rank)
      inputs[index(rank)] = at(peers.send(rank), begin, operation.dtype());
    reduce_to(comm, operation, inputs.data(), outputs.data(), output_ranks.data(), output_count, end - begin, stores);
  };
  if (scatters(operation)) {
    for_each_block(blocks_of(operation, comm.ranks()), comm.ranks(), first, first + count,
                   [&](std::int32_t rank, std::size_t offset, std::size_t begin, std::size_t end) {
                     output_count = 0;
                     into(rank, offset);
                     reduce(begin, end);
                   });
    return;
  }
  if (operation.collective() == Collective::reduce)
    into(operation.call.root, first);
  else
    for (std::int32_t rank = 0; rank < comm.ranks(); ++rank) into(rank, first);
  if (count != 0) reduce(first, first + count);
}

void reduce_to(const Comm& comm, const Operation& operation, const void* const* inputs, void* const* outputs,
               const std::int32_t* output_ranks, std::size_t output_count, std::size_t count,
               device::Stores stores) noexcept {
  device::ReduceArgs args;
  if (operation.op() == ZC_OP_PREMUL_SUM) args.premul = std::bit_cast<double>(operation.call.premul_bits);
  args.stores = stores;
  reduce_over_ranks(comm, {inputs, outputs, output_ranks, output_count, count, operation.dtype(),
                           operation.output_dtype(), operation.op(), args, operation.traffic});
}

}  // namespace zerocomm::comm
