// One request: a call that is in flight, as its own rank keeps it.
#pragma once

#include "comm/operation.hpp"
#include "comm/posts.hpp"
#include "comm/transfer.hpp"

#include <zerocomm/request.h>

#include <memory>
#include <optional>

namespace zerocomm::comm {
class Requests;
}

// The handle of the C interface. It belongs to a slot of the rank's table, and is free again when the slot is and its
// end has been reported. Everything in it is under the lock of its table, but what the thread that works on it moves.
struct zc_request {
  enum class Phase : std::uint8_t {
    idle,
    gathering,  // posted; not all ranks have come
    moving,     // all ranks agree
    over,       // here; others may not have seen it yet
  };

  zerocomm::comm::Requests* table = nullptr;
  std::size_t slot = 0;
  Phase phase = Phase::idle;
  bool working = false;  // a thread moves a slice of it
  bool listed = false;   // its slot is in use
  bool held = false;     // by the caller
  zerocomm::comm::Operation operation;
  zerocomm::transport::RequestKey key;
  std::uint64_t hash = 0;
  zerocomm::comm::Place* places = nullptr;  // one per rank
  std::optional<zerocomm::comm::Transfer> transfer;
  std::uint64_t total_bytes = 0;
  std::int64_t since_ns = 0;  // when it was made, or went on last
  std::int64_t deadline_ns = 0;
  std::uint64_t flight = 0;
  zc_status status = ZC_OK;
  char text[1024] = {};
  zc_request* next = nullptr;  // by size
  std::shared_ptr<zerocomm::comm::Comm> keep;
};
