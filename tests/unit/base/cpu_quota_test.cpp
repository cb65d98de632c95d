// Cores that CPU quotas allow: planted trees of cgroups, versions 1 and 2.
#include "base/wait.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace zerocomm {
namespace {

class CpuQuota : public ::testing::Test {
 protected:
  CpuQuota() {
    std::string name = (std::filesystem::temp_directory_path() / "cpu_quota.XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) root_ = name;
    put("/proc/self/mountinfo",
        "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpuacct,cpu\n"
        "33 31 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    put("/proc/self/cgroup", "3:cpuacct,cpu:/job/rank\n0::/user/job\n");
  }
  ~CpuQuota() override { std::filesystem::remove_all(root_); }

  void put(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void put_v1(const std::string& folder, const char* quota, const char* period) const {
    put("/sys/fs/cgroup/cpu" + folder + "/cpu.cfs_quota_us", std::string(quota) + "\n");
    put("/sys/fs/cgroup/cpu" + folder + "/cpu.cfs_period_us", std::string(period) + "\n");
  }
  void put_v2(const std::string& folder, const char* text) const {
    put("/sys/fs/cgroup/unified" + folder + "/cpu.max", std::string(text) + "\n");
  }
  int cores() const { return quota_cores_below(root_); }

 private:
  std::string root_;
};

TEST_F(CpuQuota, is_none_where_nothing_is_said) {
  EXPECT_EQ(cores(), 0);
  put_v1("/job/rank", "-1", "100000");
  put_v2("/user/job", "max 100000");
  EXPECT_EQ(cores(), 0);
  put_v1("/other", "100000", "100000");
  EXPECT_EQ(cores(), 0);
}

TEST_F(CpuQuota, of_version_1_is_that_of_the_own_cgroup_or_of_one_above) {
  put_v1("/job/rank", "250000", "100000");
  EXPECT_EQ(cores(), 3);  // rounded up
  put_v1("/job", "200000", "100000");
  EXPECT_EQ(cores(), 2);
  put_v1("", "1000", "100000");
  EXPECT_EQ(cores(), 1);
}

TEST_F(CpuQuota, of_version_2_counts_beside_it) {
  put_v2("/user/job", "400000 100000");
  EXPECT_EQ(cores(), 4);
  put_v2("/user", "150000 50000");
  EXPECT_EQ(cores(), 3);
  put_v1("/job/rank", "100000", "100000");
  EXPECT_EQ(cores(), 1);
}

TEST_F(CpuQuota, that_is_no_number_does_not_count) {
  put_v2("/user/job", "");
  put_v2("/user", "100000");
  put_v1("/job/rank", "rubbish", "100000");
  put_v1("/job", "100000", "0");
  EXPECT_EQ(cores(), 0);
}

}  // namespace
}  // namespace zerocomm
