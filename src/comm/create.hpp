// Making a communicator whose ranks are processes: who this rank is, where the others are, the memory they share.
#pragma once

#include "comm/comm.hpp"

#include <memory>
#include <string>

namespace zerocomm::comm {

struct ProcessSpec {
  Settings settings;
  std::int64_t init_deadline_ns = 0;
  std::string topology;    // empty: one node
  std::int32_t ranks = 0;  // 0: the launcher's
  std::int32_t rank = 0;
  std::string job;  // empty: the launcher's
};

// Fills in what the launcher says. Throws Error: ARGUMENT without a launcher where one is needed, UNSUPPORTED where it
// says that ranks are on several hosts.
void complete(ProcessSpec& spec);

// The time to spin, where nobody set one: `cores` are those of all ranks together. Negative means never.
void choose_spin(Settings& settings, std::int32_t ranks, int cores);

// Collective. Throws Error as zc_comm_create documents.
std::shared_ptr<zc_comm> create_process_comm(const ProcessSpec& spec);

}  // namespace zerocomm::comm
