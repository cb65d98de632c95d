// The control segment of a communicator: what all ranks share in order to agree, wait and fail together.
//
// Plain atomics at fixed places: offsets and futex-sized words, no pointers, so that the same bytes serve ranks that
// are threads and ranks that are processes. Every field has one writer unless it says otherwise. All atomics are used
// with sequential consistency; fields that are not atomic are written before and read after the atomic that announces
// them.
#pragma once

#include "base/wait.hpp"
#include "transport/flight.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace zerocomm::transport {

// Where a rank's buffer is. Segment 0 is the rank's own address space and the offset an address in it; segment 1 is the
// memory that all ranks share.
struct BufferRef {
  std::uint64_t segment = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
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
  std::uint64_t schedule = 0;                   // a hash of the schedule that moves the data; 0: the native form
  static constexpr std::uint64_t kByTable = 2;  // native, and ZC_ALGO is not about this call; no hash is even
  // One of this rank's buffers is empty, so that in place and out of place are the same to it.
  static constexpr std::uint32_t kEitherPlace = 2;
  friend bool operator==(const CallRecord&, const CallRecord&) = default;
};

// What one rank says of one call, and how far it is with it. The counts are of this call alone: its rank sets them back
// before it posts the next one here, when nobody looks at them any more.
struct Post {
  CallRecord call;
  BufferRef send;
  BufferRef recv;
  std::uint64_t failed_bytes = 0;                      // memory that this rank wanted for the call and did not get
  alignas(64) std::atomic<std::uint32_t> finished{0};  // 1: this rank reads and writes no other rank's buffers any more
  std::atomic<std::uint64_t> filled{0};                // rounds of staging that this rank has filled
  std::atomic<std::uint64_t> position{0};              // steps of a schedule that this rank has done

  void set_back() noexcept;
};

// A call that is matched by its number. Two of them alternate: a rank cannot be two calls ahead of another.
struct alignas(128) PostSlot {
  std::atomic<std::uint64_t> sequence{0};  // number of the call plus 1
  Post post;
};

// Which request of a rank a post belongs to: the turn-th of a tag, of all ranks or from one rank to another.
struct RequestKey {
  std::int64_t tag = 0;
  std::uint64_t turn = 0;
  std::int32_t from = -1;  // of a send and its receive; -1: all ranks take part
  std::int32_t to = -1;

  bool is_pair() const { return from >= 0; }
  // Never 0. Keys may share a hash.
  std::uint64_t hash() const noexcept;
  friend bool operator==(const RequestKey&, const RequestKey&) = default;
};

// Which ranks have said something, each for itself.
class RankSet {
 public:
  void clear() noexcept {
    for (auto& word : words_) word.store(0);
  }
  void add(std::int32_t rank) noexcept { words_[rank / kBits].fetch_or(1U << (rank % kBits)); }
  bool has(std::int32_t rank) const noexcept { return (words_[rank / kBits].load() >> (rank % kBits) & 1) != 0; }

  static constexpr std::int32_t kMostRanks = 1024;

 private:
  static constexpr std::int32_t kBits = 32;
  std::atomic<std::uint32_t> words_[kMostRanks / kBits]{};
};

// A call that is matched by its key. The owner fills one in and then writes its hash into the list of hashes; it uses
// the slot again when all other ranks of the request are in `seen`, or have left. The key is made of atomics: a rank
// that has found the hash of one key may look at another.
struct alignas(64) RequestSlot {
  static constexpr std::uint32_t kOpen = 0, kTaken = 1, kCanceled = 2;
  Post post;
  std::atomic<std::int64_t> tag{0};
  std::atomic<std::uint64_t> turn{0};
  std::atomic<std::uint64_t> pair{0};
  // Any rank of the request takes it, once it has found all posts; the owner cancels it. Both only if it is open.
  std::atomic<std::uint32_t> state{kOpen};
  RankSet seen;  // other ranks for which the request is over; each adds itself

  void set_key(const RequestKey& key) noexcept;
  bool has_key(const RequestKey& key) const noexcept;
};

// Whether a rank is there, for ranks that are processes. `word` is a robust futex of the keeper thread of the rank's
// process: it holds that thread's id, and the kernel marks it when the thread ends, however it ends.
struct alignas(64) Liveness {
  void* robust_next = nullptr;  // the kernel's list of the owner's robust futexes; means something to the owner alone
  std::atomic<std::uint32_t> word{0};
  std::atomic<std::uint32_t> left{0};    // 1: the rank has destroyed its communicator
  std::atomic<std::int64_t> beat_ns{0};  // when the keeper last ran
  std::int32_t pid = 0;
};

// Whether processes can read each other's own memory (process_vm_readv). `token` lies at `address` in the rank's own
// memory: whoever reads it there has proof.
struct PrivateRead {
  std::uint64_t address = 0;
  std::uint64_t token = 0;
  std::atomic<std::uint32_t> verdict{0};  // of this rank about all others: 0 not yet, then a ReadVerdict
  std::int32_t failed_rank = -1;
  std::int32_t failed_errno = 0;
};
enum ReadVerdict : std::uint32_t { kCanRead = 1, kCannotRead = 2, kMayNotRead = 3 };

