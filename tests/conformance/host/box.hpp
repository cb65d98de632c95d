// Hosts that allow little: system calls that are refused, control groups, namespaces, limits; and the work that ranks
// do there.
#pragma once

#include "support/child_ranks.hpp"

#include <zerocomm/coll.h>
#include <zerocomm/mem.h>
#include <zerocomm/window.h>

#include <gtest/gtest.h>

#include <dirent.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cstddef>
#include <fstream>
#include <sstream>

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

namespace zerocomm::test {

// From here on the kernel answers these system calls of this process and its children with an error.
inline void refuse(const std::vector<long>& calls, int error) {
#if defined(__x86_64__)
  constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#else
  constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif
  const auto load = [](std::size_t offset) {
    return sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
  };
  const auto answer = [](std::uint32_t what) { return sock_filter BPF_STMT(BPF_RET | BPF_K, what); };
  std::vector<sock_filter> program = {load(offsetof(seccomp_data, arch)),
                                      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
                                      answer(SECCOMP_RET_ALLOW), load(offsetof(seccomp_data, nr))};
  for (const long call : calls) {
    program.push_back(sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1));
    program.push_back(answer(SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error)));
  }
  program.push_back(answer(SECCOMP_RET_ALLOW));
  sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  RANK_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "%s", std::strerror(errno));
  RANK_CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0, "no filter: %s", std::strerror(errno));
}

// A control group of its own: version 1, or version 2 where the topmost group hands the controller on. Gone with its
// object; whoever is in it has ended before.
class ControlGroup {
 public:
  explicit ControlGroup(const std::string& controller) {
    static int made = 0;
    const std::string name = format("/zerocomm-test-%d-%d", static_cast<int>(getpid()), ++made);
    const std::string v1 = "/sys/fs/cgroup/" + controller, v2 = "/sys/fs/cgroup";
    is_v2_ = access((v2 + "/cgroup.controllers").c_str(), F_OK) == 0;
    remove_old(is_v2_ ? v2 : v1);
    folder_ = (is_v2_ ? v2 : v1) + name;
    if (mkdir(folder_.c_str(), 0755) != 0) {
      why_not_ = folder_ + ": " + std::strerror(errno);
      folder_.clear();
    }
  }
  ~ControlGroup() {
    if (folder_.empty()) return;
    EXPECT_TRUE(wait_until([&] { return rmdir(folder_.c_str()) == 0; }, 5 * kSecondNs)) << folder_ << " stays";
  }
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;

  bool is_v2() const { return is_v2_; }
  // Empty if it can be used.
  const std::string& why_not() const { return why_not_; }

  // Writes a file of it; what it is called, and what it holds, depends on the version.
  void set(const std::string& v1_file, const std::string& v1_value, const std::string& v2_file,
           const std::string& v2_value) {
    if (!why_not_.empty()) return;
    const std::string path = folder_ + "/" + (is_v2_ ? v2_file : v1_file);
    std::ofstream file(path);
    file << (is_v2_ ? v2_value : v1_value) << std::flush;
    if (!file) why_not_ = path + " cannot be written";
  }
  std::string read(const std::string& v1_file, const std::string& v2_file) const {
    std::stringstream text;
    text << std::ifstream(folder_ + "/" + (is_v2_ ? v2_file : v1_file)).rdbuf();
    return text.str();
  }
  // The calling process.
  void enter() const {
    std::ofstream file(folder_ + "/cgroup.procs");
    file << "0" << std::flush;
    RANK_CHECK(file.good(), "cannot enter %s", folder_.c_str());
  }

 private:
  // What tests left that were killed.
  static void remove_old(const std::string& mount) {
    DIR* const open = opendir(mount.c_str());
    if (open == nullptr) return;
    while (const dirent* entry = readdir(open)) {
      int pid = 0;
      if (std::sscanf(entry->d_name, "zerocomm-test-%d-", &pid) == 1 && kill(pid, 0) != 0 && errno == ESRCH)
        rmdir((mount + "/" + entry->d_name).c_str());
    }
    closedir(open);
  }

  std::string folder_;
  std::string why_not_;
  bool is_v2_ = false;
};

// Ranks in a process that has changed its surroundings first.
inline void run_in_box(const std::function<void()>& enter, std::int32_t ranks, const RankThreads::Body& body,
                       const std::function<void()>& after = nullptr) {
  Children box(1, [&](std::int32_t) {
    enter();
    const std::vector<ChildEnd> ends = ChildRanks(ranks, body).wait(kSlack * 60 * kSecondNs);
    for (std::size_t rank = 0; rank < ends.size(); ++rank)
      RANK_CHECK(ends[rank].ok(), "rank %zu ended with %d: %s", rank, ends[rank].code, ends[rank].text.c_str());
    if (after) after();
  });
  expect_ok(box.wait(kSlack * 90 * kSecondNs));
}

// Everything once, with results checked: private and shared memory, small and large, windows.
inline void use_everything(zc_comm* comm, std::int32_t rank) {
  std::int32_t ranks = 0;
  RANK_OK(zc_comm_size(comm, &ranks));
  const auto p = static_cast<std::size_t>(ranks);
  for (const std::size_t count : {std::size_t{3}, std::size_t{100'000}}) {
    std::vector<float> send(count, static_cast<float>(rank + 1)), recv(count * p), sum(count);
    RANK_OK(zc_all_gather(comm, send.data(), recv.data(), count, ZC_DTYPE_F32, nullptr));
    for (std::size_t i = 0; i < recv.size(); ++i)
      RANK_CHECK(recv[i] == static_cast<float>(i / count + 1), "element %zu is %g", i, static_cast<double>(recv[i]));
    RANK_OK(zc_all_reduce(comm, send.data(), sum.data(), count, ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
    RANK_OK(zc_broadcast(comm, send.data(), count, ZC_DTYPE_F32, ranks - 1, nullptr));
    for (std::size_t i = 0; i < count; ++i)
      RANK_CHECK(sum[i] == static_cast<float>(ranks * (ranks + 1) / 2) && send[i] == static_cast<float>(ranks),
                 "element %zu is %g and %g", i, static_cast<double>(sum[i]), static_cast<double>(send[i]));
    RANK_OK(zc_reduce_scatter(comm, recv.data(), sum.data(), count, ZC_DTYPE_F32, ZC_OP_MAX, nullptr));
    for (const float each : sum) RANK_CHECK(each == static_cast<float>(rank + 1), "%g", static_cast<double>(each));
  }
  zc_window_config config{};
  config.struct_size = sizeof config;
  config.bytes = 5'000;
  zc_window* window = nullptr;
  RANK_OK(zc_window_create(comm, &config, &window));
  void* memory = nullptr;
  std::size_t bytes = 0;
  RANK_OK(zc_window_ptr(window, rank, &memory, &bytes));
  std::memset(memory, rank + 1, bytes);
  RANK_OK(zc_window_signal(window, 1));
  const std::int32_t peer = (rank + 1) % ranks;
  std::vector<char> there(bytes);
  RANK_OK(zc_window_read(window, peer, 0, there.data(), bytes, 1, nullptr));
  for (const char each : there) RANK_CHECK(each == static_cast<char>(peer + 1), "%d", each);
  RANK_OK(zc_barrier(comm, nullptr));
  RANK_OK(zc_window_destroy(window));
}

inline std::string private_copy_of(const zc_comm* comm) {
  zc_comm_info info{};
  info.struct_size = sizeof info;
  RANK_OK(zc_comm_get_info(comm, &info));
  return info.private_copy;
}

}  // namespace zerocomm::test
