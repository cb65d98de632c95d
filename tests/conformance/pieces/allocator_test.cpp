// Gathered units in memory of the caller.
#include "pieces.hpp"

#include <cstdlib>

namespace zerocomm::test {
namespace {

// An allocator that counts, and can give nothing or a place that is not aligned.
struct Heap {
  enum class Gives { memory, nothing, odd_address } gives = Gives::memory;
  std::map<void*, std::size_t> blocks;
  std::size_t allocations = 0, wrong_frees = 0, asked_bytes = 0, asked_alignment_bytes = 0;

  zc_allocator allocator() {
    zc_allocator result{};
    result.context = this;
    result.allocate = [](void* context, std::size_t bytes, std::size_t alignment_bytes) -> void* {
      auto& heap = *static_cast<Heap*>(context);
      heap.asked_bytes = bytes;
      heap.asked_alignment_bytes = alignment_bytes;
      if (heap.gives == Gives::nothing) return nullptr;
      ++heap.allocations;
      const std::size_t room = (bytes + 2 * alignment_bytes) / alignment_bytes * alignment_bytes;
      auto* memory = static_cast<std::byte*>(std::aligned_alloc(alignment_bytes, room));
      std::memset(memory, 0x5a, room);
      if (heap.gives == Gives::odd_address) ++memory;
      heap.blocks[memory] = bytes;
      return memory;
    };
    result.deallocate = [](void* context, void* memory, std::size_t bytes) {
      auto& heap = *static_cast<Heap*>(context);
      const auto found = heap.blocks.find(memory);
      if (found == heap.blocks.end() || found->second != bytes) {
        ++heap.wrong_frees;
        return;
      }
      heap.blocks.erase(found);
      std::free(static_cast<std::byte*>(memory) - (heap.gives == Gives::odd_address ? 1 : 0));
    };
    return result;
  }
  bool holds(const void* address) const {
    for (const auto& [memory, block_bytes] : blocks)
      if (address >= memory && address < static_cast<const std::byte*>(memory) + block_bytes) return true;
    return false;
  }
};

zc_layout_config with_persistent_units(std::int32_t ranks, zc_stage stage) {
  zc_layout_config config = shape(ranks, stage);
  config.persistent_bytes = 64;
  return config;
}

TEST(GatherAllocator, of_a_fetcher_holds_its_units_and_gets_back_what_it_gave) {
  const Model model(mixed_tensors(), with_persistent_units(3, ZC_STAGE_3));
  run_ranks(3, [&](zc_comm* comm, std::int32_t) {
    Heap heap;
    {
      zc_fetcher_config config = fetcher_options();
      config.gather_allocator = heap.allocator();
      const TestFetcher fetcher(comm, model, config);
      RANK_CHECK(heap.allocations == 1 && heap.asked_alignment_bytes == 64, "%zu allocations at %zu", heap.allocations,
                 heap.asked_alignment_bytes);
      const zc_fetcher_ledger ledger = fetcher.ledger();
      RANK_CHECK(ledger.gather_bytes == 0 && ledger.caller_gather_bytes == heap.asked_bytes, "%zu and %zu",
                 ledger.gather_bytes, ledger.caller_gather_bytes);
      RANK_CHECK(ledger.total_bytes == ledger.parameter_bytes + ledger.control_bytes, "%zu", ledger.total_bytes);
      RANK_CHECK(fetcher.stats().budget_bytes == heap.asked_bytes, "the caller's memory is inside the budget");
      for (std::uint64_t version = 1; version < 4; ++version) {
        fetcher.update(version);
        fetcher.pass("all", fetcher.all_units(), version);
        RANK_OK(zc_fetcher_begin(fetcher, "all"));
        for (const void* address : fetcher.acquire(1)) RANK_CHECK(heap.holds(address), "%p", address);
        RANK_OK(zc_fetcher_release(fetcher, 1, nullptr));
        RANK_OK(zc_fetcher_end(fetcher));
      }
    }
    RANK_CHECK(heap.blocks.empty() && heap.wrong_frees == 0, "%zu left, %zu wrong", heap.blocks.size(),
               heap.wrong_frees);
  });
}

TEST(GatherAllocator, of_an_engine_is_used_in_stage_3_alone_and_on_one_rank_if_need_be) {
  for (const zc_stage stage : {ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3}) {
    const Model model(mixed_tensors(), with_persistent_units(2, stage));
    run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
      Heap heap;
      {
        zc_zero_config config = options();
        if (rank == 1) config.gather_allocator = heap.allocator();
        const TestEngine engine(comm, model, config);
        const bool used = rank == 1 && stage == ZC_STAGE_3;
        RANK_CHECK(heap.allocations == (used ? 1U : 0U), "%zu allocations", heap.allocations);
        const zc_zero_ledger ledger = engine.ledger();
        RANK_CHECK(ledger.caller_gather_bytes == (used ? heap.asked_bytes : 0), "%zu", ledger.caller_gather_bytes);
        RANK_CHECK(stage != ZC_STAGE_3 || (ledger.gather_bytes == 0) == used, "%zu", ledger.gather_bytes);
        engine.load_all(1);
        for (std::uint64_t version = 1; version < 3; ++version) {
          RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
          for (std::size_t unit = 0; unit < model.info().unit_count; ++unit) engine.visit(unit, version);
          RANK_OK(zc_zero_end(engine));
          engine.update(version + 1);
        }
      }
      RANK_CHECK(heap.blocks.empty() && heap.wrong_frees == 0, "%zu left", heap.blocks.size());
    });
  }
}

TEST(GatherAllocator, that_gives_nothing_on_one_rank_is_no_memory_on_all_with_the_bytes) {
  const Model model(mixed_tensors(), shape(3, ZC_STAGE_3));
  run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
    Heap heap;
    zc_fetcher_config config = fetcher_options();
    config.gather_allocator = heap.allocator();
    zc_fetcher* fetcher = nullptr;
    zc_zero* zero = nullptr;
    zc_zero_config of_engine = options();
    of_engine.gather_allocator = config.gather_allocator;
    const auto refused = [&](zc_status status) {
      for (const bool whole : {false, true}) {
        RANK_STATUS(status, whole ? zc_zero_create(comm, model.get(), &of_engine, &zero)
                                  : zc_fetcher_create(comm, model.get(), &config, &fetcher));
        RANK_ERROR_SAYS(std::to_string(heap.asked_bytes) + " bytes");
        if (rank != 1) RANK_ERROR_SAYS("rank 1");
        RANK_CHECK(heap.blocks.empty() && heap.wrong_frees == 0, "%zu left", heap.blocks.size());
      }
    };
    if (rank == 1) heap.gives = Heap::Gives::nothing;
    refused(ZC_NO_MEMORY);
    if (rank == 1) heap.gives = Heap::Gives::odd_address;
    refused(ZC_ARGUMENT);
    RANK_CHECK(fetcher == nullptr && zero == nullptr, "a refused object has no handle");
    heap.gives = Heap::Gives::memory;
    {
      const TestFetcher works(comm, model, config);  // the communicator does
      works.update(1);
      works.pass("all", works.all_units(), 1);
    }
    config.gather_allocator.deallocate = nullptr;
    RANK_STATUS(ZC_ARGUMENT, zc_fetcher_create(comm, model.get(), &config, &fetcher));
    RANK_ERROR_SAYS("zc_fetcher_config.gather_allocator has one of its two functions");
  });
}

}  // namespace
}  // namespace zerocomm::test
