// One planted fault per property, each found and named.
#include "schedule/verify.hpp"

#include "base/check.hpp"
#include "schedule/catalogue.hpp"
#include "schedule/schedule_text.hpp"

#include <gtest/gtest.h>

namespace zerocomm::schedule {
namespace {

// Two ranks; every fault below is a small change of this.
constexpr const char* kSound = R"(
schedule all_reduce hand ranks=2 root=0 chunks=2 lanes=1 scratch=2
rank 0
lane 0
  send to=1 input[1]
  copy input[0] -> output[0] hold
  recv_reduce from=1 output[0]
  send to=1 output[0]
  recv from=1 output[1]
rank 1
lane 0
  send to=0 input[0]
  recv from=0 output[1] hold
  reduce input[1] -> output[1]
  send to=0 output[1]
  recv from=0 output[0]
)";

std::string changed(std::string_view from, std::string_view to) {
  std::string text = kSound;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// Exactly this property is broken; later ones are sound or could not be asked. `text` is part of the counter-example.
void expect_broken(const std::string& schedule, Property property, const std::string& text) {
  const Verdict verdict = verify(from_text(schedule));
  ASSERT_EQ(verdict.violations.size(), 1u) << verdict.text();
  EXPECT_EQ(verdict.violations[0].property, property) << verdict.text();
  EXPECT_EQ(verdict.of(property), Finding::broken);
  EXPECT_NE(verdict.text().find(text), std::string::npos) << verdict.text();
  EXPECT_NE(verdict.text().find(property_name(property)), std::string::npos) << verdict.text();
  EXPECT_FALSE(verdict.canonical);
}

TEST(Verifier, a_sound_schedule_is_accepted) {
  const Verdict verdict = verify(from_text(kSound));
  EXPECT_TRUE(verdict.ok()) << verdict.text();
  EXPECT_TRUE(verdict.canonical);
  EXPECT_EQ(verdict.text(), "ok, canonical");
  for (std::size_t i = 0; i + 1 < kProperties; ++i) EXPECT_EQ(verdict.findings[i], Finding::holds) << i;
  EXPECT_EQ(verdict.of(Property::cost), Finding::unknown);  // no row of the catalogue is called "hand"
}

TEST(Verifier, shape_is_checked_before_anything_is_run) {
  const auto expect_shape = [](const std::string& schedule, const std::string& why) {
    expect_broken(schedule, Property::shape, why);
    EXPECT_EQ(verify(from_text(schedule)).of(Property::matching), Finding::unknown);
  };
  expect_shape(changed("input[1]", "input[2]"),
               "rank 0 lane 0 step 0 `send to=1 input[2]`: chunks that this rank does not have");
  expect_shape(changed("input[1]", "input[1..4294967295]"), "chunks that this rank does not have");
  expect_shape(changed("to=1 input", "to=2 input"), "no such peer");
  expect_shape(changed("to=1 input", "to=0 input"), "a message to itself");
  expect_shape(changed("-> output[0] hold", "-> input[0] hold"), "a write to input");
  expect_shape(changed("recv_reduce from=1 output[0]", "recv_reduce from=1 output[1]"),
               "a held run that the next step");
  expect_shape(changed("recv_reduce from=1 output[0]", "recv_reduce from=1 output[0] hold"),
               "a held run that the next step");
  expect_shape(changed("recv from=1 output[1]", "recv from=1 output[1] hold"), "a held run that never ends");
  expect_shape(changed("send to=1 output[0]", "send to=1 output[0] hold"), "nothing to hold");
  expect_shape(changed("send to=1 output[0]", "send to=1 output[0] wait=1:0"), "a wait for no other lane");
  expect_shape(changed("reduce input[1] -> output[1]", "reduce none -> none"), "a held run");
  expect_shape(changed("copy input[0] -> output[0] hold", "copy none -> none"), "no chunks");
  expect_shape(changed("chunks=2", "chunks=3"), "chunks is no multiple of ranks");
  expect_shape(changed("scratch=2", "scratch=4294967294"), "more than 2^32 chunks");

  Schedule schedule = from_text(kSound);
  schedule.ranks[1].lanes[0].steps[0].dst_chunk = 7;
  EXPECT_EQ(verify(schedule).of(Property::shape), Finding::broken);
  schedule = from_text(kSound);
  schedule.ranks[1].lanes[0].steps[0].op_flags = 5;
  EXPECT_EQ(verify(schedule).of(Property::shape), Finding::broken);
  schedule = from_text(kSound);
  schedule.ranks.pop_back();
  EXPECT_EQ(verify(schedule).of(Property::shape), Finding::broken);
}

TEST(Verifier, V1_finds_a_message_that_nobody_receives) {
  expect_broken(changed("  recv from=0 output[0]\n", ""), Property::matching,
                "rank 0 lane 0 step 3 `send to=1 output[0]` is received by nobody");
}
TEST(Verifier, V1_finds_a_receive_that_nobody_serves) {
  expect_broken(changed("  send to=0 output[1]\n", ""), Property::matching,
                "rank 0 lane 0 step 4 `recv from=1 output[1]` is sent by nobody");
}
TEST(Verifier, V1_finds_ends_that_differ_in_chunks_or_codec) {
  expect_broken(changed("recv from=1 output[1]", "recv from=1 output[0..1]"), Property::matching,
                "which has another number of chunks");
  expect_broken(changed("send to=0 output[1]", "send to=0 output[1] codec=3"), Property::matching,
                "`send to=0 output[1] codec=3`, which has another codec");
}

TEST(Verifier, V2_finds_ranks_that_both_receive_first) {
  expect_broken(R"(schedule barrier hand ranks=2 root=0 chunks=0 lanes=1 scratch=0
rank 0
lane 0
  recv from=1 none
  send to=1 none
rank 1
lane 0
  recv from=0 none
  send to=0 none
)",
                Property::termination,
                "2 lanes cannot go on: rank 0 lane 0 step 0 `recv from=1 none`: no message comes");
}
TEST(Verifier, V2_grants_a_channel_one_message) {
  const std::string text = R"(schedule barrier hand ranks=2 root=0 chunks=0 lanes=1 scratch=0
rank 0
lane 0
  send to=1 none
  send to=1 none
  recv from=1 none
  recv from=1 none
rank 1
lane 0
  send to=0 none
  send to=0 none
  recv from=0 none
  recv from=0 none
)";
  expect_broken(text, Property::termination,
                "step 1 `send to=1 none`: earlier messages on this channel were not taken");
}
TEST(Verifier, V2_finds_a_circle_through_a_write_after_read_wait) {
  // The write in lane 0 waits until rank 1 takes the message; rank 1 takes it only after the write.
  expect_broken(R"(schedule broadcast hand ranks=2 root=0 chunks=1 lanes=2 scratch=1
rank 0
lane 0
  copy input[0] -> scratch[0]
  send to=1 scratch[0]
  copy input[0] -> scratch[0]
  copy input[0] -> output[0]
lane 1
  send to=1 none wait=0:2
rank 1
lane 0
  recv from=0 output[0] wait=1:0
lane 1
  recv from=0 none
)",
                Property::termination, "an earlier send of what it writes was not taken");
}
TEST(Verifier, V2_finds_a_circle_of_waits) {
  expect_broken(R"(schedule broadcast hand ranks=1 root=0 chunks=1 lanes=2 scratch=1
rank 0
lane 0
  copy input[0] -> output[0] wait=1:0
lane 1
  copy input[0] -> scratch[0] wait=0:0
)",
                Property::termination, "the step it waits for is not done");
}

