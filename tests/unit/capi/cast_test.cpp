// zc_cast: the checks around the conversion, which has tests of its own.
#include <zerocomm/mem.h>

#include <gtest/gtest.h>

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace {

TEST(Cast, rounds_once_to_nearest_even) {
  const double source[] = {1.0, 1.0 + 0x1p-8, 1.0 + 0x1p-7 + 0x1p-8, -0.0};
  std::uint16_t bits[4] = {};
  ASSERT_EQ(zc_cast(source, ZC_DTYPE_F64, bits, ZC_DTYPE_BF16, 4), ZC_OK);
  EXPECT_EQ(bits[0], 0x3f80);
  EXPECT_EQ(bits[1], 0x3f80);
  EXPECT_EQ(bits[2], 0x3f82);
  EXPECT_EQ(bits[3], 0x8000);
}

TEST(Cast, refuses_integers_and_missing_buffers) {
  float source[1] = {1};
  std::int32_t to[1] = {5};
  EXPECT_EQ(zc_cast(source, ZC_DTYPE_F32, to, ZC_DTYPE_I32, 1), ZC_UNSUPPORTED);
  EXPECT_EQ(zc_cast(source, ZC_DTYPE_F32, nullptr, ZC_DTYPE_BF16, 1), ZC_ARGUMENT);
  EXPECT_EQ(zc_cast(nullptr, ZC_DTYPE_F32, to, ZC_DTYPE_BF16, 1), ZC_ARGUMENT);
  EXPECT_EQ(zc_cast(nullptr, ZC_DTYPE_F32, nullptr, ZC_DTYPE_BF16, 0), ZC_OK);
  EXPECT_EQ(to[0], 5);
}

#if defined(__x86_64__)
TEST(Cast, keeps_subnormals_whatever_mode_the_caller_is_in) {
  const unsigned mode = _mm_getcsr();
  const double source[1] = {0x1p-140};
  float to[1] = {};
  _mm_setcsr(mode | 0x8040);
  const zc_status status = zc_cast(source, ZC_DTYPE_F64, to, ZC_DTYPE_F32, 1);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(mode);
  EXPECT_EQ(status, ZC_OK);
  EXPECT_EQ(to[0], 0x1p-140f);
  EXPECT_EQ(after & 0x8040, 0x8040u);
}
#endif

}  // namespace
