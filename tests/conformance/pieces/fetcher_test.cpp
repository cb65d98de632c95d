// A fetcher gathers what owners published, whatever the stage of the layout, from shards of the library or of the
// caller.
#include "pieces.hpp"

namespace zerocomm::test {
namespace {

struct Row {
  std::int32_t ranks;
  zc_stage stage;
  zc_placement placement;
  bool own_shards;
};

class Fetchers : public testing::TestWithParam<Row> {};

// Memory that all ranks can reach, for every buffer.
class ShardsOfCaller {
 public:
  ShardsOfCaller(zc_comm* comm, const Model& model) : comm_(comm) {
    for (std::size_t buffer = 0; buffer < model.info().buffer_count; ++buffer) {
      const zc_buffer_info info = buffer_of(model, buffer);
      const std::size_t bytes = info.shard_count * zc_dtype_bytes(info.dtype);
      bytes_ += bytes;
      void*& shard = shards_.emplace_back(nullptr);
      if (bytes != 0) RANK_OK(zc_mem_alloc(comm, bytes, &shard));
    }
  }
  ~ShardsOfCaller() {
    zc_coll_options options{};
    options.struct_size = sizeof options;
    const zc_status ignored = zc_barrier(comm_, &options);  // all ranks have destroyed their fetchers
    static_cast<void>(ignored);
    for (void* shard : shards_) zc_mem_free(comm_, shard);
  }
  ShardsOfCaller(const ShardsOfCaller&) = delete;
  ShardsOfCaller& operator=(const ShardsOfCaller&) = delete;
  void* const* data() const { return shards_.data(); }
  std::size_t bytes() const { return bytes_; }

