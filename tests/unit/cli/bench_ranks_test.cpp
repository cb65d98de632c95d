// Driver and ranks of zc bench: the lines between them, the data, and what becomes of wrong results and lost ranks.
#include "cli/bench_clock.hpp"
#include "cli/bench_driver.hpp"
#include "cli/bench_kernels.hpp"
#include "cli/bench_pattern.hpp"
#include "cli/bench_peers.hpp"
#include "cli/bench_rank.hpp"
#include "cli/bench_session.hpp"
#include "cli/failure.hpp"

#include <zerocomm/mem.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

namespace {

using namespace zerocomm::cli;

TEST(BenchWire, requests_read_back) {
  BenchRequest request{
      Collective::reduce_scatter_v, ZC_DTYPE_BF16, 12, BenchPlace::in, true, true, 3, 4, false, ZC_OP_MAX, 5, true};
  EXPECT_EQ(request_line(request), "run reduce_scatter_v bf16 12 in plain loop 3 4 0 op=max root=5 skew=one");
  const auto back = parse_request(request_line(request));
  ASSERT_TRUE(back);
  EXPECT_EQ(request_line(*back), request_line(request));
  // What peers read is nine fields.
  EXPECT_EQ(request_line({Collective::all_reduce, ZC_DTYPE_F32, 1024, BenchPlace::out, false, false, 5, 20, true}),
            "run all_reduce f32 1024 out registered fresh 5 20 1");
  for (const char* line :
       {"", "run", "run all_reduce f32 x out plain loop 1 1 1", "run all_reduce f32 1 up plain loop 1 1 1",
        "run nothing f32 1 out plain loop 1 1 1", "run all_reduce f32 1 out plain loop 1 1 1 op=none"})
    EXPECT_FALSE(parse_request(line)) << line;
}

TEST(BenchWire, hellos_and_replies_read_back) {
  const auto hello = parse_hello("hello mpich 1 4 MPICH 4.0.2, of Debian");
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->library, "MPICH 4.0.2, of Debian");
  EXPECT_FALSE(parse_hello("hello mpich 4 4 x"));
  BenchReply sent, got;
  sent.times_ns = {1, 22, 333};
  sent.arrivals_ns = {4, 5, 6};
  sent.wrong = 2;
  std::string text = reply_lines(sent);
  for (std::size_t end = 0; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1))
    EXPECT_TRUE(add_line(got, text.substr(0, end)));
  EXPECT_TRUE(got.complete);
  EXPECT_EQ(got.times_ns, sent.times_ns);
  EXPECT_EQ(got.arrivals_ns, sent.arrivals_ns);
  EXPECT_EQ(got.wrong, 2);
  BenchReply odd;
  for (const char* line : {"times 2 1", "times x", "hallo", "check"}) EXPECT_FALSE(add_line(odd, line)) << line;
}

TEST(BenchPattern, finds_an_element_that_is_wrong_anywhere) {
  const BenchPattern pattern = bench_source(ZC_DTYPE_F32, ZC_OP_SUM);
  std::vector<float> data(3000);
  pattern.fill(data.data(), data.size(), 77);
  EXPECT_TRUE(pattern.equals(data.data(), data.size(), 77));
  EXPECT_FALSE(pattern.equals(data.data(), data.size(), 78)) << "data of another iteration";
  EXPECT_FALSE(pattern.equals(data.data(), data.size(), 77 + kBenchRankStep)) << "data of another rank";
  for (const std::size_t at : {0U, 1007U, 1008U, 1009U, 2999U}) {
    data[at] += 1;
    EXPECT_FALSE(pattern.equals(data.data(), data.size(), 77)) << at;
    data[at] -= 1;
  }
}

// What a reduction must give, added up here by hand.
template <class Element>
void expect_sums(zc_dtype dtype, int ranks) {
  std::vector<Element> sum(kBenchPeriod), term(kBenchPeriod);
  for (int rank = 0; rank < ranks; ++rank) {
    bench_source(dtype, ZC_OP_SUM).fill(term.data(), term.size(), static_cast<std::size_t>(rank) * kBenchRankStep);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = static_cast<Element>(sum[i] + term[i]);
  }
  EXPECT_TRUE(bench_result(dtype, ZC_OP_SUM, ranks).equals(sum.data(), sum.size(), 0)) << zc_dtype_name(dtype);
}

TEST(BenchPattern, knows_exact_sums) {
  expect_sums<float>(ZC_DTYPE_F32, 5);
  expect_sums<double>(ZC_DTYPE_F64, 3);
  expect_sums<std::int32_t>(ZC_DTYPE_I32, 1024);
  expect_sums<std::uint8_t>(ZC_DTYPE_U8, 200);  // wraps
}

