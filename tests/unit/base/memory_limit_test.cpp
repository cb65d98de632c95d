// The room that is left under the limits of memory cgroups and host: planted trees, and a real cgroup.
#include "base/memory_limit.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <string>

namespace zerocomm {

bool operator==(const MemoryRoom& a, const MemoryRoom& b) {
  return a.left_bytes == b.left_bytes && a.limit_text == b.limit_text;
}

std::ostream& operator<<(std::ostream& out, const MemoryRoom& room) {
  return out << room.left_bytes << " bytes: " << room.limit_text;
}

namespace {

constexpr const char* kV1Point = "/sys/fs/cgroup/memory";
constexpr const char* kV2Point = "/sys/fs/cgroup";
const MemoryRoom kHost{1'048'576'000, "host: 1048576000 bytes available"};

class MemoryLimit : public ::testing::Test {
 protected:
  MemoryLimit() {
    std::string name = (std::filesystem::temp_directory_path() / "memory_limit.XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) root_ = name;
    put("/proc/meminfo", "MemTotal:        4000000 kB\nMemFree:          900000 kB\nMemAvailable:    1024000 kB\n");
  }
  ~MemoryLimit() override { std::filesystem::remove_all(root_); }

  void put(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void put_mounts(const std::string& memory) const {
    put("/proc/self/mountinfo",
        "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
        "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n" +
            memory + "25 24 0:23 / /dev/shm rw,relatime - tmpfs tmpfs rw,size=24684084k\n");
  }
  // A mount of version 1 whose top is the cgroup `top`.
  void put_v1(const std::string& top, const std::string& path) const {
    put_mounts("35 31 0:32 " + top + " /sys/fs/cgroup/memory rw,nosuid shared:9 master:1 - cgroup cgroup rw,memory\n");
    put("/proc/self/cgroup", "9:name=systemd:/user\n5:devices:/\n4:memory:" + path + "\n0::/\n");
  }
  void put_v2(const std::string& top, const std::string& path) const {
    put_mounts("30 23 0:26 " + top + " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
    put("/proc/self/cgroup", "0::" + path + "\n");
  }
  void put_group_v1(const std::string& folder, const char* limit, const char* usage, const char* cache) const {
    put(folder + "/memory.limit_in_bytes", std::string(limit) + "\n");
    put(folder + "/memory.usage_in_bytes", std::string(usage) + "\n");
    put(folder + "/memory.stat", std::string("cache 1\ninactive_file 1\ntotal_cache 2\ntotal_inactive_file ") + cache +
                                     "\ntotal_active_file 7\n");
  }
  void put_group_v2(const std::string& folder, const char* limit, const char* usage, const char* cache) const {
    put(folder + "/memory.max", std::string(limit) + "\n");
    put(folder + "/memory.high", "1\n");
    put(folder + "/memory.current", std::string(usage) + "\n");
    put(folder + "/memory.stat", std::string("anon 1\ninactive_file ") + cache + "\nactive_file 7\n");
  }
  MemoryRoom room() const { return memory_room_below(root_); }

  std::string root_;
};

TEST_F(MemoryLimit, without_cgroups_is_what_the_host_has_available) { EXPECT_EQ(room(), kHost); }

TEST_F(MemoryLimit, that_nobody_tells_is_endless) {
  std::filesystem::remove_all(root_ + "/proc");
  EXPECT_EQ(room(), (MemoryRoom{UINT64_MAX, "no limit is known"}));
  EXPECT_EQ(memory_room_below("/nowhere at all"), (MemoryRoom{UINT64_MAX, "no limit is known"}));
}

TEST_F(MemoryLimit, of_version_1_counts_idle_cache_as_free) {
  put_v1("/", "/job");
  put_group_v1("/sys/fs/cgroup/memory/job", "104857600", "97000000", "7000000");
  EXPECT_EQ(room(), (MemoryRoom{14'857'600,
                                "memory cgroup /sys/fs/cgroup/memory/job: limit 104857600 bytes, 90000000 in use"}));
}

TEST_F(MemoryLimit, of_version_2_counts_idle_cache_as_free) {
  put_v2("/", "/job");
  put_group_v2("/sys/fs/cgroup/job", "104857600", "97000000", "7000000");
  EXPECT_EQ(room(),
            (MemoryRoom{14'857'600, "memory cgroup /sys/fs/cgroup/job: limit 104857600 bytes, 90000000 in use"}));
}

TEST_F(MemoryLimit, is_the_narrowest_of_all_levels) {
  put_v1("/", "/a/b/c");
  put_group_v1("/sys/fs/cgroup/memory/a/b/c", "9000", "0", "0");
  put_group_v1("/sys/fs/cgroup/memory/a/b", "8000", "1000", "500");
  put_group_v1("/sys/fs/cgroup/memory/a", "10000", "9000", "0");
  put_group_v1("/sys/fs/cgroup/memory", "50000", "9000", "0");
  EXPECT_EQ(room(), (MemoryRoom{1000, "memory cgroup /sys/fs/cgroup/memory/a: limit 10000 bytes, 9000 in use"}));
  put_group_v1("/sys/fs/cgroup/memory", "9500", "9000", "0");
  EXPECT_EQ(room(), (MemoryRoom{500, "memory cgroup /sys/fs/cgroup/memory: limit 9500 bytes, 9000 in use"}));
  put_group_v1("/sys/fs/cgroup/memory/a/b/c", "300", "0", "0");
  EXPECT_EQ(room(), (MemoryRoom{300, "memory cgroup /sys/fs/cgroup/memory/a/b/c: limit 300 bytes, 0 in use"}));
}

TEST_F(MemoryLimit, of_others_does_not_count) {
  put_v2("/", "/a/b");
  put_group_v2("/sys/fs/cgroup/a/bc", "1", "0", "0");
  put_group_v2("/sys/fs/cgroup/other", "1", "0", "0");
  put_group_v2("/sys/fs", "1", "0", "0");
  put_group_v2("/sys/fs/cgroup/a/b/below", "1", "0", "0");
  EXPECT_EQ(room(), kHost);
}

TEST_F(MemoryLimit, that_is_wider_than_the_host_does_not_count) {
  put_v2("/", "/job");
  put_group_v2("/sys/fs/cgroup/job", "1048580096", "4096", "0");
  EXPECT_EQ(room(), kHost);
  put_group_v2("/sys/fs/cgroup/job", "1048580096", "4097", "0");
  EXPECT_EQ(room().left_bytes, kHost.left_bytes - 1);
  put_group_v2("/sys/fs/cgroup/job", "1048580096", "5000", "4000");
  EXPECT_EQ(room(), kHost);
}

TEST_F(MemoryLimit, that_says_none_does_not_count) {
  put_v2("/", "/job");
  put_group_v2("/sys/fs/cgroup/job", "max", "4096", "0");
  EXPECT_EQ(room(), kHost);
  std::filesystem::remove(root_ + "/proc/meminfo");
  EXPECT_EQ(room().limit_text, "no limit is known");
  put_v1("/", "/job");
  for (const char* none : {"9223372036854771712", "9223372036854710272", "18446744073709551615"}) {
    put_group_v1("/sys/fs/cgroup/memory/job", none, "4096", "0");
    EXPECT_EQ(room(), (MemoryRoom{UINT64_MAX, "no limit is known"})) << none;
  }
}

TEST_F(MemoryLimit, that_is_used_up_leaves_nothing) {
  put_v2("/", "/job");
  put_group_v2("/sys/fs/cgroup/job", "1000", "1000", "0");
  EXPECT_EQ(room(), (MemoryRoom{0, "memory cgroup /sys/fs/cgroup/job: limit 1000 bytes, 1000 in use"}));
  put_group_v2("/sys/fs/cgroup/job", "1000", "1500", "100");
  EXPECT_EQ(room(), (MemoryRoom{0, "memory cgroup /sys/fs/cgroup/job: limit 1000 bytes, 1400 in use"}));
  put_group_v2("/sys/fs/cgroup/job", "1000", "1500", "600");
  EXPECT_EQ(room(), (MemoryRoom{100, "memory cgroup /sys/fs/cgroup/job: limit 1000 bytes, 900 in use"}));
  put_group_v2("/sys/fs/cgroup/job", "1000", "1500", "9000");
  EXPECT_EQ(room(), (MemoryRoom{1000, "memory cgroup /sys/fs/cgroup/job: limit 1000 bytes, 0 in use"}));
  put_group_v2("/sys/fs/cgroup/job", "0", "0", "0");
  EXPECT_EQ(room().left_bytes, 0u);
}

TEST_F(MemoryLimit, counts_only_if_it_can_be_read) {
  put_v2("/", "/job");
  put_group_v2("/sys/fs/cgroup/job", "1000", "200", "50");
  EXPECT_EQ(room().left_bytes, 850u);
  std::filesystem::remove(root_ + "/sys/fs/cgroup/job/memory.stat");
  EXPECT_EQ(room().left_bytes, 800u);
  std::filesystem::remove(root_ + "/sys/fs/cgroup/job/memory.current");
  EXPECT_EQ(room(), kHost);
  put_group_v2("/sys/fs/cgroup/job", "1000", "200", "50");
  std::filesystem::remove(root_ + "/sys/fs/cgroup/job/memory.max");
  EXPECT_EQ(room(), kHost);
  for (const char* text : {"", "\n", "garbage", "-1", "12garbage", "99999999999999999999999"}) {
    put_group_v2("/sys/fs/cgroup/job", text, "200", "50");
    EXPECT_EQ(room(), kHost) << text;
    put_group_v2("/sys/fs/cgroup/job", "1000", text, "50");
    EXPECT_EQ(room(), kHost) << text;
  }
  std::filesystem::remove_all(root_ + "/sys/fs/cgroup/job/memory.max");
  std::filesystem::create_directory(root_ + "/sys/fs/cgroup/job/memory.max");
  EXPECT_EQ(room(), kHost);
}

TEST_F(MemoryLimit, of_a_container_is_at_the_mount) {
  put_v1("/docker/8f3a", "/docker/8f3a");
  put_group_v1("/sys/fs/cgroup/memory", "1000", "10", "0");
  const MemoryRoom container{990, "memory cgroup /sys/fs/cgroup/memory: limit 1000 bytes, 10 in use"};
  EXPECT_EQ(room(), container);
  // Below the container's own, and a path that is only right outside.
  put_v1("/docker/8f3a", "/docker/8f3a/inner");
  put_group_v1("/sys/fs/cgroup/memory/inner", "500", "0", "0");
  EXPECT_EQ(room(), (MemoryRoom{500, "memory cgroup /sys/fs/cgroup/memory/inner: limit 500 bytes, 0 in use"}));
  for (const char* path : {"/docker/8f3", "/docker/8f3ab/inner", "/", "/elsewhere", "/docker/8f3a (deleted)"}) {
    put_v1("/docker/8f3a", path);
    EXPECT_EQ(room(), container) << path;
  }
}

TEST_F(MemoryLimit, of_a_cgroup_namespace_is_at_the_mount) {
  put_v2("/", "/");
  put_group_v2("/sys/fs/cgroup", "1000", "10", "0");
  const MemoryRoom mount{990, "memory cgroup /sys/fs/cgroup: limit 1000 bytes, 10 in use"};
  EXPECT_EQ(room(), mount);
  put_v2("/..", "/");
  EXPECT_EQ(room(), mount);
  put_group_v2("/sys/fs", "1", "0", "0");
  put_group_v2("/sys/other", "1", "0", "0");
  put_v2("/", "/../other");
  EXPECT_EQ(room(), mount);
}

TEST_F(MemoryLimit, of_a_removed_cgroup_is_that_of_those_above) {
  put_v2("/", "/a/b (deleted)");
  put_group_v2("/sys/fs/cgroup/a", "1000", "10", "0");
  EXPECT_EQ(room(), (MemoryRoom{990, "memory cgroup /sys/fs/cgroup/a: limit 1000 bytes, 10 in use"}));
}

TEST_F(MemoryLimit, is_found_behind_odd_names) {
  put_mounts("30 23 0:26 /a\\040b /mnt/c\\134\\011d\\9 rw - cgroup2 none rw\n");
  put("/proc/self/cgroup", "0::/a b/x:y - z\n");
  put_group_v2("/mnt/c\\\td\\9/x:y - z", "1000", "10", "0");
  EXPECT_EQ(room(), (MemoryRoom{990, "memory cgroup /mnt/c\\\td\\9/x:y - z: limit 1000 bytes, 10 in use"}));
}

TEST_F(MemoryLimit, is_found_where_both_versions_are_mounted) {
  put_mounts(
      "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,hugetlb,memory\n"
      "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
  put("/proc/self/cgroup", "4:hugetlb,memory:/one\n0::/two\n");
  put_group_v1("/sys/fs/cgroup/memory/one", "1000", "10", "0");
  EXPECT_EQ(room().left_bytes, 990u);
  put_group_v2("/sys/fs/cgroup/unified/two", "900", "10", "0");
  EXPECT_EQ(room(), (MemoryRoom{890, "memory cgroup /sys/fs/cgroup/unified/two: limit 900 bytes, 10 in use"}));
  // Version 2 has no memory controller here, and a version 1 mount without the word is another one's.
  put("/proc/self/cgroup", "4:hugetlb:/one\n3:memoryless:/one\n");
  EXPECT_EQ(room(), kHost);
}

TEST_F(MemoryLimit, prefers_a_mount_that_shows_the_own_cgroup) {
  put_mounts(
      "35 31 0:32 /other /mnt/other rw - cgroup cgroup rw,memory\n"
      "36 31 0:32 / /mnt/all rw - cgroup cgroup rw,memory\n");
  put("/proc/self/cgroup", "4:memory:/own\n");
  put_group_v1("/mnt/other", "10", "0", "0");
  put_group_v1("/mnt/all/own", "1000", "0", "0");
  EXPECT_EQ(room().left_bytes, 1000u);
}

TEST_F(MemoryLimit, is_found_behind_hundreds_of_mounts) {
  const std::string others(300, 'x');
  std::string mounts = "35 31 0:32 /other /mnt/other rw - cgroup cgroup rw,memory\n";
  for (int i = 0; i < 100; ++i)
    mounts += "99 27 0:99 / /mnt/" + others.substr(0, static_cast<std::size_t>(i)) + " rw - tmpfs tmpfs rw\n";
  put_mounts(mounts +
             "36 31 0:32 / /mnt/one rw - cgroup cgroup rw,memory\n"
             "36 31 0:32 / /mnt/same rw - cgroup cgroup rw,memory\n" +
             mounts + "37 31 0:33 / /mnt/two rw - cgroup2 cgroup2 rw\n");
  put("/proc/self/cgroup", "4:memory:/own\n0::/own\n");
  put_group_v1("/mnt/other", "10", "0", "0");
  put_group_v1("/mnt/one/own", "1000", "0", "0");
  EXPECT_EQ(room().left_bytes, 1000u);
  put("/proc/self/cgroup", "4:memory:/own\n");
  EXPECT_EQ(room().left_bytes, 1000u);
  put("/proc/self/cgroup", "4:memory:/own\n0::/own\n");
  put_group_v2("/mnt/two/own", "900", "0", "0");
  EXPECT_EQ(room().left_bytes, 900u);
}

TEST_F(MemoryLimit, survives_broken_tables) {
  put_group_v1("/sys/fs/cgroup/memory", "10", "0", "0");
  for (const char* text :
       {"", "\n\n", " - ", " - cgroup", "1 2 3 - cgroup cgroup rw,memory", "a b c d - cgroup2\n",
        "35 31 0:32 \\0 \\ rw - cgroup cgroup rw,memory", "35 31 0:32  - cgroup cgroup rw,memory\n"}) {
    put("/proc/self/mountinfo", text);
    for (const char* cgroups :
         {"", "\n", ":", "::", "4:memory:", "4:memory", "4:memory:x", "0::/", "0::/\n4:memory:/"}) {
      put("/proc/self/cgroup", cgroups);
      EXPECT_EQ(room(), kHost) << text << " / " << cgroups;
    }
  }
  for (const char* text : {"", "MemAvailable:", "MemAvailable: kB", "MemAvailable:x", "MemAvailable 5 kB"}) {
    put("/proc/meminfo", text);
    EXPECT_EQ(room().limit_text, "no limit is known") << text;
  }
}

// A memory cgroup of this machine, for as long as the object lives; `path` is empty if none can be made.
class RealCgroup {
 public:
  RealCgroup() {
    for (const bool v1 : {true, false}) {
      const std::string path =
          std::string(v1 ? kV1Point : kV2Point) + "/zerocomm_memory_limit_test_" + std::to_string(getpid());
      if (mkdir(path.c_str(), 0755) != 0) continue;
      if (write(path + (v1 ? "/memory.limit_in_bytes" : "/memory.max"), std::to_string(kBytes))) {
        path_ = path;
        return;
      }
      rmdir(path.c_str());
    }
  }
  ~RealCgroup() {
    // The kernel may need a moment after the last process has gone.
    for (int i = 0; i < 200 && !path_.empty() && rmdir(path_.c_str()) != 0; ++i) usleep(10'000);
  }
  RealCgroup(const RealCgroup&) = delete;
  RealCgroup& operator=(const RealCgroup&) = delete;

  static constexpr std::uint64_t kBytes = 64 << 20;
  const std::string& path() const { return path_; }
  bool enter() const { return write(path_ + "/cgroup.procs", "0"); }

 private:
  // Makes no file: in a folder that is no cgroup, it fails.
  static bool write(const std::string& path, const std::string& text) {
    const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0) return false;
    const bool good = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    close(file);
    return good;
  }
  std::string path_;
};

// Takes and touches memory that processes can share, as the library does.
bool take(std::uint64_t bytes) {
  const int file = memfd_create("memory_limit_test", MFD_CLOEXEC);
  return file >= 0 && fallocate(file, 0, 0, static_cast<off_t>(bytes)) == 0;
}

// What a child in the cgroup ends with: 0 if it finds what it should.
int run_inside(const RealCgroup& cgroup) {
  const pid_t child = fork();
  if (child == 0) {
    constexpr std::uint64_t kSlack = 4 << 20;  // the kernel books in batches per core
    if (!cgroup.enter()) _exit(2);
    const MemoryRoom before = memory_room();
    const std::string text = "memory cgroup " + cgroup.path() + ": limit 67108864 bytes, ";
    if (before.limit_text.compare(0, text.size(), text) != 0) _exit(3);
    if (before.left_bytes > RealCgroup::kBytes || before.left_bytes < RealCgroup::kBytes / 2) _exit(4);
    if (!take(RealCgroup::kBytes / 4)) _exit(5);
    const MemoryRoom after = memory_room();
    if (after.left_bytes > before.left_bytes - RealCgroup::kBytes / 4 + kSlack) _exit(6);
    if (after.left_bytes < kSlack) _exit(7);
    _exit(take(after.left_bytes - kSlack) ? 0 : 8);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

TEST(RealMemoryLimit, of_a_cgroup_is_seen_from_inside_and_what_is_left_can_be_taken) {
  const RealCgroup cgroup;
  if (cgroup.path().empty()) GTEST_SKIP() << "no memory cgroup can be made here";
  const int status = run_inside(cgroup);
  ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(RealMemoryLimit, of_this_process_is_told) {
  const MemoryRoom room = memory_room();
  EXPECT_GT(room.left_bytes, 0u);
  EXPECT_LT(room.left_bytes, UINT64_MAX);
  EXPECT_TRUE(room.limit_text.find("host: ") == 0 || room.limit_text.find("memory cgroup /") == 0) << room.limit_text;
}

}  // namespace
}  // namespace zerocomm
