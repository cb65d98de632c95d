// What every rank owns, as runs of named tensors.
#include "shard/build_steps.hpp"

namespace zerocomm::shard {

void add_pieces(Layout& layout) {
  layout.pieces.assign(static_cast<std::size_t>(layout.ranks),
                       std::vector<std::vector<zc_piece>>(layout.buffers.size()));
  // Under both placements blocks lie in shards in the order of units, and uses in blocks in the order of the unit:
  // pieces come out sorted.
  for (const Unit& unit : layout.units)
    for (const std::size_t i : unit.uses) {
      const Use& use = layout.uses[i];
      if (use.stored != i) continue;
      const Block& block = layout.blocks[use.block];
      for_each_run(use, block, [&](const OwnedRun& run) {
        layout.pieces[static_cast<std::size_t>(run.owner)][block.buffer].push_back(
            zc_piece{use.tensor, use.in_tensor.offset + run.use_offset, run.shard_offset, run.count});
      });
    }
}

}  // namespace zerocomm::shard
