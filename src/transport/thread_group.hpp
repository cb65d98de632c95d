// Ranks that are threads of one process: everything is reachable by address.
#pragma once

#include "base/memory.hpp"
#include "transport/group.hpp"

#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <utility>

namespace zerocomm::transport {

class ThreadGroup final : public Group {
 public:
  ThreadGroup(topo::Topology topology, std::int32_t requests);

  const Control& control() const override { return control_; }
  const topo::Topology& topology() const override { return topology_; }
  const char* name() const override { return "threads"; }
  zc_link link(std::int32_t from, std::int32_t to) const override;
  std::size_t control_bytes(std::int32_t rank) const override;

  std::shared_ptr<Segment> allocate(std::int32_t rank, std::size_t bytes, const char* purpose) override;
  BufferRef refer(const void* address, std::size_t bytes) const noexcept override;
  void* reach(std::int32_t rank, const BufferRef& buffer) const noexcept override;
  bool exchanges_descriptors() const noexcept override { return false; }
  bool is_shared(const BufferRef& /*buffer*/) const noexcept override { return true; }

  void offer(std::uint64_t key, std::int32_t rank, std::shared_ptr<Segment> segment) override;
  std::shared_ptr<Segment> find(std::uint64_t key, std::int32_t rank) override;
  void withdraw(std::uint64_t key, std::int32_t rank) override;

  std::shared_ptr<Segment> make_child(const topo::Topology& topology) override;
  std::shared_ptr<Group> join_child(const std::shared_ptr<Segment>& core, topo::Topology topology,
                                    std::int32_t rank) override;

  void prepare_staging() override;
  std::byte* staging(std::int32_t rank, std::size_t half) const noexcept override;
  std::size_t staging_half_bytes() const noexcept override { return kStagingHalfBytes; }
  BufferRef allocate_for_all(std::int32_t rank, std::size_t bytes, const char* purpose) override;
  bool can_read_private() const noexcept override { return false; }  // nothing is private
  int read_private(std::int32_t, const BufferRef&, std::size_t, void*, std::size_t) const noexcept override {
    return ENOTSUP;
  }
  bool has_died(std::int32_t /*rank*/) const noexcept override { return false; }
  std::int64_t silent_ns(std::int32_t /*rank*/) const noexcept override { return 0; }

 private:
  topo::Topology topology_;
  Pages pages_;
  Control control_;
  std::atomic<std::byte*> staging_{nullptr};
  std::unique_ptr<Pages> staging_pages_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Segment>> for_all_;
  std::map<std::pair<std::uint64_t, std::int32_t>, std::shared_ptr<Segment>> offered_;
};

}  // namespace zerocomm::transport
