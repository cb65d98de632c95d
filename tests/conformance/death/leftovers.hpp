// What processes may leave behind on a host: descriptors, files, sockets, memory without a name.
#pragma once

#include "support/child_ranks.hpp"

#include <dirent.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace zerocomm::test {

// With the rights for it, this process and its children see sockets and a /dev/shm of their own from here on, so that
// nobody else's count. False: no rights.
inline bool own_sockets_and_shm() {
  return unshare(CLONE_NEWNS | CLONE_NEWNET) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("test", "/dev/shm", "tmpfs", 0, "size=64m") == 0;
}

inline std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  DIR* const open = opendir(folder.c_str());
  if (open == nullptr) return names;
  while (const dirent* entry = readdir(open))
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  closedir(open);
  std::sort(names.begin(), names.end());
  return names;
}

// The lines of a file that hold a word.
inline std::vector<std::string> lines_with(const std::string& path, const std::string& word) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.find(word) != std::string::npos) lines.push_back(line);
  return lines;
}

// Inodes of the library's memory that a process maps: the fifth word of its lines.
inline std::set<std::uint64_t> mapped_memory(const std::string& process = "self") {
  std::set<std::uint64_t> inodes;
  for (const std::string& line : lines_with("/proc/" + process + "/maps", "/memfd:zerocomm")) {
    char range[64], rights[8], offset[32], device[16];
    unsigned long long inode = 0;
    if (std::sscanf(line.c_str(), "%63s %7s %31s %15s %llu", range, rights, offset, device, &inode) == 5)
      inodes.insert(inode);
  }
  return inodes;
}

// Inodes of the library's memory that a process has a descriptor of.
inline std::set<std::uint64_t> open_memory(const std::string& process = "self") {
  std::set<std::uint64_t> inodes;
  const std::string folder = "/proc/" + process + "/fd";
  for (const std::string& name : names_in(folder)) {
    char target[256] = {};
    struct stat info {};
    if (readlink((folder + "/" + name).c_str(), target, sizeof target - 1) > 0 &&
        std::string(target).find("/memfd:zerocomm") == 0 && stat((folder + "/" + name).c_str(), &info) == 0)
      inodes.insert(info.st_ino);
  }
  return inodes;
}

// Processes that still have one of these pieces of memory, as text.
inline std::string users_of(const std::set<std::uint64_t>& memory) {
  std::string users;
  for (const std::string& process : names_in("/proc")) {
    if (process.find_first_not_of("0123456789") != std::string::npos) continue;
    for (const auto& held : {mapped_memory(process), open_memory(process)})
      for (const std::uint64_t inode : held)
        if (memory.count(inode) != 0)
          users += format("process %s has memory %llu; ", process.c_str(), static_cast<unsigned long long>(inode));
  }
  return users;
}

// What is there now. Equal before and after means that nothing was left.
struct HostState {
  std::vector<std::string> descriptors;  // of this process
  std::vector<std::string> shm;          // in /dev/shm
  std::vector<std::string> sockets;      // of the library, on this host or in this network namespace
  std::set<std::uint64_t> mapped;        // of the library, in this process

  // `alone`: nobody else can make files and sockets meanwhile.
  static HostState now(bool alone) {
    HostState state;
    state.descriptors = names_in("/proc/self/fd");
    state.mapped = mapped_memory();
    state.shm = names_in("/dev/shm");
    if (alone) state.sockets = lines_with("/proc/net/unix", "@zerocomm");
    if (!alone)
      std::erase_if(state.shm, [](const std::string& name) { return name.find("zerocomm") == std::string::npos; });
    return state;
  }
};

inline void expect_equal(const HostState& before, const HostState& after) {
  EXPECT_EQ(before.descriptors, after.descriptors);
  EXPECT_EQ(before.shm, after.shm);
  EXPECT_EQ(before.sockets, after.sockets);
  EXPECT_EQ(before.mapped, after.mapped);
}

inline void expect_no_child() {
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace zerocomm::test
