// Calls as ranks compare them and as people read them.
#include "comm/call.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <set>
#include <vector>

namespace zerocomm::comm {
namespace {

transport::CallRecord record(Collective collective) {
  transport::CallRecord call;
  call.collective = static_cast<std::uint32_t>(collective);
  call.count = 5;
  call.dtype = ZC_DTYPE_BF16;
  call.output_dtype = ZC_DTYPE_BF16;
  call.op = ZC_OP_SUM;
  return call;
}

TEST(Call, is_described_as_a_person_would_write_it) {
  transport::CallRecord call = record(Collective::all_reduce);
  EXPECT_EQ(describe(call), "zc_all_reduce(count 5, bf16, sum)");
  call.in_place = 1;
  EXPECT_EQ(describe(call), "zc_all_reduce(count 5, bf16, sum, in place)");
  call.in_place = transport::CallRecord::kEitherPlace;
  call.output_dtype = ZC_DTYPE_F32;
  EXPECT_EQ(describe(call), "zc_all_reduce(count 5, bf16 to f32, sum)");
  call.op = ZC_OP_PREMUL_SUM;
  call.premul_bits = std::bit_cast<std::uint64_t>(0.5);
  EXPECT_EQ(describe(call), "zc_all_reduce(count 5, bf16 to f32, premul_sum, premul 0.5)");
  call = record(Collective::broadcast);
  call.op = 0;
  call.root = 3;
  EXPECT_EQ(describe(call), "zc_broadcast(count 5, bf16, root 3)");
  EXPECT_EQ(describe(record(Collective::barrier)), "zc_barrier()");
  EXPECT_EQ(describe(transport::CallRecord{}), "no call");
}

TEST(Call, in_brief_keeps_what_tells_calls_apart) {
  EXPECT_EQ(describe_brief(pack_brief(record(Collective::all_reduce))), "zc_all_reduce(count 5, bf16, sum)");
  transport::CallRecord call = record(Collective::broadcast);
  call.op = 0;
  call.root = 3;
  EXPECT_EQ(describe_brief(pack_brief(call)), "zc_broadcast(count 5, bf16)");
  call.count = ~0ULL;
  EXPECT_EQ(describe_brief(pack_brief(call)), "zc_broadcast(count 1099511627775, bf16)");
}

TEST(Call, agrees_unless_something_differs) {
  const transport::CallRecord base = record(Collective::all_reduce);
  EXPECT_TRUE(same_call(base, base));
  const auto differs = [&](auto&& change) {
    transport::CallRecord other = base;
    change(other);
    return !same_call(base, other) && !same_call(other, base);
  };
  EXPECT_TRUE(differs([](auto& c) { c.collective = 2; }));
  EXPECT_TRUE(differs([](auto& c) { c.dtype = ZC_DTYPE_F32; }));
  EXPECT_TRUE(differs([](auto& c) { c.output_dtype = ZC_DTYPE_F32; }));
  EXPECT_TRUE(differs([](auto& c) { c.op = ZC_OP_AVG; }));
  EXPECT_TRUE(differs([](auto& c) { c.root = 0; }));
  EXPECT_TRUE(differs([](auto& c) { c.in_place = 1; }));
  EXPECT_TRUE(differs([](auto& c) { c.count = 6; }));
  EXPECT_TRUE(differs([](auto& c) { c.counts_hash = 1; }));
  EXPECT_TRUE(differs([](auto& c) { c.premul_bits = 1; }));
  EXPECT_FALSE(differs([](auto& c) { c.in_place = transport::CallRecord::kEitherPlace; }));
}

TEST(Call, hash_of_counts_depends_on_values_and_order_and_is_never_none) {
  std::set<std::uint64_t> seen;
  const std::vector<std::vector<std::size_t>> lists = {{},  {0},       {0, 0},    {1, 2},         {2, 1},
                                                       {3}, {1, 2, 0}, {0, 1, 2}, {1ULL << 40, 2}};
  for (const auto& list : lists) {
    const std::uint64_t hash = hash_counts(list.data(), list.size());
    EXPECT_NE(hash, 0u);
    EXPECT_EQ(hash, hash_counts(list.data(), list.size()));
    seen.insert(hash);
  }
  EXPECT_EQ(seen.size(), lists.size());
}

TEST(Relate, tells_disjoint_in_place_overlapping_and_empty_apart) {
  const std::array<char, 32> memory{};
  const char* const base = memory.data();
  const auto relation = [&](std::size_t send, std::size_t send_bytes, std::size_t recv, std::size_t recv_bytes) {
    // In place here means: both begin at 8.
    return relate(base + send, send_bytes, base + recv, recv_bytes, base + 8, base + 8);
  };
  EXPECT_EQ(relation(0, 8, 8, 8), Relation::disjoint);
  EXPECT_EQ(relation(16, 8, 8, 8), Relation::disjoint);
  EXPECT_EQ(relation(8, 8, 8, 8), Relation::in_place);
  EXPECT_EQ(relation(8, 16, 8, 4), Relation::in_place);
  EXPECT_EQ(relation(7, 2, 8, 8), Relation::overlapping);
  EXPECT_EQ(relation(15, 8, 8, 8), Relation::overlapping);
  EXPECT_EQ(relation(0, 32, 8, 1), Relation::overlapping);
  EXPECT_EQ(relation(0, 8, 0, 8), Relation::overlapping);
  EXPECT_EQ(relation(8, 0, 8, 8), Relation::empty);
  EXPECT_EQ(relate(nullptr, 0, nullptr, 0, nullptr, nullptr), Relation::empty);
  // One that would end beyond all addresses.
  const auto* const last = reinterpret_cast<const std::byte*>(UINTPTR_MAX - 7);
  EXPECT_EQ(relate(last, 100, last + 4, 2, nullptr, nullptr), Relation::overlapping);
  EXPECT_EQ(relate(base, 4, last, 100, nullptr, nullptr), Relation::disjoint);
}

}  // namespace
}  // namespace zerocomm::comm
