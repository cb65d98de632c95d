// The C++ twins of communicators, collectives, memory and windows: what they hand to the C API, and what they refuse.
#include <zerocomm/zerocomm.hpp>

#include "support/rank_threads.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using zerocomm::test::RankFailure;
using zerocomm::test::run_ranks;

constexpr std::int32_t kRanks = 3;

// Code of a rank throws.
void expect(bool good, const std::string& what) {
  if (!good) throw RankFailure(what);
}

std::vector<float> iota(std::size_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

// What a call throws.
std::string refusal(zc_status status, const std::function<void()>& call) {
  try {
    call();
  } catch (const zc::Error& error) {
    EXPECT_EQ(error.status(), status) << error.what();
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Twins, reductions_take_counts_and_dtypes_from_buffers) {
  run_ranks(kRanks, [](zc_comm* raw, std::int32_t rank) {
    const zc::CommView comm = raw;
    std::vector<float> values{1, 2, 3};
    std::array<float, 3> sums{};
    zc::all_reduce(comm, values, sums, ZC_OP_SUM);
    expect(sums == std::array<float, 3>{3, 6, 9}, "all_reduce");
    zc::all_reduce(comm, values, values, ZC_OP_MAX);
    expect(values == std::vector<float>{1, 2, 3}, "all_reduce in place");

    std::int64_t part[1] = {};
    const std::vector<std::int64_t> numbers{1, 2, 3};
    zc::reduce_scatter(comm, numbers, part, ZC_OP_SUM, {.tag = 0});
    expect(part[0] == 3 * (rank + 1), "reduce_scatter");

    const std::vector<std::size_t> counts{2, 0, 1};
    std::vector<std::int64_t> own(counts[static_cast<std::size_t>(rank)]);
    zc::reduce_scatter_v(comm, numbers, own, counts, ZC_OP_SUM);
    expect(own == (rank == 0   ? std::vector<std::int64_t>{3, 6}
                   : rank == 1 ? std::vector<std::int64_t>{}
                               : std::vector<std::int64_t>{9}),
           "reduce_scatter_v");

    std::vector<std::int64_t> result(rank == 1 ? 3 : 0);
    zc::reduce(comm, numbers, result, ZC_OP_SUM, 1);
    expect(rank != 1 || result == std::vector<std::int64_t>{3, 6, 9}, "reduce");
  });
}

TEST(Twins, a_reduction_of_bf16_into_float_keeps_the_sum_in_f32) {
  run_ranks(kRanks, [](zc_comm* comm, std::int32_t) {
    const std::array<float, 2> exact{1.0F, 0.00390625F};
    std::array<zc::bf16, 2> halves{};
    zc::cast(exact, halves);
    expect(halves[0].bits == 0x3f80, "cast");
    std::array<float, 2> sums{};
    zc::all_reduce(comm, halves, sums, ZC_OP_SUM);
    expect(sums == std::array<float, 2>{3.0F, 3 * 0.00390625F}, "bf16 into float");
  });
}

TEST(Twins, moves_put_every_element_in_its_place) {
  run_ranks(kRanks, [](zc_comm* comm, std::int32_t rank) {
    const auto r = static_cast<float>(rank);
    const auto own = iota(2, 10 * r);
    const std::vector<float> all{0, 1, 10, 11, 20, 21};
    std::vector<float> gathered(6);
    zc::all_gather(comm, own, gathered);
    expect(gathered == all, "all_gather");
    std::vector<float> in_place(6);
    const auto block = std::span(in_place).subspan(static_cast<std::size_t>(rank) * 2, 2);
    block[0] = own[0];
    block[1] = own[1];
    zc::all_gather(comm, block, in_place);
    expect(in_place == all, "all_gather in place");
    const std::vector<std::size_t> counts{2, 2, 2};
    std::vector<float> gathered_v(6);
    zc::all_gather_v(comm, own, gathered_v, counts);
    expect(gathered_v == all, "all_gather_v");

    std::vector<float> told = rank == 2 ? std::vector<float>{7, 8} : std::vector<float>(2);
    zc::broadcast(comm, told, 2);
    expect(told == std::vector<float>{7, 8}, "broadcast");

    std::vector<float> at_root(rank == 1 ? 6 : 0);
    zc::gather_to_root(comm, own, at_root, 1);
    expect(rank != 1 || at_root == all, "gather_to_root");
    std::vector<float> back(2);
    zc::scatter_from_root(comm, at_root, back, 1);
    expect(back == own, "scatter_from_root");

    const std::vector<float> to_each{r, r + 100, r + 200};
    std::vector<float> from_each(3);
    zc::all_to_all(comm, to_each, from_each);
    const std::vector<float> wanted{100 * r, 100 * r + 1, 100 * r + 2};
    expect(from_each == wanted, "all_to_all");
    const std::vector<std::size_t> ones{1, 1, 1};
    std::vector<float> from_each_v(3);
    zc::all_to_all_v(comm, to_each, ones, from_each_v, ones);
    expect(from_each_v == wanted, "all_to_all_v");
    zc::barrier(comm);
  });
}

TEST(Twins, wrong_extents_are_refused_before_the_call) {
  run_ranks(1, [](zc_comm* comm, std::int32_t) {
    std::vector<float> two(2), three(3);
    const std::vector<std::size_t> counts{1, 2};
    EXPECT_EQ(refusal(ZC_ARGUMENT, [&] { zc::all_reduce(comm, two, three, ZC_OP_SUM); }),
              "ARGUMENT: zc::all_reduce: recv has 3 elements and needs 2");
    EXPECT_EQ(refusal(ZC_ARGUMENT, [&] { zc::all_gather(comm, two, three); }),
              "ARGUMENT: zc::all_gather: recv has 3 elements and needs 2 for each of 1 ranks");
    EXPECT_EQ(refusal(ZC_ARGUMENT, [&] { zc::reduce_scatter(comm, two, three, ZC_OP_SUM); }),
              "ARGUMENT: zc::reduce_scatter: send has 2 elements and needs 3 for each of 1 ranks");
    EXPECT_EQ(refusal(ZC_ARGUMENT, [&] { zc::all_gather_v(comm, two, three, counts); }),
              "ARGUMENT: zc::all_gather_v: counts has 2 elements and needs 1");
    EXPECT_EQ(refusal(ZC_ARGUMENT, [&] { zc::all_to_all(comm, two, three); }),
              "ARGUMENT: zc::all_to_all: recv has 3 elements and needs 2");
    EXPECT_EQ(refusal(ZC_ARGUMENT, [&] { zc::gather_to_root(comm, two, three, 0); }),
              "ARGUMENT: zc::gather_to_root: recv has 3 elements and needs 2 for each of 1 ranks");
    EXPECT_EQ(refusal(ZC_ARGUMENT, [&] { zc::scatter_from_root(comm, two, three, 0); }),
              "ARGUMENT: zc::scatter_from_root: send has 2 elements and needs 3 for each of 1 ranks");
    EXPECT_EQ(refusal(ZC_ARGUMENT, [&] { zc::reduce(comm, two, three, ZC_OP_SUM, 0); }),
              "ARGUMENT: zc::reduce: recv has 3 elements and needs 2");
    zc_stats stats = zc::CommView(comm).stats();
    EXPECT_EQ(stats.collectives, 0U);
  });
}

TEST(Twins, errors_of_the_library_carry_status_and_text) {
  run_ranks(2, [](zc_comm* comm, std::int32_t rank) {
    std::vector<float> values(static_cast<std::size_t>(rank) + 1);
    try {
      zc::broadcast(comm, values, 0);
      expect(false, "a mismatch went through");
    } catch (const zc::Error& error) {
      expect(error.status() == ZC_MISMATCH && error.comm_usable() && error.scope() == ZC_SCOPE_CALL, error.what());
      expect(std::string(error.what()).starts_with("MISMATCH: "), error.what());
    }
    zc::barrier(comm);
  });
}

TEST(Twins, handles_move_and_own_once) {
  static_assert(!std::is_copy_constructible_v<zc::Comm> && std::is_nothrow_move_constructible_v<zc::Comm>);
  static_assert(!std::is_copy_assignable_v<zc::Window> && std::is_nothrow_move_assignable_v<zc::Window>);
  static_assert(!std::is_copy_constructible_v<zc::Request> && std::is_nothrow_destructible_v<zc::Request>);
  static_assert(!std::is_copy_constructible_v<zc::Zero> && std::is_nothrow_destructible_v<zc::HeldUnit>);
  static_assert(!std::is_copy_constructible_v<zc::Memory<float>> && std::is_nothrow_destructible_v<zc::Zero>);
  auto comms = zc::Comm::create_threads(2);
  zc_comm* const first = comms[0].get();
  zc::Comm moved = std::move(comms[0]);
  EXPECT_EQ(moved.get(), first);
  EXPECT_FALSE(comms[0]);
  EXPECT_EQ(moved.rank(), 0);
  EXPECT_EQ(moved.size(), 2);
  moved = std::move(comms[1]);  // the first rank is detached here
  EXPECT_EQ(moved.rank(), 1);
  auto& self = moved;
  moved = std::move(self);
  EXPECT_TRUE(moved);
  EXPECT_EQ(moved.close(), ZC_OK);
  EXPECT_FALSE(moved);
  EXPECT_EQ(moved.close(), ZC_OK);
}

TEST(Twins, a_communicator_is_asked_through_any_view) {
  auto comms = zc::Comm::create_threads(1, {.deadline = std::chrono::seconds(7)});
  const zc::CommView view = comms[0];
  EXPECT_EQ(view.info().deadline_ns, 7'000'000'000);
  view.note("here", 42);
  const auto record = view.flight(0, 0);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->value, 42U);
  EXPECT_FALSE(view.flight(0, 500));
  EXPECT_EQ(view.node(0), 0);
  EXPECT_EQ(view.status(), ZC_OK);
  EXPECT_GT(view.ledger().total_bytes, 0U);
  EXPECT_THROW((void)view.node(5), zc::Error);
  EXPECT_EQ(view.abort(), ZC_OK);
  EXPECT_EQ(view.status(), ZC_ABORTED);
}

TEST(Twins, memory_is_a_buffer_of_zeros) {
  auto comms = zc::Comm::create_threads(1);
  zc::Memory<float> memory(comms[0], 5);
  EXPECT_EQ(memory.size(), 5U);
  EXPECT_EQ(memory[4], 0.0F);
  memory[0] = 3;
  zc::all_reduce(comms[0], memory, memory, ZC_OP_SUM);
  EXPECT_EQ(memory[0], 3.0F);
  const std::size_t held = comms[0].ledger().memory_bytes;
  zc::Memory<float> other = std::move(memory);
  EXPECT_EQ(memory.size(), 0U);
  EXPECT_EQ(comms[0].ledger().memory_bytes, held);
  EXPECT_EQ(other.close(), ZC_OK);
  EXPECT_LT(comms[0].ledger().memory_bytes, held);
  EXPECT_THROW(zc::Memory<double>(comms[0], SIZE_MAX / 4), zc::Error);
}

TEST(Twins, a_contiguous_window_shows_all_parts) {
  run_ranks(2, [](zc_comm* raw, std::int32_t rank) {
    const zc::CommView comm = raw;
    const zc::Window window = zc::Window::create(comm, {.bytes = 4, .contiguous = true});
    window.part<std::int32_t>(rank)[0] = 5 + rank;
    const std::span<const std::byte> all = window.view();
    std::int32_t values[2] = {};
    expect(all.size() == sizeof values, "bytes");
    std::memcpy(values, all.data(), sizeof values);
    expect(values[0] == 5 && values[1] == 6, "parts of both ranks");
    zc::barrier(comm);
  });
}

TEST(Twins, a_window_hands_out_parts_and_words) {
  run_ranks(2, [](zc_comm* comm, std::int32_t rank) {
    const zc::Window window = zc::Window::create(comm, {.bytes = 12, .word_count = 2});
    expect(window.part<float>(rank).size() == 3, "part");
    bool refused = false;
    try {
      (void)window.part<double>(rank);
    } catch (const zc::Error& error) {
      refused = error.status() == ZC_ARGUMENT;
    }
    expect(refused, "12 bytes are no doubles");
    window.part<float>(rank)[1] = static_cast<float>(rank + 1);
    expect(!window.wait(1 - rank, 9, {.deadline = zc::kPoll}), "nobody announced 9");
    window.signal(1);
    const std::int32_t other = 1 - rank;
    expect(window.wait(other, 1), "wait");
    std::array<float, 2> read{};
    window.read(other, 4, read, 1);
    expect(read[0] == static_cast<float>(other + 1), "read");
    expect(window.add(rank, 1, 5) == 0 && window.load(rank, 1) == 5, "words");
    expect(window.compare_swap(rank, 1, 5, 6) == 5 && window.load(rank, 1) == 6, "compare_swap");
    zc::barrier(comm);
  });
}

}  // namespace
