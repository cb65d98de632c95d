// Which form moves the data of a call.
#include "comm/selection.hpp"

#include "base/check.hpp"

#include <gtest/gtest.h>

namespace zerocomm::comm {
namespace {

constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB;

CallFacts shared(Collective collective, std::uint64_t moved_bytes) {
  CallFacts facts;
  facts.collective = collective;
  facts.ranks = 4;
  facts.moved_bytes = moved_bytes;
  facts.most_private_bytes = moved_bytes / 4;
  facts.sources_shared = facts.results_shared = true;
  return facts;
}

Form form_of(const CallFacts& facts) { return Selection().choose(facts).form; }
bool streams(const CallFacts& facts) { return Selection().choose(facts).stores == device::Stores::streaming; }

TEST(Selection, depends_on_what_is_shared) {
  CallFacts facts = shared(Collective::all_reduce, kMiB);
  EXPECT_EQ(form_of(facts), Form::spread);
  facts.results_shared = false;
  EXPECT_EQ(form_of(facts), Form::staged);
  facts.results_shared = true;
  facts.sources_shared = false;
  EXPECT_EQ(form_of(facts), Form::staged);

  facts = shared(Collective::all_gather, 8 * kMiB);
  EXPECT_EQ(form_of(facts), Form::spread);
  facts.results_shared = false;
  EXPECT_EQ(form_of(facts), Form::pull);
  facts.sources_shared = false;
  EXPECT_EQ(form_of(facts), Form::staged);
  facts.sources_readable = true;
  EXPECT_EQ(form_of(facts), Form::pull);
  facts.most_private_bytes = 128 * kKiB;
  EXPECT_EQ(form_of(facts), Form::pull);
  facts.most_private_bytes -= 1;  // not worth a system call
  EXPECT_EQ(form_of(facts), Form::staged);

  // A reduction reads no memory through the system.
  facts = shared(Collective::reduce_scatter, 8 * kMiB);
  facts.results_shared = false;
  EXPECT_EQ(form_of(facts), Form::pull);
}

TEST(Selection, spreads_blocks_that_are_uneven) {
  for (const Collective collective : {Collective::reduce_scatter, Collective::reduce_scatter_v}) {
    CallFacts facts = shared(collective, 8 * kMiB);
    EXPECT_EQ(form_of(facts), Form::pull);
    facts.is_skewed = true;
    EXPECT_EQ(form_of(facts), collective == Collective::reduce_scatter_v ? Form::spread : Form::pull);
    facts.moved_bytes = kKiB;
    EXPECT_EQ(form_of(facts), Form::pull);
    facts.moved_bytes = 8 * kMiB;
    facts.results_shared = false;
    EXPECT_EQ(form_of(facts), Form::pull);
  }
}

TEST(Selection, depends_on_the_size) {
  EXPECT_EQ(form_of(shared(Collective::all_gather, kMiB - 1)), Form::pull);
  EXPECT_EQ(form_of(shared(Collective::all_gather, kMiB)), Form::spread);
  EXPECT_EQ(form_of(shared(Collective::broadcast, 24 * kMiB - 1)), Form::pull);
  EXPECT_EQ(form_of(shared(Collective::broadcast, 24 * kMiB)), Form::spread);
  CallFacts two = shared(Collective::broadcast, 64 * kKiB);
  two.ranks = 2;
  EXPECT_EQ(form_of(two), Form::spread);

  EXPECT_FALSE(streams(shared(Collective::all_reduce, 32 * kMiB - 1)));
  EXPECT_TRUE(streams(shared(Collective::all_reduce, 32 * kMiB)));
  CallFacts in_place = shared(Collective::all_reduce, 1024 * kMiB);
  in_place.in_place = true;  // it stores into lines that it has just read
  EXPECT_FALSE(streams(in_place));
  in_place.collective = Collective::all_gather;
  EXPECT_TRUE(streams(in_place));
}

TEST(Selection, of_blocks_that_change_places_is_staging) {
  CallFacts facts = shared(Collective::all_to_all, kMiB);
  EXPECT_EQ(form_of(facts), Form::pull);
  facts.swaps = true;
  EXPECT_EQ(form_of(facts), Form::staged);
  facts.collective = Collective::all_to_all_v;
  EXPECT_EQ(form_of(facts), Form::staged);
  facts.swaps = false;
  EXPECT_EQ(form_of(facts), Form::pull);
}

TEST(Selection, is_what_the_variable_says) {
  const Selection asked("all_gather=pull,broadcast=auto/streaming,all_reduce=staged");
  EXPECT_EQ(asked.choose(shared(Collective::all_gather, 64 * kMiB)).form, Form::pull);
  EXPECT_EQ(asked.choose(shared(Collective::broadcast, kKiB)).stores, device::Stores::streaming);
  EXPECT_EQ(asked.choose(shared(Collective::broadcast, kKiB)).form, Form::pull);
  EXPECT_EQ(asked.choose(shared(Collective::all_reduce, kKiB)).form, Form::staged);
  EXPECT_TRUE(asked.forces_staging(Collective::all_reduce));
  EXPECT_FALSE(asked.forces_staging(Collective::all_gather));
  EXPECT_FALSE(Selection().forces_staging(Collective::all_reduce));
  EXPECT_TRUE(asked.changes(Collective::broadcast));
  EXPECT_FALSE(asked.changes(Collective::reduce));
  EXPECT_NE(asked.fingerprint(), Selection().fingerprint());
  EXPECT_NE(Selection("all_gather=pull/cached").fingerprint(), Selection("all_gather=pull").fingerprint());
}

TEST(Selection, says_what_a_form_lacks) {
  const Selection asked("all_gather=spread,all_to_all=pull,reduce_scatter=pull");
  CallFacts facts = shared(Collective::all_gather, kMiB);
  EXPECT_EQ(asked.choose(facts).obstacle, nullptr);
  facts.results_shared = false;
  EXPECT_STREQ(asked.choose(facts).obstacle, "some rank's recv buffer is not memory that all ranks can reach");
  facts.sources_shared = false;
  EXPECT_STREQ(asked.choose(facts).obstacle, "some rank's send buffer is not memory that all ranks can reach");
  facts.collective = Collective::all_to_all;
  facts.sources_readable = true;
  EXPECT_EQ(asked.choose(facts).obstacle, nullptr);
  facts.swaps = true;
  EXPECT_STREQ(asked.choose(facts).obstacle, "in place, blocks change places, which needs staging");
}

void expect_refused(const char* text, const char* says) {
  try {
    const Selection asked(text);
    ADD_FAILURE() << text << " was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ZC_ARGUMENT);
    EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
  }
}

TEST(Selection, refuses_what_it_does_not_know) {
  expect_refused("spread", "the variable ZC_ALGO has \"spread\": it takes collective=form, with commas between");
  expect_refused("all_gather=pull,", "has \"\": it takes collective=form");
  expect_refused("all_gathers=pull", "no such collective; it takes all_reduce, reduce,");
  expect_refused("all_gather=ring", "all_gather takes auto, staged, pull, spread");
  expect_refused("all_reduce=pull", "all_reduce takes auto, staged, spread");
  expect_refused("all_to_all=spread", "all_to_all takes auto, staged, pull");
  expect_refused("all_gather=pull/fast", "behind the / it takes cached or streaming");
  expect_refused("all_gather=auto", "auto alone asks for nothing");
  expect_refused("all_gather=pull,all_gather=spread", "the collective is named twice");
}

TEST(Selection, is_printed_row_by_row) {
  std::vector<std::string> names, values;
  Selection("broadcast=pull/cached").print([&](const char* name, const std::string& value, const std::string& why) {
    names.emplace_back(name);
    values.push_back(value);
    EXPECT_EQ(why == "ZC_ALGO", names.back() == "broadcast") << why;
  });
  ASSERT_EQ(names.size(), Selection::kRows);
  EXPECT_EQ(names[0], "all_reduce");
  EXPECT_EQ(values[6], "pull; cached stores");
}

}  // namespace
}  // namespace zerocomm::comm
