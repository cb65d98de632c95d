#include "transport/shm_arena.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/math.hpp"
#include "base/memory.hpp"
#include "base/memory_limit.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace zerocomm::transport {
namespace {

constexpr std::uint64_t kMost = std::uint64_t{16} << 40;
constexpr std::uint64_t kLeast = std::uint64_t{64} << 20;

// Arenas of this process by device and inode.
std::mutex arenas_mutex;
std::map<std::pair<dev_t, ino_t>, std::weak_ptr<ShmArena>> arenas;

unsigned long long number(std::uint64_t value) { return value; }

// The kernel books memory in batches per core, and a little is needed for page tables.
constexpr std::uint64_t kSlackBytes = std::uint64_t{4} << 20;
// Longest wait for others who take memory at this moment and may leave enough.
constexpr std::int64_t kPatienceNs = 2'000'000'000;

// Bytes that are being taken, told to all ranks while this lives.
class Wanted {
 public:
  Wanted(std::atomic<std::uint64_t>& sum, std::uint64_t bytes)
      : sum_(&sum), bytes_(bytes), all_bytes_(sum.fetch_add(bytes) + bytes) {}
  ~Wanted() {
    if (sum_ != nullptr) sum_->fetch_sub(bytes_);
  }
  Wanted(Wanted&& other) noexcept
      : sum_(std::exchange(other.sum_, nullptr)), bytes_(other.bytes_), all_bytes_(other.all_bytes_) {}
  Wanted(const Wanted&) = delete;
  Wanted& operator=(const Wanted&) = delete;
  std::uint64_t all_bytes() const { return all_bytes_; }  // of everybody who takes memory now

