// Ranks that are threads of one process: one control segment, and a directory of the segments that ranks bring.
//
// Everything is reachable by address here. Code above asks reach() for every address of another rank all the same, so
// that ranks in other processes add a mapping and change nothing else.
#pragma once

#include "base/memory.hpp"
#include "topo/topology.hpp"
#include "transport/control.hpp"

#include <zerocomm/comm.h>

#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace zerocomm::transport {

// Memory of one rank that others may reach, freed with its last user. `pages` is empty for memory that the caller
// keeps.
struct Segment {
  std::shared_ptr<Pages> pages;
  std::byte* address = nullptr;
  std::size_t bytes = 0;
};

class ThreadGroup {
 public:
  explicit ThreadGroup(topo::Topology topology);

  const Control& control() const { return control_; }
  const topo::Topology& topology() const { return topology_; }
  std::size_t control_bytes() const { return pages_.bytes(); }

  zc_link link(std::int32_t from, std::int32_t to) const;

  // Address at which this process sees a buffer of `rank`.
  void* reach(std::int32_t rank, const BufferRef& buffer) const;

  // Lay a segment out for others to find under (key, rank); find it; take it back from the directory.
  void offer(std::uint64_t key, std::int32_t rank, std::shared_ptr<Segment> segment);
  std::shared_ptr<Segment> find(std::uint64_t key, std::int32_t rank) const;
  void withdraw(std::uint64_t key, std::int32_t rank);

 private:
  topo::Topology topology_;
  Pages pages_;
  Control control_;
  mutable std::mutex mutex_;
  std::map<std::pair<std::uint64_t, std::int32_t>, std::shared_ptr<Segment>> offered_;
};

}  // namespace zerocomm::transport
