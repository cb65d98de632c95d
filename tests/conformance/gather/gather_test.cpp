// zc_gather undoes zc_partition, for every number of ranks and every odd kind of tensor.
#include "support/exact_data.hpp"
#include "support/guarded_buffer.hpp"
#include "support/rank_threads.hpp"

#include <zerocomm/layout.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace zerocomm::test {
namespace {

zc_tensor tensor(const char* name, const char* unit, std::size_t count, zc_dtype dtype, const char* tied_to = nullptr,
                 std::int32_t frozen = 0) {
  zc_tensor result{};
  result.struct_size = sizeof result;
  result.name = name;
  result.unit = unit;
  result.count = count;
  result.dtype = dtype;
  result.tied_to = tied_to;
  result.frozen = frozen;
  return result;
}

// Tied, empty, frozen, tiny and mixed tensors in four units.
std::vector<zc_tensor> tensors() {
  return {
      tensor("wte", "embed", 97 * 8, ZC_DTYPE_F32), tensor("wpe", "embed", 33, ZC_DTYPE_BF16),
      tensor("ln", "block", 7, ZC_DTYPE_F32),       tensor("mlp", "block", 1031, ZC_DTYPE_BF16),
      tensor("void", "block", 0, ZC_DTYPE_F32),     tensor("table", "block", 19, ZC_DTYPE_F32, nullptr, 1),
      tensor("proj", "block", 301, ZC_DTYPE_F32),   tensor("ln2", "block", 5, ZC_DTYPE_F32),
      tensor("one", "single", 1, ZC_DTYPE_F32),     tensor("head", "head", 97 * 8, ZC_DTYPE_F32, "wte"),
      tensor("bias", "head", 3, ZC_DTYPE_F16),
  };
}

struct LayoutOfTest {
  explicit LayoutOfTest(std::int32_t ranks, std::vector<zc_tensor> list = tensors(),
                        zc_placement placement = ZC_PLACEMENT_DEFAULT) {
    zc_layout_config config{};
    config.struct_size = sizeof config;
    config.ranks = ranks;
    config.stage = ZC_STAGE_3;
    config.placement = placement;
    if (zc_layout_create(list.data(), list.size(), &config, &layout) != ZC_OK) throw RankFailure(zc_last_error());
    info.struct_size = sizeof info;
    zc_layout_get_info(layout, &info);
  }
  ~LayoutOfTest() { zc_layout_destroy(layout); }
  LayoutOfTest(const LayoutOfTest&) = delete;
  LayoutOfTest& operator=(const LayoutOfTest&) = delete;

