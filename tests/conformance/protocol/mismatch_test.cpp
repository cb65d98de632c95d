// Ranks that disagree about a call: everybody learns of both sides, no byte moves, and the communicator lives.
#include "support/exact_data.hpp"
#include "support/guarded_buffer.hpp"
#include "support/rank_threads.hpp"

#include <zerocomm/coll.h>
#include <zerocomm/window.h>

#include <gtest/gtest.h>

namespace zerocomm::test {
namespace {

constexpr std::int32_t kRanks = 4;

// The arguments of a call, as one rank makes it.
struct Call {
  enum Which {
    all_reduce,
    reduce_scatter,
    reduce_scatter_v,
    all_gather,
    all_gather_v,
    broadcast,
    barrier,
    window
  } which = all_reduce;
  std::size_t count = 40;
  zc_dtype dtype = ZC_DTYPE_F32;
  zc_dtype output = ZC_DTYPE_NONE;
  zc_op op = ZC_OP_SUM;
  double premul = 0;
  std::int32_t root = 0;
  bool in_place = false;
  std::vector<std::size_t> counts = {10, 10, 10, 10};
};

zc_status make(zc_comm* comm, std::int32_t rank, const Call& call, std::byte* send, std::byte* recv) {
  zc_coll_options options{};
  options.struct_size = sizeof options;
  options.output_dtype = call.output;
  options.premul = call.premul;
  if (call.in_place) recv = send;
  switch (call.which) {
    case Call::all_reduce:
      return zc_all_reduce(comm, send, recv, call.count, call.dtype, call.op, &options);
    case Call::reduce_scatter:
      return zc_reduce_scatter(comm, send, recv, call.count / 4, call.dtype, call.op, &options);
    case Call::reduce_scatter_v:
      return zc_reduce_scatter_v(comm, send, recv, call.counts.data(), call.dtype, call.op, &options);
    case Call::all_gather:
      return zc_all_gather(comm, send, recv, call.count / 4, call.dtype, nullptr);
    case Call::all_gather_v:
      return zc_all_gather_v(comm, send, recv, call.counts.data(), call.dtype, nullptr);
    case Call::broadcast:
      return zc_broadcast(comm, rank == call.root ? send : recv, call.count, call.dtype, call.root, nullptr);
    case Call::barrier:
      return zc_barrier(comm, nullptr);
    default:
      break;
  }
  zc_window_config config{};
  config.struct_size = sizeof config;
  config.word_count = call.count;
  zc_window* made = nullptr;
  const zc_status status = zc_window_create(comm, &config, &made);
  zc_window_destroy(made);
  return status;
}

std::uint64_t mismatches(zc_comm* comm) {
  zc_stats stats{};
  stats.struct_size = sizeof stats;
  RANK_OK(zc_comm_stats(comm, &stats));
  for (int link = 0; link < ZC_LINK_COUNT_; ++link)
    RANK_CHECK(stats.moved_bytes[link] == 0, "a byte moved over link %d", link);
  return stats.mismatches;
}

// Rank `odd` makes the call `other`, all others make `call`; both texts stand in the error of every rank.
void expect_mismatch(const Call& call, const Call& other, const char* text, const char* other_text) {
  for (const std::int32_t odd : {0, 2}) {
    SCOPED_TRACE(other_text);
    run_ranks(kRanks, [&](zc_comm* comm, std::int32_t rank) {
      const Bytes input(1 << 16, std::byte{1});
      GuardedBuffer send(input.size()), recv(input.size());
      std::memcpy(send.data(), input.data(), input.size());
      RANK_STATUS(ZC_MISMATCH, make(comm, rank, rank == odd ? other : call, send.data(), recv.data()));
      RANK_ERROR_SAYS(text);
      RANK_ERROR_SAYS(other_text);
      RANK_ERROR_SAYS("rank " + std::to_string(odd) + " calls");
      RANK_CHECK(recv.untouched() && std::memcmp(send.data(), input.data(), input.size()) == 0, "a buffer was written");
      RANK_CHECK(mismatches(comm) == 1, "mismatches are counted");
      RANK_OK(zc_comm_status(comm));
      std::int32_t sum = rank;
      RANK_OK(zc_all_reduce(comm, &sum, &sum, 1, ZC_DTYPE_I32, ZC_OP_SUM, nullptr));
      RANK_CHECK(sum == 6, "the next sum is %d", sum);
    });
  }
}

Call changed(Call call, void (*change)(Call&)) {
  change(call);
  return call;
}

TEST(Mismatch, of_counts_is_never_success_with_a_wrong_tail) {
  for (const auto& [fewer, more] : {std::pair<std::size_t, std::size_t>{256000, 512000}, {2560, 5120}}) {
    run_ranks(4, [fewer = fewer, more = more](zc_comm* comm, std::int32_t rank) {
      const std::size_t count = rank == 0 ? fewer : more;
      const Bytes send = exact_input(ZC_DTYPE_F32, rank, count);
      GuardedBuffer recv(count * 4);
      RANK_STATUS(ZC_MISMATCH, zc_all_reduce(comm, send.data(), recv.data(), count, ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
      RANK_ERROR_SAYS("rank 0 calls zc_all_reduce(count " + std::to_string(fewer));
      RANK_ERROR_SAYS("calls zc_all_reduce(count " + std::to_string(more));
      RANK_CHECK(recv.untouched(), "recv was written");
    });
  }
}

TEST(Mismatch, of_every_argument_of_a_reduction_names_both_sides) {
  const Call base;
  expect_mismatch(base, changed(base, [](Call& c) { c.count = 41; }), "count 40,", "count 41,");
  expect_mismatch(base, changed(base, [](Call& c) { c.op = ZC_OP_MAX; }), "f32, sum", "f32, max");
  expect_mismatch(base, changed(base, [](Call& c) { c.dtype = ZC_DTYPE_I32; }), "count 40, f32", "count 40, i32");
  expect_mismatch(base, changed(base, [](Call& c) { c.output = ZC_DTYPE_BF16; }), "f32, sum", "f32 to bf16, sum");
  expect_mismatch(base, changed(base, [](Call& c) { c.in_place = true; }), "sum)", "sum, in place)");
  Call premul = base;
  premul.op = ZC_OP_PREMUL_SUM, premul.premul = 0.5;
  expect_mismatch(premul, changed(premul, [](Call& c) { c.premul = 0.25; }), "premul 0.5", "premul 0.25");
}

TEST(Mismatch, of_collectives_names_both) {
  const Call base;
  const auto of = [](Call::Which which) {
    Call call;
    call.which = which;
    return call;
  };
  expect_mismatch(base, of(Call::reduce_scatter), "zc_all_reduce(count 40", "zc_reduce_scatter(count 10");
  expect_mismatch(base, of(Call::barrier), "zc_all_reduce(", "zc_barrier()");
  expect_mismatch(of(Call::all_gather), of(Call::all_gather_v), "zc_all_gather(", "zc_all_gather_v(");
  expect_mismatch(of(Call::reduce_scatter), of(Call::reduce_scatter_v), "zc_reduce_scatter(", "zc_reduce_scatter_v(");
  expect_mismatch(of(Call::window), of(Call::broadcast), "zc_window_create(", "zc_broadcast(");
}

TEST(Mismatch, of_root_counts_and_words_names_both) {
  Call broadcast;
  broadcast.which = Call::broadcast;
  expect_mismatch(broadcast, changed(broadcast, [](Call& c) { c.root = 3; }), "root 0", "root 3");
  for (const Call::Which which : {Call::reduce_scatter_v, Call::all_gather_v}) {
    Call call;
    call.which = which;
    // The same sum, cut in another way.
    expect_mismatch(call, changed(call, [](Call& c) { c.counts = {10, 11, 9, 10}; }), "counts #", "counts #");
  }
  Call window;
  window.which = Call::window;
  expect_mismatch(window, changed(window, [](Call& c) { c.count = 7; }), "words 40", "words 7");
}

TEST(Mismatch, many_in_a_row_leave_the_communicator_as_it_was) {
  run_ranks(3, [](zc_comm* comm, std::int32_t rank) {
    for (std::int32_t turn = 0; turn < 300; ++turn) {
      const std::int32_t mine = rank;
      std::int32_t sum = -1;
      const std::size_t count = turn % 3 == 0 && turn / 3 % 3 == rank ? 0 : 1;
      const zc_status status = zc_all_reduce(comm, &mine, &sum, count, ZC_DTYPE_I32, ZC_OP_SUM, nullptr);
      RANK_CHECK(status == (turn % 3 == 0 ? ZC_MISMATCH : ZC_OK), "turn %d: %s", turn, zc_last_error());
      RANK_CHECK(sum == (turn % 3 == 0 ? -1 : 3), "turn %d: %d", turn, sum);
    }
  });
}

TEST(Mismatch, is_not_made_by_a_rank_whose_block_is_empty) {
  run_ranks(3, [](zc_comm* comm, std::int32_t rank) {
    const std::size_t counts[] = {4, 0, 3};
    float data[7] = {};
    const std::size_t offset = rank == 0 ? 0 : 4;
    // In place on all ranks; rank 1 has nothing to place.
    RANK_OK(zc_reduce_scatter_v(comm, data, data + offset, counts, ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
    RANK_OK(zc_all_gather_v(comm, rank == 1 ? nullptr : data + offset, data, counts, ZC_DTYPE_F32, nullptr));
    // The others have a place, and differ.
    float other[7] = {};
    RANK_STATUS(ZC_MISMATCH,
                zc_all_gather_v(comm, data + offset, rank == 2 ? other : data, counts, ZC_DTYPE_F32, nullptr));
  });
}

}  // namespace
}  // namespace zerocomm::test
