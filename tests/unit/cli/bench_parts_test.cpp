// The pure parts of zc bench: sizes, names, bandwidth rules, statistics, command line.
#include "cli/bench_collectives.hpp"
#include "cli/bench_options.hpp"
#include "cli/bench_session.hpp"
#include "cli/bench_sizes.hpp"
#include "cli/bench_stats.hpp"
#include "cli/failure.hpp"

#include <gtest/gtest.h>

namespace {

using namespace zerocomm::cli;
using Sizes = std::vector<std::size_t>;

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.exit(), Exit::usage);
    return failure.what();
  }
  return "not refused";
}

TEST(BenchSizes, are_read_with_binary_prefixes) {
  EXPECT_EQ(parse_bytes("-b", "8"), 8U);
  EXPECT_EQ(parse_bytes("-b", "64K"), 65536U);
  EXPECT_EQ(parse_bytes("-b", "128m"), 134217728U);
  EXPECT_EQ(parse_bytes("-b", "1.5M"), 1572864U);
  EXPECT_EQ(parse_bytes("-b", "1GiB"), 1073741824U);
  EXPECT_EQ(parse_bytes("-b", "2KB"), 2048U);
  for (const char* text : {"", "K", "12x", "1Kx", "1.2.3", "-8", "8 K", "0x10", "1e3"})
    EXPECT_NE(refusal([&] { parse_bytes("-b", text); }).find("-b " + std::string(text) + ": this is no size"),
              std::string::npos)
        << text;
  EXPECT_NE(refusal([] { parse_bytes("-e", "0"); }).find("1 byte or more"), std::string::npos);
  EXPECT_NE(refusal([] { parse_bytes("-e", "9999999999T"); }).find("1024T at most"), std::string::npos);
}

TEST(BenchSizes, climb_by_factor_or_step) {
  EXPECT_EQ(size_ladder(8, 128, 0, 4), (Sizes{8, 32, 128}));
  EXPECT_EQ(size_ladder(8, 100, 0, 4), (Sizes{8, 32}));
  EXPECT_EQ(size_ladder(10, 30, 10, 0), (Sizes{10, 20, 30}));
  EXPECT_EQ(size_ladder(7, 7, 0, 2), Sizes{7});
  EXPECT_EQ(refusal([] { size_ladder(2048, 8, 0, 2); }), "-b 2 KiB is more than -e 8 B");
  EXPECT_NE(refusal([] { size_ladder(8, 16, 0, 1); }).find("-f 1"), std::string::npos);
  EXPECT_NE(refusal([] { size_ladder(1, 1U << 30U, 1, 0); }).find("more than 10000 sizes"), std::string::npos);
}

TEST(BenchSizes, are_shown_with_their_unit) {
  EXPECT_EQ(bytes_text(100), "100 B");
  EXPECT_EQ(bytes_text(65536), "64 KiB");
  EXPECT_EQ(bytes_text(1572864), "1.5 MiB");
}

TEST(BenchCollectives, stand_in_the_table_at_their_own_number) {
  for (const CollectiveInfo& info : all_collectives()) {
    EXPECT_EQ(&info, &info_of(info.collective));
    EXPECT_EQ(collective_of(info.name), info.collective);
    EXPECT_TRUE(info.in || info.out);
  }
  EXPECT_EQ(collective_of("alltoall"), Collective::all_to_all);
  EXPECT_FALSE(collective_of("all"));
}

// nccl-tests' PERFORMANCE page: 2 (n-1)/n for all-reduce, (n-1)/n for the others, 1 for those with a root.
TEST(BenchCollectives, have_the_bus_factors_of_nccl_tests) {
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_reduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_gather, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::reduce_scatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_to_all, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_gather_v, 2), 0.5);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::broadcast, 8), 1);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::reduce, 8), 1);
}

TEST(BenchCollectives, count_whole_blocks_and_one_element_a_rank) {
  EXPECT_EQ(bench_count(Collective::all_gather, 1024, 4, 4), 256U);
  EXPECT_EQ(bench_count(Collective::all_reduce, 1024, 4, 3), 255U);
  EXPECT_EQ(bench_count(Collective::reduce_scatter, 8, 4, 7), 7U);
  EXPECT_EQ(bench_count(Collective::barrier, 1024, 4, 4), 0U);
}

