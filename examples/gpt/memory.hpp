// What the library really takes on a rank that is a process: as the kernel counts it, beside what the library says.
#pragma once

#include <zerocomm/zerocomm.h>

#include <cstdint>
#include <optional>

namespace gpt {

struct Memory {
  std::int64_t private_growth_bytes = 0;  // memory of this process alone, since just before zc_comm_create
  std::uint64_t own_segment_bytes = 0;    // this rank's part of the memory that the ranks share
  std::uint64_t own_buffer_bytes = 0;     // of the private memory, what the example holds itself
  std::uint64_t ledger_bytes = 0;         // what zc_comm_ledger says
  double worst_difference = 0;            // between measurement and ledger, over all ranks, relative to the ledger
  // Shared memory of all ranks: what the kernel has given, and the sum of the ledgers.
  std::uint64_t segment_bytes = 0, segment_ledger_bytes = 0;

  // By measurement, what the library holds for this rank.
  std::int64_t measured_bytes() const {
    return private_growth_bytes + static_cast<std::int64_t>(own_segment_bytes) -
           static_cast<std::int64_t>(own_buffer_bytes);
  }
  std::int64_t difference_bytes() const { return measured_bytes() - static_cast<std::int64_t>(ledger_bytes); }
};

// Memory that this process alone holds, without what it has freed. Nothing where that cannot be seen: under sanitizers,
// which hold more than the program asks for, and without /proc. From the first call on, the process gets no huge pages.
std::optional<std::uint64_t> private_bytes();

// Collective, while no rank allocates or frees. `before` is private_bytes() from just before zc_comm_create.
Memory measure_memory(zc_comm* comm, std::uint64_t before, std::uint64_t own_buffer_bytes);

}  // namespace gpt
