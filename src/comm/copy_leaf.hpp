// Copies between ranks' buffers: the leaf that moves bytes and counts what crosses from rank to rank.
#pragma once

#include "comm/comm.hpp"
#include "device/stores.hpp"

namespace zerocomm::comm {

struct CopyLeaf {
  const void* source = nullptr;
  std::int32_t source_rank = 0;
  void* const* outputs = nullptr;  // output_count addresses, none in the source
  const std::int32_t* output_ranks = nullptr;
  std::size_t output_count = 0;
  std::size_t bytes = 0;
  device::Stores stores = device::Stores::cached;
  zc_traffic traffic = ZC_TRAFFIC_DATA;
};

void copy_over_ranks(const Comm& comm, const CopyLeaf& leaf) noexcept;

}  // namespace zerocomm::comm
