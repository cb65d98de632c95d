#include "comm/counters.hpp"

namespace zerocomm::comm {

void Counters::reset() noexcept {
  const auto clear = [](Counter& counter) { counter.store(0, std::memory_order_relaxed); };
  for (Counter& counter : logical_bytes) clear(counter);
  for (auto& row : moved_bytes)
    for (Counter& counter : row) clear(counter);
  clear(collectives);
  clear(mismatches);
  clear(sleeps);
}

zc_stats Counters::read() const noexcept {
  const auto get = [](const Counter& counter) { return counter.load(std::memory_order_relaxed); };
  zc_stats stats{};
  stats.struct_size = sizeof stats;
  stats.logical_bytes = get(logical_bytes[0]);
  stats.control_logical_bytes = get(logical_bytes[1]);
  for (std::size_t link = 0; link < ZC_LINK_ROOM; ++link) {
    stats.moved_bytes[link] = get(moved_bytes[0][link]);
    stats.control_moved_bytes[link] = get(moved_bytes[1][link]);
  }
  stats.collectives = get(collectives);
  stats.mismatches = get(mismatches);
  stats.sleeps = get(sleeps);
  return stats;
}

}  // namespace zerocomm::comm
