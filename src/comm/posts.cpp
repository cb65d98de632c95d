#include "comm/posts.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"
#include "comm/copy_leaf.hpp"

#include <cstdio>
#include <cstring>
#include <thread>

namespace zerocomm::comm {

std::string Posts::name() const {
  if (places_ == nullptr) return format("call %llu", static_cast<unsigned long long>(sequence_));
  std::string text =
      format("tag %lld, turn %llu", static_cast<long long>(key_.tag), static_cast<unsigned long long>(key_.turn));
  if (key_.is_pair()) text += format(" from rank %d to %d", key_.from, key_.to);
  return text;
}

zc_status Peers::copy_from(std::int32_t rank, std::size_t offset_bytes, void* destination, std::size_t bytes,
                           device::Stores stores, zc_traffic traffic) const noexcept {
  if (bytes == 0) return ZC_OK;
  const transport::BufferRef& buffer = posts_->of(rank).send;
  if (const void* there = comm_->group().reach(rank, buffer); there != nullptr) {
    const std::int32_t self = comm_->rank();
    copy_over_ranks(*comm_, {static_cast<const std::byte*>(there) + offset_bytes, rank, &destination, &self, 1, bytes,
                             stores, traffic});
    return ZC_OK;
  }
  const int result = comm_->group().read_private(rank, buffer, offset_bytes, destination, bytes);
  if (result == 0) {
    comm_->count_moved(rank, bytes, traffic);
    return ZC_OK;
  }
  // Most likely the rank has just died, and then the keeper's record is better than ours.
  constexpr std::int64_t kPatienceNs = 100'000'000;
  const Deadline patience = Deadline::after(kPatienceNs);
  while (!comm_->dead() && patience.left_ns() > 0) std::this_thread::yield();
  char text[256];
  std::snprintf(text, sizeof text,
                "rank %d could not read %zu bytes out of the memory of rank %d (ZC_COPY=staging avoids it): %s",
                comm_->rank(), bytes, rank, std::strerror(result));
  return comm_->record_first_error(ZC_TRANSPORT, text);
}

}  // namespace zerocomm::comm
