// Blocked matrix product: operands are packed into panels, a small tile of C stays in registers.
// Vector lanes are different elements of C, never parts of one sum, and nothing is fused: hence the equal bits.
#include "gemm.hpp"

#include <algorithm>
#include <cstring>

namespace gpt {
namespace {

constexpr std::size_t kBlockDepth = 256;  // k per pass: one panel of B (16 KiB) stays in the first-level cache

// Copies rows [0, rows) x depth [0, depth) of `from` into panels of kPanel rows, depth-major, zero-filled.
template <std::size_t kPanel>
void pack(std::size_t rows, std::size_t depth, MatrixView from, float* to) {
  for (std::size_t first = 0; first < rows; first += kPanel, to += kPanel * depth) {
    const std::size_t used = std::min(kPanel, rows - first);
    const float* source = from.data + first * from.row_stride;
    if (used < kPanel) std::fill_n(to, kPanel * depth, 0.0F);
    if (from.row_stride == 1) {
      for (std::size_t k = 0; k < depth; ++k) {
        for (std::size_t r = 0; r < used; ++r) to[k * kPanel + r] = source[k * from.column_stride + r];
      }
    } else {
      for (std::size_t r = 0; r < used; ++r) {
        const float* row = source + r * from.row_stride;
        for (std::size_t k = 0; k < depth; ++k) to[k * kPanel + r] = row[k * from.column_stride];
      }
    }
  }
}

// One tile of C, kRows x two vectors, summed over depth on top of what c holds.
template <std::size_t kRows, std::size_t kVectorBytes>
struct Tile {
  static constexpr std::size_t kHeight = kRows;
  static constexpr std::size_t kLanes = kVectorBytes / sizeof(float);
  static constexpr std::size_t kWidth = 2 * kLanes;

  [[gnu::always_inline]] static inline void sum(std::size_t depth, const float* a, const float* b, float* c,
                                                std::size_t c_stride) {
    typedef float Vector __attribute__((vector_size(kVectorBytes)));
    Vector left[kRows];
    Vector right[kRows];
    for (std::size_t r = 0; r < kRows; ++r) {
      std::memcpy(&left[r], c + r * c_stride, sizeof(Vector));
      std::memcpy(&right[r], c + r * c_stride + kLanes, sizeof(Vector));
    }
    for (std::size_t k = 0; k < depth; ++k) {
      Vector b_left;
      Vector b_right;
      std::memcpy(&b_left, b + k * kWidth, sizeof(Vector));
      std::memcpy(&b_right, b + k * kWidth + kLanes, sizeof(Vector));
#pragma GCC unroll 16
      for (std::size_t r = 0; r < kRows; ++r) {
        const float x = a[k * kRows + r];
        left[r] += b_left * x;
        right[r] += b_right * x;
      }
    }
    for (std::size_t r = 0; r < kRows; ++r) {
      std::memcpy(c + r * c_stride, &left[r], sizeof(Vector));
      std::memcpy(c + r * c_stride + kLanes, &right[r], sizeof(Vector));
    }
  }
};

// Sizes are chosen so that a tile, one row of B and one product fit into sixteen registers.
using BaselineTile = Tile<4, 16>;
using WideTile = Tile<6, 32>;

using TileSum = void (*)(std::size_t, const float*, const float*, float*, std::size_t);

void sum_baseline(std::size_t depth, const float* a, const float* b, float* c, std::size_t c_stride) {
  BaselineTile::sum(depth, a, b, c, c_stride);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void sum_wide(std::size_t depth, const float* a, const float* b, float* c,
                                              std::size_t c_stride) {
  WideTile::sum(depth, a, b, c, c_stride);
}
bool has_avx2() { return __builtin_cpu_supports("avx2") != 0; }
#else
constexpr TileSum sum_wide = nullptr;
bool has_avx2() { return false; }
#endif

// A tile at the edge of C is summed in a full-sized copy.
template <class Shape>
void sum_edge(TileSum sum, std::size_t depth, const float* a, const float* b, float* c, std::size_t c_stride,
              std::size_t height, std::size_t width) {
  float copy[Shape::kHeight * Shape::kWidth] = {};
  for (std::size_t r = 0; r < height; ++r) std::copy_n(c + r * c_stride, width, copy + r * Shape::kWidth);
  sum(depth, a, b, copy, Shape::kWidth);
  for (std::size_t r = 0; r < height; ++r) std::copy_n(copy + r * Shape::kWidth, width, c + r * c_stride);
}

std::size_t round_up(std::size_t value, std::size_t step) { return (value + step - 1) / step * step; }

// No larger than it must be, which resize() does not promise.
void grow(std::vector<float>& buffer, std::size_t count) {
  if (buffer.size() < count) buffer = std::vector<float>(count);
}

template <class Shape>
void multiply(TileSum sum, std::size_t m, std::size_t n, std::size_t k, MatrixView a, MatrixView b, float* c,
              std::size_t c_stride, std::vector<float>& packed_a, std::vector<float>& packed_b) {
  const std::size_t deepest = std::min(k, kBlockDepth);
  grow(packed_a, round_up(m, Shape::kHeight) * deepest);
  grow(packed_b, round_up(n, Shape::kWidth) * deepest);
  for (std::size_t first = 0; first < k; first += kBlockDepth) {
    const std::size_t depth = std::min(kBlockDepth, k - first);
    const MatrixView a_block{a.data + first * a.column_stride, a.row_stride, a.column_stride};
    const MatrixView b_block{b.data + first * b.row_stride, b.row_stride, b.column_stride};
    pack<Shape::kHeight>(m, depth, a_block, packed_a.data());
    pack<Shape::kWidth>(n, depth, b_block.transposed(), packed_b.data());
    for (std::size_t column = 0; column < n; column += Shape::kWidth) {
      const std::size_t width = std::min(Shape::kWidth, n - column);
      for (std::size_t row = 0; row < m; row += Shape::kHeight) {
        const std::size_t height = std::min(Shape::kHeight, m - row);
        const float* a_panel = packed_a.data() + row * depth;
        const float* b_panel = packed_b.data() + column * depth;
        float* corner = c + row * c_stride + column;
        if (height == Shape::kHeight && width == Shape::kWidth) {
          sum(depth, a_panel, b_panel, corner, c_stride);
        } else {
          sum_edge<Shape>(sum, depth, a_panel, b_panel, corner, c_stride, height, width);
        }
      }
    }
  }
}

}  // namespace

Gemm::Gemm(InstructionSet set) : use_avx2_(set == InstructionSet::best && has_avx2()) {}

void Gemm::operator()(std::size_t m, std::size_t n, std::size_t k, MatrixView a, MatrixView b, float* c,
                      std::size_t c_stride, Add add) {
  if (add == Add::no) {
    for (std::size_t row = 0; row < m; ++row) std::fill_n(c + row * c_stride, n, 0.0F);
  }
  if (use_avx2_) {
    multiply<WideTile>(sum_wide, m, n, k, a, b, c, c_stride, packed_a_, packed_b_);
  } else {
    multiply<BaselineTile>(sum_baseline, m, n, k, a, b, c, c_stride, packed_a_, packed_b_);
  }
}

}  // namespace gpt
