// zc schedule from the outside.
#include "run_program.hpp"

#include <algorithm>

namespace {

TEST(ScheduleProgram, list_has_every_row) {
  const Outcome plain = zc("schedule list"), json = zc("schedule list --json");
  EXPECT_EQ(plain.status, 0) << plain.err;
  EXPECT_NE(plain.out.find("\nbarrier            dissemination  yes        any\n"), std::string::npos) << plain.out;
  EXPECT_EQ(json.out.find(R"({"format":"zc.schedule.list","version":1,"algorithms":[)"), 0u) << json.out;
  EXPECT_EQ(std::count(plain.out.begin(), plain.out.end(), '\n'), std::count(json.out.begin(), json.out.end(), '\n'));
}

TEST(ScheduleProgram, what_is_shown_can_be_read_and_proved) {
  const std::string file = scratch_file("schedule.txt");
  EXPECT_EQ(zc("schedule show reduce_scatter circulant --ranks 5 --output " + file).status, 0);
  EXPECT_EQ(zc("schedule show --file " + file).out, content_of(file));
  const Outcome verdict = zc("schedule verify --file " + file);
  EXPECT_EQ(verdict.status, 0) << verdict.err;
  EXPECT_EQ(verdict.out, "reduce_scatter circulant: ranks 5, root 0, chunks 5, lanes 1, scratch 3, steps 48\nok\n");
  std::remove(file.c_str());
}

TEST(ScheduleProgram, algorithm_is_direct_by_default) {
  EXPECT_EQ(zc("schedule verify reduce -n 3 --root 2 --chunks 2").out,
            "reduce direct: ranks 3, root 2, chunks 2, lanes 1, scratch 0, steps 5\nok, canonical\n");
}

TEST(ScheduleProgram, a_broken_schedule_is_named_and_fails) {
  const std::string file = scratch_file("broken.txt");
  std::ofstream(file) << "schedule broadcast mine ranks=2 root=0 chunks=1 lanes=1 scratch=0\nrank 0\nlane 0\n"
                         "  copy input[0] -> output[0]\n  send to=1 output[0]\nrank 1\nlane 0\n";
  const Outcome plain = zc("schedule verify --file " + file), json = zc("schedule verify --json --file " + file);
  EXPECT_EQ(plain.status, 1);
  EXPECT_NE(plain.out.find("V1 matching: rank 0 lane 0 step 1 `send to=1 output[0]` is received by nobody\n"),
            std::string::npos)
      << plain.out;
  EXPECT_EQ(json.status, 1);
  EXPECT_NE(json.out.find(R"("proved":false,"canonical":false,"findings":["holds","broken","unknown",)"),
            std::string::npos)
      << json.out;
  EXPECT_NE(json.out.find(R"(by nobody\u000a"})"), std::string::npos) << json.out;
  expect_refused("schedule cost --file " + file, 1, "is received by nobody");
  std::ofstream(file) << "schedule broadcast mine\n";
  expect_refused("schedule show --file " + file, 1, "line 1: the line ends too early");
  std::remove(file.c_str());
}

TEST(ScheduleProgram, cost_is_a_table_csv_or_json) {
  const Outcome table = zc("schedule cost scatter_from_root binomial -n 5 --root 2");
  EXPECT_NE(table.out.find("\n    2            4            4            0            0\n"), std::string::npos)
      << table.out;
  EXPECT_NE(table.out.find("critical path: 2 latencies and 4 elements, a chunk counted as one\n"), std::string::npos);
  EXPECT_EQ(zc("schedule cost all_reduce ring -n 2 --csv --count 10").out,
            "rank,messages_sent,elements_sent,messages_received,elements_received\n0,2,10,2,10\n1,2,10,2,10\n");
  const Outcome json = zc("schedule cost all_reduce ring -n 2 --json");
  EXPECT_NE(json.out.find(R"("path_latencies":2,"path_elements":2,"costs":[)"), std::string::npos) << json.out;
}

TEST(ScheduleProgram, what_makes_no_schedule_is_refused) {
  expect_refused("schedule", 2, "subcommand");
  expect_refused("schedule show", 2, "a collective or --file is needed");
  expect_refused("schedule show barrier --file x", 2, "only one of them");
  for (const char* beside : {"-n 4", "--root 1", "--lanes 2", "--chunks 4"})
    expect_refused(std::string("schedule verify --file x ") + beside, 2, "excludes --file");
  expect_refused("schedule cost all_reduce ring -n 3 --count -5", 2, "-5 is not a whole number from 1");
  expect_refused("schedule cost all_reduce ring -n 3 --count 99999999999999999999", 2, "is not a whole number");
  expect_refused("schedule cost all_reduce ring -n 3 --count 9999999999999999999", 1, "more than 64 bits can count");
  expect_refused("schedule show barrier", 2, "-n 0: at least 1 rank is needed");
  expect_refused("schedule show sum -n 2", 2, "'sum' is no collective; there are all_reduce,");
  expect_refused("schedule show barrier --lanes 0 -n 2", 2, "--lanes");
  expect_refused("schedule cost barrier -n 2 --csv --json", 2, "--csv");
  expect_refused("schedule show barrier ring -n 2", 1, "barrier has no algorithm called 'ring'; there are direct,");
  expect_refused("schedule show all_gather circulant -n 2 --lanes 2", 1, "runs in one lane");
  expect_refused("schedule show all_gather -n 3 --chunks 4", 1, "4 chunks is not a multiple of 3");
  expect_refused("schedule show barrier -n 2000", 1, "ranks * lanes is at most 1024");
  expect_refused("schedule show --file /nowhere/x", 1, "/nowhere/x: cannot be read: No such file");
}

}  // namespace