TEST(Verifier, V3_finds_a_contribution_that_is_missing_or_twice) {
  expect_broken(changed("  reduce input[1] -> output[1]\n",
                        "  reduce input[1] -> output[1] hold\n  reduce input[1] -> output[1]\n"),
                Property::result, "output[1] of rank 0 holds the contribution of rank 1 2 times, not 1");
  const Verdict verdict = verify(
      from_text(changed("recv_reduce from=1 output[0]", "reduce input[0] -> output[0]\n  recv from=1 scratch[0]")));
  EXPECT_EQ(verdict.of(Property::result), Finding::broken);
}
TEST(Verifier, V3_finds_the_wrong_chunk) {
  const std::string text = changed("send to=0 input[0]", "send to=0 input[1]");
  const Verdict verdict = verify(from_text(text));
  ASSERT_FALSE(verdict.ok());
  EXPECT_EQ(verdict.violations[0].property, Property::result);
  EXPECT_NE(verdict.text().find("output[0] of rank 0 holds contributions to other chunks"), std::string::npos);
}
TEST(Verifier, V3_finds_an_output_that_was_never_written) {
  expect_broken(
      "schedule broadcast hand ranks=1 root=0 chunks=2 lanes=1 scratch=0\nrank 0\nlane 0\n  copy input[0] -> "
      "output[0]\n",
      Property::result, "output[1] of rank 0 is undefined");
}
TEST(Verifier, V3_finds_a_barrier_that_lets_a_rank_go_early) {
  expect_broken(R"(schedule barrier hand ranks=3 root=0 chunks=0 lanes=1 scratch=0
rank 0
lane 0
  send to=1 none
rank 1
lane 0
  recv from=0 none
  send to=2 none
rank 2
lane 0
  recv from=1 none
)",
                Property::result, "rank 0 may leave before rank 1 came");
}

