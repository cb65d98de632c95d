// Statuses and the last error.
#include "base/check.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>

namespace zerocomm {
namespace {

struct Row {
  zc_status status;
  int number;
  const char* name;
  zc_scope scope;
  int defined, usable;
  const char* meaning;
};
constexpr Row kRows[] = {
#define ZC_TEST_ROW(name, number, scope, defined, usable, meaning) \
  {ZC_##name, number, #name, ZC_SCOPE_##scope, defined, usable, meaning},
    ZC_STATUS_LIST(ZC_TEST_ROW)
#undef ZC_TEST_ROW
};

TEST(Status, table_is_complete_and_consistent) {
  std::set<std::string> names;
  for (const Row& row : kRows) {
    names.insert(zc_status_name(row.status));
    EXPECT_STREQ(zc_status_name(row.status), row.name);
    EXPECT_STREQ(zc_status_text(row.status), row.meaning);
    EXPECT_EQ(static_cast<int>(row.status), row.number);
    EXPECT_EQ(zc_status_scope(row.status), row.scope);
    EXPECT_EQ(zc_status_buffers_defined(row.status), row.defined);
    EXPECT_EQ(zc_status_comm_usable(row.status), row.usable);
    // What ends a communicator leaves it dead; what ends a call harms neither it nor any buffer.
    EXPECT_TRUE(row.scope != ZC_SCOPE_COMM || row.usable == 0) << row.name;
    EXPECT_TRUE(row.scope > ZC_SCOPE_REQUEST || row.usable == 1) << row.name;
    EXPECT_TRUE(row.scope > ZC_SCOPE_CALL || row.defined == 1) << row.name;
  }
  EXPECT_EQ(names.size(), std::size(kRows));
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

TEST(Check, format_has_no_limit) {
  EXPECT_EQ(format("%s!", std::string(5000, 'y').c_str()), std::string(5000, 'y') + "!");
}

}  // namespace
}  // namespace zerocomm
