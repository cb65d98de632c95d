// Statuses and the last error.
#include "base/check.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>

namespace zerocomm {
namespace {

TEST(Status, table_is_complete_and_consistent) {
  std::set<std::string> names;
  int rows = 0;
#define CHECK_ROW(name, number, scope, defined, usable, meaning)                \
  ++rows;                                                                       \
  names.insert(zc_status_name(ZC_##name));                                      \
  EXPECT_STREQ(zc_status_name(ZC_##name), #name);                               \
  EXPECT_STREQ(zc_status_text(ZC_##name), meaning);                             \
  EXPECT_EQ(ZC_##name, number);                                                 \
  EXPECT_EQ(zc_status_scope(ZC_##name), ZC_SCOPE_##scope);                      \
  EXPECT_EQ(zc_status_buffers_defined(ZC_##name), defined);                     \
  EXPECT_EQ(zc_status_comm_usable(ZC_##name), usable);                          \
  /* What ends a communicator leaves it dead, what ends a call does not. */     \
  if (ZC_SCOPE_##scope == ZC_SCOPE_COMM) EXPECT_EQ(usable, 0) << #name;         \
  if (ZC_SCOPE_##scope <= ZC_SCOPE_REQUEST) EXPECT_EQ(usable, 1) << #name;      \
  if (ZC_SCOPE_##scope <= ZC_SCOPE_CALL) EXPECT_EQ(defined, 1) << #name;
  ZC_STATUS_LIST(CHECK_ROW)
#undef CHECK_ROW
  EXPECT_EQ(names.size(), static_cast<std::size_t>(rows));
}

TEST(Status, numbers_that_are_none_have_safe_answers) {
  const auto none = static_cast<zc_status>(99);
  EXPECT_STREQ(zc_status_name(none), "UNKNOWN");
  EXPECT_STRNE(zc_status_text(none), "");
  EXPECT_EQ(zc_status_scope(none), ZC_SCOPE_PROCESS);
  EXPECT_EQ(zc_status_buffers_defined(none), 0);
  EXPECT_EQ(zc_status_comm_usable(none), 0);
}

TEST(LastError, stands_until_the_next_failure_of_the_same_thread) {
  EXPECT_EQ(fail(ZC_ARGUMENT, "rank %d", 3), ZC_ARGUMENT);
  EXPECT_STREQ(zc_last_error(), "rank 3");
  std::thread([] {
    EXPECT_STREQ(zc_last_error(), "");
    EXPECT_EQ(fail(ZC_STATE, "other"), ZC_STATE);
    EXPECT_STREQ(zc_last_error(), "other");
  }).join();
  EXPECT_STREQ(zc_last_error(), "rank 3");
}

TEST(LastError, may_quote_itself_and_is_cut_when_too_long) {
  fail(ZC_ARGUMENT, "inner");
  fail(ZC_ARGUMENT, "outer: %s", zc_last_error());
  EXPECT_STREQ(zc_last_error(), "outer: inner");
  EXPECT_EQ(record_error(ZC_STATE, zc_last_error()), ZC_STATE);
  EXPECT_STREQ(zc_last_error(), "outer: inner");
  const std::string longest(100000, 'x');
  fail(ZC_ARGUMENT, "%s", longest.c_str());
  const std::string text = zc_last_error();
  EXPECT_GT(text.size(), 1000u);
  EXPECT_LT(text.size(), 100000u);
  record_error(ZC_ARGUMENT, longest.c_str());
  EXPECT_EQ(text, zc_last_error());
}

TEST(Check, require_throws_status_and_text) {
  try {
    ZC_REQUIRE(1 + 1 == 3, ZC_OVERFLOW, "%d and %s", 7, "more");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ZC_OVERFLOW);
    EXPECT_STREQ(error.what(), "7 and more");
  }
}

TEST(Check, format_has_no_limit) { EXPECT_EQ(format("%s!", std::string(5000, 'y').c_str()), std::string(5000, 'y') + "!"); }

}  // namespace
}  // namespace zerocomm
