// Environment variables.
#include "base/config.hpp"

#include "base/check.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

namespace zerocomm {
namespace {

constexpr const char* kName = "ZC_DEADLINE_MS";

class Config : public ::testing::Test {
 protected:
  void TearDown() override { unsetenv(kName); }
  static std::optional<std::int64_t> read(const char* text) {
    setenv(kName, text, 1);
    return integer_variable(kName, 1, 1000);
  }
};

TEST_F(Config, unset_and_empty_variables_say_nothing) {
  unsetenv(kName);
  EXPECT_EQ(integer_variable(kName, 1, 1000), std::nullopt);
  EXPECT_EQ(read(""), std::nullopt);
}

TEST_F(Config, whole_numbers_in_range_are_taken) {
  EXPECT_EQ(read("1"), 1);
  EXPECT_EQ(read("1000"), 1000);
}

TEST_F(Config, anything_else_is_an_error_that_quotes_it) {
  for (const char* text : {"0", "1001", "-5", "12x", "x", "1.5", "1e3", "99999999999999999999", " ", "12 "}) {
    try {
      read(text);
      ADD_FAILURE() << '"' << text << "\" was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ZC_ARGUMENT);
      EXPECT_EQ(std::string(error.what()),
                std::string("the variable ZC_DEADLINE_MS is \"") + text + "\"; it takes a whole number from 1 to 1000");
    }
  }
}

TEST_F(Config, text_is_taken_as_it_is) {
  unsetenv(kName);
  EXPECT_EQ(text_variable(kName), std::nullopt);
  setenv(kName, "", 1);
  EXPECT_EQ(text_variable(kName), std::nullopt);
  setenv(kName, " a b=c ", 1);
  EXPECT_EQ(text_variable(kName), " a b=c ");
}

TEST_F(Config, every_variable_is_listed_with_unit_and_meaning) {
  EXPECT_GE(variables().size(), 2u);
  for (const Variable& variable : variables()) {
    EXPECT_EQ(std::string(variable.name).substr(0, 3), "ZC_");
    EXPECT_STRNE(variable.unit, "");
    EXPECT_STRNE(variable.meaning, "");
  }
}

TEST_F(Config, variables_are_listed_once_and_in_order) {
  std::string last;
  for (const Variable& variable : variables()) {
    EXPECT_LT(last, variable.name);
    last = variable.name;
  }
}

TEST_F(Config, what_launchers_and_processes_need_is_listed) {
  for (const char* name : {"ZC_RANK", "ZC_RANKS", "ZC_LOCAL_RANK", "ZC_LOCAL_RANKS", "ZC_JOB", "ZC_SHM_BYTES",
                           "ZC_INIT_DEADLINE_MS", "ZC_COPY"}) {
    const bool listed = std::any_of(variables().begin(), variables().end(),
                                    [&](const Variable& variable) { return std::string(variable.name) == name; });
    EXPECT_TRUE(listed) << name;
  }
}

}  // namespace
}  // namespace zerocomm