// p ranks over vectors of S: 2 p S, (p + 1) S, p S in place, p S, (p + 1) S, 2 p S.
TEST(BenchCollectives, know_the_least_traffic) {
  const auto bound = [](Collective collective, BenchPlace place) {
    return bound_count(collective, place, 1200, 4) / 1200;
  };
  EXPECT_DOUBLE_EQ(bound(Collective::all_reduce, BenchPlace::out), 8);
  EXPECT_DOUBLE_EQ(bound(Collective::reduce_scatter, BenchPlace::out), 5);
  EXPECT_DOUBLE_EQ(bound(Collective::all_gather, BenchPlace::out), 5);
  EXPECT_DOUBLE_EQ(bound(Collective::all_gather, BenchPlace::in), 4);
  EXPECT_DOUBLE_EQ(bound(Collective::broadcast, BenchPlace::in), 4);
  EXPECT_DOUBLE_EQ(bound(Collective::reduce, BenchPlace::out), 5);
  EXPECT_DOUBLE_EQ(bound(Collective::all_to_all, BenchPlace::out), 8);
  EXPECT_DOUBLE_EQ(bound(Collective::barrier, BenchPlace::out), 0);
}

TEST(BenchCollectives, give_all_elements_to_one_rank_on_wish) {
  EXPECT_EQ(block_counts(12, 4, false, 0), (Sizes{3, 3, 3, 3}));
  EXPECT_EQ(block_counts(12, 4, true, 2), (Sizes{0, 0, 12, 0}));
}

TEST(BenchNames, are_those_of_nccl_tests_and_ours) {
  EXPECT_EQ(bench_dtype_name(ZC_DTYPE_BF16), "bfloat16");
  EXPECT_EQ(bench_dtype_of("half"), ZC_DTYPE_F16);
  EXPECT_EQ(bench_dtype_of("f16"), ZC_DTYPE_F16);
  EXPECT_FALSE(bench_dtype_of("f17"));
  EXPECT_EQ(bench_op_of("mulsum"), ZC_OP_PREMUL_SUM);
  EXPECT_EQ(bench_op_name(ZC_OP_NONE), "none");
  EXPECT_FALSE(can_reduce(ZC_DTYPE_I32, ZC_OP_AVG));
  EXPECT_FALSE(can_reduce(ZC_DTYPE_F8E4M3, ZC_OP_SUM));
  EXPECT_TRUE(can_reduce(ZC_DTYPE_I8, ZC_OP_PROD));
}

TEST(BenchStats, take_percentiles_of_lists_in_any_order) {
  const std::vector<double> values{5, 1, 4, 2, 3};
  EXPECT_EQ(percentile(values, 0.5), 3);
  EXPECT_EQ(percentile(values, 0), 1);
  EXPECT_EQ(percentile(values, 1), 5);
  EXPECT_EQ(percentile({}, 0.5), 0);
  std::vector<double> hundred;
  for (int i = 100; i >= 0; --i) hundred.push_back(1000 * i);
  const BenchTime time = summary(hundred);
  EXPECT_EQ(time.median, 50);
  EXPECT_EQ(time.p10, 10);
  EXPECT_EQ(time.p90, 90);
}

TEST(BenchStats, count_the_slowest_rank_and_the_spread_of_each_iteration) {
  const std::vector<std::vector<std::int64_t>> by_rank{{10, 70, 30}, {20, 10, 31}};
  EXPECT_EQ(slowest(by_rank), (std::vector<double>{20, 70, 31}));
  EXPECT_EQ(spread(by_rank), (std::vector<double>{10, 60, 1}));
}

TEST(BenchStats, give_medians_of_runs_by_member) {
  const std::vector<BenchTime> runs{{3, 1, 9}, {1, 2, 7}, {2, 3, 8}};
  const BenchTime time = median_of(runs);
  EXPECT_EQ(time.median, 2);
  EXPECT_EQ(time.p10, 2);
  EXPECT_EQ(time.p90, 8);
}

BenchOptions options_for(const std::string& collective) {
  BenchOptions options;
  options.collectives = {collective};
  return options;
}

