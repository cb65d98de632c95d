// Legal and illegal calls of a rank's life, and the actions of the legal ones.
#include "zero/publication.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace zerocomm::zero {
namespace {

constexpr std::int32_t kMost = 4;

std::vector<Action> list(const Verdict& verdict) {
  EXPECT_EQ(verdict.status, ZC_OK) << verdict.text;
  return {verdict.actions.begin(), verdict.actions.end()};
}

void expect_refused(const Verdict& verdict, const std::string& part, zc_status status = ZC_STATE) {
  EXPECT_EQ(verdict.status, status);
  EXPECT_NE(verdict.text.find(part), std::string::npos) << verdict.text;
  EXPECT_TRUE(verdict.actions.empty());
}

void run_pass(Publication& publication, zc_phase phase) {
  ASSERT_EQ(publication.begin(phase, kMost).status, ZC_OK);
  ASSERT_EQ(publication.end().status, ZC_OK);
}

const std::vector<Action> kClose = {{Step::drain}, {Step::drop_cache}, {Step::set_done, 0}};

std::vector<Action> after_close(std::initializer_list<Action> more) {
  std::vector<Action> all = kClose;
  all.insert(all.end(), more);
  return all;
}

TEST(Publication, a_step_of_stage_3_waits_for_readers_before_the_update_and_for_nobody_after_it) {
  Publication publication(ZC_STAGE_3);
  run_pass(publication, ZC_PHASE_ONLY);
  EXPECT_EQ(list(publication.update_begin(0)), after_close({{Step::wait_all_done, 0}}));
  EXPECT_EQ(list(publication.publish()), (std::vector<Action>{{Step::set_published, 1, true}}));
  EXPECT_EQ(publication.published().generation, 1U);
}

TEST(Publication, stages_1_and_2_bring_replicas_up_to_date_in_publish) {
  for (const zc_stage stage : {ZC_STAGE_1, ZC_STAGE_2}) {
    Publication publication(stage);
    run_pass(publication, ZC_PHASE_ONLY);
    EXPECT_EQ(list(publication.update_begin(0)), after_close({{Step::wait_all_done, 0}}));
    EXPECT_EQ(
        list(publication.publish()),
        (std::vector<Action>{{Step::set_published, 1, true}, {Step::wait_all_published, 1}, {Step::pull_replicas, 1}}));
  }
}

TEST(Publication, stage_0_waits_for_nobody) {
  Publication publication(ZC_STAGE_0);
  EXPECT_EQ(list(publication.update_begin(0)), kClose);
  EXPECT_EQ(list(publication.publish()), (std::vector<Action>{{Step::set_published, 1, true}}));
}

TEST(Publication, done_is_said_only_after_copies_are_drained) {
  Publication publication(ZC_STAGE_3);
  const std::vector<Action> actions = list(publication.update_begin(0));
  EXPECT_EQ(actions.front().step, Step::drain);
  EXPECT_EQ(actions.back().step, Step::wait_all_done);
}

TEST(Publication, publish_unchanged_waits_for_nobody_in_every_stage) {
  for (const zc_stage stage : {ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3}) {
    Publication bare(stage);
    EXPECT_EQ(list(bare.publish_unchanged(0)), after_close({{Step::set_published, 1, false}}));
    Publication opened(stage);
    ASSERT_EQ(opened.update_begin(0).status, ZC_OK);
    EXPECT_EQ(list(opened.publish_unchanged(0)), (std::vector<Action>{{Step::set_published, 1, false}}));
    EXPECT_FALSE(opened.update_open());
  }
}

TEST(Publication, a_pass_pins_what_its_own_rank_published_last) {
  Publication publication(ZC_STAGE_3);
  ASSERT_EQ(publication.publish_unchanged(0).status, ZC_OK);
  ASSERT_EQ(publication.publish_unchanged(0).status, ZC_OK);
  ASSERT_EQ(publication.begin(ZC_PHASE_EVAL, kMost).status, ZC_OK);
  EXPECT_EQ(publication.pinned(), 2U);
}

TEST(Publication, a_pass_is_refused_while_another_is_open_or_the_update_is) {
  Publication publication(ZC_STAGE_3);
  ASSERT_EQ(publication.begin(ZC_PHASE_ONLY, kMost).status, ZC_OK);
  expect_refused(publication.begin(ZC_PHASE_EVAL, kMost), "phase ONLY is open");
  ASSERT_EQ(publication.end().status, ZC_OK);
  ASSERT_EQ(publication.update_begin(0).status, ZC_OK);
  expect_refused(publication.begin(ZC_PHASE_EVAL, kMost), "update is open");
  expect_refused(publication.acquire(0), "update is open");
}

TEST(Publication, the_update_is_refused_while_something_is_open) {
  Publication publication(ZC_STAGE_3);
  expect_refused(publication.update_begin(2), "2 units are held");
  expect_refused(publication.publish_unchanged(1), "1 units are held");
  ASSERT_EQ(publication.begin(ZC_PHASE_FIRST, kMost).status, ZC_OK);
  expect_refused(publication.update_begin(0), "phase FIRST is open");
  expect_refused(publication.publish_unchanged(0), "phase FIRST is open");
  ASSERT_EQ(publication.end().status, ZC_OK);
  expect_refused(publication.update_begin(0), "1 gradient passes since FIRST");
  expect_refused(publication.publish_unchanged(0), "middle of a step");
  run_pass(publication, ZC_PHASE_LAST);
  ASSERT_EQ(publication.update_begin(0).status, ZC_OK);
  expect_refused(publication.update_begin(0), "open already");
}

TEST(Publication, phases_come_as_only_or_as_first_middle_last) {
  Publication publication(ZC_STAGE_2);
  expect_refused(publication.begin(ZC_PHASE_MIDDLE, kMost), "no step is open");
  expect_refused(publication.begin(ZC_PHASE_LAST, kMost), "no step is open");
  run_pass(publication, ZC_PHASE_FIRST);
  expect_refused(publication.begin(ZC_PHASE_ONLY, kMost), "1 passes since FIRST");
  expect_refused(publication.begin(ZC_PHASE_FIRST, kMost), "LAST has not come");
  run_pass(publication, ZC_PHASE_MIDDLE);
  run_pass(publication, ZC_PHASE_EVAL);  // between micro-steps
  run_pass(publication, ZC_PHASE_MIDDLE);
  run_pass(publication, ZC_PHASE_LAST);
  EXPECT_EQ(publication.passes_in_step(), 4);
  EXPECT_EQ(publication.gradient_passes(), 4U);
  EXPECT_TRUE(publication.step_complete());
  expect_refused(publication.begin(ZC_PHASE_NONE, kMost), "say EVAL", ZC_ARGUMENT);
  expect_refused(publication.begin(static_cast<zc_phase>(6), kMost), "phase 6", ZC_ARGUMENT);
}

TEST(Publication, a_step_has_at_most_as_many_passes_as_the_engine_allows) {
  Publication publication(ZC_STAGE_2);
  expect_refused(publication.begin(ZC_PHASE_FIRST, 1), "allows 1 passes");
  run_pass(publication, ZC_PHASE_FIRST);
  expect_refused(publication.begin(ZC_PHASE_MIDDLE, 2), "gradient pass 2");  // no room for LAST
  EXPECT_EQ(publication.passes_in_step(), 1);
  EXPECT_EQ(publication.begin(ZC_PHASE_LAST, 2).status, ZC_OK);
}

TEST(Publication, a_step_left_half_done_is_not_made_complete_by_an_evaluation) {
  Publication publication(ZC_STAGE_2);
  run_pass(publication, ZC_PHASE_FIRST);
  run_pass(publication, ZC_PHASE_EVAL);
  EXPECT_FALSE(publication.step_complete());
  expect_refused(publication.norm(), "1 passes since FIRST");
}

TEST(Publication, gradients_are_readable_from_the_end_of_a_step_to_its_publication) {
  Publication publication(ZC_STAGE_1);
  expect_refused(publication.norm(), "no step was completed");
  ASSERT_EQ(publication.begin(ZC_PHASE_ONLY, kMost).status, ZC_OK);
  EXPECT_TRUE(publication.gradients_open());
  expect_refused(publication.norm(), "pass with gradients is open");
  ASSERT_EQ(publication.end().status, ZC_OK);
  EXPECT_EQ(publication.norm().status, ZC_OK);
  run_pass(publication, ZC_PHASE_EVAL);
  EXPECT_EQ(publication.norm().status, ZC_OK);
  ASSERT_EQ(publication.update_begin(0).status, ZC_OK);
  EXPECT_EQ(publication.norm().status, ZC_OK);
  ASSERT_EQ(publication.publish().status, ZC_OK);
  expect_refused(publication.norm(), "no step was completed");
}

TEST(Publication, calls_that_need_an_open_pass_or_update_are_refused_without_it) {
  Publication publication(ZC_STAGE_3);
  expect_refused(publication.end(), "no pass is open");
  expect_refused(publication.acquire(0), "no pass is open");
  expect_refused(publication.cast(), "update_begin comes first");
  expect_refused(publication.publish(), "without zc_zero_update_begin");
  EXPECT_EQ(publication.read_outside().status, ZC_OK);
  ASSERT_EQ(publication.update_begin(0).status, ZC_OK);  // no gradients needed: the caller may edit weights
  EXPECT_EQ(publication.cast().status, ZC_OK);
  expect_refused(publication.read_outside(), "not whole before");
}

TEST(Publication, a_refused_call_changes_nothing) {
  Publication publication(ZC_STAGE_3);
  ASSERT_EQ(publication.begin(ZC_PHASE_ONLY, kMost).status, ZC_OK);
  EXPECT_EQ(publication.publish().status, ZC_STATE);
  EXPECT_EQ(publication.update_begin(0).status, ZC_STATE);
  EXPECT_EQ(publication.begin(ZC_PHASE_ONLY, kMost).status, ZC_STATE);
  EXPECT_TRUE(publication.pass_open());
  EXPECT_EQ(publication.gradient_passes(), 1U);
  EXPECT_EQ(publication.published().generation, 0U);
  EXPECT_EQ(publication.end().status, ZC_OK);
}

TEST(PublishedWord, survives_packing_with_48_bits_of_generation) {
  const Published published{(std::uint64_t{1} << 48) - 1, 0xa5c3};
  const Published back = unpack(pack(published));
  EXPECT_EQ(back.generation, published.generation);
  EXPECT_EQ(back.history, published.history);
}

TEST(PublishedWord, remembers_for_16_generations_how_each_was_published) {
  Published published{};
  for (std::uint64_t generation = 1; generation <= 40; ++generation) {
    published = after_publish(published, generation % 3 == 0);
    ASSERT_EQ(published.generation, generation);
    for (std::uint64_t back = 1; back <= generation; ++back) {
      const Change expected = generation - back >= 16 ? Change::unknown
                              : back % 3 == 0         ? Change::changed
                                                      : Change::unchanged;
      ASSERT_EQ(change_of(unpack(pack(published)), back), expected) << back << " seen from " << generation;
    }
  }
  EXPECT_EQ(change_of(published, 41), Change::unknown);
}

}  // namespace
}  // namespace zerocomm::zero