// Every rank adds in its own order, beginning with itself.
constexpr const char* kOwnOrder = R"(schedule all_reduce hand ranks=3 root=0 chunks=3 lanes=1 scratch=0
rank 0
lane 0
  send to=1 input[0..2]
  send to=2 input[0..2]
  copy input[0..2] -> output[0..2] hold
  recv_reduce from=1 output[0..2] hold
  recv_reduce from=2 output[0..2]
rank 1
lane 0
  send to=0 input[0..2]
  send to=2 input[0..2]
  copy input[0..2] -> output[0..2] hold
  recv_reduce from=2 output[0..2] hold
  recv_reduce from=0 output[0..2]
rank 2
lane 0
  send to=0 input[0..2]
  send to=1 input[0..2]
  recv from=0 output[0..2] hold
  recv_reduce from=1 output[0..2] hold
  reduce input[0..2] -> output[0..2]
)";
TEST(Verifier, V4_finds_ranks_that_add_in_their_own_order) {
  expect_broken(
      kOwnOrder, Property::agreement,
      "output[0] is round (x2[0] + (x0[0] + x1[0])) on rank 0, but round (x0[0] + (x1[0] + x2[0])) on rank 1");
}
TEST(Verifier, V4_takes_a_plus_b_for_b_plus_a) {
  const Verdict verdict = verify(from_text(changed("recv from=0 output[1] hold\n  reduce input[1] -> output[1]",
                                                   "copy input[1] -> output[1] hold\n  recv_reduce from=0 output[1]")));
  EXPECT_TRUE(verdict.ok()) << verdict.text();
  EXPECT_TRUE(verdict.canonical);
}
TEST(Verifier, V4_agreement_in_another_order_is_not_canonical) {
  // One owner adds everything, from the last rank down.
  const Verdict verdict = verify(from_text(R"(schedule reduce_scatter hand ranks=3 root=0 chunks=3 lanes=1 scratch=0
rank 0
lane 0
  send to=1 input[1]
  send to=2 input[2]
  recv from=2 output[0] hold
  recv_reduce from=1 output[0] hold
  reduce input[0] -> output[0]
rank 1
lane 0
  send to=0 input[0]
  send to=2 input[2]
  recv from=0 output[1] hold
  reduce input[1] -> output[1] hold
  recv_reduce from=2 output[1]
rank 2
lane 0
  send to=0 input[0]
  send to=1 input[1]
  recv from=0 output[2] hold
  recv_reduce from=1 output[2] hold
  reduce input[2] -> output[2]
)"));
  EXPECT_TRUE(verdict.ok()) << verdict.text();
  EXPECT_FALSE(verdict.canonical);
  EXPECT_EQ(verdict.text(), "ok");
}
TEST(Verifier, V4_a_sum_rounded_on_the_way_is_not_canonical) {
  Schedule schedule = build(make_key(Collective::reduce_scatter, "direct", 3));
  schedule.ranks[0].lanes[0].steps[3].op_flags = static_cast<std::uint8_t>(Op::recv_reduce);  // was held
  const Verdict verdict = verify(schedule);
  EXPECT_TRUE(verdict.ok()) << verdict.text();
  EXPECT_FALSE(verdict.canonical);
}

// One rank, two lanes: lane 1 uses what lane 0 wrote.
std::string two_lanes(const std::string& wait) {
  return "schedule broadcast hand ranks=1 root=0 chunks=1 lanes=2 scratch=1\nrank 0\nlane 0\n"
         "  copy input[0] -> scratch[0]\nlane 1\n  copy scratch[0] -> output[0]" +
         wait + "\n";
}
TEST(Verifier, V5_finds_lanes_that_nothing_orders) {
  expect_broken(two_lanes(""), Property::races,
                "rank 0 lane 1 step 0 `copy scratch[0] -> output[0]` and rank 0 lane 0 step 0 `copy input[0] -> "
                "scratch[0]` touch scratch slot 0 and nothing orders them");
}
TEST(Verifier, V5_a_wait_orders_lanes) { EXPECT_TRUE(verify(from_text(two_lanes(" wait=0:0"))).ok()); }

std::string ordered_by_message(const std::string& scratch_reader) {
  return R"(schedule broadcast hand ranks=2 root=0 chunks=1 lanes=2 scratch=2
rank 0
lane 0
  copy input[0] -> scratch[0]
  send to=1 none
lane 1
)" + scratch_reader +
         R"(  copy scratch[0] -> output[0]
  send to=1 output[0]
rank 1
lane 0
  recv from=0 none
lane 1
  send to=0 none wait=0:0
  recv from=0 output[0]
)";
}
TEST(Verifier, V5_a_message_there_and_back_orders_lanes) {
  const Verdict verdict = verify(from_text(ordered_by_message("  recv from=1 none\n")));
  EXPECT_TRUE(verdict.ok()) << verdict.text();
}
TEST(Verifier, V5_a_post_is_not_yet_a_read) {
  // Rank 0 hears from rank 2 that the message to rank 1 was posted, not that it was taken, and overwrites it.
  expect_broken(R"(schedule broadcast hand ranks=3 root=0 chunks=1 lanes=2 scratch=2
rank 0
lane 0
  copy input[0] -> scratch[0]
  copy input[0] -> scratch[1]
  send to=1 scratch[0]
  send to=2 none
  copy input[0] -> output[0]
  send to=2 output[0]
lane 1
  recv from=2 none
  copy scratch[1] -> scratch[0]
rank 1
lane 0
  recv from=0 output[0]
lane 1
rank 2
lane 0
  recv from=0 none
  recv from=0 output[0]
lane 1
  send to=0 none wait=0:0
)",
                Property::races,
                "rank 0 lane 1 step 1 `copy scratch[1] -> scratch[0]` and rank 0 lane 0 step 2 `send to=1 scratch[0]` "
                "touch scratch slot 0");
}