 private:
  zc_comm* comm_;
  std::vector<void*> shards_;
  std::size_t bytes_ = 0;
};

TEST_P(Fetchers, gather_what_the_owners_published) {
  const Row& row = GetParam();
  zc_layout_config layout = shape(row.ranks, row.stage, 256, row.placement);
  layout.persistent_bytes = 64;
  const Model model(mixed_tensors(), layout);
  run_ranks(row.ranks, [&](zc_comm* comm, std::int32_t rank) {
    const ShardsOfCaller shards(comm, model);
    zc_fetcher_config config = fetcher_options();
    if (!row.own_shards) config.shards = shards.data();
    const TestFetcher fetcher(comm, model, config);
    for (std::size_t buffer = 0; buffer < model.info().buffer_count && !row.own_shards; ++buffer) {
      void* shard = nullptr;
      std::size_t count = 0;
      RANK_OK(zc_fetcher_shard(fetcher, buffer, &shard, &count));
      RANK_CHECK(shard == shards.data()[buffer], "shard %zu lies elsewhere", buffer);
    }
    const zc_fetcher_ledger ledger = fetcher.ledger();
    RANK_CHECK(ledger.parameter_bytes == (row.own_shards ? shards.bytes() : 0) &&
                   ledger.caller_parameter_bytes == (row.own_shards ? 0 : shards.bytes()),
               "%zu and %zu of %zu", ledger.parameter_bytes, ledger.caller_parameter_bytes, shards.bytes());
    RANK_CHECK(ledger.total_bytes == ledger.parameter_bytes + ledger.gather_bytes + ledger.control_bytes, "%zu",
               ledger.total_bytes);
    for (std::uint64_t version = 1; version < 5; ++version) {
      fetcher.update(version);
      std::vector<std::size_t> units = fetcher.all_units();
      if (rank % 2 == 1) std::reverse(units.begin(), units.end());
      for (int pass = 0; pass < rank + 1; ++pass) fetcher.pass("walk", units, version);
      if (version == 3) RANK_OK(zc_fetcher_publish_unchanged(fetcher));
    }
    RANK_CHECK(fetcher.stats().generation == 5, "%llu", static_cast<unsigned long long>(fetcher.stats().generation));
    // And what zc_gather makes of the same shards.
    std::vector<const void*> own;
    for (std::size_t buffer = 0; buffer < model.info().buffer_count; ++buffer) {
      void* shard = nullptr;
      std::size_t count = 0;
      RANK_OK(zc_fetcher_shard(fetcher, buffer, &shard, &count));
      own.push_back(shard);
    }
    RANK_OK(zc_fetcher_begin(fetcher, "compare"));
    for (const std::size_t unit : fetcher.all_units()) {
      std::vector<std::vector<std::byte>> full(model.unit(unit).use_count, std::vector<std::byte>(1024));
      std::vector<void*> into;
      for (std::vector<std::byte>& one : full) into.push_back(one.data());
      RANK_OK(zc_gather(comm, model.get(), unit, own.data(), into.data(), nullptr));
      const std::vector<const void*> tensors = fetcher.acquire(unit);
      for (std::size_t i = 0; i < full.size(); ++i) {
        const zc_use_info use = model.use(model.use_of(unit, i));
        const std::size_t bytes = use.in_tensor.count * zc_dtype_bytes(model.tensor_of(use.tensor).dtype);
        RANK_CHECK(use.tensor != use.stored_tensor || bytes == 0 || std::memcmp(tensors[i], into[i], bytes) == 0,
                   "unit %zu, tensor %zu", unit, i);
      }
      RANK_OK(zc_fetcher_release(fetcher, unit, nullptr));
    }
    RANK_OK(zc_fetcher_end(fetcher));
  });
}

std::vector<Row> rows() {
  std::vector<Row> rows;
  for (const zc_stage stage : {ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3})
    for (const zc_placement placement : {ZC_PLACEMENT_PER_UNIT, ZC_PLACEMENT_FLAT})
      for (const bool own : {true, false})
        rows.push_back({static_cast<std::int32_t>(1 + rows.size() * 3 % 4), stage, placement, own});
  return rows;
}
INSTANTIATE_TEST_SUITE_P(rows, Fetchers, testing::ValuesIn(rows()));

TEST(Fetcher, holds_shards_and_gathered_units_alone) {
  const Model model({tensor("a", "u0", 4096, ZC_DTYPE_BF16), tensor("b", "u1", 2048, ZC_DTYPE_BF16)},
                    shape(2, ZC_STAGE_3));
  run_ranks(2, [&](zc_comm* comm, std::int32_t) {
    const auto held_bytes = [&] {
      zc_ledger ledger{};
      ledger.struct_size = sizeof ledger;
      RANK_OK(zc_comm_ledger(comm, &ledger));
      return ledger.window_bytes + ledger.memory_bytes;
    };
    const std::size_t before_bytes = held_bytes();
    zc_fetcher_config config = fetcher_options();
    config.budget_bytes = 8192;
    const TestFetcher fetcher(comm, model, config);
    // No master, no gradient, no slot: 3,072 elements of 2 bytes, and the budget.
    RANK_CHECK(held_bytes() - before_bytes == 6144 + 8192, "%zu", held_bytes() - before_bytes);
    RANK_CHECK(fetcher.ledger().parameter_bytes == 6144 && fetcher.ledger().gather_bytes == 8192, "ledger");
    fetcher.update(1);
    for (int pass = 0; pass < 3; ++pass) fetcher.pass("walk", {0, 1}, 1);
    RANK_CHECK(fetcher.stats().gathered_peak_bytes <= 8192, "%llu bytes",
               static_cast<unsigned long long>(fetcher.stats().gathered_peak_bytes));
    zc_fetcher* refused = nullptr;
    config.budget_bytes = 8191;
    RANK_STATUS(ZC_BUDGET, zc_fetcher_create(comm, model.get(), &config, &refused));
    RANK_ERROR_SAYS("8192");
  });
}

TEST(Fetcher, before_the_first_publication_gives_what_the_shards_hold) {
  const Model model({tensor("a", "u0", 100)}, shape(2, ZC_STAGE_3));
  run_ranks(2, [&](zc_comm* comm, std::int32_t) {
    const TestFetcher fetcher(comm, model);
    RANK_OK(zc_fetcher_begin(fetcher, "early"));
    const std::vector<const void*> tensors = fetcher.acquire(0);
    for (std::size_t e = 0; e < 100; ++e) RANK_CHECK(read_element(ZC_DTYPE_F32, tensors[0], e) == 0, "element %zu", e);
    RANK_OK(zc_fetcher_release(fetcher, 0, nullptr));
    RANK_OK(zc_fetcher_end(fetcher));
    fetcher.update(1);
    fetcher.pass("early", {0}, 1);
  });
}

TEST(FetcherMisuse, is_an_error_that_names_the_calls_of_a_fetcher) {
  const Model model({tensor("a", "u0", 100), tensor("b", "u1", 50)}, shape(2, ZC_STAGE_3));
  run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
    zc_fetcher_config config = fetcher_options();
    config.max_held_bytes = 512;  // one unit
    const TestFetcher fetcher(comm, model, config);
    const void* tensors[1] = {};
    const auto acquire = [&](std::size_t unit) { return zc_fetcher_acquire(fetcher, unit, tensors, 1, nullptr); };
    RANK_STATUS(ZC_STATE, acquire(0));
    RANK_ERROR_SAYS("zc_fetcher_begin comes before");
    RANK_STATUS(ZC_STATE, zc_fetcher_prefetch(fetcher, 0));
    RANK_ERROR_SAYS("zc_fetcher_prefetch outside a pass");
    RANK_STATUS(ZC_STATE, zc_fetcher_end(fetcher));
    RANK_STATUS(ZC_STATE, zc_fetcher_publish(fetcher, nullptr));
    RANK_ERROR_SAYS("zc_fetcher_publish without zc_fetcher_update_begin");
    RANK_STATUS(ZC_ARGUMENT, zc_fetcher_begin(fetcher, ""));
    RANK_OK(zc_fetcher_update_begin(fetcher));
    RANK_STATUS(ZC_STATE, zc_fetcher_begin(fetcher, "walk"));
    RANK_ERROR_SAYS("zc_fetcher_publish comes before");
    fetcher.write(1);
    RANK_OK(zc_fetcher_publish(fetcher, nullptr));
    RANK_OK(zc_fetcher_begin(fetcher, "walk"));
    RANK_STATUS(ZC_STATE, zc_fetcher_begin(fetcher, "run"));
    RANK_ERROR_SAYS(
        "pass \"run\" while pass \"walk\" is open: a pass with phase EVAL is open: zc_fetcher_end comes first");
    RANK_STATUS(ZC_ARGUMENT, acquire(2));
    RANK_STATUS(ZC_ARGUMENT, zc_fetcher_acquire(fetcher, 0, tensors, 0, nullptr));
    int stream = 0;
    RANK_STATUS(ZC_UNSUPPORTED, zc_fetcher_acquire(fetcher, 0, tensors, 1, &stream));
    RANK_OK(acquire(0));
    RANK_STATUS(ZC_BUDGET, acquire(1));
    RANK_ERROR_SAYS("max_held_bytes is 512");
    RANK_STATUS(ZC_STATE, zc_fetcher_update_begin(fetcher));
    RANK_ERROR_SAYS("zc_fetcher_end comes first");
    RANK_STATUS(ZC_STATE, zc_fetcher_release(fetcher, 1, nullptr));
    RANK_OK(zc_fetcher_release(fetcher, 0, nullptr));
    RANK_OK(zc_fetcher_end(fetcher));
    void* shard = nullptr;
    std::size_t count = 0;
    RANK_STATUS(ZC_ARGUMENT, zc_fetcher_shard(fetcher, 1, &shard, &count));
    RANK_STATUS(ZC_ARGUMENT, zc_fetcher_end(nullptr));
    RANK_ERROR_SAYS("the fetcher is NULL");
    RANK_OK(zc_fetcher_destroy(nullptr));
    // At creation.
    zc_fetcher* refused = nullptr;
    config.prefetch = rank;
    RANK_STATUS(ZC_MISMATCH, zc_fetcher_create(comm, model.get(), &config, &refused));
    RANK_ERROR_SAYS("zc_fetcher_create: prefetch is 0 on rank 0 and 1 on rank 1");
    config.prefetch = 0;
    void* const missing[1] = {nullptr};
    config.shards = missing;
    RANK_STATUS(ZC_ARGUMENT, zc_fetcher_create(comm, model.get(), &config, &refused));
    RANK_ERROR_SAYS("zc_fetcher_config.shards has NULL");
    if (rank == 1) config.shards = nullptr;
    RANK_STATUS(ZC_MISMATCH, zc_fetcher_create(comm, model.get(), &config, &refused));
    RANK_CHECK(refused == nullptr, "a refused fetcher has no handle");
  });
}

}  // namespace
}  // namespace zerocomm::test
