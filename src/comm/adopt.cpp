#include "comm/adopt.hpp"

#include "base/check.hpp"
#include "base/memory.hpp"
#include "boot/exchange.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace zerocomm::comm {
namespace {

using transport::Segment;

// A mapping of whole pages around what was asked for.
class Mapping {
 public:
  Mapping(int descriptor, std::uint64_t offset_bytes, std::size_t bytes) : bytes_(bytes + offset_bytes % kPageBytes) {
    address_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor,
                    static_cast<off_t>(offset_bytes / kPageBytes * kPageBytes));
    ZC_REQUIRE(address_ != MAP_FAILED, ZC_SYSTEM, "mapping %zu bytes of a window's descriptor: %s", bytes,
               std::strerror(errno));
  }
  ~Mapping() { munmap(address_, bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::byte* address() const { return static_cast<std::byte*>(address_); }

 private:
  void* address_;
  std::size_t bytes_;
};

std::string exchange_name(const Comm& comm, std::uint64_t call, std::int32_t rank) {
  const auto& secret = comm.control().header().secret;
  return format("zerocomm-%016llx%016llx-%llu-%d", static_cast<unsigned long long>(secret[0]),
                static_cast<unsigned long long>(secret[1]), static_cast<unsigned long long>(call), rank);
}

}  // namespace

std::shared_ptr<Segment> map_descriptor(std::int32_t rank, int descriptor, std::uint64_t offset_bytes,
                                        std::size_t bytes) {
  const int seals = fcntl(descriptor, F_GET_SEALS);
  ZC_REQUIRE(seals >= 0, ZC_ARGUMENT, "rank %d: descriptor %d is no memfd", rank, descriptor);
  ZC_REQUIRE((seals & F_SEAL_SHRINK) != 0, ZC_ARGUMENT,
             "rank %d: the memfd %d is not sealed with F_SEAL_SHRINK: it could be cut short under its readers", rank,
             descriptor);
  struct stat info {};
  ZC_REQUIRE(fstat(descriptor, &info) == 0, ZC_SYSTEM, "rank %d: %s", rank, std::strerror(errno));
  const auto there = static_cast<std::uint64_t>(info.st_size);
  ZC_REQUIRE(offset_bytes <= there && bytes <= there - offset_bytes, ZC_ARGUMENT,
             "rank %d: %zu bytes at %llu of a memfd of %llu bytes", rank, bytes,
             static_cast<unsigned long long>(offset_bytes), static_cast<unsigned long long>(there));
  auto segment = std::make_shared<Segment>();
  segment->bytes = bytes;
  segment->adopted = true;
  segment->file_offset_bytes = offset_bytes;
  if (bytes == 0) return segment;
  auto mapping = std::make_shared<Mapping>(descriptor, offset_bytes, bytes);
  segment->address = mapping->address() + offset_bytes % kPageBytes;
  segment->keep = std::move(mapping);
  return segment;
}

zc_status exchange_adopted(const Comm& comm, std::uint64_t call, int own_descriptor,
                           std::shared_ptr<Segment>* parts) noexcept {
  const std::int64_t deadline_ns = comm.settings().deadline_ns;
  // Rank by rank in the same order everywhere, so that nobody waits in a circle.
  for (std::int32_t rank = 0; rank < comm.ranks(); ++rank) {
    std::shared_ptr<Segment>& part = parts[rank];
    if (!part->adopted || part->bytes == 0) continue;
    try {
      const auto has_failed = [&] { return comm.dead(); };
      if (rank == comm.rank()) {
        boot::send_descriptor(exchange_name(comm, call, rank), own_descriptor, comm.ranks() - 1, deadline_ns,
                              has_failed);
      } else if (part->address == nullptr) {
        const Descriptor descriptor =
            boot::receive_descriptor(exchange_name(comm, call, rank), deadline_ns, has_failed);
        part = map_descriptor(comm.rank(), descriptor.get(), part->file_offset_bytes, part->bytes);
      }
    } catch (const Error& error) {
      return comm.record_first_error(
          error.status() == ZC_TIMEOUT ? ZC_TIMEOUT : ZC_TRANSPORT,
          format("rank %d: the descriptor of rank %d's window: %s", comm.rank(), rank, error.what()).c_str());
    }
  }
  return ZC_OK;
}

}  // namespace zerocomm::comm
