// Collectives whose buffers other processes cannot reach go through staging: every rank has two halves in memory that
// all ranks share, and fills one while the others read the other.
//
// Round k uses half k % 2. A rank fills its half when all ranks have drained round k - 2, and reads the others' when
// all have filled round k. The counters only rise, over all calls of the communicator.
#pragma once

#include "comm/collective.hpp"

namespace zerocomm::comm {

class Staging {
 public:
  Staging(Comm& comm, const Collect& what) : comm_(&comm), what_(&what) {}

  // Bytes that a rank may put into its half.
  std::size_t half_bytes() const { return comm_->group().staging_half_bytes(); }

  // One round: fill the own half, then read all halves, by rank.
  zc_status round(FunctionRef<void(std::byte*)> fill, FunctionRef<void()> read) noexcept;
  // The half of a rank in the present round.
  std::byte* half(std::int32_t rank) const { return comm_->group().staging(rank, comm_->staging_rounds % 2); }

 private:
  zc_status wait_for_all(std::atomic<std::uint64_t> transport::RankBlock::*counter, std::uint64_t rounds,
                         const char* doing) const noexcept;

  Comm* comm_;
  const Collect* what_;
};

}  // namespace zerocomm::comm
