// The flight recorder: what each rank did last, in shared memory, readable by the others when the rank is gone.
//
// Per rank a ring of fixed records of 64 bytes. A record is eight atomic words; its first, the number, is zero while
// the others are written and stored last, so that a reader sees whether it has read one record or parts of two. A rank
// that is killed leaves what it had stored.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace zerocomm::transport {

// One record as a value. `end_ns` is 0 while the rank is inside.
struct FlightRecord {
  std::uint64_t number = 0;  // from 1
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t kind = 0;   // a collective; 0: a note of the caller or an engine
  std::int32_t status = 0;  // when it ended
  std::uint64_t call = 0;   // number of the collective; value of a note
  std::uint64_t brief = 0;  // the call in one word
  char label[16] = {};      // of a note; not terminated if it is full. Of a request: its tag

  static constexpr std::uint32_t kKeyed = 1U << 16;  // in `kind`: a request; `call` is the turn of its tag
  bool is_keyed() const { return (kind & kKeyed) != 0; }
  std::int64_t tag() const {
    std::int64_t value = 0;
    std::memcpy(&value, label, sizeof value);
    return value;
  }
  void set_tag(std::int64_t value) { std::memcpy(label, &value, sizeof value); }
};
static_assert(sizeof(FlightRecord) == 64);

struct alignas(64) FlightEntry {
  std::atomic<std::uint64_t> words[8];
};

inline constexpr std::size_t kFlightRecords = 1024;

class FlightRing {
 public:
  // The owner adds a record and gets its number; `finish` fills in how it ended. Threads: any of the owner.
  std::uint64_t begin(const FlightRecord& record) noexcept;
  void finish(std::uint64_t number, std::int32_t status, std::int64_t end_ns) noexcept;

  // Any process. Records from 1 to last() were begun; the ring holds the youngest. False: gone, or not yet complete.
  std::uint64_t last() const noexcept { return head_.load(); }
  bool read(std::uint64_t number, FlightRecord* record) const noexcept;

 private:
  FlightEntry& entry(std::uint64_t number) noexcept { return entries_[number % kFlightRecords]; }
  const FlightEntry& entry(std::uint64_t number) const noexcept { return entries_[number % kFlightRecords]; }

  alignas(64) std::atomic<std::uint64_t> head_{0};
  FlightEntry entries_[kFlightRecords];
};

}  // namespace zerocomm::transport
