// What a process says of itself when it joins.
#include "boot/rendezvous.hpp"

#include "base/wait.hpp"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstring>
#include <vector>

namespace zerocomm::boot {
namespace {

// The kernel draws a new one at each start, so two hosts never have the same. It is 32 hexadecimal digits and four
// hyphens.
std::array<std::uint64_t, 2> read_boot_id() {
  std::array<std::uint64_t, 2> bits{};
  std::FILE* const file = std::fopen("/proc/sys/kernel/random/boot_id", "re");
  if (file == nullptr) return bits;
  unsigned digit = 0;
  for (int read = 0; read < 32 && std::fscanf(file, "%*1[-]") != EOF && std::fscanf(file, "%1x", &digit) == 1; ++read) {
    bits[0] = bits[0] << 4 | bits[1] >> 60;
    bits[1] = bits[1] << 4 | digit;
  }
  std::fclose(file);
  return bits;
}

// 0 where /proc is not there.
std::uint64_t namespace_inode(const char* path) {
  struct stat found {};
  return stat(path, &found) == 0 ? found.st_ino : 0;
}

}  // namespace

Identity own_identity(std::int32_t rank) {
  Identity own;
  own.rank = rank;
  own.pid = getpid();
  own.network_namespace = namespace_inode("/proc/self/ns/net");
  own.ipc_namespace = namespace_inode("/proc/self/ns/ipc");
  own.pid_namespace = namespace_inode("/proc/self/ns/pid");
  own.usable_cores = usable_cores();
  own.boot_id = read_boot_id();
  gethostname(own.host.data(), own.host.size() - 1);
  // The call wants room for every core that the kernel may have, and says so with an error.
  constexpr std::size_t kMostCores = 1 << 16;
  for (std::size_t cores = CPU_SETSIZE; cores <= kMostCores; cores *= 2) {
    std::vector<unsigned long> mask(cores / (CHAR_BIT * sizeof(unsigned long)));
    if (sched_getaffinity(0, mask.size() * sizeof mask[0], reinterpret_cast<cpu_set_t*>(mask.data())) != 0) continue;
    std::memcpy(own.cpu_mask.data(), mask.data(), sizeof own.cpu_mask);
    break;
  }
  return own;
}

}  // namespace zerocomm::boot
