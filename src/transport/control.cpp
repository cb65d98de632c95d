#include "transport/control.hpp"

#include <new>

namespace zerocomm::transport {
namespace {

std::uint64_t pair_word(const RequestKey& key) {
  return std::uint64_t{static_cast<std::uint32_t>(key.from)} << 32 | std::uint64_t{static_cast<std::uint32_t>(key.to)};
}

}  // namespace

Control Control::build(std::byte* memory, std::int32_t ranks, std::int32_t requests) {
  auto* header = new (memory) ControlHeader;
  header->ranks = ranks;
  header->requests = requests;
  Control control(memory);
  for (std::int32_t rank = 0; rank < ranks; ++rank) new (&control.rank(rank)) RankBlock;
  // Flight rings and tables of requests are zeros, which is empty.
  return control;
}

void Post::set_back() noexcept {
  finished.store(0);
  filled.store(0);
  position.store(0);
}

std::uint64_t RequestKey::hash() const noexcept {
  std::uint64_t hash = 0x9e3779b97f4a7c15ULL;
  for (const std::uint64_t word : {static_cast<std::uint64_t>(tag), turn, pair_word(*this)}) {
    hash = (hash ^ word) * 0xff51afd7ed558ccdULL;
    hash ^= hash >> 32;
  }
  return hash | 1;
}

void RequestSlot::set_key(const RequestKey& key) noexcept {
  tag.store(key.tag);
  turn.store(key.turn);
  pair.store(pair_word(key));
}

bool RequestSlot::has_key(const RequestKey& key) const noexcept {
  return tag.load() == key.tag && turn.load() == key.turn && pair.load() == pair_word(key);
}

void Control::ring_all() const noexcept {
  for (std::int32_t rank = 0; rank < ranks(); ++rank) ring(this->rank(rank).bell);
}

}  // namespace zerocomm::transport
