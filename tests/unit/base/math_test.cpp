// Arithmetic on sizes.
#include "base/math.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace zerocomm {
namespace {

template <class Body>
zc_status status_of(Body&& body) {
  try {
    body();
    return ZC_OK;
  } catch (const Error& error) {
    return error.status();
  }
}

TEST(Math, refuses_what_does_not_fit) {
  EXPECT_EQ(checked_add(SIZE_MAX - 1, 1), SIZE_MAX);
  EXPECT_EQ(status_of([] { checked_add(SIZE_MAX, 1); }), ZC_OVERFLOW);
  EXPECT_EQ(checked_mul(SIZE_MAX / 2, 2), SIZE_MAX - 1);
  EXPECT_EQ(status_of([] { checked_mul(SIZE_MAX / 2 + 1, 2); }), ZC_OVERFLOW);
  EXPECT_EQ(status_of([] { round_up(SIZE_MAX - 5, 64); }), ZC_OVERFLOW);
}

TEST(Math, rounds_up_without_a_wrap) {
  EXPECT_EQ(ceil_div(0, 8), 0u);
  EXPECT_EQ(ceil_div(1, 8), 1u);
  EXPECT_EQ(ceil_div(8, 8), 1u);
  EXPECT_EQ(ceil_div(SIZE_MAX, 2), SIZE_MAX / 2 + 1);
  EXPECT_EQ(round_up(65, 64), 128u);
  EXPECT_EQ(round_up(64, 64), 64u);
  EXPECT_EQ(round_up(0, 64), 0u);
}

TEST(Math, even_parts_follow_each_other_and_differ_by_one_at_most) {
  for (std::size_t count = 0; count < 40; ++count)
    for (std::size_t parts = 1; parts < 12; ++parts) {
      std::size_t next = 0;
      for (std::size_t index = 0; index < parts; ++index) {
        const Part part = even_part(count, parts, index);
        EXPECT_EQ(part.offset, next);
        EXPECT_EQ(part.count, count / parts + (index < count % parts ? 1 : 0));
        next += part.count;
      }
      EXPECT_EQ(next, count);
    }
}

}  // namespace
}  // namespace zerocomm
