// Sends and receives: rings, both directions at once, sizes from nothing to many slices, and what is refused.
#include "conformance/requests/in_flight.hpp"

#include <algorithm>
#include <array>

namespace zerocomm::test {
namespace {

constexpr std::size_t kCounts[] = {0, 1, 1000, 300'000};

std::vector<std::int32_t> numbers(std::int32_t first, std::size_t count) {
  std::vector<std::int32_t> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = first + static_cast<std::int32_t>(i);
  return all;
}

// Memory of the process, or such as all ranks reach.
class Block {
 public:
  Block(zc_comm* comm, std::size_t count, bool shared) : comm_(comm) {
    if (!shared) own_.resize(count + 1);
    void* memory = own_.data();
    if (shared) RANK_OK(zc_mem_alloc(comm, (count + 1) * sizeof(std::int32_t), &memory));
    data_ = static_cast<std::int32_t*>(memory);
  }
  ~Block() {
    if (own_.empty()) zc_mem_free(comm_, data_);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  std::int32_t* data() const { return data_; }

 private:
  zc_comm* comm_;
  std::vector<std::int32_t> own_;
  std::int32_t* data_ = nullptr;
};

TEST(Pairs, pass_data_round_a_ring) {
  for (const std::int32_t ranks : {2, 3, 7}) {
    RankThreads(ranks).run([ranks](zc_comm* comm, std::int32_t rank) {
      const std::int32_t next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
      for (const bool shared : {false, true})
        for (const std::size_t count : kCounts) {
          const std::vector<std::int32_t> mine = numbers(100 * rank, count);
          const Block send(comm, count, shared), recv(comm, count, shared);
          std::copy(mine.begin(), mine.end(), send.data());
          zc_request* request = nullptr;
          const zc_coll_options options = with_tag(0, &request);
          RANK_OK(zc_recv(comm, recv.data(), count, ZC_DTYPE_I32, before, &options));
          RANK_OK(zc_send(comm, send.data(), count, ZC_DTYPE_I32, next, nullptr));
          RANK_OK(zc_request_wait(&request));
          const std::vector<std::int32_t> wanted = numbers(100 * before, count);
          RANK_CHECK(std::equal(wanted.begin(), wanted.end(), recv.data()), "%zu elements came wrong", count);
        }
      zc_stats stats{};
      stats.struct_size = sizeof stats;
      RANK_OK(zc_comm_stats(comm, &stats));
      RANK_CHECK(stats.logical_bytes == 2 * 301'001 * sizeof(std::int32_t), "%llu bytes were to come",
                 static_cast<unsigned long long>(stats.logical_bytes));
      RANK_CHECK(stats.moved_bytes[kNearLink] == stats.logical_bytes, "%llu bytes were moved",
                 static_cast<unsigned long long>(stats.moved_bytes[kNearLink]));
    });
  }
}

TEST(Pairs, go_both_ways_at_once_and_match_by_tag_and_order) {
  run_ranks(2, [](zc_comm* comm, std::int32_t rank) {
    constexpr std::size_t kEach = 8, kTags = 3;
    const std::int32_t peer = 1 - rank;
    std::array<std::array<std::int32_t, kEach>, kTags> sent{}, got{};
    std::vector<zc_request*> all;
    for (std::size_t i = 0; i < kEach; ++i)
      for (std::size_t t = 0; t < kTags; ++t) {
        // Tags in another order on the other rank.
        const std::size_t tag = rank == 0 ? t : kTags - 1 - t;
        sent[tag][i] = static_cast<std::int32_t>(1000 * static_cast<std::size_t>(rank) + 10 * tag + i);
        zc_request* request = nullptr;
        const zc_coll_options options = with_tag(static_cast<std::int64_t>(tag), &request);
        RANK_OK(zc_send(comm, &sent[tag][i], 1, ZC_DTYPE_I32, peer, &options));
        all.push_back(request);
        RANK_OK(zc_recv(comm, &got[tag][i], 1, ZC_DTYPE_I32, peer, &options));
        all.push_back(request);
      }
    RANK_OK(zc_request_wait_all(all.data(), all.size()));
    for (std::size_t tag = 0; tag < kTags; ++tag)
      for (std::size_t i = 0; i < kEach; ++i)
        RANK_CHECK(got[tag][i] == static_cast<std::int32_t>(1000 * static_cast<std::size_t>(peer) + 10 * tag + i),
                   "tag %zu, turn %zu brought %d", tag, i, got[tag][i]);
  });
}

// Blocking ones use slots that others have not given back yet; two are enough for any number.
TEST(Pairs, that_block_wait_for_a_free_request) {
  run_ranks(3,
            [](zc_comm* comm, std::int32_t rank) {
              for (std::int32_t round = 0; round < 200; ++round) {
                std::int32_t value = -1;
                if (rank == 0) {
                  value = round;
                  RANK_OK(zc_send(comm, &value, 1, ZC_DTYPE_I32, 1, nullptr));
                } else {
                  RANK_OK(zc_recv(comm, &value, 1, ZC_DTYPE_I32, rank - 1, nullptr));
                  RANK_CHECK(value == round, "round %d brought %d", round, value);
                  if (rank == 1) RANK_OK(zc_send(comm, &value, 1, ZC_DTYPE_I32, 2, nullptr));
                }
              }
            },
            {.requests = 1});
}

TEST(Pairs, of_other_counts_or_types_are_a_mismatch_on_both_sides) {
  run_ranks(2, [](zc_comm* comm, std::int32_t rank) {
    std::int32_t data[4] = {rank, rank, rank, rank};
    const zc_coll_options options = with_tag(6);
    for (const zc_dtype dtype : {ZC_DTYPE_I32, ZC_DTYPE_F32}) {
      const std::size_t count = dtype == ZC_DTYPE_I32 ? 3 : 4;
      RANK_STATUS(ZC_MISMATCH, rank == 0 ? zc_send(comm, data, 4, ZC_DTYPE_I32, 1, &options)
                                         : zc_recv(comm, data, count, dtype, 0, &options));
      RANK_ERROR_SAYS(
          "from rank 0 to 1: rank 0 calls zc_send(count 4, i32, to rank 1), but rank 1 calls zc_recv(count");
      RANK_CHECK(data[0] == rank && data[3] == rank, "a mismatch wrote");
    }
    check_alive(comm, rank, 2);
  });
}

TEST(Pairs, refuse_what_has_no_meaning) {
  run_ranks(2, [](zc_comm* comm, std::int32_t rank) {
    std::int32_t value = 0;
    RANK_STATUS(ZC_ARGUMENT, zc_send(comm, &value, 1, ZC_DTYPE_I32, rank, nullptr));
    RANK_ERROR_SAYS("to itself");
    RANK_STATUS(ZC_ARGUMENT, zc_recv(comm, &value, 1, ZC_DTYPE_I32, 2, nullptr));
    RANK_STATUS(ZC_ARGUMENT, zc_recv(comm, &value, 1, ZC_DTYPE_I32, ZC_NONE, nullptr));
    RANK_STATUS(ZC_ARGUMENT, zc_send(comm, nullptr, 1, ZC_DTYPE_I32, 1 - rank, nullptr));
    RANK_STATUS(ZC_ARGUMENT, zc_send(comm, &value, 1, ZC_DTYPE_NONE, 1 - rank, nullptr));
    RANK_STATUS(ZC_ALIGNMENT, zc_recv(comm, reinterpret_cast<char*>(&value) + 1, 1, ZC_DTYPE_I32, 1 - rank, nullptr));
    zc_coll_options options = with_tag(0);
    options.premul = 2;
    RANK_STATUS(ZC_ARGUMENT, zc_send(comm, &value, 1, ZC_DTYPE_I32, 1 - rank, &options));
    options = with_tag(0);
    options.output_dtype = ZC_DTYPE_I32;
    RANK_STATUS(ZC_ARGUMENT, zc_send(comm, &value, 1, ZC_DTYPE_I32, 1 - rank, &options));
    check_alive(comm, rank, 2);
  });
}

}  // namespace
}  // namespace zerocomm::test
