// Sub-communicators: the ranks of a communicator fall into groups by colour, each a communicator of its own.
//
// What ranks say and whether all of them have succeeded is exchanged with collectives of the parent, so that it ends
// the same way for all of them. The child takes memory from the parent's and keeps it; nothing else connects the two.
#pragma once

#include "comm/comm.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace zerocomm::comm {

// What one rank asks for.
struct SplitSpec {
  std::int32_t color = 0;  // ZC_NONE: no child
  std::int32_t key = 0;
  Settings settings;     // of the child
  std::string topology;  // in ranks of the child; empty: the parent's nodes
  // What is wrong with this rank's arguments. The others have to be told.
  zc_status refused = ZC_OK;
  std::string refusal;
};

// Collective over the parent. `child` stays empty for ZC_NONE and after an error, which all ranks of the parent get.
// Throws nothing but std::bad_alloc, and that before anything is announced.
zc_status split(Comm& parent, const SplitSpec& spec, std::shared_ptr<zc_comm>* child);

}  // namespace zerocomm::comm
