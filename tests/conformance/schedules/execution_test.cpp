// Every schedule of the catalogue moves data as its oracle says, bit for bit: on memory that ranks share and on memory
// that they do not, in one round and in several, in place and not.
#include "schedule/catalogue.hpp"
#include "schedule/contract.hpp"
#include "schedule/oracle.hpp"
#include "schedule/schedule_text.hpp"
#include "support/exact_data.hpp"
#include "support/guarded_buffer.hpp"
#include "support/rank_threads.hpp"

#include <zerocomm/coll.h>
#include <zerocomm/mem.h>
#include <zerocomm/request.h>
#include <zerocomm/schedule.h>

#include <algorithm>
#include <array>

namespace zerocomm::test {
namespace {

using schedule::Collective;

struct Call {
  const schedule::Algorithm* row = nullptr;
  std::int32_t ranks = 1;
  std::int32_t root = 0;
  zc_dtype dtype = ZC_DTYPE_F32;
  zc_op op = ZC_OP_SUM;
  std::size_t count = 0;
  std::vector<std::size_t> counts{};  // of the _v forms
  bool in_place = false;
  bool shared = false;  // buffers of zc_mem_alloc
  bool keyed = false;   // as a request
};

std::string describe(const Call& call) {
  return format("%s by %s, p=%d root %d %s %s count %zu%s%s%s", schedule::collective_name(call.row->collective),
                std::string(call.row->name).c_str(), call.ranks, call.root, zc_dtype_name(call.dtype),
                zc_op_name(call.op), call.count, call.counts.empty() ? "" : " (v)", call.in_place ? " in place" : "",
                call.shared ? " shared" : "");
}

struct Expected {
  std::vector<Bytes> inputs, outputs;
};

Expected expect(const Call& call) {
  const auto ranks = static_cast<std::uint32_t>(call.ranks);
  const schedule::Schedule schedule = schedule::build(
      schedule::make_key(call.row->collective, call.row->name, ranks, static_cast<std::uint32_t>(call.root)));
  const schedule::Key& key = schedule.key;
  const auto blocks = static_cast<std::uint32_t>(schedule::block_count(key.collective, ranks));
  const bool whole = key.collective == Collective::all_reduce || key.collective == Collective::reduce ||
                     key.collective == Collective::broadcast;
  const schedule::Partition partition =
      !call.counts.empty() ? schedule::Partition::of_counts(call.counts)
                           : schedule::Partition::even(whole ? call.count : call.count * blocks, blocks);
  Expected result;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const schedule::ChunkRange chunks = schedule::input_chunks(key, rank);
    result.inputs.push_back(rough_input(call.dtype, 7 + call.count, static_cast<std::int32_t>(rank),
                                        partition.range(chunks.first, chunks.count).count));
  }
  schedule::Elements elements;
  elements.input = call.dtype;
  elements.op = call.op;
  result.outputs = schedule::run_oracle(schedule, partition, elements, result.inputs);
  return result;
}

// One buffer of a rank: guarded private memory, or memory that all ranks reach.
class Buffer {
 public:
  Buffer(zc_comm* comm, std::size_t bytes, bool shared) : comm_(comm), guarded_(shared ? 0 : bytes) {
    if (shared && bytes != 0) RANK_OK(zc_mem_alloc(comm, bytes, &memory_));
  }
  ~Buffer() {
    if (memory_ == nullptr) return;
    EXPECT_EQ(zc_mem_free(comm_, memory_), ZC_OK);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::byte* data() { return memory_ != nullptr ? static_cast<std::byte*>(memory_) : guarded_.data(); }
  bool intact() const { return guarded_.guards_intact(); }

 private:
  zc_comm* comm_;
  GuardedBuffer guarded_;
  void* memory_ = nullptr;
};

zc_status begin(zc_comm* comm, const Call& call, const std::byte* send, std::byte* recv, zc_request** request) {
  zc_coll_options options{};
  options.struct_size = sizeof options;
  const std::string name(call.row->name);
  options.algorithm = name.c_str();
  options.reproducible = ZC_OFF;
  options.request = request;
  const bool v = !call.counts.empty();
  switch (call.row->collective) {
    case Collective::all_reduce:
      return zc_all_reduce(comm, send, recv, call.count, call.dtype, call.op, &options);
    case Collective::reduce_scatter:
      return v ? zc_reduce_scatter_v(comm, send, recv, call.counts.data(), call.dtype, call.op, &options)
               : zc_reduce_scatter(comm, send, recv, call.count, call.dtype, call.op, &options);
    case Collective::all_gather:
      return v ? zc_all_gather_v(comm, send, recv, call.counts.data(), call.dtype, &options)
               : zc_all_gather(comm, send, recv, call.count, call.dtype, &options);
    case Collective::broadcast:
      return zc_broadcast(comm, recv, call.count, call.dtype, call.root, &options);
    case Collective::barrier:
      return zc_barrier(comm, &options);
    case Collective::reduce:
      return zc_reduce(comm, send, recv, call.count, call.dtype, call.op, call.root, &options);
    case Collective::all_to_all:
      return zc_all_to_all(comm, send, recv, call.count, call.dtype, &options);
    case Collective::gather_to_root:
      return zc_gather_to_root(comm, send, recv, call.count, call.dtype, call.root, &options);
    case Collective::scatter_from_root:
      return zc_scatter_from_root(comm, send, recv, call.count, call.dtype, call.root, &options);
  }
  return ZC_INTERNAL;
}

zc_status make(zc_comm* comm, const Call& call, const std::byte* send, std::byte* recv) {
  if (!call.keyed) return begin(comm, call, send, recv, nullptr);
  zc_request* request = nullptr;
  const zc_status status = begin(comm, call, send, recv, &request);
  return status == ZC_OK ? zc_request_wait(&request) : status;
}

// Where the smaller of the two buffers lies in the larger when a rank is in place.
std::size_t place_of(const Call& call, std::int32_t rank) {
  switch (call.row->collective) {
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::gather_to_root:
    case Collective::scatter_from_root: {
      std::size_t offset = static_cast<std::size_t>(rank) * call.count;
      if (!call.counts.empty()) {
        offset = 0;
        for (std::int32_t i = 0; i < rank; ++i) offset += call.counts[static_cast<std::size_t>(i)];
      }
      return offset * zc_dtype_bytes(call.dtype);
    }
    default:
      return 0;
  }
}

void run_rank(zc_comm* comm, std::int32_t rank, const Call& call, const Expected& expected) {
  const auto self = static_cast<std::size_t>(rank);
  const Bytes &input = expected.inputs[self], &output = expected.outputs[self];
  const bool one = call.in_place || call.row->collective == Collective::broadcast;
  Buffer first(comm, one ? std::max(input.size(), output.size()) : input.size(), call.shared);
  Buffer second(comm, one ? 0 : output.size(), call.shared);
  std::byte* send = first.data();
  std::byte* recv = one ? first.data() : second.data();
  if (one && input.size() < output.size() && !input.empty()) send += place_of(call, rank);
  if (one && output.size() < input.size() && !output.empty()) recv += place_of(call, rank);
  if (!input.empty()) std::memcpy(send, input.data(), input.size());
  const zc_status status = make(comm, call, send, recv);
  RANK_CHECK(status == ZC_OK, "%s: %s: %s", describe(call).c_str(), zc_status_name(status), zc_last_error());
  const std::size_t count = output.size() / zc_dtype_bytes(call.dtype);
  const std::size_t wrong = first_difference(call.dtype, recv, output.data(), count);
  RANK_CHECK(wrong == count, "%s: element %zu is %.17g, not %.17g", describe(call).c_str(), wrong,
             load_element(call.dtype, recv + wrong * zc_dtype_bytes(call.dtype)),
             load_element(call.dtype, output.data() + wrong * zc_dtype_bytes(call.dtype)));
  RANK_CHECK(first.intact() && second.intact(), "%s: memory outside the buffers was written", describe(call).c_str());
}

// A rank that has one block in place of the other ranks' as well: only where both buffers are used.
bool can_be_in_place(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter ||
         collective == Collective::all_gather || collective == Collective::reduce ||
         collective == Collective::all_to_all;
}

struct Types {
  zc_dtype dtype;
  zc_op op;
};
constexpr Types kTypes[] = {{ZC_DTYPE_I64, ZC_OP_SUM},  {ZC_DTYPE_BF16, ZC_OP_SUM}, {ZC_DTYPE_F32, ZC_OP_AVG},
                            {ZC_DTYPE_F16, ZC_OP_AVG},  {ZC_DTYPE_F32, ZC_OP_MAX},  {ZC_DTYPE_I8, ZC_OP_PROD},
                            {ZC_DTYPE_F64, ZC_OP_SUM},  {ZC_DTYPE_U8, ZC_OP_MIN},   {ZC_DTYPE_F32, ZC_OP_SUM},
                            {ZC_DTYPE_BF16, ZC_OP_PROD}};

std::vector<Call> calls_of(const schedule::Algorithm& row, std::int32_t ranks) {
  const auto p = static_cast<std::size_t>(ranks);
  // What the lengths of blocks do not depend on is tried with fewer of them where there are many ranks.
  const std::size_t counts[] = {0, 1, p - 1, p, p + 1, ranks <= 5 ? 10007u : 263u};
  std::vector<Call> calls;
  std::size_t turn = 0;
  for (const std::size_t count : counts) {
    Call call{&row, ranks};
    if (row.collective == Collective::barrier && count != 0) break;
    call.count = count;
    const Types& types = kTypes[turn++ % std::size(kTypes)];
    call.dtype = types.dtype;
    call.op = schedule::is_reduction(row.collective) ? types.op : ZC_OP_SUM;
    if (schedule::has_root(row.collective)) call.root = static_cast<std::int32_t>(turn * 5 % p);
    call.shared = turn % 2 == 0;
    call.keyed = (turn + p) % 3 == 0;
    calls.push_back(call);
    if (can_be_in_place(row.collective)) {
      call.in_place = true;
      calls.push_back(call);
    }
    if (row.collective == Collective::reduce_scatter || row.collective == Collective::all_gather) {
      for (std::size_t rank = 0; rank < p; ++rank) call.counts.push_back(rank * count / p + rank % 3);
      call.count = 0;
      calls.push_back(call);
    }
  }
  return calls;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::int32_t kRankCounts[] = {1, 2, 3, 5, 8};
#else
constexpr std::int32_t kRankCounts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 33};
#endif

TEST(ScheduleExecution, gives_the_bits_of_its_oracle) {
  for (const std::int32_t ranks : kRankCounts) {
    RankThreads group(ranks);
    for (const schedule::Algorithm& row : schedule::algorithms()) {
      const std::vector<Call> calls = calls_of(row, ranks);
      std::vector<Expected> expected;
      for (const Call& call : calls) expected.push_back(expect(call));
      group.run([&](zc_comm* comm, std::int32_t rank) {
        for (std::size_t i = 0; i < calls.size(); ++i) run_rank(comm, rank, calls[i], expected[i]);
      });
      ASSERT_FALSE(HasFailure());
    }
  }
}

// More than staging holds at once.
TEST(ScheduleExecution, takes_several_rounds_where_staging_is_short) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr std::size_t kCount = 70'003;
#else
  constexpr std::size_t kCount = 200'003;
#endif
  RankThreads group(3);
  for (const schedule::Algorithm& row : schedule::algorithms()) {
    if (row.collective == Collective::barrier) continue;
    for (const bool shared : {false, true}) {
      Call call{&row, 3};
      call.root = schedule::has_root(row.collective) ? 1 : 0;
      call.count = kCount;
      call.shared = shared;
      call.keyed = row.name != "direct";
      const Expected expected = expect(call);
      group.run([&](zc_comm* comm, std::int32_t rank) { run_rank(comm, rank, call, expected); });
      ASSERT_FALSE(HasFailure());
    }
  }
}

zc_coll_options by(const char* algorithm) {
  zc_coll_options options{};
  options.struct_size = sizeof options;
  options.algorithm = algorithm;
  return options;
}

TEST(ScheduleChoice, is_refused_where_it_would_change_bits_or_does_not_exist) {
  RankThreads(3).run([](zc_comm* comm, std::int32_t rank) {
    std::array<float, 6> send{}, recv{};
    zc_coll_options ring = by("ring");
    RANK_STATUS(ZC_UNSUPPORTED, zc_all_reduce(comm, send.data(), recv.data(), 6, ZC_DTYPE_F32, ZC_OP_SUM, &ring));
    RANK_ERROR_SAYS("reproducible = ZC_OFF");
    // No order changes these.
    RANK_OK(zc_all_reduce(comm, send.data(), recv.data(), 6, ZC_DTYPE_I32, ZC_OP_SUM, &ring));
    RANK_OK(zc_all_reduce(comm, send.data(), recv.data(), 6, ZC_DTYPE_F32, ZC_OP_MIN, &ring));
    ring.reproducible = ZC_OFF;
    RANK_OK(zc_all_reduce(comm, send.data(), recv.data(), 6, ZC_DTYPE_F32, ZC_OP_SUM, &ring));
    ring.premul = 0.5;
    RANK_STATUS(ZC_UNSUPPORTED,
                zc_all_reduce(comm, send.data(), recv.data(), 6, ZC_DTYPE_F32, ZC_OP_PREMUL_SUM, &ring));
    RANK_ERROR_SAYS("premul");
    zc_coll_options converting = by("ring");
    converting.reproducible = ZC_OFF;
    converting.output_dtype = ZC_DTYPE_BF16;
    RANK_STATUS(ZC_UNSUPPORTED, zc_all_reduce(comm, send.data(), recv.data(), 6, ZC_DTYPE_F32, ZC_OP_SUM, &converting));
    RANK_ERROR_SAYS("output dtype");
    const zc_coll_options unknown = by("gossip");
    RANK_STATUS(ZC_UNSUPPORTED, zc_all_gather(comm, send.data(), recv.data(), 2, ZC_DTYPE_F32, &unknown));
    RANK_ERROR_SAYS("circulant");
    // One rank by another schedule.
    const zc_coll_options mine = by(rank == 1 ? "ring" : "direct");
    RANK_STATUS(ZC_MISMATCH, zc_all_gather(comm, send.data(), recv.data(), 2, ZC_DTYPE_F32, &mine));
    RANK_ERROR_SAYS("schedule #");
    RANK_OK(zc_barrier(comm, nullptr));
  });
}

TEST(ScheduleChoice, of_one_pass_scales_and_converts) {
  RankThreads(3).run([](zc_comm* comm, std::int32_t rank) {
    const std::array<float, 3> send = {1.0f + static_cast<float>(rank), 4, 8};
    std::array<std::uint16_t, 3> direct{}, native{};
    zc_coll_options options{};
    options.struct_size = sizeof options;
    options.premul = 0.5;
    options.output_dtype = ZC_DTYPE_BF16;
    RANK_OK(zc_all_reduce(comm, send.data(), native.data(), 3, ZC_DTYPE_F32, ZC_OP_PREMUL_SUM, &options));
    options.algorithm = "direct";
    RANK_OK(zc_all_reduce(comm, send.data(), direct.data(), 3, ZC_DTYPE_F32, ZC_OP_PREMUL_SUM, &options));
    RANK_CHECK(direct == native && bf16_to_float(direct[0]) == 3.0f, "%g",
               static_cast<double>(bf16_to_float(direct[0])));
  });
}

// Rank 1 collects everything and hands it out: what a program may write by itself.
constexpr const char* kOwn = R"(schedule all_gather star ranks=3 root=0 chunks=3 lanes=1 scratch=0
rank 0
lane 0
  copy input[0] -> output[0]
  send to=1 output[0]
  recv from=1 output[1..2]
rank 1
lane 0
  copy input[1] -> output[1]
  recv from=0 output[0]
  recv from=2 output[2]
  send to=0 output[1..2]
  send to=2 output[0..1]
rank 2
lane 0
  copy input[2] -> output[2]
  send to=1 output[2]
  recv from=1 output[0..1]
)";

