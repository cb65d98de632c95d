// Counters of one rank. Relaxed atomics: they count, they order nothing.
#pragma once

#include <zerocomm/comm.h>

#include <atomic>
#include <cstdint>

namespace zerocomm::comm {

struct Counters {
  using Counter = std::atomic<std::uint64_t>;
  Counter logical_bytes[2] = {};              // data, control
  Counter moved_bytes[2][ZC_LINK_ROOM] = {};  // data, control; by link
  Counter collectives{0};
  Counter mismatches{0};
  Counter sleeps{0};

  static void add(Counter& counter, std::uint64_t value) noexcept {
    counter.fetch_add(value, std::memory_order_relaxed);
  }
  void reset() noexcept;
  zc_stats read() const noexcept;
};

// 0 for data, 1 for control.
constexpr std::size_t traffic_index(zc_traffic traffic) { return traffic == ZC_TRAFFIC_CONTROL ? 1 : 0; }

}  // namespace zerocomm::comm
