// Containers: almost no /dev/shm, a network that is down, file systems that cannot be written.
#include "host/box.hpp"

#include <dirent.h>

namespace zerocomm::test {
namespace {

// Mounts of its own, so that the rest of the host keeps its own.
void own_mounts() {
  RANK_CHECK(unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "%s",
             std::strerror(errno));
}

bool may_have_own_mounts() {
  Children probe(1, [](std::int32_t) { own_mounts(); });
  return probe.wait()[0].ok();
}

std::size_t files_in(const char* folder) {
  std::size_t files = 0;
  DIR* const open = opendir(folder);
  RANK_CHECK(open != nullptr, "no %s", folder);
  while (const dirent* entry = readdir(open)) files += entry->d_name[0] != '.';
  closedir(open);
  return files;
}

TEST(Namespaces, one_mebibyte_of_dev_shm_is_enough_for_8_ranks_and_64_mebibytes) {
  if (!may_have_own_mounts()) GTEST_SKIP() << "no right to mounts of its own";
  run_in_box(
      [] {
        own_mounts();
        RANK_CHECK(mount("small", "/dev/shm", "tmpfs", 0, "size=1m") == 0, "%s", std::strerror(errno));
      },
      8,
      [](zc_comm* comm, std::int32_t rank) {
        constexpr std::size_t kCount = 16 << 20;
        std::vector<float> data(kCount, static_cast<float>(rank));
        RANK_OK(zc_all_reduce(comm, data.data(), data.data(), kCount, ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
        for (const float each : data) RANK_CHECK(each == 28, "%g", static_cast<double>(each));
        zc_window_config config{};
        config.struct_size = sizeof config;
        config.bytes = 8 << 20;
        zc_window* window = nullptr;
        RANK_OK(zc_window_create(comm, &config, &window));
        RANK_CHECK(files_in("/dev/shm") == 0, "there are files in /dev/shm");
        RANK_OK(zc_barrier(comm, nullptr));
        RANK_OK(zc_window_destroy(window));
      },
      [] { RANK_CHECK(files_in("/dev/shm") == 0, "there are files left in /dev/shm"); });
}

TEST(Namespaces, no_file_system_needs_to_be_writable) {
  if (!may_have_own_mounts()) GTEST_SKIP() << "no right to mounts of its own";
  run_in_box(
      [] {
        own_mounts();
        for (const char* folder : {"/dev/shm", "/tmp", "/var/tmp", "/run"})
          RANK_CHECK(mount("none", folder, "tmpfs", MS_RDONLY, nullptr) == 0, "%s: %s", folder, std::strerror(errno));
      },
      3, use_everything);
}

TEST(Namespaces, network_that_is_down_is_not_needed) {
  Children probe(1, [](std::int32_t) { RANK_CHECK(unshare(CLONE_NEWNET) == 0, "no"); });
  if (!probe.wait()[0].ok()) GTEST_SKIP() << "no right to a network of its own";
  run_in_box(
      [] {
        RANK_CHECK(unshare(CLONE_NEWNET) == 0, "%s", std::strerror(errno));
        std::ifstream state("/sys/class/net/lo/operstate");
      },
      4, use_everything);
}

// Ranks of two networks do not meet: none waits longer than it was told to.
TEST(Namespaces, ranks_of_different_networks_time_out) {
  Children probe(1, [](std::int32_t) { RANK_CHECK(unshare(CLONE_NEWNET) == 0, "no"); });
  if (!probe.wait()[0].ok()) GTEST_SKIP() << "no right to a network of its own";
  const zc_unique_id id = make_id();
  Children ranks(2, [&](std::int32_t rank) {
    if (rank == 1) RANK_CHECK(unshare(CLONE_NEWNET) == 0, "%s", std::strerror(errno));
    zc_comm_config config = process_config(id, 2, rank);
    config.init_deadline_ns = kSecondNs;
    zc_comm* comm = nullptr;
    RANK_STATUS(ZC_TIMEOUT, zc_comm_create(&config, &comm));
    RANK_ERROR_SAYS(rank == 0 ? "rank 1" : "rank 0");
  });
  expect_ok(ranks.wait(kSlack * 10 * kSecondNs));
}

}  // namespace
}  // namespace zerocomm::test