TEST(ScheduleChoice, runs_a_schedule_of_the_callers_own_and_refuses_a_wrong_one) {
  zc_schedule *own = nullptr, *wrong = nullptr;
  ASSERT_EQ(zc_schedule_parse(kOwn, &own), ZC_OK) << zc_last_error();
  std::string text = kOwn;
  text.replace(text.find("input[2] -> output[2]"), 21, "input[2] -> output[1]");
  ASSERT_EQ(zc_schedule_parse(text.c_str(), &wrong), ZC_OK) << zc_last_error();
  RankThreads(3).run([&](zc_comm* comm, std::int32_t rank) {
    const std::array<std::int32_t, 2> send = {rank * 2, rank * 2 + 1};
    std::array<std::int32_t, 6> recv{};
    zc_coll_options options{};
    options.struct_size = sizeof options;
    options.schedule = wrong;
    RANK_STATUS(ZC_ARGUMENT, zc_all_gather(comm, send.data(), recv.data(), 2, ZC_DTYPE_I32, &options));
    RANK_ERROR_SAYS("star is wrong");
    options.schedule = own;
    RANK_STATUS(ZC_ARGUMENT, zc_all_reduce(comm, recv.data(), recv.data(), 6, ZC_DTYPE_I32, ZC_OP_SUM, &options));
    RANK_ERROR_SAYS("the schedule is for all_gather");
    options.algorithm = "ring";
    RANK_STATUS(ZC_ARGUMENT, zc_all_gather(comm, send.data(), recv.data(), 2, ZC_DTYPE_I32, &options));
    options.algorithm = nullptr;
    for (int turn = 0; turn < 3; ++turn) {
      recv = {};
      RANK_OK(zc_all_gather(comm, send.data(), recv.data(), 2, ZC_DTYPE_I32, &options));
      for (std::int32_t i = 0; i < 6; ++i)
        RANK_CHECK(recv[static_cast<std::size_t>(i)] == i, "element %d is %d", i, recv[static_cast<std::size_t>(i)]);
    }
  });
  zc_schedule_destroy(own);
  zc_schedule_destroy(wrong);
}

