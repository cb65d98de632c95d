// What zc bench shows: table, CSV, JSON, and when a job has failed.
#include "cli/bench_results.hpp"
#include "cli/bench_limits.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace {

using namespace zerocomm::cli;

PlaceResult place_of(double time_us, std::int64_t wrong) {
  PlaceResult place;
  place.time = {time_us, time_us / 2, time_us * 2};
  place.wrong = wrong;
  place.stream_percent = 81.25;
  place.skew_us = 0.5;
  return place;
}

// all_gather of 1 MiB over 4 ranks in 100 us out of place and 50 us in place.
BenchRun a_run() {
  BenchRun run;
  run.plan.collectives = {Collective::all_gather};
  run.plan.places = {BenchPlace::out, BenchPlace::in};
  run.plan.sizes_bytes = {1048576};
  run.plan.factor = 2;
  run.plan.ranks = 4;
  run.plan.iterations = 20;
  run.plan.peers = {"mpich", "gloo"};
  run.words = {"zc", "bench", "all_gather"};
  run.devices = {{0, 42, "node", "a \"processor\""}};
  BenchRow row;
  row.bench_case = {Collective::all_gather, ZC_DTYPE_F32, ZC_OP_NONE, 262144};
  row.size_bytes = 1048576;
  row.out = place_of(100, 0);
  row.in = place_of(50, 0);
  row.same_bits = true;
  row.out->peers["mpich"].time = {250, 240, 260};
  row.out->peers["mpich"].ratio = 2.5;
  row.out->peers["gloo"].unsupported = "no";
  for (std::optional<PlaceResult>* place : {&row.out, &row.in}) set_bandwidth(**place, row.bench_case, 4);
  run.rows = {row};
  return run;
}

std::vector<std::string> words_in(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

TEST(BenchTable, has_the_columns_of_nccl_tests_first) {
  const BenchRun run = a_run();
  const std::vector<std::string> words = words_in(table_row(run, run.rows[0]));
  const std::vector<std::string> expected{"1048576", "65536",       "float", "none",  "-1",  // count of a block
                                          "100.00",  "10.49",       "7.86",  "0",            // out of place
                                          "50.00",   "20.97",       "15.73", "0",            // in place
                                          "81.25",   "N/A",         "0.50",  "81.25", "N/A", "0.50", "yes", "250.00",
                                          "2.50x",   "unsupported", "N/A",   "N/A",   "N/A", "N/A",  "N/A"};
  EXPECT_EQ(words, expected);
}

TEST(BenchTable, has_heads_of_the_width_of_its_rows) {
  const BenchRun run = a_run();
  std::istringstream header(table_header(run));
  std::string line, last;
  while (std::getline(header, line)) {
    EXPECT_EQ(line[0], '#') << line;
    last = line;
  }
  EXPECT_NE(last.find("(B)"), std::string::npos);
  const std::size_t width = table_row(run, run.rows[0]).length() - 1;
  EXPECT_EQ(last.length(), width);
}

TEST(BenchTable, keeps_its_columns_where_a_form_is_missing) {
  BenchRun run = a_run();
  const std::size_t whole = table_row(run, run.rows[0]).length();
  run.rows[0].out.reset();
  EXPECT_EQ(table_row(run, run.rows[0]).length(), whole);
}

TEST(BenchTable, ends_as_nccl_tests_does) {
  BenchRun run = a_run();
  const std::string good = table_footer(run);
  EXPECT_NE(good.find("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 11.796"), std::string::npos) << good;
  run.rows[0].in->wrong = 3;
  EXPECT_NE(table_footer(run).find("# Out of bounds values : 3 FAILED\n"), std::string::npos);
}

TEST(BenchTable, shrinks_numbers_into_their_columns) {
  EXPECT_EQ(fitted(1.234, 6), "1.23");
  EXPECT_EQ(fitted(12345.678, 7), "12345.7");
  EXPECT_EQ(fitted(1234567.8, 7), "1234568");
  EXPECT_EQ(fitted(123456789, 7), "1.2e+08");
}

TEST(BenchRun, fails_by_wrong_results_unlike_bits_and_a_bandwidth_that_was_demanded) {
  BenchRun run = a_run();
  EXPECT_FALSE(has_failed(run));
  run.rows[0].out->wrong = 1;
  EXPECT_TRUE(has_failed(run));
  run = a_run();
  run.rows[0].out->peers["mpich"].wrong = 1;
  EXPECT_TRUE(has_failed(run));
  run = a_run();
  run.rows[0].same_bits = false;
  EXPECT_TRUE(has_failed(run));
  EXPECT_NE(table_footer(run).find("Rows of unlike bits  : 1 FAILED"), std::string::npos);
  run = a_run();
  run.min_busbw = 13;  // 0.9 of it is below 11.796
  EXPECT_FALSE(has_failed(run));
  run.min_busbw = 14;
  EXPECT_TRUE(has_failed(run));
}

TEST(BenchCsv, has_a_line_for_each_form_and_as_many_fields_as_heads) {
  const BenchRun run = a_run();
  const auto commas = [](const std::string& text) { return std::count(text.begin(), text.end(), ','); };
  const std::string rows = csv_row(run, run.rows[0]), head = csv_header(run);
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 2);
  EXPECT_EQ(commas(rows), 2 * commas(head));
  EXPECT_EQ(rows.find("all_gather,4,1048576,65536,float,none,-1,out,100.000,50.000,200.000,"), 0U) << rows;
  EXPECT_NE(rows.find(",yes,250.000,2.500,unsupported,\n"), std::string::npos) << rows;
}

// Whether it is JSON at all is looked at by a program that reads it (bench_test.py).
TEST(BenchJson, has_the_values_under_nccl_tests_keys_and_ours) {
  const std::string text = bench_json(a_run());
  for (const char* part :
       {"\"size\": 1048576", "\"count\": 65536", "\"root\": \"-1\"", "\"alg_bw\": 10.48576", "\"bus_bw\": 7.86432",
        "\"nwrong\": 0", "\"time_p90\": 200.0", "\"stream_percent\": 81.25", "\"bound_percent\": null",
        "\"unsupported\": \"no\"", "\"ratio\": 2.5", "\"okay\": \"unchecked\"", "a \\\"processor\\\""})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(BenchLimits, are_shown_in_columns_and_as_json) {
  const std::vector<Limit> limits{{"stream copy", 2, 65536, 12.345, 1234.5, "GB/s"}, {"line", 1, 0, 80, 70, "ns"}};
  const std::string table = limits_table(limits);
  EXPECT_NE(table.find("stream copy"), std::string::npos);
  EXPECT_NE(table.find("    64 KiB      12.35       1234  GB/s\n"), std::string::npos) << table;
  EXPECT_NE(limits_json(limits, "h\"ost", "cpu").find("\"host\": \"h\\\"ost\""), std::string::npos);
}

}  // namespace
