// The control segment of a communicator: what all ranks share in order to agree, wait and fail together.
//
// Plain atomics at fixed places: offsets and futex-sized words, no pointers, so that the same bytes serve ranks that
// are threads and ranks that are processes. Every field has one writer unless it says otherwise. All atomics are used
// with sequential consistency; fields that are not atomic are written before and read after the atomic that announces
// them.
#pragma once

#include "base/wait.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace zerocomm::transport {

// Where a rank's buffer is. Segment 0 is the rank's own address space and the offset an address in it; other numbers
// are shared segments.
struct BufferRef {
  std::uint64_t segment = 0;
  std::uint64_t offset = 0;
};

// What a rank says about the call it is in. Compared between all ranks before any byte moves.
struct CallRecord {
  std::uint32_t collective = 0;
  std::uint32_t dtype = 0;
  std::uint32_t output_dtype = 0;
  std::uint32_t op = 0;
  std::int32_t root = -1;
  std::uint32_t in_place = 0;     // 0: no, 1: yes, kEitherPlace
  std::uint64_t count = 0;        // elements; of the _v forms the sum
  std::uint64_t counts_hash = 0;  // of the _v forms; of the layout for gathers
  std::uint64_t premul_bits = 0;
  // One of this rank's buffers is empty, so that in place and out of place are the same to it.
  static constexpr std::uint32_t kEitherPlace = 2;
  friend bool operator==(const CallRecord&, const CallRecord&) = default;
};

// One call of one rank. Two of them alternate: a rank cannot be two calls ahead of another.
struct alignas(128) PostSlot {
  std::atomic<std::uint64_t> sequence{0};  // number of the call plus 1
  CallRecord call;
  BufferRef send;
  BufferRef recv;
  std::uint64_t failed_bytes = 0;  // memory that this rank wanted for the call and did not get
};

struct alignas(128) RankBlock {
  PostSlot slots[2];
  alignas(128) std::atomic<std::uint64_t> brief{0};  // the last call posted, in short: for error texts of others
  std::atomic<std::uint64_t> finished{0};            // calls whose data phase this rank has left
  std::atomic<std::uint32_t> busy{0};                // readers of other ranks' buffers on this rank at this moment
  std::atomic<std::uint32_t> detached{0};
  alignas(128) Bell bell;
};

// The first error, once for all ranks. `state` 0: none, 1: being written, 2: stands.
struct ErrorRecord {
  std::atomic<std::uint32_t> state{0};
  std::int32_t status = 0;
  std::int32_t rank = -1;  // who recorded it
  char text[1024] = {};
};

struct alignas(128) ControlHeader {
  static constexpr std::uint64_t kMagic = 0x5a65726f436f6d6dULL;  // "ZeroComm"
  std::uint64_t magic = kMagic;
  std::int32_t ranks = 0;
  ErrorRecord error;
};

// A view of the segment: the header, then one block per rank.
class Control {
 public:
  static std::size_t bytes(std::int32_t ranks) {
    return sizeof(ControlHeader) + static_cast<std::size_t>(ranks) * sizeof(RankBlock);
  }
  // Builds a new segment in zeroed memory that is aligned to 128 bytes.
  static Control build(std::byte* memory, std::int32_t ranks);
  explicit Control(std::byte* memory) : memory_(memory) {}

  ControlHeader& header() const { return *reinterpret_cast<ControlHeader*>(memory_); }
  RankBlock& rank(std::int32_t index) const {
    return *reinterpret_cast<RankBlock*>(memory_ + sizeof(ControlHeader) +
                                         static_cast<std::size_t>(index) * sizeof(RankBlock));
  }
  std::int32_t ranks() const { return header().ranks; }

  void ring_all() const noexcept;

 private:
  std::byte* memory_;
};

}  // namespace zerocomm::transport
