#include "schedule/anti_deps.hpp"

#include "schedule/builder.hpp"

#include <gtest/gtest.h>

namespace zerocomm::schedule {
namespace {

std::vector<SendRef> waits(const AntiDeps& deps, std::uint32_t lane, std::uint32_t step) {
  const std::span<const SendRef> found = deps.before(lane, step);
  return {found.begin(), found.end()};
}
using Sends = std::vector<SendRef>;

const Key kKey{Collective::all_reduce, "hand", 4, 0, 8, 1};
constexpr ChunkRange chunks(std::uint32_t first, std::uint32_t count) { return {first, count}; }

TEST(AntiDeps, a_write_waits_for_earlier_sends_of_what_it_writes) {
  const RankSchedule rank{{Lane{{send(1, input(chunks(0, 2))), send(2, output(chunks(1, 2))),
                                 send(3, input(chunks(4, 1))), recv(1, output(chunks(1, 1)))}}}};
  EXPECT_EQ(waits(AntiDeps(kKey, rank), 0, 3), (Sends{{0, 0}, {0, 1}}));  // in place, input 1 and output 1 are one
}

TEST(AntiDeps, a_later_send_is_nobodys_concern) {
  const RankSchedule rank{{Lane{{recv(1, output(chunks(0, 1))), send(1, output(chunks(0, 1)))}}}};
  EXPECT_TRUE(waits(AntiDeps(kKey, rank), 0, 0).empty());
}

TEST(AntiDeps, scratch_does_not_overlap_the_vector) {
  const RankSchedule rank{{Lane{{send(1, input(chunks(0, 1))), recv(1, scratch(chunks(0, 1)))}}}};
  EXPECT_TRUE(waits(AntiDeps(kKey, rank), 0, 1).empty());
}

TEST(AntiDeps, a_send_is_waited_for_once) {
  const RankSchedule rank{
      {Lane{{send(1, input(chunks(0, 2))), recv(1, output(chunks(0, 1))), recv(1, output(chunks(1, 1)))}}}};
  const AntiDeps deps(kKey, rank);
  EXPECT_EQ(waits(deps, 0, 1), (Sends{{0, 0}}));
  EXPECT_TRUE(waits(deps, 0, 2).empty());
}

TEST(AntiDeps, a_held_run_waits_where_it_stores) {
  const RankSchedule rank{{Lane{
      {send(1, output(chunks(0, 1))), held(recv(1, output(chunks(0, 1)))), recv_reduce(2, output(chunks(0, 1)))}}}};
  const AntiDeps deps(kKey, rank);
  EXPECT_TRUE(waits(deps, 0, 1).empty());
  EXPECT_EQ(waits(deps, 0, 2), (Sends{{0, 0}}));
}

TEST(AntiDeps, sends_of_another_lane_count_if_a_wait_leads_there) {
  const Lane sender{{send(1, input(chunks(0, 1))), send(2, input(chunks(0, 1))), send(3, input(chunks(0, 1)))}};
  const Lane middle{{after(copy(input(chunks(5, 1)), output(chunks(5, 1))), 0, 1)}};
  const Lane ordered{{after(recv(1, output(chunks(0, 1))), 1, 0)}};
  const Lane unordered{{recv(1, output(chunks(0, 1)))}};
  const RankSchedule rank{{sender, middle, ordered, unordered}};
  const AntiDeps deps(kKey, rank);
  EXPECT_EQ(waits(deps, 2, 0), (Sends{{0, 0}, {0, 1}}));
  EXPECT_TRUE(waits(deps, 3, 0).empty());
}

TEST(AntiDeps, a_circle_of_waits_has_none_and_ends) {
  const Lane a{{after(send(1, input(chunks(0, 1))), 1, 0), recv(1, output(chunks(0, 1)))}};
  const Lane b{{after(send(1, input(chunks(1, 1))), 0, 0)}};
  const AntiDeps deps(kKey, RankSchedule{{a, b}});
  EXPECT_TRUE(waits(deps, 0, 1).empty());
}

}  // namespace
}  // namespace zerocomm::schedule