// The first error as one rank tells it. Written by its rank alone, before it is made the communicator's.
struct ErrorRecord {
  std::int32_t status = 0;
  char text[1020] = {};
};

// A segment that a rank lays out for the others to find. Segments of one call have keys that differ in the last bit.
struct Offer {
  std::atomic<std::uint64_t> key{0};  // plus 1
  std::uint64_t header_offset = 0;    // of the allocation, 0 for memory that the library does not keep
  BufferRef memory;
  std::uint64_t adopted = 0;  // 1: memory of a descriptor that the owner hands out, at this place in it
  std::uint64_t file_offset_bytes = 0;
};

struct alignas(128) RankBlock {
  PostSlot slots[2];
  alignas(128) std::atomic<std::uint64_t> brief{0};  // the last call posted, in short: for error texts of others
  std::atomic<std::uint32_t> busy{0};                // readers of other ranks' buffers on this rank at this moment
  std::atomic<std::uint32_t> detached{0};
  std::atomic<std::uint64_t> posts{0};       // requests that this rank has posted, ever
  std::atomic<std::uint32_t> wants_slot{0};  // calls of this rank that wait for a slot of their own table
  BufferRef request_staging;                 // of all its requests; there before the first post that needs it
  alignas(128) Bell bell;
  Liveness liveness;
  PrivateRead private_read;
  Offer offers[2];
  ErrorRecord error;
};

struct alignas(128) ControlHeader {
  static constexpr std::uint64_t kMagic = 0x5a65726f436f6d6dULL;  // "ZeroComm"
  std::uint64_t magic = kMagic;
  std::int32_t ranks = 0;
  std::int32_t requests = 0;  // slots of each rank
  // Who recorded the first error: 0 nobody, else the rank plus 1; with kAborted it called abort and there is no record.
  // Any rank writes it, once: it is complete with one store, so that nobody can die halfway.
  std::atomic<std::uint32_t> first_error{0};
  static constexpr std::uint32_t kAborted = 1U << 31;
  std::uint64_t secret[2] = {};  // names what ranks say to each other outside this segment
  // For memory that ranks share; any rank writes them.
  std::atomic<std::uint64_t> next_offset{0};
  std::atomic<std::uint64_t> wanted_bytes{0};  // being taken at this moment
};

// A view of the segment: the header, then one block per rank, then one flight ring per rank, then one table of requests
// per rank: the hashes of its keys (0: free), for a quick search, then the slots.
class Control {
 public:
  static constexpr std::int32_t kDefaultRequests = 64, kMostRequests = 4096;
  static constexpr std::size_t bytes(std::int32_t ranks, std::int32_t requests) {
    return sizeof(ControlHeader) + static_cast<std::size_t>(ranks) * (sizeof(RankBlock) + sizeof(FlightRing) +
                                                                      hashes_bytes(requests) + slots_bytes(requests));
  }
  // Builds a new segment in zeroed memory that is aligned to 128 bytes.
  static Control build(std::byte* memory, std::int32_t ranks, std::int32_t requests);
  Control() = default;
  explicit Control(std::byte* memory) : memory_(memory) {}

  ControlHeader& header() const { return *reinterpret_cast<ControlHeader*>(memory_); }
  RankBlock& rank(std::int32_t index) const {
    return *reinterpret_cast<RankBlock*>(memory_ + sizeof(ControlHeader) +
                                         static_cast<std::size_t>(index) * sizeof(RankBlock));
  }
  FlightRing& flight(std::int32_t index) const {
    return *reinterpret_cast<FlightRing*>(memory_ + sizeof(ControlHeader) +
                                          static_cast<std::size_t>(ranks()) * sizeof(RankBlock) +
                                          static_cast<std::size_t>(index) * sizeof(FlightRing));
  }
  std::atomic<std::uint64_t>& request_hash(std::int32_t rank, std::size_t slot) const {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(table(rank))[slot];
  }
  RequestSlot& request(std::int32_t rank, std::size_t slot) const {
    return reinterpret_cast<RequestSlot*>(table(rank) + hashes_bytes(requests()))[slot];
  }
  std::int32_t ranks() const { return header().ranks; }
  std::int32_t requests() const { return header().requests; }

  void ring_all() const noexcept;

 private:
  static constexpr std::size_t hashes_bytes(std::int32_t requests) {
    return (static_cast<std::size_t>(requests) * sizeof(std::uint64_t) + 127) / 128 * 128;
  }
  static constexpr std::size_t slots_bytes(std::int32_t requests) {
    return (static_cast<std::size_t>(requests) * sizeof(RequestSlot) + 127) / 128 * 128;
  }
  std::byte* table(std::int32_t rank) const {
    return memory_ + sizeof(ControlHeader) +
           static_cast<std::size_t>(ranks()) * (sizeof(RankBlock) + sizeof(FlightRing)) +
           static_cast<std::size_t>(rank) * (hashes_bytes(requests()) + slots_bytes(requests()));
  }
  std::byte* memory_ = nullptr;
};

}  // namespace zerocomm::transport