  zc_layout* layout = nullptr;
  zc_layout_info info{};
};

zc_use_info use_of(const zc_layout* layout, std::size_t unit, std::size_t position) {
  std::size_t use = 0;
  RANK_OK(zc_layout_unit_use(layout, unit, position, &use));
  zc_use_info info{};
  info.struct_size = sizeof info;
  RANK_OK(zc_layout_get_use(layout, use, &info));
  return info;
}

std::size_t use_count(const zc_layout* layout, std::size_t unit) {
  zc_unit_info info{};
  info.struct_size = sizeof info;
  RANK_OK(zc_layout_get_unit(layout, unit, &info));
  return info.use_count;
}

// What a tensor holds: bytes that no other tensor has at the same place.
Bytes contents(std::size_t tensor_index, std::size_t bytes) {
  Bytes result(bytes);
  for (std::size_t i = 0; i < bytes; ++i) result[i] = static_cast<std::byte>(mix(tensor_index + 1, i));
  return result;
}

// A rank's shards of all buffers, poisoned, and then cut from the full tensors.
std::vector<Bytes> make_shards(const LayoutOfTest& of, const std::vector<zc_tensor>& list, std::int32_t rank) {
  std::vector<Bytes> shards(of.info.buffer_count);
  std::vector<void*> to;
  for (std::size_t buffer = 0; buffer < shards.size(); ++buffer) {
    zc_buffer_info info{};
    info.struct_size = sizeof info;
    RANK_OK(zc_layout_get_buffer(of.layout, buffer, &info));
    shards[buffer].assign(info.shard_count * zc_dtype_bytes(info.dtype), std::byte{0xFF});
    to.push_back(shards[buffer].data());
  }
  for (std::size_t unit = 0; unit < of.info.unit_count; ++unit) {
    std::vector<Bytes> full;
    std::vector<const void*> from;
    for (std::size_t position = 0; position < use_count(of.layout, unit); ++position) {
      const zc_use_info use = use_of(of.layout, unit, position);
      full.push_back(contents(use.stored_tensor, list[use.tensor].count * zc_dtype_bytes(list[use.tensor].dtype)));
      from.push_back(full.back().data());
    }
    RANK_OK(zc_partition(of.layout, rank, unit, from.data(), to.data()));
  }
  return shards;
}

class GatherOf : public testing::TestWithParam<zc_placement> {};
INSTANTIATE_TEST_SUITE_P(placements, GatherOf, testing::Values(ZC_PLACEMENT_PER_UNIT, ZC_PLACEMENT_FLAT));

TEST_P(GatherOf, a_unit_gives_every_rank_what_partition_cut) {
  for (const std::int32_t ranks : {1, 2, 3, 4, 5, 7, 8}) {
    SCOPED_TRACE(ranks);
    const LayoutOfTest of(ranks, tensors(), GetParam());
    const std::vector<zc_tensor> list = tensors();
    run_ranks(ranks, [&](zc_comm* comm, std::int32_t rank) {
      const std::vector<Bytes> shards = make_shards(of, list, rank);
      std::vector<const void*> from;
      for (const Bytes& shard : shards) from.push_back(shard.data());
      for (std::size_t unit = 0; unit < of.info.unit_count; ++unit) {
        std::vector<std::unique_ptr<GuardedBuffer>> full;
        std::vector<void*> to;
        for (std::size_t position = 0; position < use_count(of.layout, unit); ++position) {
          const zc_use_info use = use_of(of.layout, unit, position);
          full.push_back(
              std::make_unique<GuardedBuffer>(list[use.tensor].count * zc_dtype_bytes(list[use.tensor].dtype)));
          to.push_back(full.back()->data());
        }
        RANK_OK(zc_gather(comm, of.layout, unit, from.data(), to.data(), nullptr));
        for (std::size_t position = 0; position < full.size(); ++position) {
          const zc_use_info use = use_of(of.layout, unit, position);
          RANK_CHECK(full[position]->guards_intact(), "%s: outside", list[use.tensor].name);
          if (use.stored_tensor != use.tensor) {
            RANK_CHECK(full[position]->untouched(), "%s is tied and belongs to its own unit", list[use.tensor].name);
            continue;
          }
          const Bytes wanted = contents(use.tensor, full[position]->bytes());
          RANK_CHECK(wanted.empty() || std::memcmp(full[position]->data(), wanted.data(), wanted.size()) == 0, "%s",
                     list[use.tensor].name);
        }
      }
    });
  }
}

TEST(Gather, needs_no_address_for_ties_and_empty_tensors) {
  const LayoutOfTest of(2, {tensor("w", "a", 8, ZC_DTYPE_F32), tensor("v", "b", 8, ZC_DTYPE_F32, "w"),
                            tensor("e", "b", 0, ZC_DTYPE_F32)});
  run_ranks(2, [&](zc_comm* comm, std::int32_t) {
    void* const nowhere[] = {nullptr, nullptr};
    RANK_OK(zc_gather(comm, of.layout, 1, nullptr, nullptr, nullptr));
    RANK_OK(zc_gather(comm, of.layout, 1, nullptr, nowhere, nullptr));
  });
}

// Under flat placement a rank that owns nothing of a unit brings no shard.
TEST(Gather, needs_no_shard_of_a_rank_that_owns_nothing) {
  const LayoutOfTest of(3, {tensor("w", "a", 40, ZC_DTYPE_F32), tensor("v", "b", 7, ZC_DTYPE_F32)}, ZC_PLACEMENT_FLAT);
  run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {  // w is [0, 40), v is [48, 55), shards are 32
    std::vector<float> shard(32, 0.0f), full(40, -1.0f);
    for (std::size_t i = 0; i < shard.size(); ++i) shard[i] = static_cast<float>(rank * 32) + static_cast<float>(i);
    const void* const from[] = {shard.data()};
    void* const to[] = {full.data()};
    RANK_OK(zc_gather(comm, of.layout, 1, rank == 1 ? from : nullptr, to, nullptr));
    for (std::size_t i = 0; i < 7; ++i) RANK_CHECK(full[i] == static_cast<float>(48 + i), "v[%zu]", i);
    RANK_CHECK(full[7] == -1.0f, "beyond v");
    RANK_OK(zc_gather(comm, of.layout, 0, rank == 2 ? nullptr : from, to, nullptr));
    for (std::size_t i = 0; i < 40; ++i) RANK_CHECK(full[i] == static_cast<float>(i), "w[%zu]", i);
  });
}