 private:
  std::atomic<std::uint64_t>* sum_;
  std::uint64_t bytes_;
  std::uint64_t all_bytes_;
};

// Compares a wish with what is left, together with the wishes of others that came before. A wish that can never be met
// is refused at once and stands in nobody's way.
Wanted want(std::uint64_t bytes, const char* purpose, std::atomic<std::uint64_t>& sum) {
  const Deadline patience = Deadline::after(kPatienceNs);
  for (;;) {
    MemoryRoom room = memory_room();
    std::uint64_t all_bytes = bytes;
    if (bytes + kSlackBytes <= room.left_bytes) {
      Wanted wanted(sum, bytes);
      all_bytes = wanted.all_bytes();
      room = memory_room();  // others who have just got theirs count here
      if (all_bytes + kSlackBytes <= room.left_bytes) return wanted;
    }
    if (bytes + kSlackBytes > room.left_bytes || patience.left_ns() == 0)
      throw Error(ZC_NO_MEMORY,
                  format("%s: %llu bytes of shared memory wanted (%llu with what other ranks take now, and %llu stay "
                         "free), and %llu are left: %s",
                         purpose, number(bytes), number(all_bytes), number(kSlackBytes), number(room.left_bytes),
                         room.limit_text.c_str()));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

std::uint64_t ShmArena::default_bytes() {
  const auto host =
      static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  std::uint64_t bytes = std::clamp(4 * host, kLeast, kMost);
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::max(kLeast, std::min<std::uint64_t>(bytes, limit.rlim_cur / 4));
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::min<std::uint64_t>(bytes, limit.rlim_cur);  // beyond it, giving a file its extent is a signal
  return bytes / kPageBytes * kPageBytes;
}

Descriptor ShmArena::create(std::uint64_t bytes) {
  rlimit files{};
  ZC_REQUIRE(
      getrlimit(RLIMIT_FSIZE, &files) != 0 || files.rlim_cur >= bytes, ZC_SYSTEM,
      "shared memory: an extent of %llu bytes (ZC_SHM_BYTES), and files of this process may have %llu (ulimit -f)",
      number(bytes), number(files.rlim_cur));
  Descriptor made(memfd_create("zerocomm", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ZC_REQUIRE(made, ZC_SYSTEM, "shared memory: memfd_create: %s", std::strerror(errno));
  ZC_REQUIRE(ftruncate(made.get(), static_cast<off_t>(bytes)) == 0, ZC_SYSTEM,
             "shared memory: an extent of %llu bytes: %s (ZC_SHM_BYTES sets another)", number(bytes),
             std::strerror(errno));
  ZC_REQUIRE(fcntl(made.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0, ZC_SYSTEM,
             "shared memory: sealing: %s", std::strerror(errno));
  return made;
}

std::shared_ptr<ShmArena> ShmArena::map(const Descriptor& descriptor) {
  struct stat info {};
  ZC_REQUIRE(fstat(descriptor.get(), &info) == 0, ZC_SYSTEM, "shared memory: %s", std::strerror(errno));
  const int seals = fcntl(descriptor.get(), F_GET_SEALS);
  ZC_REQUIRE(seals >= 0 && (seals & F_SEAL_SHRINK) != 0, ZC_SYSTEM, "shared memory: what came is not a sealed memfd");
  const std::lock_guard lock(arenas_mutex);
  std::weak_ptr<ShmArena>& known = arenas[{info.st_dev, info.st_ino}];
  if (std::shared_ptr<ShmArena> arena = known.lock()) return arena;
  Descriptor own(fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 0));
  ZC_REQUIRE(own, ZC_SYSTEM, "shared memory: duplicating its descriptor: %s", std::strerror(errno));
  const auto bytes = static_cast<std::uint64_t>(info.st_size);
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, own.get(), 0);
  ZC_REQUIRE(address != MAP_FAILED, ZC_SYSTEM,
             "shared memory: mapping %llu bytes: %s (ZC_SHM_BYTES sets another extent)", number(bytes),
             std::strerror(errno));
  madvise(address, bytes, MADV_DONTDUMP);  // a dump of the whole extent would never end
  std::shared_ptr<ShmArena> arena(new ShmArena(std::move(own), static_cast<std::byte*>(address), bytes));
  known = arena;
  std::erase_if(arenas, [](const auto& entry) { return entry.second.expired(); });
  return arena;
}

ShmArena::ShmArena(Descriptor descriptor, std::byte* address, std::uint64_t bytes)
    : descriptor_(std::move(descriptor)), address_(address), bytes_(bytes) {}

ShmArena::~ShmArena() { munmap(address_, bytes_); }

bool ShmArena::contains(const void* address, std::size_t bytes, std::uint64_t* offset) const noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(address), base = reinterpret_cast<std::uintptr_t>(address_);
  if (at < base || at - base > bytes_ || bytes > bytes_ - (at - base)) return false;
  *offset = at - base;
  return true;
}

void ShmArena::back(std::uint64_t offset, std::uint64_t bytes, const char* purpose,
                    std::atomic<std::uint64_t>& wanted_bytes) const {
  std::uint64_t most = std::uint64_t{16} << 20;  // a signal undoes one step, not everything
  const Wanted wanted = want(bytes, purpose, wanted_bytes);
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t step = std::min(most, bytes - done);
    if (fallocate(descriptor_.get(), 0, static_cast<off_t>(offset + done), static_cast<off_t>(step)) == 0) {
      done += step;
    } else if (errno == EINTR) {
      most =
          std::max<std::uint64_t>(most / 2 / kPageBytes * kPageBytes, kPageBytes);  // the next signal is sure to come
    } else {
      const int reason = errno;
      release(offset, done);
      throw Error(ZC_NO_MEMORY, format("%s: %llu bytes of shared memory wanted, and the system said: %s", purpose,
                                       number(bytes), std::strerror(reason)));
    }
  }
}

std::uint32_t ShmArena::peek(std::uint64_t offset) const {
  std::uint32_t word = 0;
  ssize_t got = 0;
  do {
    got = pread(descriptor_.get(), &word, sizeof word, static_cast<off_t>(offset));
  } while (got < 0 && errno == EINTR);
  ZC_REQUIRE(got == sizeof word, ZC_SYSTEM, "shared memory: reading it: %s", got < 0 ? std::strerror(errno) : "short");
  return word;
}

void ShmArena::release(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  if (bytes == 0) return;
  int result = 0;
  do {
    result = fallocate(descriptor_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                       static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
}

}  // namespace zerocomm::transport
