// What collectives refuse before they begin, and that they are none the worse for it: `Ranks` as in product_suite.hpp.
#pragma once

#include "collectives/case.hpp"
#include "support/guarded_buffer.hpp"
#include "support/rank_threads.hpp"

#include <gtest/gtest.h>

#include <array>

namespace zerocomm::test {

inline std::uint64_t moved_bytes(zc_comm* comm) {
  zc_stats stats{};
  stats.struct_size = sizeof stats;
  RANK_OK(zc_comm_stats(comm, &stats));
  std::uint64_t sum = 0;
  for (int link = 0; link < ZC_LINK_COUNT_; ++link) sum += stats.moved_bytes[link] + stats.control_moved_bytes[link];
  return sum;
}

inline void check_usable(zc_comm* comm, std::int32_t rank, std::int32_t ranks) {
  std::int64_t value = rank + 1;
  RANK_OK(zc_all_reduce(comm, &value, &value, 1, ZC_DTYPE_I64, ZC_OP_SUM, nullptr));
  RANK_CHECK(value == std::int64_t{ranks} * (ranks + 1) / 2, "the next sum is %lld", static_cast<long long>(value));
}

template <class Ranks>
class CollectiveRefusal : public ::testing::Test {
 protected:
  static void run(std::int32_t ranks, const RankThreads::Body& body) { Ranks(ranks).run(body); }
};
TYPED_TEST_SUITE_P(CollectiveRefusal);

// A mean that silently becomes a sum where nobody wrote it: every operation, input type and output type, in each
// collective that reduces. OK (the values are those of the product), or UNSUPPORTED before any byte moves.
TYPED_TEST_P(CollectiveRefusal, no_reduction_is_replaced_by_another_one) {
  this->run(2, [](zc_comm* comm, std::int32_t rank) {
    int supported = 0, refused = 0;
    for (int op = ZC_OP_SUM; op <= ZC_OP_PREMUL_SUM; ++op) {
      for (int in = ZC_DTYPE_F64; in <= ZC_DTYPE_F8E4M3; ++in) {
        for (int out = ZC_DTYPE_F64; out <= ZC_DTYPE_F8E4M3; ++out) {
          const auto dtype = static_cast<zc_dtype>(in), output = static_cast<zc_dtype>(out);
          const bool wanted = is_supported(dtype, output, static_cast<zc_op>(op));
          const Bytes send = exact_input(dtype, rank, 6);
          GuardedBuffer recv(6 * zc_dtype_bytes(output));
          zc_coll_options options{};
          options.struct_size = sizeof options;
          options.output_dtype = output;
          const std::uint64_t before = moved_bytes(comm);
          const zc_status all =
              zc_all_reduce(comm, send.data(), recv.data(), 6, dtype, static_cast<zc_op>(op), &options);
          const zc_status scattered =
              zc_reduce_scatter(comm, send.data(), recv.data(), 3, dtype, static_cast<zc_op>(op), &options);
          const std::size_t counts[2] = {2, 4};
          const zc_status skewed =
              zc_reduce_scatter_v(comm, send.data(), recv.data(), counts, dtype, static_cast<zc_op>(op), &options);
          const zc_status rooted =
              zc_reduce(comm, send.data(), recv.data(), 6, dtype, static_cast<zc_op>(op), 1, &options);
          RANK_CHECK(all == (wanted ? ZC_OK : ZC_UNSUPPORTED) && scattered == all && skewed == all && rooted == all,
                     "%s of %s into %s: %s, %s, %s, %s", zc_op_name(static_cast<zc_op>(op)), zc_dtype_name(dtype),
                     zc_dtype_name(output), zc_status_name(all), zc_status_name(scattered), zc_status_name(skewed),
                     zc_status_name(rooted));
          RANK_CHECK(wanted || (recv.untouched() && moved_bytes(comm) == before), "a refused call moved bytes");
          ++(wanted ? supported : refused);
        }
      }
    }
    // sum, min, max, prod: f64, 4 integers, 3 x 3 small floats; avg and premul: the floats.
    RANK_CHECK(supported == 4 * 14 + 2 * 10 && supported + refused == 6 * 81, "%d supported", supported);
    check_usable(comm, rank, 2);
  });
}

TYPED_TEST_P(CollectiveRefusal, what_no_enumeration_has_is_an_argument_error) {
  this->run(1, [](zc_comm* comm, std::int32_t rank) {
    float data[2] = {1, 2}, result[2] = {};
    RANK_STATUS(ZC_ARGUMENT, zc_all_reduce(comm, data, result, 2, ZC_DTYPE_NONE, ZC_OP_SUM, nullptr));
    RANK_STATUS(ZC_ARGUMENT, zc_all_reduce(comm, data, result, 2, static_cast<zc_dtype>(12), ZC_OP_SUM, nullptr));
    RANK_STATUS(ZC_ARGUMENT, zc_all_reduce(comm, data, result, 2, ZC_DTYPE_F32, ZC_OP_NONE, nullptr));
    RANK_STATUS(ZC_ARGUMENT, zc_all_reduce(comm, data, result, 2, ZC_DTYPE_F32, static_cast<zc_op>(7), nullptr));
    RANK_STATUS(ZC_ARGUMENT, zc_broadcast(comm, data, 2, ZC_DTYPE_F32, 1, nullptr));
    RANK_STATUS(ZC_ARGUMENT, zc_broadcast(comm, data, 2, ZC_DTYPE_F32, ZC_NONE, nullptr));
    RANK_STATUS(ZC_ARGUMENT, zc_all_gather_v(comm, data, result, nullptr, ZC_DTYPE_F32, nullptr));
    RANK_STATUS(ZC_ARGUMENT, zc_barrier(nullptr, nullptr));
    RANK_STATUS(ZC_OVERFLOW, zc_all_reduce(comm, data, result, SIZE_MAX / 2, ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
    RANK_STATUS(ZC_ARGUMENT, zc_all_reduce(comm, data, result, SIZE_MAX / 4 - 1, ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
    RANK_ERROR_SAYS("ends beyond all addresses");
    zc_coll_options options{};
    options.struct_size = sizeof options;
    options.output_dtype = ZC_DTYPE_BF16;
    RANK_STATUS(ZC_UNSUPPORTED, zc_all_gather(comm, data, result, 2, ZC_DTYPE_F32, &options));
    options = {};
    options.struct_size = sizeof options;
    options.stream = &options;
    RANK_STATUS(ZC_UNSUPPORTED, zc_barrier(comm, &options));
    options.stream = nullptr;
    options.traffic = static_cast<zc_traffic>(3);
    RANK_STATUS(ZC_ARGUMENT, zc_barrier(comm, &options));
    RANK_CHECK(result[0] == 0 && result[1] == 0, "a refused call wrote");
    check_usable(comm, rank, 1);
  });
}

TYPED_TEST_P(CollectiveRefusal, a_poll_is_refused_because_a_collective_cannot_be_left_half_done) {
  this->run(2, [](zc_comm* comm, std::int32_t rank) {
    zc_coll_options options{};
    options.struct_size = sizeof options;
    options.deadline_ns = ZC_POLL;
    RANK_STATUS(ZC_ARGUMENT, zc_barrier(comm, &options));
    check_usable(comm, rank, 2);
  });
}

TYPED_TEST_P(CollectiveRefusal, overlap_is_refused_with_both_ranges) {
  this->run(2, [](zc_comm* comm, std::int32_t rank) {
    std::array<float, 40> data{};
    const auto text_of = [](const void* pointer) { return format("%p", pointer); };
    RANK_STATUS(ZC_ARGUMENT, zc_all_reduce(comm, data.data(), data.data() + 1, 8, ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
    for (const std::size_t at : {0u, 8u, 1u, 9u}) RANK_ERROR_SAYS(text_of(data.data() + at));
    RANK_STATUS(ZC_ARGUMENT, zc_all_gather(comm, data.data() + 1, data.data(), 4, ZC_DTYPE_F32, nullptr));
    RANK_STATUS(ZC_ARGUMENT,
                zc_reduce_scatter(comm, data.data(), data.data() + 7, 4, ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
    // Two types have no in-place form.
    zc_coll_options options{};
    options.struct_size = sizeof options;
    options.output_dtype = ZC_DTYPE_BF16;
    RANK_STATUS(ZC_ARGUMENT, zc_all_reduce(comm, data.data(), data.data(), 8, ZC_DTYPE_F32, ZC_OP_SUM, &options));
    // Side by side is not overlap.
    RANK_OK(zc_all_reduce(comm, data.data(), data.data() + 8, 8, ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
    check_usable(comm, rank, 2);
  });
}

TYPED_TEST_P(CollectiveRefusal, reduce_scatter_into_send_names_the_convention_of_mpi) {
  this->run(2, [](zc_comm* comm, std::int32_t rank) {
    std::array<float, 8> data{};
    // For rank 0 that is in place by our rule too.
    if (rank == 1) {
      RANK_STATUS(ZC_ARGUMENT, zc_reduce_scatter(comm, data.data(), data.data(), 4, ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
      RANK_ERROR_SAYS("MPI_IN_PLACE");
    }
    check_usable(comm, rank, 2);
  });
}

TYPED_TEST_P(CollectiveRefusal, null_and_misaligned_pointers_are_refused) {
  this->run(1, [](zc_comm* comm, std::int32_t rank) {
    alignas(8) std::array<unsigned char, 64> data{};
    RANK_STATUS(ZC_ARGUMENT, zc_all_reduce(comm, nullptr, data.data(), 1, ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
    RANK_ERROR_SAYS("send is NULL");
    RANK_STATUS(ZC_ARGUMENT, zc_all_reduce(comm, data.data(), nullptr, 1, ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
    RANK_STATUS(ZC_ALIGNMENT,
                zc_all_reduce(comm, data.data() + 2, data.data() + 32, 1, ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
    RANK_STATUS(ZC_ALIGNMENT, zc_broadcast(comm, data.data() + 1, 1, ZC_DTYPE_BF16, 0, nullptr));
    check_usable(comm, rank, 1);
  });
}

TYPED_TEST_P(CollectiveRefusal, zero_elements_need_no_pointers_and_are_compared_all_the_same) {
  for (const std::int32_t ranks : {1, 4}) {
    this->run(ranks, [ranks](zc_comm* comm, std::int32_t rank) {
      const std::vector<std::size_t> none(static_cast<std::size_t>(ranks), 0);
      RANK_OK(zc_all_reduce(comm, nullptr, nullptr, 0, ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
      RANK_OK(zc_reduce_scatter(comm, nullptr, nullptr, 0, ZC_DTYPE_BF16, ZC_OP_AVG, nullptr));
      RANK_OK(zc_reduce_scatter_v(comm, nullptr, nullptr, none.data(), ZC_DTYPE_I8, ZC_OP_MAX, nullptr));
      RANK_OK(zc_all_gather(comm, nullptr, nullptr, 0, ZC_DTYPE_F8E4M3, nullptr));
      RANK_OK(zc_all_gather_v(comm, nullptr, nullptr, none.data(), ZC_DTYPE_U8, nullptr));
      RANK_OK(zc_broadcast(comm, nullptr, 0, ZC_DTYPE_F64, 0, nullptr));
      if (ranks > 1) {
        const zc_op op = rank == 1 ? ZC_OP_MAX : ZC_OP_SUM;
        RANK_STATUS(ZC_MISMATCH, zc_all_reduce(comm, nullptr, nullptr, 0, ZC_DTYPE_F32, op, nullptr));
        // Pointers that are ignored, in or out of place, are no difference.
        float data = 0;
        RANK_OK(zc_all_reduce(comm, &data, rank == 0 ? nullptr : &data, 0, ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
      }
      RANK_CHECK(moved_bytes(comm) == 0, "zero elements moved bytes");
      check_usable(comm, rank, ranks);
    });
  }
}

// A crash, or wrong data at the root, by an argument that is touched although the call ignores it: it may be NULL or
// anything, in place or not.
TYPED_TEST_P(CollectiveRefusal, ignored_arguments_are_ignored) {
  this->run(3, [](zc_comm* comm, std::int32_t rank) {
    const bool is_root = rank == 1;
    int turn = 0;
    for (const char* algorithm : {static_cast<const char*>(nullptr), static_cast<const char*>(nullptr), "direct",
                                  "direct", "binomial", "binomial"}) {
      void* const garbage = reinterpret_cast<void*>(std::uintptr_t{turn++ % 2 == 0 ? 3u : 0u});
      zc_coll_options options{};
      options.struct_size = sizeof options;
      options.algorithm = algorithm;
      const std::int32_t mine[2] = {rank, 10 * rank};
      std::array<std::int32_t, 6> all = {0, 0, 1, 10, 0, 0};  // in place at the root: its own block
      RANK_OK(zc_reduce(comm, mine, is_root ? all.data() : garbage, 2, ZC_DTYPE_I32, ZC_OP_SUM, 1, &options));
      RANK_CHECK(!is_root || (all[0] == 3 && all[1] == 30), "%d, %d", all[0], all[1]);
      all = {0, 0, 1, 10, 0, 0};
      RANK_OK(zc_gather_to_root(comm, is_root ? all.data() + 2 : mine, is_root ? all.data() : garbage, 2, ZC_DTYPE_I32,
                                1, &options));
      const std::array<std::int32_t, 6> wanted = {0, 0, 1, 10, 2, 20};
      RANK_CHECK(!is_root || all == wanted, "gathered in place: %d %d", all[4], all[5]);
      std::int32_t own[2] = {-1, -1};
      RANK_OK(zc_scatter_from_root(comm, is_root ? all.data() : garbage, is_root ? all.data() + 2 : own, 2,
                                   ZC_DTYPE_I32, 1, &options));
      RANK_CHECK(is_root ? all == wanted : own[0] == rank && own[1] == 10 * rank, "scattered: %d %d", own[0], own[1]);
    }
  });
}

TYPED_TEST_P(CollectiveRefusal, rooted_calls_and_exchanges_say_what_is_wrong) {
  this->run(2, [](zc_comm* comm, std::int32_t rank) {
    std::array<float, 8> data{}, other{};
    const auto root_of_none = [&](zc_status status) {
      RANK_CHECK(status == ZC_ARGUMENT, "%s", zc_status_name(status));
      RANK_ERROR_SAYS("root 2 is not a rank from 0 to 1");
    };
    root_of_none(zc_reduce(comm, data.data(), other.data(), 2, ZC_DTYPE_F32, ZC_OP_SUM, 2, nullptr));
    root_of_none(zc_gather_to_root(comm, data.data(), other.data(), 2, ZC_DTYPE_F32, 2, nullptr));
    root_of_none(zc_scatter_from_root(comm, data.data(), other.data(), 2, ZC_DTYPE_F32, 2, nullptr));
    // The convention of MPI, where it is another one.
    RANK_STATUS(ZC_ARGUMENT, zc_gather_to_root(comm, data.data() + 1, data.data(), 3, ZC_DTYPE_F32, rank, nullptr));
    if (rank == 1) {
      RANK_STATUS(ZC_ARGUMENT, zc_gather_to_root(comm, data.data(), data.data(), 3, ZC_DTYPE_F32, 1, nullptr));
      RANK_ERROR_SAYS("MPI_IN_PLACE");
      RANK_STATUS(ZC_ARGUMENT, zc_scatter_from_root(comm, data.data(), data.data(), 3, ZC_DTYPE_F32, 1, nullptr));
      RANK_ERROR_SAYS("MPI_IN_PLACE");
    }
    RANK_STATUS(ZC_ARGUMENT, zc_all_to_all(comm, data.data(), data.data() + 2, 2, ZC_DTYPE_F32, nullptr));
    const std::size_t two[2] = {2, 2}, skewed[2] = {1, 3};
    RANK_STATUS(ZC_ARGUMENT, zc_all_to_all_v(comm, data.data(), nullptr, other.data(), two, ZC_DTYPE_F32, nullptr));
    RANK_STATUS(ZC_ARGUMENT, zc_all_to_all_v(comm, data.data(), two, data.data(), skewed, ZC_DTYPE_F32, nullptr));
    RANK_ERROR_SAYS("blocks of one count");
    check_usable(comm, rank, 2);
  });
}

TYPED_TEST_P(CollectiveRefusal, counts_that_do_not_meet_are_named_on_every_rank_and_move_nothing) {
  this->run(3, [](zc_comm* comm, std::int32_t rank) {
    const std::array<std::int32_t, 9> send = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    std::array<std::int32_t, 9> recv{};
    const std::size_t good[3] = {2, 2, 2}, bad[3] = {2, 3, 2};
    const std::uint64_t before = moved_bytes(comm);
    // Rank 2 expects 3 elements of rank 1, which sends 2.
    RANK_STATUS(ZC_MISMATCH,
                zc_all_to_all_v(comm, send.data(), good, recv.data(), rank == 2 ? bad : good, ZC_DTYPE_I32, nullptr));
    RANK_ERROR_SAYS("rank 1 sends 2 elements to rank 2, which expects 3");
    RANK_CHECK(recv == (std::array<std::int32_t, 9>{}) && moved_bytes(comm) == before, "bytes moved");
    check_usable(comm, rank, 3);
  });
}

REGISTER_TYPED_TEST_SUITE_P(CollectiveRefusal, no_reduction_is_replaced_by_another_one,
                            what_no_enumeration_has_is_an_argument_error,
                            a_poll_is_refused_because_a_collective_cannot_be_left_half_done,
                            overlap_is_refused_with_both_ranges, reduce_scatter_into_send_names_the_convention_of_mpi,
                            null_and_misaligned_pointers_are_refused,
                            zero_elements_need_no_pointers_and_are_compared_all_the_same, ignored_arguments_are_ignored,
                            rooted_calls_and_exchanges_say_what_is_wrong,
                            counts_that_do_not_meet_are_named_on_every_rank_and_move_nothing);

}  // namespace zerocomm::test
