// schedule.h, as a C program sees it.
#include <zerocomm/zerocomm.h>

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace {

zc_schedule* make(zc_collective collective, const char* algorithm, int32_t ranks, int32_t root = 0) {
  zc_schedule_config config{};
  config.struct_size = sizeof config;
  config.collective = collective;
  config.algorithm = algorithm;
  config.ranks = ranks;
  config.root = root;
  zc_schedule* schedule = nullptr;
  EXPECT_EQ(zc_schedule_create(&config, &schedule), ZC_OK) << zc_last_error();
  return schedule;
}

std::string text_of(const zc_schedule* schedule) {
  size_t needed_bytes = 0;
  EXPECT_EQ(zc_schedule_text(schedule, nullptr, 0, &needed_bytes), ZC_OK);
  std::string text(needed_bytes, 'x');
  EXPECT_EQ(zc_schedule_text(schedule, text.data(), text.size(), nullptr), ZC_OK);
  EXPECT_EQ(text.back(), '\0');
  text.pop_back();
  return text;
}

TEST(ScheduleApi, a_schedule_says_what_it_was_made_for) {
  zc_schedule* schedule = make(ZC_COLLECTIVE_GATHER_TO_ROOT, "binomial", 6, 3);
  zc_schedule_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(zc_schedule_get_info(schedule, &info), ZC_OK);
  EXPECT_EQ(info.collective, ZC_COLLECTIVE_GATHER_TO_ROOT);
  EXPECT_STREQ(info.algorithm, "binomial");
  EXPECT_EQ(info.ranks, 6);
  EXPECT_EQ(info.root, 3);
  EXPECT_EQ(info.lanes, 1);
  EXPECT_EQ(info.chunks, 6u);
  EXPECT_EQ(info.scratch_chunks, 2u);
  EXPECT_EQ(info.loss, 0u);
  EXPECT_EQ(info.step_count, 15u);
  EXPECT_EQ(zc_schedule_destroy(schedule), ZC_OK);
  EXPECT_EQ(zc_schedule_destroy(nullptr), ZC_OK);
}

TEST(ScheduleApi, text_reads_back) {
  zc_schedule* schedule = make(ZC_COLLECTIVE_ALL_GATHER, "ring", 4);
  const std::string text = text_of(schedule);
  zc_schedule* again = nullptr;
  ASSERT_EQ(zc_schedule_parse(text.c_str(), &again), ZC_OK) << zc_last_error();
  EXPECT_EQ(text_of(again), text);
  char few[9];
  EXPECT_EQ(zc_schedule_text(schedule, few, sizeof few, nullptr), ZC_OK);
  EXPECT_STREQ(few, "schedule");
  zc_schedule_destroy(again);
  zc_schedule_destroy(schedule);
}

TEST(ScheduleApi, a_verdict_has_words_and_findings) {
  zc_schedule* schedule = make(ZC_COLLECTIVE_REDUCE_SCATTER, "circulant", 3);
  zc_schedule_verdict verdict{};
  verdict.struct_size = sizeof verdict;
  char words[512];
  ASSERT_EQ(zc_schedule_verify(schedule, &verdict, words, sizeof words, nullptr), ZC_OK);
  EXPECT_EQ(verdict.is_proved, 1);
  EXPECT_EQ(verdict.is_canonical, 0);
  EXPECT_STREQ(words, "ok");
  for (const zc_finding finding : verdict.findings) EXPECT_EQ(finding, ZC_FINDING_HOLDS);

  std::string text = text_of(schedule);
  text.replace(text.find("from=2"), 6, "from=1");
  zc_schedule* broken = nullptr;
  ASSERT_EQ(zc_schedule_parse(text.c_str(), &broken), ZC_OK);
  ASSERT_EQ(zc_schedule_verify(broken, &verdict, words, sizeof words, nullptr), ZC_OK);
  EXPECT_EQ(verdict.is_proved, 0);
  EXPECT_EQ(verdict.findings[0], ZC_FINDING_HOLDS);
  EXPECT_EQ(verdict.findings[1], ZC_FINDING_BROKEN);
  EXPECT_EQ(verdict.findings[2], ZC_FINDING_UNKNOWN);
  EXPECT_EQ(std::string(words).find("V1 matching: rank "), 0u) << words;
  zc_schedule_destroy(broken);
  zc_schedule_destroy(schedule);
}

TEST(ScheduleApi, costs_are_those_of_one_rank_or_the_largest) {
  zc_schedule* schedule = make(ZC_COLLECTIVE_BROADCAST, "binomial", 5);
  zc_schedule_cost_config config{};
  config.struct_size = sizeof config;
  config.count = 100;
  zc_schedule_costs costs{};
  costs.struct_size = sizeof costs;
  ASSERT_EQ(zc_schedule_cost(schedule, 2, &config, &costs), ZC_OK) << zc_last_error();
  EXPECT_EQ(costs.messages_sent, 1u);
  EXPECT_EQ(costs.elements_sent, 100u);
  EXPECT_EQ(costs.elements_received, 100u);
  ASSERT_EQ(zc_schedule_cost(schedule, ZC_NONE, nullptr, &costs), ZC_OK);
  EXPECT_EQ(costs.messages_sent, 3u);
  EXPECT_EQ(costs.messages_received, 1u);
  EXPECT_EQ(costs.path_latencies, 2u);
  EXPECT_EQ(costs.path_elements, 3u);
  EXPECT_EQ(zc_schedule_cost(schedule, 5, nullptr, &costs), ZC_ARGUMENT);
  zc_schedule_destroy(schedule);
}

TEST(ScheduleApi, every_row_of_the_catalogue_makes_a_schedule) {
  const size_t rows = zc_schedule_algorithm_count();
  EXPECT_GE(rows, 20u);
  zc_algorithm_info row{};
  row.struct_size = sizeof row;
  for (size_t i = 0; i < rows; ++i) {
    ASSERT_EQ(zc_schedule_algorithm(i, &row), ZC_OK);
    EXPECT_STRNE(zc_collective_name(row.collective), "none");
    zc_schedule* schedule = make(row.collective, row.name, 5);
    zc_schedule_verdict verdict{};
    verdict.struct_size = sizeof verdict;
    ASSERT_EQ(zc_schedule_verify(schedule, &verdict, nullptr, 0, nullptr), ZC_OK);
    EXPECT_EQ(verdict.is_proved, 1) << row.name;
    EXPECT_EQ(verdict.is_canonical, row.is_canonical) << zc_collective_name(row.collective) << ' ' << row.name;
    zc_schedule_destroy(schedule);
  }
  EXPECT_EQ(zc_schedule_algorithm(rows, &row), ZC_ARGUMENT);
  EXPECT_STREQ(zc_collective_name(ZC_COLLECTIVE_NONE), "none");
  EXPECT_STREQ(zc_collective_name(ZC_COLLECTIVE_SCATTER_FROM_ROOT), "scatter_from_root");
}

TEST(ScheduleApi, what_makes_no_schedule_is_refused_with_the_reason) {
  const auto expect_refused = [](zc_status wanted, const char* reason, auto change) {
    zc_schedule_config config{};
    config.struct_size = sizeof config;
    config.collective = ZC_COLLECTIVE_ALL_GATHER;
    config.ranks = 4;
    change(config);
    zc_schedule* schedule = nullptr;
    EXPECT_EQ(zc_schedule_create(&config, &schedule), wanted) << reason;
    EXPECT_EQ(schedule, nullptr);
    EXPECT_NE(std::strstr(zc_last_error(), reason), nullptr) << zc_last_error();
  };
  using Config = zc_schedule_config;
  expect_refused(ZC_ARGUMENT, "collective 0", [](Config& c) { c.collective = ZC_COLLECTIVE_NONE; });
  expect_refused(ZC_ARGUMENT, "collective 10", [](Config& c) { c.collective = static_cast<zc_collective>(10); });
  expect_refused(ZC_ARGUMENT, "ranks is 0", [](Config& c) { c.ranks = 0; });
  expect_refused(ZC_ARGUMENT, "ranks is -1", [](Config& c) { c.ranks = -1; });
  expect_refused(ZC_ARGUMENT, "has no root", [](Config& c) { c.root = 1; });
  expect_refused(ZC_ARGUMENT, "root 4 of 4", [](Config& c) { c.root = 4; });
  expect_refused(ZC_ARGUMENT, "lanes is -1", [](Config& c) { c.lanes = -1; });
  expect_refused(ZC_ARGUMENT, "6 chunks is not a multiple of 4", [](Config& c) { c.chunks = 6; });
  expect_refused(ZC_UNSUPPORTED, "there are direct, ring, circulant", [](Config& c) { c.algorithm = "bruck"; });
  expect_refused(ZC_UNSUPPORTED, "at most 1024", [](Config& c) { c.ranks = 1025; });
  expect_refused(ZC_ARGUMENT, "struct_size", [](Config& c) { c.struct_size = 0; });
  zc_schedule* schedule = nullptr;
  EXPECT_EQ(zc_schedule_create(nullptr, &schedule), ZC_ARGUMENT);
  EXPECT_EQ(zc_schedule_parse(nullptr, &schedule), ZC_ARGUMENT);
  EXPECT_EQ(zc_schedule_parse("schedule", &schedule), ZC_ARGUMENT);
  EXPECT_NE(std::strstr(zc_last_error(), "line 1"), nullptr) << zc_last_error();
  EXPECT_EQ(zc_schedule_text(nullptr, nullptr, 0, nullptr), ZC_ARGUMENT);
}

}  // namespace
