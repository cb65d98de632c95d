#include "transport/thread_group.hpp"

#include "base/check.hpp"

namespace zerocomm::transport {

ThreadGroup::ThreadGroup(topo::Topology topology, std::int32_t requests)
    : topology_(std::move(topology)),
      pages_(Control::bytes(static_cast<std::int32_t>(topology_.node_of_rank.size()), requests), "control segment"),
      control_(Control::build(pages_.address(), static_cast<std::int32_t>(topology_.node_of_rank.size()), requests)) {}

std::size_t ThreadGroup::control_bytes(std::int32_t rank) const {
  return (rank == 0 ? pages_.bytes() : 0) + (staging_.load() != nullptr ? 2 * kStagingHalfBytes : 0);
}

void ThreadGroup::prepare_staging() {
  const std::lock_guard lock(mutex_);
  if (staging_.load() != nullptr) return;
  staging_pages_ = std::make_unique<Pages>(topology_.node_of_rank.size() * 2 * kStagingHalfBytes, "staging");
  staging_.store(staging_pages_->address());
}

std::byte* ThreadGroup::staging(std::int32_t rank, std::size_t half) const noexcept {
  return staging_.load() + (static_cast<std::size_t>(rank) * 2 + half) * kStagingHalfBytes;
}

zc_link ThreadGroup::link(std::int32_t from, std::int32_t to) const {
  if (from == to) return ZC_LINK_SELF;
  const auto& node = topology_.node_of_rank;
  return node[static_cast<std::size_t>(from)] == node[static_cast<std::size_t>(to)] ? ZC_LINK_THREAD : ZC_LINK_NETWORK;
}

std::shared_ptr<Segment> ThreadGroup::allocate(std::int32_t /*rank*/, std::size_t bytes, const char* purpose) {
  auto pages = std::make_shared<Pages>(bytes, purpose);
  std::byte* const address = pages->address();
  return std::make_shared<Segment>(Segment{std::move(pages), address, bytes, false, 0});
}

BufferRef ThreadGroup::allocate_for_all(std::int32_t rank, std::size_t bytes, const char* purpose) {
  std::shared_ptr<Segment> segment = allocate(rank, bytes, purpose);
  const BufferRef result = refer(segment->address, bytes);
  const std::lock_guard lock(mutex_);
  for_all_.push_back(std::move(segment));
  return result;
}

BufferRef ThreadGroup::refer(const void* address, std::size_t bytes) const noexcept {
  return {0, static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address)), bytes};
}

void* ThreadGroup::reach(std::int32_t /*rank*/, const BufferRef& buffer) const noexcept {
  // An offset in segment 0 is an address of this process.
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(buffer.offset));
}

void ThreadGroup::offer(std::uint64_t key, std::int32_t rank, std::shared_ptr<Segment> segment) {
  const std::lock_guard lock(mutex_);
  offered_[{key, rank}] = std::move(segment);
}

std::shared_ptr<Segment> ThreadGroup::find(std::uint64_t key, std::int32_t rank) {
  const std::lock_guard lock(mutex_);
  const auto found = offered_.find({key, rank});
  return found == offered_.end() ? nullptr : found->second;
}

void ThreadGroup::withdraw(std::uint64_t key, std::int32_t rank) {
  const std::lock_guard lock(mutex_);
  offered_.erase({key, rank});
}

// All ranks share one object, and the core is that object.
std::shared_ptr<Segment> ThreadGroup::make_child(const topo::Topology& topology) {
  auto core = std::make_shared<Segment>();
  core->keep = std::make_shared<ThreadGroup>(topology, control_.requests());
  return core;
}

std::shared_ptr<Group> ThreadGroup::join_child(const std::shared_ptr<Segment>& core, topo::Topology /*topology*/,
                                               std::int32_t /*rank*/) {
  return std::static_pointer_cast<ThreadGroup>(core->keep);
}

}  // namespace zerocomm::transport