// What a ring moves: p - 1 blocks to every rank, none of them twice.
TEST(ScheduleChoice, is_what_moves_the_bytes) {
  RankThreads(4).run([](zc_comm* comm, std::int32_t rank) {
    std::array<float, 400> all{};
    const zc_coll_options ring = by("ring");
    RANK_OK(zc_comm_stats_reset(comm));
    void* memory = nullptr;
    RANK_OK(zc_mem_alloc(comm, sizeof all, &memory));
    auto* const recv = static_cast<float*>(memory);
    recv[rank * 100] = static_cast<float>(rank);
    RANK_OK(zc_all_gather(comm, recv + rank * 100, recv, 100, ZC_DTYPE_F32, &ring));
    zc_stats stats{};
    stats.struct_size = sizeof stats;
    RANK_OK(zc_comm_stats(comm, &stats));
    RANK_CHECK(stats.moved_bytes[kNearLink] == 1200 && stats.logical_bytes == 1200, "%llu moved",
               static_cast<unsigned long long>(stats.moved_bytes[kNearLink]));
    for (int from = 0; from < 4; ++from) RANK_CHECK(recv[from * 100] == static_cast<float>(from), "block %d", from);
    RANK_OK(zc_barrier(comm, nullptr));
    RANK_OK(zc_mem_free(comm, memory));
  });
}

}  // namespace
}  // namespace zerocomm::test
