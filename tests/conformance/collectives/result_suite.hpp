// What reductions promise about bits, on inputs that users were bitten by: `Ranks` as in product_suite.hpp.
#pragma once

#include "base/float_env.hpp"
#include "collectives/case.hpp"
#include "support/rank_threads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace zerocomm::test {

// The nearest bf16, ties to even, in one rounding from a double: neither subnormal nor too large.
inline std::uint16_t nearest_bf16(double value) {
  int exponent = 0;
  const double significand = std::frexp(value, &exponent);
  return bf16_from_float(static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(significand, 8)), exponent - 8)));
}

template <class Ranks>
class CollectiveResult : public ::testing::Test {
 protected:
  static void run(std::int32_t ranks, const RankThreads::Body& body) { Ranks(ranks).run(body); }
};
TYPED_TEST_SUITE_P(CollectiveResult);

TYPED_TEST_P(CollectiveResult, is_the_sum_in_rank_order_on_every_rank) {
  this->run(4, [](zc_comm* comm, std::int32_t rank) {
    constexpr float kValues[] = {1e8f, 1.0f, -1e8f, 1.0f};
    constexpr std::size_t kCount = 4 * 257;
    std::vector<float> send(kCount), recv(kCount);
    const auto value = [&](std::size_t element, std::size_t r) { return kValues[(element + r) % 4]; };
    for (std::size_t i = 0; i < kCount; ++i) send[i] = value(i, static_cast<std::size_t>(rank));
    RANK_OK(zc_all_reduce(comm, send.data(), recv.data(), kCount, ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
    for (std::size_t i = 0; i < kCount; ++i) {
      const float wanted = ((value(i, 0) + value(i, 1)) + value(i, 2)) + value(i, 3);
      RANK_CHECK(recv[i] == wanted, "element %zu is %g, not %g", i, static_cast<double>(recv[i]),
                 static_cast<double>(wanted));
    }
  });
}

TYPED_TEST_P(CollectiveResult, has_bits_that_do_not_depend_on_how_the_vector_is_cut) {
  this->run(4, [](zc_comm* comm, std::int32_t rank) {
    constexpr std::size_t kCount = 2048 * 64;
    std::vector<std::uint16_t> send(kCount), whole(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      const std::uint64_t draw = mix(static_cast<std::uint64_t>(rank), i);
      send[i] = bf16_from_float(std::ldexp(static_cast<float>(draw % 512) - 255.5f, static_cast<int>(draw >> 32 & 7)));
    }
    RANK_OK(zc_all_reduce(comm, send.data(), whole.data(), kCount, ZC_DTYPE_BF16, ZC_OP_SUM, nullptr));
    const auto check = [&](const std::vector<std::uint16_t>& found, const char* how) {
      RANK_CHECK(found == whole, "%s", how);
    };

    std::vector<std::uint16_t> parts(kCount);
    const auto reduce_pieces = [&](std::vector<std::size_t> cuts) {
      std::sort(cuts.begin(), cuts.end());
      cuts.push_back(kCount);
      std::size_t from = 0;
      for (const std::size_t to : cuts) {
        RANK_OK(
            zc_all_reduce(comm, send.data() + from, parts.data() + from, to - from, ZC_DTYPE_BF16, ZC_OP_SUM, nullptr));
        from = to;
      }
    };
    reduce_pieces({kCount / 2});
    check(parts, "two halves");
    std::vector<std::size_t> cuts;
    for (std::uint64_t i = 0; i < 999; ++i) cuts.push_back(mix(i, 7) % kCount);
    std::fill(parts.begin(), parts.end(), std::uint16_t{0});
    reduce_pieces(cuts);
    check(parts, "1000 pieces");

    constexpr std::size_t kEach = kCount / 4;
    std::vector<std::uint16_t> block(kCount), gathered(kCount);
    RANK_OK(zc_reduce_scatter(comm, send.data(), block.data(), kEach, ZC_DTYPE_BF16, ZC_OP_SUM, nullptr));
    RANK_OK(zc_all_gather(comm, block.data(), gathered.data(), kEach, ZC_DTYPE_BF16, nullptr));
    check(gathered, "even blocks");
    for (const std::vector<std::size_t>& counts :
         {std::vector<std::size_t>{kCount - 6, 1, 2, 3}, {0, kCount, 0, 0}, {12345, 54321, 0, kCount - 66666}}) {
      std::fill(gathered.begin(), gathered.end(), std::uint16_t{0});
      RANK_OK(zc_reduce_scatter_v(comm, send.data(), block.data(), counts.data(), ZC_DTYPE_BF16, ZC_OP_SUM, nullptr));
      RANK_OK(zc_all_gather_v(comm, block.data(), gathered.data(), counts.data(), ZC_DTYPE_BF16, nullptr));
      check(gathered, "uneven blocks");
    }
  });
}

TYPED_TEST_P(CollectiveResult, average_of_f16_over_64_ranks_neither_overflows_nor_underflows) {
  this->run(64, [](zc_comm* comm, std::int32_t) {
    const std::uint16_t send[] = {f16_from_float(1024.0f), f16_from_float(0x1p-14f)};
    std::uint16_t recv[2] = {};
    RANK_OK(zc_all_reduce(comm, send, recv, 2, ZC_DTYPE_F16, ZC_OP_AVG, nullptr));
    RANK_CHECK(recv[0] == send[0] && recv[1] == send[1], "%04x %04x", recv[0], recv[1]);
  });
}

TYPED_TEST_P(CollectiveResult, average_of_bf16_over_3_ranks_is_the_correctly_rounded_mean) {
  this->run(3, [](zc_comm* comm, std::int32_t rank) {
    constexpr std::size_t kCount = 3000;
    const auto value = [](std::size_t element, std::uint64_t r) {
      return 128.0f + static_cast<float>(mix(r, element) % 128);
    };
    std::vector<std::uint16_t> send(kCount), recv(kCount), block(kCount / 3);
    for (std::size_t i = 0; i < kCount; ++i) send[i] = bf16_from_float(value(i, static_cast<std::uint64_t>(rank)));
    RANK_OK(zc_all_reduce(comm, send.data(), recv.data(), kCount, ZC_DTYPE_BF16, ZC_OP_AVG, nullptr));
    for (std::size_t i = 0; i < kCount; ++i) {
      const double sum = static_cast<double>(value(i, 0) + value(i, 1) + value(i, 2));
      RANK_CHECK(recv[i] == nearest_bf16(sum / 3), "element %zu: %04x, not %04x", i, recv[i], nearest_bf16(sum / 3));
    }
    // The average of a reduce-scatter is an average too, not a sum.
    RANK_OK(zc_reduce_scatter(comm, send.data(), block.data(), kCount / 3, ZC_DTYPE_BF16, ZC_OP_AVG, nullptr));
    RANK_CHECK(std::equal(block.begin(), block.end(), recv.begin() + rank * static_cast<std::int32_t>(kCount / 3)),
               "reduce-scatter");
  });
}

TYPED_TEST_P(CollectiveResult, keeps_minus_zero_and_subnormals_and_propagates_nan) {
  this->run(2, [](zc_comm* comm, std::int32_t rank) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float send[] = {-0.0f, 0x1p-140f, rank == 1 ? nan : 1.0f, rank == 0 ? -0.0f : 0.0f};
    float sum[4], least[4], most[4];
    RANK_OK(zc_all_reduce(comm, send, sum, 4, ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
    RANK_OK(zc_all_reduce(comm, send, least, 4, ZC_DTYPE_F32, ZC_OP_MIN, nullptr));
    RANK_OK(zc_all_reduce(comm, send, most, 4, ZC_DTYPE_F32, ZC_OP_MAX, nullptr));
    RANK_CHECK(sum[0] == 0 && std::signbit(sum[0]), "-0 + -0 = %g", static_cast<double>(sum[0]));
    RANK_CHECK(sum[1] == 0x1p-139f, "subnormals: %g", static_cast<double>(sum[1]));
    RANK_CHECK(std::isnan(sum[2]) && std::isnan(least[2]) && std::isnan(most[2]), "NaN was lost");
    RANK_CHECK(least[3] == 0 && std::signbit(least[3]) && most[3] == 0 && !std::signbit(most[3]), "-0 is below +0");
  });
}

TYPED_TEST_P(CollectiveResult, multiplies_by_the_factor_and_knows_a_true_zero) {
  this->run(3, [](zc_comm* comm, std::int32_t rank) {
    const double send[] = {static_cast<double>(rank + 1)};
    const auto reduced = [&](double premul) {
      zc_coll_options options{};
      options.struct_size = sizeof options;
      options.premul = premul;
      double recv[1] = {-1};
      RANK_OK(zc_all_reduce(comm, send, recv, 1, ZC_DTYPE_F64, ZC_OP_PREMUL_SUM, &options));
      return recv[0];
    };
    RANK_CHECK(reduced(0.5) == 3.0, "half");
    RANK_CHECK(reduced(0) == 6.0, "the default factor is 1");
    RANK_CHECK(reduced(ZC_PREMUL_ZERO) == 0.0, "the named zero");
  });
}

#if defined(__x86_64__)
TYPED_TEST_P(CollectiveResult, does_not_depend_on_the_callers_floating_point_mode) {
  for (const zc_dtype dtype : {ZC_DTYPE_F64, ZC_DTYPE_F32, ZC_DTYPE_F16, ZC_DTYPE_BF16}) {
    for (const zc_op op : {ZC_OP_SUM, ZC_OP_AVG, ZC_OP_PREMUL_SUM}) {
      Case what;
      what.dtype = what.output = dtype, what.op = op, what.ranks = 3, what.count = 3000, what.premul = 0.3,
      what.seed = 99;
      const Prepared prepared = prepare(what);
      this->run(what.ranks, [&](zc_comm* comm, std::int32_t rank) {
        constexpr unsigned kStrange = 0x1f80 | 0x8040 | 0x6000;  // flush subnormals both ways, round towards zero
        const DefaultFloatEnv restore;
        _mm_setcsr(kStrange);
        run_case(comm, rank, what, prepared);
        RANK_CHECK((_mm_getcsr() & ~0x3fu) == kStrange, "the caller's mode was changed to %x", _mm_getcsr());
      });
    }
  }
}
#else
TYPED_TEST_P(CollectiveResult, does_not_depend_on_the_callers_floating_point_mode) { GTEST_SKIP() << "x86-64 only"; }
#endif

REGISTER_TYPED_TEST_SUITE_P(CollectiveResult, is_the_sum_in_rank_order_on_every_rank,
                            has_bits_that_do_not_depend_on_how_the_vector_is_cut,
                            average_of_f16_over_64_ranks_neither_overflows_nor_underflows,
                            average_of_bf16_over_3_ranks_is_the_correctly_rounded_mean,
                            keeps_minus_zero_and_subnormals_and_propagates_nan,
                            multiplies_by_the_factor_and_knows_a_true_zero,
                            does_not_depend_on_the_callers_floating_point_mode);

}  // namespace zerocomm::test
