#include "comm/copy_leaf.hpp"

#include "device/copy.hpp"

namespace zerocomm::comm {

void copy_over_ranks(const Comm& comm, const CopyLeaf& leaf) noexcept {
  if (leaf.bytes == 0 || leaf.output_count == 0) return;
  if (leaf.output_count == 1)
    device::copy(leaf.outputs[0], leaf.source, leaf.bytes, leaf.stores);
  else
    device::copy_to_many(leaf.source, leaf.outputs, leaf.output_count, leaf.bytes, leaf.stores);
  // The source is read once, and with that it is where the own output wants it; every other crosses once more.
  comm.count_moved(leaf.source_rank, leaf.bytes, leaf.traffic);
  for (std::size_t i = 0; i < leaf.output_count; ++i)
    if (leaf.output_ranks[i] != comm.rank()) comm.count_moved(leaf.output_ranks[i], leaf.bytes, leaf.traffic);
}

}  // namespace zerocomm::comm
