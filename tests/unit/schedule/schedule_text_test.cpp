#include "schedule/schedule_text.hpp"

#include "base/check.hpp"
#include "schedule/builder.hpp"
#include "schedule/catalogue.hpp"

#include <gtest/gtest.h>

namespace zerocomm::schedule {
namespace {

TEST(ScheduleText, every_schedule_of_the_catalogue_survives_the_round_trip) {
  for (const Algorithm& row : algorithms())
    for (const std::uint32_t ranks : {1u, 2u, 3u, 8u})
      for (const std::uint32_t lanes : {1u, 3u}) {
        if (row.one_lane && lanes > 1) continue;
        const Schedule schedule = build(make_key(row.collective, row.name, ranks, 0, lanes));
        const std::string text = to_text(schedule);
        EXPECT_EQ(from_text(text), schedule) << text;
        EXPECT_EQ(to_text(from_text(text)), text);
      }
}

TEST(ScheduleText, every_field_survives_the_round_trip) {
  Schedule schedule{{Collective::broadcast, "hand", 2, 1, 9, 2}, 7, {}};
  Step coded = recv_reduce(1, scratch({2, 4}));
  coded.codec = 200;
  schedule.ranks = {
      {{Lane{{held(copy(input({0, 9}), output({0, 9}))), after(send(1, scratch({3, 1})), 1, 5)}}, Lane{}}},
      {{Lane{{coded, reduce(output({1, 2}), scratch({4, 2}))}}, Lane{{after(held(recv(0)), 0, kMaxSteps - 1)}}}}};
  EXPECT_EQ(from_text(to_text(schedule)), schedule) << to_text(schedule);
  schedule.loss = 3;
  EXPECT_EQ(from_text(to_text(schedule)).loss, 3u);
  EXPECT_NE(to_text(schedule).find("scratch=7 loss=3\n"), std::string::npos);
}

TEST(ScheduleText, comments_empty_lines_and_spaces_do_not_matter) {
  EXPECT_EQ(from_text("# a barrier\n\nschedule barrier direct ranks=1 root=0 chunks=0 lanes=1 scratch=0\n \t rank   "
                      "0\r\n# x\nlane 0"),
            build(make_key(Collective::barrier, "direct", 1)));
}

TEST(ScheduleText, an_error_names_the_line) {
  const std::string head = "schedule all_reduce hand ranks=1 root=0 chunks=4 lanes=1 scratch=0\n";
  const auto expect_error = [](const std::string& text, const std::string& part) {
    try {
      from_text(text);
      ADD_FAILURE() << "read: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ZC_ARGUMENT);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  expect_error("", "no schedule");
  expect_error("rank 0\n", "line 1: the first line begins with 'schedule'");
  expect_error("schedule sum hand ranks=1 root=0 chunks=4 lanes=1 scratch=0\n", "line 1: not a collective");
  expect_error("schedule all_reduce hand ranks=1 chunks=4 lanes=1 scratch=0\n", "another field");
  expect_error("schedule all_reduce hand ranks=4294967296 root=0 chunks=4 lanes=1 scratch=0\n", "32 bits");
  expect_error("schedule all_reduce hand ranks=1 root=0 chunks=4 lanes=1 scratch=0 loss=x\n", "line 1: a number");
  expect_error("schedule all_reduce hand ranks=1 root=0 chunks=4 lanes=1 scratch=0 lost=1\n",
               "line 1: a word too many");
  expect_error(head, "0 of 1 ranks");
  expect_error(head + "rank 0\n", "rank 0 has 0 of 1 lanes");
  expect_error(head + "rank 1\n", "line 2: ranks are numbered in order");
  expect_error(head + "lane 0\n", "line 2: a lane before the first rank");
  expect_error(head + "rank 0\n  send to=0 input[0]\n", "line 3: a step before the first lane");
  const std::string lane = head + "rank 0\nlane 0\n";
  expect_error(lane + "  push to=0 input[0]\n", "line 4: ops are");
  expect_error(lane + "  send from=0 input[0]\n", "line 4: another field");
  expect_error(lane + "  send to=0\n", "line 4: the line ends too early");
  expect_error(lane + "  send to=0 input[0] hold hold\n", "line 4: a word too many");
  expect_error(lane + "  send to=0 input[3..2]\n", "line 4: a range that ends before it begins");
  expect_error(lane + "  send to=0 input[0..4294967295]\n", "line 4: a range");
  expect_error(lane + "  send to=0 input[-1]\n", "line 4: a number");
  expect_error(lane + "  send to=0 in..put[1]\n", "line 4: buffers are");
  expect_error(lane + "  send to=0 x..input[1]\n", "line 4: buffers are");
  expect_error(lane + "  send to=0 output\n", "line 4: a range such as");
  expect_error(lane + "  copy input[0] output[0]\n", "line 4: '->' was expected");
  expect_error(lane + "  copy input[0] -> output[0..1]\n", "line 4: source and destination differ");
  expect_error(lane + "  send to=0 input[0] codec=256\n", "line 4: a codec");
  expect_error(lane + "  send to=0 input[0] wait=3\n", "line 4: a wait is written");
  expect_error(lane + "  send to=0 input[0] wait=255:0\n", "line 4: a wait beyond");
}

}  // namespace
}  // namespace zerocomm::schedule