TEST(BenchStream, adds_all_that_it_reads_on_every_level) {
  constexpr std::size_t kBytes = 64 * 9;
  alignas(64) static std::int32_t in[3][kBytes / 4], out[2][kBytes / 4];
  for (std::size_t k = 0; k < 3; ++k)
    for (std::size_t i = 0; i < kBytes / 4; ++i) in[k][i] = static_cast<std::int32_t>(100 * k + i);
  const std::byte* const from[] = {reinterpret_cast<std::byte*>(in[0]), reinterpret_cast<std::byte*>(in[1]),
                                   reinterpret_cast<std::byte*>(in[2])};
  std::byte* const to[] = {reinterpret_cast<std::byte*>(out[0]), reinterpret_cast<std::byte*>(out[1])};
  for (const auto run : {run_stream, run_stream_base})
    for (const bool bypass : {false, true}) {
      std::memset(out, 0, sizeof out);
      run({from, to, kBytes, bypass});
      for (const auto& result : out)
        for (std::size_t i = 0; i < kBytes / 4; ++i)
          ASSERT_EQ(result[i], 1 + 300 + 3 * static_cast<std::int32_t>(i)) << i;
    }
}

TEST(BenchClock, agrees_with_the_clock_of_the_system) {
  BenchClock clock;
  std::vector<std::int64_t> stamps{clock.stamp()};
  const std::int64_t before = bench_now_ns();
  while (bench_now_ns() < before + 20'000'000) {
  }
  const std::int64_t between = bench_now_ns();
  stamps.push_back(clock.stamp());
  clock.to_ns(stamps);
  EXPECT_LE(stamps[0], before + 100'000);
  EXPECT_GE(stamps[1], between - 100'000);
  EXPECT_GE(stamps[1] - stamps[0], 19'900'000);
}

TEST(BenchPeers, are_started_as_suits_the_ranks_and_cores) {
  const auto words = [](const PeerCommand& command) {
    std::string text;
    for (const std::string& word : command.words) text += word + " ";
    return text;
  };
  const PeerCommand crowded = peer_command("openmpi-ucx", "/p", "name", 4, 2, false);
  EXPECT_EQ(
      words(crowded),
      "mpirun.openmpi --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 --mca pml ucx --mca pml_ucx_tls any "
      "--mca pml_ucx_devices any -n 4 /p --socket name --group openmpi-ucx ");
  EXPECT_NE(std::find(crowded.environment.begin(), crowded.environment.end(), "OMPI_ALLOW_RUN_AS_ROOT=1"),
            crowded.environment.end());
  EXPECT_EQ(words(peer_command("mpich", "/p", "name", 2, 2, true)),
            "mpirun.mpich -bind-to core -n 2 /p --socket name --group mpich ");
  EXPECT_EQ(words(peer_command("gloo", "/p", "name", 2, 2, false)), "/p --socket name --group gloo --ranks 2 ");
  EXPECT_EQ(peer_command("mpich", "/p", "name", 2, 2, true).environment[0], "MALLOC_MMAP_THRESHOLD_=8589934592");
}

// A rank of one that is asked without a driver.
class OneRank : public testing::Test {
 protected:
  OneRank() { EXPECT_EQ(zc_comm_create_threads(1, nullptr, &comm_), ZC_OK); }
  ~OneRank() override { (void)zc_comm_destroy(comm_); }
  zc_comm* comm_ = nullptr;
};

TEST_F(OneRank, refuses_what_was_not_reserved_and_what_is_no_question) {
  BenchRank rank(comm_);
  EXPECT_THROW(rank.answer("run all_reduce f32 1024 out registered fresh 0 1 1"), Failure);
  EXPECT_THROW(rank.answer("dance"), Failure);
  EXPECT_THROW(rank.answer("stream 1 x 64 1 0 out"), Failure);
  rank.answer("reserve 4096 4096 registered free");
  const BenchReply reply = rank.answer("run all_reduce f32 1024 out registered fresh 1 3 1");
  EXPECT_EQ(reply.times_ns.size(), 3U);
  EXPECT_EQ(reply.arrivals_ns.size(), 3U);
  EXPECT_EQ(reply.wrong, 0);
  EXPECT_EQ(rank.answer("run all_reduce f32 1024 in registered loop 1 3 1").times_ns.size(), 1U);
  EXPECT_THROW(rank.answer("run all_reduce f32 1025 out registered fresh 0 1 1"), Failure);
  EXPECT_THROW(rank.answer("stream 2 1 4096 1 0 out"), Failure);
}

// Threads that answer as they are told.
class FakeRanks {
 public:
  FakeRanks(BenchDriver& driver, int ranks, const std::function<std::string(int rank, const std::string& line)>& answer)
      : ranks_(ranks) {
    for (int rank = 0; rank < ranks; ++rank)
      threads_.emplace_back([name = driver.name(), rank, ranks, answer] {
        LineSocket socket = connect_to(name);
        socket.send(hello_line({kOwnGroup, rank, ranks, "fake"}));
        while (const auto line = socket.wait_line()) {
          const std::string text = *line == "quit" ? "" : answer(rank, *line);
          if (text.empty() || !socket.send(text)) return;
        }
      });
    driver.expect(kOwnGroup, ranks, 20, [] { return std::nullopt; });
  }
  ~FakeRanks() {
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  int ranks_;
  std::vector<std::thread> threads_;
};

constexpr const char* kGood = "times 1 5000\narrive 1 0\nbits 1\ncheck 0\n";

BenchRun measured(const std::function<std::string(int rank, const std::string& line)>& answer) {
  BenchDriver driver;
  const FakeRanks ranks(driver, 2, answer);
  BenchOptions options;
  options.collectives = {"all_reduce"};
  options.min_bytes = options.max_bytes = "1K";
  options.ranks = 2;
  options.iterations = 1;
  BenchRun run;
  run.plan = plan_bench(options, 2);
  const BenchSession::Listener listener{[](const BenchRun&) {}, [](const BenchRun&, const BenchRow&) {},
                                        [](double, const std::string&) {}};
  try {
    BenchSession(driver, run, listener).measure();
  } catch (...) {
    driver.quit();
    throw;
  }
  driver.quit();
  return run;
}

TEST(BenchSession, takes_the_time_of_the_slowest_rank) {
  const BenchRun run = measured([](int rank, const std::string& line) {
    if (line.find(" out ") == std::string::npos || rank == 0) return std::string(kGood);
    return std::string("times 1 8000\narrive 1 700\nbits 1\ncheck 0\n");
  });
  ASSERT_EQ(run.rows.size(), 1U);
  EXPECT_EQ(run.rows[0].out->time.median, 8);
  EXPECT_EQ(run.rows[0].out->skew_us, 0.7);
  EXPECT_EQ(run.rows[0].in->time.median, 5);
  EXPECT_DOUBLE_EQ(run.rows[0].out->algbw, 1024 / 8e3);
  EXPECT_FALSE(has_failed(run));
}

TEST(BenchSession, fails_by_a_result_that_was_wrong_on_one_rank) {
  const BenchRun run = measured([](int rank, const std::string& line) {
    const bool planted = rank == 1 && line.starts_with("run") && line.find(" in ") != std::string::npos;
    return planted ? std::string("times 1 5000\narrive 1 0\ncheck 1\n") : std::string(kGood);
  });
  EXPECT_EQ(run.rows[0].in->wrong, 1);
  EXPECT_EQ(run.rows[0].out->wrong, 0);
  EXPECT_TRUE(has_failed(run));
}

TEST(BenchSession, fails_by_ranks_that_got_other_bits) {
  const BenchRun run = measured([](int rank, const std::string& line) {
    return line.starts_with("bits") ? "times 0\narrive 0\nbits " + std::to_string(rank) + "\ncheck 0\n"
                                    : std::string(kGood);
  });
  EXPECT_EQ(run.rows[0].same_bits, false);
  EXPECT_TRUE(has_failed(run));
}

std::string failure_of(const std::function<std::string(int rank, const std::string& line)>& answer) {
  try {
    measured(answer);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

TEST(BenchDriver, ends_by_a_rank_that_fails_ends_or_talks_nonsense) {
  EXPECT_EQ(failure_of([](int rank, const std::string&) {
              return rank == 1 ? std::string("error TIMEOUT: nobody came\n") : std::string(kGood);
            }),
            "rank 1 of zerocomm: TIMEOUT: nobody came");
  EXPECT_NE(failure_of([](int rank, const std::string&) {
              return rank == 0 ? std::string(kGood) : std::string();
            }).find("rank 1 of zerocomm (pid "),
            std::string::npos);
  EXPECT_EQ(failure_of([](int, const std::string&) { return std::string("what?\n"); }).find("rank "), 0U);
  EXPECT_EQ(failure_of([](int rank, const std::string& line) {
              return rank == 0 && line.starts_with("run") ? std::string("times 2 1 2\narrive 2 1 2\ncheck 0\n")
                                                          : std::string(kGood);
            }),
            "the ranks of zerocomm have not measured equally many iterations");
}

TEST(BenchDriver, waits_no_longer_than_its_limits) {
  BenchDriver driver;
  EXPECT_THROW(driver.expect("nobody", 1, 0.05, [] { return std::nullopt; }), Failure);
  EXPECT_THROW(driver.expect("broken", 1, 20, [] { return std::optional<std::string>("it has ended"); }), Failure);
  const FakeRanks ranks(driver, 1, [](int, const std::string& line) {
    if (line == "slow") std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return std::string(kGood);
  });
  driver.set_limit(0.05);
  EXPECT_THROW(driver.ask(kOwnGroup, "slow"), Failure);
  driver.quit();
  driver.stop();
  EXPECT_THROW(driver.expect("late", 1, 20, [] { return std::nullopt; }), Failure);
}

}  // namespace