TEST(Verifier, V6_finds_scratch_that_is_read_before_it_is_written) {
  expect_broken(changed("send to=0 input[0]", "copy scratch[0] -> scratch[1]\n  send to=0 input[0]"),
                Property::stale_reads,
                "rank 1 lane 0 step 0 `copy scratch[0] -> scratch[1]` reads scratch[0], which nothing defined has been "
                "written to");
}
TEST(Verifier, V6_finds_an_input_that_is_overwritten_in_place) {
  expect_broken(changed("recv from=0 output[1] hold", "recv from=0 output[1]"), Property::stale_reads,
                "`reduce input[1] -> output[1]` reads input[1]; in place that was overwritten by rank 1 lane 0 step 1");
}

// Rank 2's contribution is encoded twice.
std::string two_hops(const std::string& loss) {
  return "schedule reduce hand ranks=3 root=0 chunks=1 lanes=1 scratch=1" + loss + R"(
rank 0
lane 0
  copy input[0] -> output[0] hold
  recv_reduce from=1 output[0] codec=1
rank 1
lane 0
  copy input[0] -> scratch[0] hold
  recv_reduce from=2 scratch[0] codec=1
  send to=0 scratch[0] codec=1
rank 2
lane 0
  send to=1 input[0] codec=1
)";
}
TEST(Verifier, V7_finds_more_lossy_encodings_than_declared) {
  expect_broken(two_hops(" loss=1"), Property::loss,
                "output[0] of rank 0 holds something that was encoded 2 times, not at most loss=1");
  expect_broken(two_hops(""), Property::loss, "not at most loss=0");
}
TEST(Verifier, V7_grants_what_is_declared) {
  const Verdict verdict = verify(from_text(two_hops(" loss=2")));
  EXPECT_TRUE(verdict.ok()) << verdict.text();
  EXPECT_FALSE(verdict.canonical);
}
TEST(Verifier, V4_finds_a_copy_that_was_encoded_beside_one_that_was_not) {
  expect_broken(R"(schedule broadcast hand ranks=2 root=0 chunks=1 lanes=1 scratch=0 loss=1
rank 0
lane 0
  copy input[0] -> output[0]
  send to=1 output[0] codec=7
rank 1
lane 0
  recv from=0 output[0] codec=7
)",
                Property::agreement, "output[0] is x0[0] on rank 0, but codec7(x0[0]) on rank 1");
}

