// Every form that ZC_ALGO can ask for gives the same bits, and one that cannot be had is an error that changes nothing.
#include "collectives/case.hpp"
#include "support/child_ranks.hpp"
#include "support/rank_threads.hpp"

#include <gtest/gtest.h>

#include <zerocomm/mem.h>

#include <cstdlib>

namespace zerocomm::test {
namespace {

class AlgoVariable {
 public:
  explicit AlgoVariable(const std::string& value) { setenv("ZC_ALGO", value.c_str(), 1); }
  ~AlgoVariable() { unsetenv("ZC_ALGO"); }
  AlgoVariable(const AlgoVariable&) = delete;
  AlgoVariable& operator=(const AlgoVariable&) = delete;
};

struct Forms {
  Form form;
  const char* name;
  std::vector<const char*> forms;
};
const Forms kForms[] = {
    {Form::all_reduce, "all_reduce", {"staged", "spread"}},
    {Form::reduce, "reduce", {"staged", "spread"}},
    {Form::reduce_scatter, "reduce_scatter", {"staged", "pull", "spread"}},
    {Form::reduce_scatter_v, "reduce_scatter_v", {"staged", "pull", "spread"}},
    {Form::all_gather, "all_gather", {"staged", "pull", "spread"}},
    {Form::all_gather_v, "all_gather_v", {"staged", "pull", "spread"}},
    {Form::broadcast, "broadcast", {"staged", "pull", "spread"}},
    {Form::all_to_all, "all_to_all", {"staged", "pull"}},
    {Form::gather_to_root, "gather_to_root", {"staged", "pull"}},
    {Form::scatter_from_root, "scatter_from_root", {"staged", "pull"}},
};

// Small and odd, a few lines, more than a slice of work, more than the slots of staging; skewed to one rank or rising.
std::vector<Case> calls_of(const Forms& row, std::int32_t ranks) {
  std::vector<Case> cases;
  Case what;
  what.form = row.form;
  what.ranks = ranks;
  what.root = ranks - 1;
  const auto add = [&](zc_dtype dtype, zc_dtype output) {
    what.dtype = dtype;
    what.output = output;
    cases.push_back(what);
  };
  const auto add_types = [&](bool is_long) {
    add(ZC_DTYPE_F32, ZC_DTYPE_F32);
    if (is_long) return;
    add(ZC_DTYPE_U8, ZC_DTYPE_U8);
    if (reduces(row.form)) add(ZC_DTYPE_BF16, ZC_DTYPE_F32);
  };
  const auto p = static_cast<std::size_t>(ranks);
  if (!has_counts(row.form)) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{1009}, std::size_t{600'011} / p}) {
      what.count = count;
      add_types(count > 100'000);
    }
    return cases;
  }
  for (const std::size_t scale : {std::size_t{1}, std::size_t{400'000}}) {
    what.counts.assign(p, 0);
    what.counts[p / 2] = scale + 7;  // one rank has all
    add_types(scale > 1);
    for (std::size_t rank = 0; rank < p; ++rank) what.counts[rank] = rank * scale / p + rank;
    add_types(scale > 1);
  }
  return cases;
}

// The same call with its buffers in all places, as a blocking call and as a request.
std::vector<Case> places_of(Case what, bool swaps) {
  std::vector<Case> cases;
  for (const bool request : {false, true})
    for (const bool in_place : {false, true})
      for (const bool shifted : {false, true}) {
        what.request = request, what.in_place = in_place, what.shifted = shifted;
        if (is_legal(what) && !(in_place && !swaps)) cases.push_back(what);
      }
  return cases;
}

void expect_bits(const Forms& row, std::int32_t ranks) {
  for (const Case& what : calls_of(row, ranks)) {
    const Prepared prepared = prepare(what);
    for (const char* form : row.forms)
      for (const char* stores : {"cached", "streaming"}) {
        const AlgoVariable algo(std::string(row.name) + "=" + form + "/" + stores);
        // In place, the blocks of an all-to-all change places, which needs staging.
        const bool swaps = row.form != Form::all_to_all || std::string(form) == "staged" || ranks == 1;
        const std::vector<Case> places = places_of(what, swaps);
        RankThreads threads(ranks);
        threads.run([&](zc_comm* comm, std::int32_t rank) {
          for (const Case& place : places) run_case(comm, rank, place, prepared);
        });
        ASSERT_FALSE(testing::Test::HasFailure()) << row.name << " " << form << " " << stores;
      }
  }
}

TEST(Forms, give_the_bits_of_the_oracle) {
  const std::vector<std::int32_t> all = kSanitized ? std::vector{3} : std::vector{1, 2, 5};
  for (const Forms& row : kForms)
    for (const std::int32_t ranks : all) expect_bits(row, ranks);
}

TEST(Forms, that_cannot_be_had_are_unsupported_and_leave_the_communicator) {
  ChildRanks ranks(
      3,
      [](zc_comm* comm, std::int32_t) {
        std::vector<float> send(100'000, 1), recv(300'000, 5);  // memory of each process alone
        for (int turn = 0; turn < 3; ++turn) {
          RANK_STATUS(ZC_UNSUPPORTED,
                      zc_all_reduce(comm, send.data(), recv.data(), 100'000, ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
          RANK_ERROR_SAYS("ZC_ALGO asks for the form spread");
          RANK_STATUS(ZC_UNSUPPORTED, zc_all_gather(comm, send.data(), recv.data(), 100'000, ZC_DTYPE_F32, nullptr));
          RANK_ERROR_SAYS("ZC_ALGO asks for the form spread");
          RANK_CHECK(recv[0] == 5, "a byte was moved");
          RANK_OK(zc_reduce(comm, send.data(), recv.data(), 100'000, ZC_DTYPE_F32, ZC_OP_SUM, 0, nullptr));
          recv[0] = 5;
        }
      },
      {}, [](std::int32_t) { setenv("ZC_ALGO", "all_reduce=spread,all_gather=spread", 1); });
  expect_ok(ranks.wait(kSlack * 30 * kSecondNs));
}

// Which form moves the data must be the same on all ranks.
TEST(Forms, that_differ_between_ranks_are_a_mismatch_at_creation) {
  const zc_unique_id id = make_id();
  Children ranks(2, [&](std::int32_t rank) {
    if (rank == 1) setenv("ZC_ALGO", "broadcast=staged", 1);
    const zc_comm_config config = process_config(id, 2, rank);
    zc_comm* comm = nullptr;
    RANK_STATUS(ZC_MISMATCH, zc_comm_create(&config, &comm));
    RANK_ERROR_SAYS("selection #");
  });
  expect_ok(ranks.wait(kSlack * 30 * kSecondNs));
}

// What the library itself tells the ranks is not what was asked for.
TEST(Forms, are_not_those_of_control_traffic) {
  ChildRanks ranks(
      3,
      [](zc_comm* comm, std::int32_t rank) {
        zc_comm* child = nullptr;
        RANK_OK(zc_comm_split(comm, 0, rank, nullptr, &child));
        zc_coll_options options{};
        options.struct_size = sizeof options;
        options.traffic = ZC_TRAFFIC_CONTROL;
        for (zc_comm* each : {comm, child}) {
          std::int64_t value = rank, all[3] = {};
          RANK_OK(zc_all_gather(each, &value, all, 1, ZC_DTYPE_I64, &options));
          RANK_CHECK(all[2] == 2, "%lld", static_cast<long long>(all[2]));
          RANK_STATUS(ZC_UNSUPPORTED, zc_all_gather(each, &value, all, 1, ZC_DTYPE_I64, nullptr));
        }
        if (rank != 0) options.traffic = ZC_TRAFFIC_DATA;
        std::int64_t value = rank, all[3] = {};
        RANK_STATUS(ZC_MISMATCH, zc_all_gather(comm, &value, all, 1, ZC_DTYPE_I64, &options));
        RANK_ERROR_SAYS("form by the table");
        RANK_OK(zc_comm_destroy(child));
      },
      {}, [](std::int32_t) { setenv("ZC_ALGO", "all_gather=spread", 1); });
  expect_ok(ranks.wait(kSlack * 30 * kSecondNs));
}

// What each rank moves by a broadcast in which each writes its part into the others' buffers.
TEST(Forms, spread_is_counted_where_it_moves) {
  ChildRanks ranks(
      4,
      [](zc_comm* comm, std::int32_t rank) {
        void* memory = nullptr;
        RANK_OK(zc_mem_alloc(comm, 4096, &memory));
        RANK_OK(zc_broadcast(comm, memory, 4096, ZC_DTYPE_U8, 1, nullptr));
        zc_stats stats{};
        stats.struct_size = sizeof stats;
        RANK_OK(zc_comm_stats(comm, &stats));
        RANK_CHECK(stats.moved_bytes[ZC_LINK_HOST] == 3 * 1024, "%llu bytes",
                   static_cast<unsigned long long>(stats.moved_bytes[ZC_LINK_HOST]));
        RANK_CHECK(stats.logical_bytes == (rank == 1 ? 0u : 4096u), "%llu bytes",
                   static_cast<unsigned long long>(stats.logical_bytes));
        RANK_OK(zc_mem_free(comm, memory));
      },
      {}, [](std::int32_t) { setenv("ZC_ALGO", "broadcast=spread", 1); });
  expect_ok(ranks.wait(kSlack * 30 * kSecondNs));
}

}  // namespace
}  // namespace zerocomm::test