TEST(Gather, of_two_placements_is_a_mismatch) {
  const LayoutOfTest flat(2, tensors(), ZC_PLACEMENT_FLAT), per_unit(2);
  run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
    const LayoutOfTest& mine = rank == 0 ? flat : per_unit;
    const std::vector<Bytes> shards = make_shards(mine, tensors(), rank);
    std::vector<const void*> from;
    for (const Bytes& shard : shards) from.push_back(shard.data());
    GuardedBuffer full(100000);
    void* const to[] = {full.data(), full.data() + 50000};
    RANK_STATUS(ZC_MISMATCH, zc_gather(comm, mine.layout, 0, from.data(), to, nullptr));
    RANK_CHECK(full.untouched(), "a byte was written");
    RANK_OK(zc_barrier(comm, nullptr));
  });
}

TEST(Gather, of_two_units_or_two_layouts_is_a_mismatch_that_moves_nothing) {
  const LayoutOfTest of(3);
  std::vector<zc_tensor> longer = tensors();
  longer[0].count += 8, longer[9].count += 8;
  const LayoutOfTest other(3, longer);
  const std::vector<zc_tensor> list = tensors();
  run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
    const std::vector<Bytes> shards = make_shards(of, list, rank);
    std::vector<const void*> from;
    for (const Bytes& shard : shards) from.push_back(shard.data());
    std::vector<std::unique_ptr<GuardedBuffer>> full;
    std::vector<void*> to;
    for (int i = 0; i < 6; ++i)
      full.push_back(std::make_unique<GuardedBuffer>(100000)), to.push_back(full.back()->data());
    RANK_STATUS(ZC_MISMATCH, zc_gather(comm, of.layout, rank == 2 ? 1 : 0, from.data(), to.data(), nullptr));
    RANK_ERROR_SAYS("unit 0");
    RANK_ERROR_SAYS("unit 1");
    RANK_STATUS(ZC_MISMATCH, zc_gather(comm, rank == 2 ? other.layout : of.layout, 0, from.data(), to.data(), nullptr));
    RANK_ERROR_SAYS("layout #");
    for (const auto& buffer : full) RANK_CHECK(buffer->untouched(), "a byte was written");
    RANK_OK(zc_barrier(comm, nullptr));
  });
}

TEST(Gather, refuses_what_cannot_be_meant) {
  const LayoutOfTest of(1), of_two(2);
  run_ranks(1, [&](zc_comm* comm, std::int32_t rank) {
    const std::vector<Bytes> shards = make_shards(of, tensors(), rank);
    std::vector<const void*> from;
    for (const Bytes& shard : shards) from.push_back(shard.data());
    GuardedBuffer full(100000);
    void* const to[] = {full.data(), full.data() + 50000, nullptr, nullptr, nullptr, nullptr};
    RANK_STATUS(ZC_ARGUMENT, zc_gather(nullptr, of.layout, 0, from.data(), to, nullptr));
    RANK_STATUS(ZC_ARGUMENT, zc_gather(comm, nullptr, 0, from.data(), to, nullptr));
    RANK_STATUS(ZC_ARGUMENT, zc_gather(comm, of_two.layout, 0, from.data(), to, nullptr));
    RANK_ERROR_SAYS("the layout is for 2 ranks");
    RANK_STATUS(ZC_ARGUMENT, zc_gather(comm, of.layout, of.info.unit_count, from.data(), to, nullptr));
    RANK_STATUS(ZC_ARGUMENT, zc_gather(comm, of.layout, 0, nullptr, to, nullptr));
    RANK_STATUS(ZC_ARGUMENT, zc_gather(comm, of.layout, 1, from.data(), to, nullptr));
    RANK_ERROR_SAYS("table");
    zc_coll_options options{};
    options.struct_size = sizeof options;
    options.stream = comm;
    RANK_STATUS(ZC_UNSUPPORTED, zc_gather(comm, of.layout, 0, from.data(), to, &options));
    RANK_CHECK(full.untouched(), "a byte was written");
    RANK_OK(zc_gather(comm, of.layout, 0, from.data(), to, nullptr));
  });
}

}  // namespace
}  // namespace zerocomm::test
