#include "schedule/bound.hpp"

#include "base/check.hpp"
#include "schedule/catalogue.hpp"
#include "schedule/schedule_text.hpp"

#include <gtest/gtest.h>

namespace zerocomm::schedule {
namespace {

std::vector<Reached> list(std::span<const Reached> conditions) { return {conditions.begin(), conditions.end()}; }

// Rank 0 uses one slot of scratch for two messages to rank 1.
constexpr const char* kReuse = R"(
schedule broadcast hand ranks=2 root=0 chunks=2 lanes=1 scratch=1
rank 0
lane 0
  copy input[0] -> scratch[0]
  send to=1 scratch[0]
  copy input[1] -> scratch[0]
  send to=1 scratch[0]
  copy input[0..1] -> output[0..1]
rank 1
lane 0
  recv from=0 output[1]
  recv from=0 output[0]
)";

TEST(BoundLane, a_receive_knows_the_send_it_belongs_to) {
  const BoundLane lane = bind_lane(from_text(kReuse), 1);
  ASSERT_EQ(lane.steps().size(), 2u);
  EXPECT_EQ(lane.steps()[0].peer_step, 1u);
  EXPECT_EQ(lane.steps()[1].peer_step, 3u);
  EXPECT_EQ(lane.steps()[1].peer_buf, Buf::scratch);
  EXPECT_EQ(lane.steps()[1].peer_chunk, 0u);
  EXPECT_EQ(lane.steps()[1].step.dst_chunk, 0u);
  EXPECT_TRUE(lane.at_end().empty());
}

TEST(BoundLane, a_write_waits_until_the_receiver_has_read) {
  const BoundLane lane = bind_lane(from_text(kReuse), 0);
  EXPECT_TRUE(lane.before(0).empty());
  EXPECT_EQ(list(lane.before(2)), (std::vector<Reached>{{1, 0}}));
  EXPECT_TRUE(lane.before(4).empty());
  EXPECT_EQ(list(lane.at_end()), (std::vector<Reached>{{1, 1}}));
}

// Of the two messages that rank 1 must have read only the later is named, and not at all after rank 1 said so.
TEST(BoundLane, what_is_known_is_not_waited_for_again) {
  const std::string head = R"(
schedule broadcast hand ranks=2 root=0 chunks=2 lanes=1 scratch=2
rank 0
lane 0
  copy input[0..1] -> scratch[0..1]
  send to=1 scratch[0]
  send to=1 scratch[1]
)";
  const std::string middle = R"(  copy input[0..1] -> scratch[0..1]
  copy input[0..1] -> output[0..1]
rank 1
lane 0
  recv from=0 output[0]
  recv from=0 output[1]
)";
  const BoundLane silent = bind_lane(from_text(head + middle), 0);
  EXPECT_EQ(list(silent.before(3)), (std::vector<Reached>{{1, 1}}));
  EXPECT_TRUE(silent.at_end().empty());
  const BoundLane told = bind_lane(from_text(head + "  recv from=1 none\n" + middle + "  send to=0 none\n"), 0);
  EXPECT_EQ(told.steps()[3].peer_step, 2u);
  EXPECT_TRUE(told.before(4).empty());
  EXPECT_TRUE(told.at_end().empty());
}

TEST(BoundLane, what_cannot_be_bound_is_refused) {
  EXPECT_THROW(bind_lane(from_text(kReuse), 2), Error);
  EXPECT_THROW(bind_lane(build(make_key(Collective::all_gather, "ring", 2, 0, 2)), 0), Error);
  Schedule open = from_text(kReuse);
  open.ranks[1].lanes[0].steps.pop_back();
  EXPECT_THROW(bind_lane(open, 0), Error);
  Schedule unlike = from_text(kReuse);
  unlike.ranks[1].lanes[0].steps[0].n_chunks = 2;
  EXPECT_THROW(bind_lane(unlike, 1), Error);
}

}  // namespace
}  // namespace zerocomm::schedule
