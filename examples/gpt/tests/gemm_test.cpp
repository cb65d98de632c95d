// The blocked product against three plain loops, bit for bit.
#include "gemm.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "counter_random.hpp"

namespace gpt {
namespace {

struct Shape {
  std::size_t m, n, k;
};

// Around the tiles (4 x 8, 6 x 16) and around the depth of a pass (256).
const std::vector<Shape> kShapes = {{1, 1, 1},   {5, 15, 3},    {6, 16, 255}, {7, 17, 256},
                                    {4, 8, 257}, {13, 50, 600}, {64, 32, 7},  {3, 2, 0}};

std::vector<float> random_values(std::size_t count, std::uint64_t key) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = normal_at(key, i);
  return values;
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

// One sum per element, k ascending, on top of what c holds.
std::vector<float> by_loops(Shape s, MatrixView a, MatrixView b, std::vector<float> c, std::size_t c_stride) {
  for (std::size_t i = 0; i < s.m; ++i) {
    for (std::size_t j = 0; j < s.n; ++j) {
      for (std::size_t k = 0; k < s.k; ++k) {
        c[i * c_stride + j] +=
            a.data[i * a.row_stride + k * a.column_stride] * b.data[k * b.row_stride + j * b.column_stride];
      }
    }
  }
  return c;
}

class GemmOf : public ::testing::TestWithParam<InstructionSet> {};

TEST_P(GemmOf, rows_and_columns_in_any_orientation_equals_three_loops) {
  Gemm gemm(GetParam());
  for (const Shape& s : kShapes) {
    const std::vector<float> a = random_values(s.m * s.k, 1);
    const std::vector<float> b = random_values(s.k * s.n, 2);
    // Around C stands -0, which even an addition of zero would change.
    const std::size_t c_stride = s.n + 3;
    const std::size_t rows = s.m + 8;
    const auto with_frame = [&](float inside) {
      std::vector<float> c(rows * c_stride, -0.0F);
      for (std::size_t i = 0; i < s.m; ++i)
        std::fill_n(c.begin() + static_cast<std::ptrdiff_t>(i * c_stride), s.n, inside);
      return c;
    };
    for (const bool a_transposed : {false, true}) {
      for (const bool b_transposed : {false, true}) {
        const MatrixView a_view = a_transposed ? rows_of(a.data(), s.m).transposed() : rows_of(a.data(), s.k);
        const MatrixView b_view = b_transposed ? rows_of(b.data(), s.k).transposed() : rows_of(b.data(), s.n);
        std::vector<float> c = with_frame(-1.0F);
        gemm(s.m, s.n, s.k, a_view, b_view, c.data(), c_stride);
        EXPECT_EQ(bits_of(c), bits_of(by_loops(s, a_view, b_view, with_frame(0.0F), c_stride)))
            << s.m << " " << s.n << " " << s.k;
      }
    }
  }
}

TEST_P(GemmOf, add_continues_the_sums) {
  Gemm gemm(GetParam());
  const Shape s{9, 20, 300};
  const std::vector<float> a = random_values(s.m * s.k, 1);
  const std::vector<float> b = random_values(s.k * s.n, 2);
  const std::vector<float> start = random_values(s.m * s.n, 3);
  std::vector<float> c = start;
  gemm(s.m, s.n, s.k, rows_of(a.data(), s.k), rows_of(b.data(), s.n), c.data(), s.n, Add::yes);
  EXPECT_EQ(c, by_loops(s, rows_of(a.data(), s.k), rows_of(b.data(), s.n), start, s.n));
}

INSTANTIATE_TEST_SUITE_P(instruction_sets, GemmOf, ::testing::Values(InstructionSet::best, InstructionSet::baseline),
                         [](const auto& parameter) {
                           return parameter.param == InstructionSet::best ? "best" : "baseline";
                         });

}  // namespace
}  // namespace gpt
