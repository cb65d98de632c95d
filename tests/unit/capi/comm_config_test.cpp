// Where the deadline and the spinning of a communicator come from: the caller, else the environment, else the library.
#include <zerocomm/comm.h>
#include <zerocomm/mem.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

class CommConfig : public ::testing::Test {
 protected:
  void SetUp() override { TearDown(); }
  void TearDown() override {
    unsetenv("ZC_DEADLINE_MS");
    unsetenv("ZC_SPIN_NS");
  }
  static zc_comm_info made_with(std::int64_t deadline_ns, std::int64_t spin_ns) {
    zc_comm_config config{};
    config.struct_size = sizeof config;
    config.deadline_ns = deadline_ns;
    config.spin_ns = spin_ns;
    zc_comm* comm = nullptr;
    EXPECT_EQ(zc_comm_create_threads(1, &config, &comm), ZC_OK) << zc_last_error();
    zc_comm_info info{};
    info.struct_size = sizeof info;
    EXPECT_EQ(zc_comm_get_info(comm, &info), ZC_OK);
    EXPECT_EQ(zc_comm_destroy(comm), ZC_OK);
    return info;
  }
};

TEST_F(CommConfig, has_a_deadline_of_ten_minutes_unless_told_otherwise) {
  EXPECT_EQ(made_with(0, 0).deadline_ns, 600'000'000'000);
  setenv("ZC_DEADLINE_MS", "1500", 1);
  EXPECT_EQ(made_with(0, 0).deadline_ns, 1'500'000'000);
  EXPECT_EQ(made_with(7, 0).deadline_ns, 7);
  EXPECT_LT(made_with(ZC_POLL, 0).deadline_ns, 0);
}

TEST_F(CommConfig, spins_as_the_caller_or_the_environment_says) {
  setenv("ZC_SPIN_NS", "0", 1);
  EXPECT_EQ(made_with(0, 0).spin_ns, 0);
  setenv("ZC_SPIN_NS", "777", 1);
  EXPECT_EQ(made_with(0, 0).spin_ns, 777);
  EXPECT_EQ(made_with(0, 5).spin_ns, 5);
  EXPECT_EQ(made_with(0, ZC_POLL).spin_ns, 0);
}

TEST_F(CommConfig, refuses_variables_that_are_no_numbers) {
  for (const char* name : {"ZC_DEADLINE_MS", "ZC_SPIN_NS"}) {
    setenv(name, "2s", 1);
    zc_comm* comm = nullptr;
    EXPECT_EQ(zc_comm_create_threads(1, nullptr, &comm), ZC_ARGUMENT);
    EXPECT_EQ(comm, nullptr);
    const std::string text = zc_last_error();
    EXPECT_NE(text.find(std::string("the variable ") + name + " is \"2s\""), std::string::npos) << text;
    unsetenv(name);
  }
}

// In a process of its own, since the variable is read once.
TEST(CommConfigDeathTest, kernels_that_cannot_be_had_are_refused_when_a_communicator_is_made) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto create = [] {
    setenv("ZC_KERNELS", "mmx", 1);
    zc_comm* comm = nullptr;
    const zc_status status = zc_comm_create_threads(1, nullptr, &comm);
    std::fprintf(stderr, "%s: %s\n", zc_status_name(status), zc_last_error());
    const float one = 1;
    std::uint16_t half = 7;
    const bool refused =
        zc_cast(&one, ZC_DTYPE_F32, &half, ZC_DTYPE_BF16, 1) == ZC_ARGUMENT && half == 7 && comm == nullptr;
    std::exit(refused ? 0 : 1);
  };
  EXPECT_EXIT(create(), testing::ExitedWithCode(0), "ARGUMENT: the variable ZC_KERNELS is \"mmx\"; it takes auto,");
}

}  // namespace
