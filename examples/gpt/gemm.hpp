// Matrix product in plain C++, fast enough to train a small model: C = A B, or C += A B.
// Every element of C is one sum over k in ascending order, so the bits depend neither on the shape of the
// batch nor on the instruction set.
#pragma once

#include <cstddef>
#include <vector>

namespace gpt {

// A matrix somewhere in memory. Strides are in elements; swapping them is transposition.
struct MatrixView {
  const float* data = nullptr;
  std::size_t row_stride = 0;
  std::size_t column_stride = 1;

  MatrixView transposed() const { return {data, column_stride, row_stride}; }
};

inline MatrixView rows_of(const float* data, std::size_t row_stride) { return {data, row_stride, 1}; }

enum class Add { no, yes };
enum class InstructionSet { best, baseline };  // baseline is for the test that both give the same bits

// Owns the buffers into which the operands are packed; they grow to the largest product and stay.
class Gemm {
 public:
  explicit Gemm(InstructionSet set = InstructionSet::best);

  // a: [m, k], b: [k, n], c: [m, n] with c_stride elements from row to row. Add::yes continues the sums in c.
  void operator()(std::size_t m, std::size_t n, std::size_t k, MatrixView a, MatrixView b, float* c,
                  std::size_t c_stride, Add add = Add::no);

  std::size_t buffer_bytes() const { return (packed_a_.size() + packed_b_.size()) * sizeof(float); }

 private:
  bool use_avx2_ = false;
  std::vector<float> packed_a_;
  std::vector<float> packed_b_;
};

}  // namespace gpt
