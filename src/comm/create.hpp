// Making a communicator whose ranks are processes: who this rank is, where the others are, the memory they share.
#pragma once

#include "boot/way.hpp"
#include "comm/comm.hpp"

#include <zerocomm/store.h>

#include <memory>
#include <optional>
#include <string>

namespace zerocomm::comm {

struct ProcessSpec {
  Settings settings;
  std::int64_t init_deadline_ns = 0;
  std::string topology;    // empty: one node
  std::int32_t ranks = 0;  // 0: the launcher's
  std::int32_t rank = 0;
  std::string job;  // empty: the launcher's
  std::optional<zc_store> store;
  boot::Way way;  // without a store
};

// Fills in what the launcher says, and the way by which the ranks meet. Throws Error: ARGUMENT without a launcher where
// one is needed, and what boot::choose_way throws.
void complete(ProcessSpec& spec);

// The time to spin, where nobody set one: `cores` are those of all ranks together. Negative means never.
void choose_spin(Settings& settings, std::int32_t ranks, int cores);

// Collective. Throws Error as zc_comm_create documents.
std::shared_ptr<zc_comm> create_process_comm(const ProcessSpec& spec);

}  // namespace zerocomm::comm
