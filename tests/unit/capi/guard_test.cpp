// The C boundary: exceptions become statuses with their texts.
#include "capi/guard.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace zerocomm::capi {
namespace {

TEST(Guard, returns_what_its_body_returns) {
  EXPECT_EQ(guard([] { return ZC_OK; }), ZC_OK);
  EXPECT_EQ(guard([] { return ZC_AGAIN; }), ZC_AGAIN);
}

TEST(Guard, turns_an_error_into_its_status_and_text) {
  EXPECT_EQ(guard([]() -> zc_status { throw Error(ZC_BUDGET, "needs 12 bytes"); }), ZC_BUDGET);
  EXPECT_STREQ(zc_last_error(), "needs 12 bytes");
}

TEST(Guard, turns_other_exceptions_into_no_memory_and_internal) {
  EXPECT_EQ(guard([]() -> zc_status { throw std::bad_alloc(); }), ZC_NO_MEMORY);
  EXPECT_EQ(guard([]() -> zc_status { throw std::logic_error("strange"); }), ZC_INTERNAL);
  EXPECT_STREQ(zc_last_error(), "unexpected: strange");
}

}  // namespace
}  // namespace zerocomm::capi
