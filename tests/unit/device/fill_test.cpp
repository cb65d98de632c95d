// Zero and poison fills.
#include "device/fill.hpp"

#include "base/half.hpp"
#include "element_buffer.hpp"

#include <gtest/gtest.h>

namespace {

using namespace zerocomm::device;

TEST(Fill, poison_is_a_nan_in_every_float_type) {
  for (const zc_dtype dtype : {ZC_DTYPE_F64, ZC_DTYPE_F32, ZC_DTYPE_F16, ZC_DTYPE_BF16}) {
    ElementBuffer buffer(dtype, 9, true);
    fill_poison(dtype, buffer.data(), 9);
    for (std::size_t i = 0; i < 9; ++i) EXPECT_TRUE(std::isnan(reference::load_float(dtype, buffer.data(), i)));
    EXPECT_TRUE(buffer.guards_intact());
  }
}

TEST(Fill, poison_is_all_ones_in_integers_and_f8) {
  for (const zc_dtype dtype : {ZC_DTYPE_I64, ZC_DTYPE_I32, ZC_DTYPE_U8, ZC_DTYPE_I8, ZC_DTYPE_F8E4M3}) {
    ElementBuffer buffer(dtype, 9, true);
    fill_poison(dtype, buffer.data(), 9);
    for (const unsigned char byte : buffer.contents()) EXPECT_EQ(byte, 0xFF);
    EXPECT_TRUE(buffer.guards_intact());
  }
}

TEST(Fill, zero_is_plus_zero_and_stays_inside) {
  std::mt19937_64 random(1);
  for (int dtype = ZC_DTYPE_F64; dtype <= ZC_DTYPE_F8E4M3; ++dtype) {
    ElementBuffer buffer(static_cast<zc_dtype>(dtype), 1025, true);
    buffer.fill(random);
    fill_zero(static_cast<zc_dtype>(dtype), buffer.data(), 1025);
    for (const unsigned char byte : buffer.contents()) ASSERT_EQ(byte, 0);
    EXPECT_TRUE(buffer.guards_intact());
  }
}

TEST(Fill, one_element_that_was_written_is_seen_not_to_be_poison) {
  for (int dtype = ZC_DTYPE_F64; dtype <= ZC_DTYPE_F8E4M3; ++dtype) {
    const auto type = static_cast<zc_dtype>(dtype);
    ElementBuffer buffer(type, 5);
    fill_poison(type, buffer.data(), 5);
    EXPECT_TRUE(is_poison(type, buffer.data(), 5));
    fill_zero(type, static_cast<unsigned char*>(buffer.data()) + 4 * zc_dtype_bytes(type), 1);
    EXPECT_FALSE(is_poison(type, buffer.data(), 5));
    EXPECT_TRUE(is_poison(type, buffer.data(), 4));
  }
}

TEST(Fill, nothing_is_filled_in_no_memory) {
  fill_zero(ZC_DTYPE_F32, nullptr, 0);
  fill_poison(ZC_DTYPE_F32, nullptr, 0);
  EXPECT_TRUE(is_poison(ZC_DTYPE_F32, nullptr, 0));
}

}  // namespace