TEST(BenchOptions, have_defaults_that_give_a_table) {
  const BenchPlan plan = plan_bench(options_for("all_reduce"), 6);
  EXPECT_EQ(plan.ranks, 6);
  EXPECT_EQ(plan.sizes_bytes.front(), 8U);
  EXPECT_EQ(plan.sizes_bytes.back(), 33554432U);
  EXPECT_EQ(plan.places.size(), 2U);
  EXPECT_TRUE(plan.check);
  EXPECT_EQ(bench_cases(plan).size(), plan.sizes_bytes.size());
}

TEST(BenchOptions, that_are_lists_give_every_combination_that_there_is) {
  BenchOptions options = options_for("all_reduce,all_gather,barrier");
  options.dtype = "int32,float";
  options.op = "sum,avg";
  options.min_bytes = options.max_bytes = "64";
  // all_reduce: int32 sum, float sum, float avg; all_gather: int32, float; barrier.
  EXPECT_EQ(bench_cases(plan_bench(options, 2)).size(), 6U);
}

TEST(BenchOptions, that_are_wrong_are_refused_by_name) {
  const auto refused = [](const char* word, const std::function<void(BenchOptions&)>& change) {
    BenchOptions options = options_for("all_reduce");
    change(options);
    const std::string text = refusal([&] { plan_bench(options, 2); });
    EXPECT_EQ(text.find(word), 0U) << text;
  };
  refused("bench needs", [](BenchOptions& options) { options.collectives.clear(); });
  refused("bench all_reduc:", [](BenchOptions& options) { options.collectives = {"all_reduc"}; });
  refused("--ranks 0", [](BenchOptions& options) { options.ranks = 0; });
  refused("--ranks 1025", [](BenchOptions& options) { options.ranks = 1025; });
  refused("-d f33", [](BenchOptions& options) { options.dtype = "f33"; });
  refused("-o median", [](BenchOptions& options) { options.op = "median"; });
  refused("-d int8 -o avg", [](BenchOptions& options) { options.dtype = "int8", options.op = "avg"; });
  refused("--in-place no", [](BenchOptions& options) { options.in_place = "no"; });
  refused("--memory huge", [](BenchOptions& options) { options.memory = "huge"; });
  refused("--skew one", [](BenchOptions& options) { options.skew = "one"; });
  refused("-n 0", [](BenchOptions& options) { options.iterations = 0; });
  refused("-w -1", [](BenchOptions& options) { options.warmup = -1; });
  refused("-c 2", [](BenchOptions& options) { options.check = 2; });
  refused("-r 2", [](BenchOptions& options) { options.root = 2; });
  refused("-T -1", [](BenchOptions& options) { options.timeout_s = -1; });
  refused("-i and -f", [](BenchOptions& options) { options.step_bytes = "8", options.factor = 2; });
  refused("--compare nccl", [](BenchOptions& options) { options.compare = "nccl"; });
  refused("--compare names mpich twice", [](BenchOptions& options) { options.compare = "mpich,mpich"; });
}

TEST(BenchOptions, say_how_much_memory_it_takes) {
  BenchOptions options = options_for("all_gather");
  options.max_bytes = options.min_bytes = "1M";
  options.ranks = 4;
  EXPECT_DOUBLE_EQ(bench_memory_bytes(plan_bench(options, 2)), 8.0 * 1048576);
  options.collectives = {"all_to_all_v"};
  options.skew = "one";
  EXPECT_DOUBLE_EQ(bench_memory_bytes(plan_bench(options, 2)), 11.0 * 1048576);
}

TEST(BenchPlaces, that_do_not_exist_are_left_out) {
  BenchPlan plan = plan_bench(options_for("all_reduce"), 2);
  EXPECT_EQ(places_of(plan, Collective::all_reduce).size(), 2U);
  EXPECT_EQ(places_of(plan, Collective::broadcast), std::vector{BenchPlace::in});
  EXPECT_EQ(places_of(plan, Collective::barrier), std::vector{BenchPlace::out});
  plan.places = {BenchPlace::out};
  EXPECT_EQ(places_of(plan, Collective::broadcast), std::vector{BenchPlace::in});
  plan.skewed = true;
  plan.places = {BenchPlace::out, BenchPlace::in};
  EXPECT_EQ(places_of(plan, Collective::all_to_all_v), std::vector{BenchPlace::out});
}

}  // namespace
