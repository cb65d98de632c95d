// zc_gather of layout.h: one unit from the shards of all ranks, straight into the caller's tensors.
#include "capi/blocking_form.hpp"
#include "capi/handles_layout.hpp"
#include "comm/collective.hpp"
#include "comm/native.hpp"
#include "shard/ownership.hpp"

#include <zerocomm/layout.h>

#include <vector>

namespace {

using namespace zerocomm;

// How many elements of a use each rank owns. Ranks own them in rank order.
std::vector<std::size_t> owned_counts(const shard::Layout& layout, const shard::Use& use) {
  std::vector<std::size_t> counts;
  counts.reserve(static_cast<std::size_t>(layout.ranks));
  for (std::int32_t rank = 0; rank < layout.ranks; ++rank)
    counts.push_back(shard::owned_in_use(layout.blocks[use.block], use, rank).count);
  return counts;
}

zc_status agree_on_unit(zc_comm& comm, const shard::Layout& layout, std::size_t unit, std::int64_t deadline_ns) {
  comm::Collect what;
  what.call.collective = static_cast<std::uint32_t>(comm::Collective::gather_unit);
  what.call.count = unit;
  what.call.counts_hash = layout.hash;
  what.deadline_ns = deadline_ns;
  return comm::run_collective(comm, what, nullptr);
}

}  // namespace

zc_status zc_gather(zc_comm* comm, const zc_layout* layout, size_t unit, const void* const* shards, void* const* full,
                    const zc_coll_options* options) {
  return capi::guard([&]() -> zc_status {
    ZC_REQUIRE(comm != nullptr && layout != nullptr, ZC_ARGUMENT, "comm or layout is NULL");
    const zc_coll_options theirs = capi::read_blocking_form(*comm, options, "zc_gather");
    const shard::Layout& value = layout->value;
    ZC_REQUIRE(value.ranks == comm->ranks(), ZC_ARGUMENT,
               "rank %d: the layout is for %d ranks, the communicator has %d", comm->rank(), value.ranks,
               comm->ranks());
    ZC_REQUIRE(unit < value.units.size(), ZC_ARGUMENT, "rank %d: unit %zu of a layout with %zu units", comm->rank(),
               unit, value.units.size());
    const shard::Unit& wanted = value.units[unit];
    for (const std::size_t index : wanted.uses) {
      const shard::Use& use = value.uses[index];
      if (use.stored != index || use.in_tensor.count == 0) continue;
      ZC_REQUIRE(full != nullptr && full[use.position] != nullptr, ZC_ARGUMENT,
                 "rank %d: full[%zu] (tensor %s) is NULL", comm->rank(), use.position,
                 value.tensors[use.tensor].name.c_str());
      const shard::Block& block = value.blocks[use.block];
      const bool owns = shard::owned_in_use(block, use, comm->rank()).count != 0;
      ZC_REQUIRE(!owns || (shards != nullptr && shards[block.buffer] != nullptr), ZC_ARGUMENT,
                 "rank %d: shards[%zu] is NULL", comm->rank(), block.buffer);
    }
    ZC_TRY(agree_on_unit(*comm, value, unit, theirs.deadline_ns));
    comm::Options mine;
    mine.deadline_ns = theirs.deadline_ns;
    mine.traffic = theirs.traffic == ZC_TRAFFIC_CONTROL ? ZC_TRAFFIC_CONTROL : ZC_TRAFFIC_DATA;
    for (const std::size_t index : wanted.uses) {
      const shard::Use& use = value.uses[index];
      if (use.stored != index || use.in_tensor.count == 0) continue;
      const shard::Block& block = value.blocks[use.block];
      const zc_dtype dtype = value.buffers[block.buffer].dtype;
      const std::vector<std::size_t> counts = owned_counts(value, use);
      const shard::OwnedRange owned = shard::owned_in_use(block, use, comm->rank());
      const std::byte* send = nullptr;
      if (owned.count != 0)
        send = static_cast<const std::byte*>(shards[block.buffer]) + owned.shard_offset * zc_dtype_bytes(dtype);
      ZC_TRY(comm::all_gather(*comm, send, full[use.position], 0, counts.data(), dtype, mine));
    }
    return ZC_OK;
  });
}
