#include "transport/control.hpp"

#include <new>

namespace zerocomm::transport {

Control Control::build(std::byte* memory, std::int32_t ranks) {
  auto* header = new (memory) ControlHeader;
  header->ranks = ranks;
  Control control(memory);
  for (std::int32_t rank = 0; rank < ranks; ++rank) new (&control.rank(rank)) RankBlock;
  // Flight rings are zeros, which is an empty ring.
  return control;
}

void Post::set_back() noexcept {
  finished.store(0);
  filled.store(0);
  position.store(0);
}

void Control::ring_all() const noexcept {
  for (std::int32_t rank = 0; rank < ranks(); ++rank) ring(this->rank(rank).bell);
}

}  // namespace zerocomm::transport