TEST(Verifier, V8_finds_a_message_more_than_the_closed_form_has) {
  Schedule schedule = build(make_key(Collective::reduce_scatter, "direct", 3));
  schedule.ranks[0].lanes[0].steps.push_back(from_text("schedule barrier x ranks=1 root=0 chunks=0 lanes=1 scratch=0\n"
                                                       "rank 0\nlane 0\n  send to=1 none\n")
                                                 .ranks[0]
                                                 .lanes[0]
                                                 .steps[0]);
  schedule.ranks[1].lanes[0].steps.push_back(from_text("schedule barrier x ranks=1 root=0 chunks=0 lanes=1 scratch=0\n"
                                                       "rank 0\nlane 0\n  recv from=0 none\n")
                                                 .ranks[0]
                                                 .lanes[0]
                                                 .steps[0]);
  expect_broken(to_text(schedule), Property::cost,
                "rank 0 sends 3 messages with 2 chunks and receives 2 with 2, but the closed form sends 2 messages");
  schedule.key.algorithm = "hand";  // a schedule of its own promises no cost
  EXPECT_TRUE(verify(schedule).ok());
}
TEST(Verifier, V8_finds_a_path_that_is_longer_than_the_closed_form) {
  Schedule schedule = build(make_key(Collective::barrier, "direct", 3));
  for (RankSchedule& rank : schedule.ranks) std::swap(rank.lanes[0].steps[1], rank.lanes[0].steps[2]);
  expect_broken(to_text(schedule), Property::cost, "the critical path is 2a, not 1a");
}

TEST(Verifier, refuses_more_chunks_than_it_can_hold) {
  EXPECT_THROW(verify(build({Collective::broadcast, "direct", 2, 0, 4000000000u, 1})), Error);
  EXPECT_THROW(cost_of(build({Collective::broadcast, "direct", 2, 0, 4000000u, 1}), Partition::unit(4000000)), Error);
}

TEST(Verifier, refuses_more_lanes_than_it_can_hold) {
  const Schedule schedule = build(make_key(Collective::barrier, "direct", 257));
  EXPECT_THROW(verify(schedule), Error);
}

}  // namespace
}  // namespace zerocomm::schedule
