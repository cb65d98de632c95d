// The log callback.
#include "base/log.hpp"

#include <zerocomm/status.h>

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace zerocomm {
namespace {

using Lines = std::vector<std::pair<zc_log_level, std::string>>;
void collect(void* lines, zc_log_level level, const char* line) {
  static_cast<Lines*>(lines)->emplace_back(level, line);
}

class Log : public ::testing::Test {
 protected:
  void TearDown() override { zc_log_set(nullptr, nullptr, ZC_LOG_OFF); }
  Lines lines_;
};

TEST_F(Log, is_silent_until_a_callback_is_set_and_after_it_is_taken_away) {
  log(ZC_LOG_ERROR, "before");
  ASSERT_EQ(zc_log_set(collect, &lines_, ZC_LOG_DEBUG), ZC_OK);
  log(ZC_LOG_DEBUG, "number %d", 5);
  ASSERT_EQ(zc_log_set(nullptr, nullptr, ZC_LOG_DEBUG), ZC_OK);
  log(ZC_LOG_ERROR, "after");
  EXPECT_EQ(lines_, (Lines{{ZC_LOG_DEBUG, "number 5"}}));
}

TEST_F(Log, passes_what_is_as_severe_as_asked) {
  zc_log_set(collect, &lines_, ZC_LOG_WARN);
  for (const zc_log_level level : {ZC_LOG_ERROR, ZC_LOG_WARN, ZC_LOG_INFO, ZC_LOG_DEBUG}) log(level, "x");
  EXPECT_EQ(lines_, (Lines{{ZC_LOG_ERROR, "x"}, {ZC_LOG_WARN, "x"}}));
  zc_log_set(collect, &lines_, ZC_LOG_OFF);
  log(ZC_LOG_ERROR, "y");
  EXPECT_EQ(lines_.size(), 2u);
}

TEST_F(Log, cuts_long_lines) {
  zc_log_set(collect, &lines_, ZC_LOG_INFO);
  log(ZC_LOG_INFO, "%s", std::string(5000, 'z').c_str());
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_EQ(lines_[0].second, std::string(1023, 'z'));
}

// Called without a lock: a callback may itself use the library.
TEST_F(Log, callback_may_change_the_callback) {
  zc_log_set([](void*, zc_log_level, const char*) { zc_log_set(nullptr, nullptr, ZC_LOG_OFF); }, nullptr, ZC_LOG_INFO);
  log(ZC_LOG_INFO, "once");
  log(ZC_LOG_INFO, "never");
}

TEST_F(Log, refuses_a_level_that_is_none) {
  EXPECT_EQ(zc_log_set(collect, &lines_, static_cast<zc_log_level>(5)), ZC_ARGUMENT);
  EXPECT_STREQ(zc_last_error(), "log level 5 is none");
  log(ZC_LOG_ERROR, "x");
  EXPECT_TRUE(lines_.empty());
}

}  // namespace
}  // namespace zerocomm
