#include "base/memory.hpp"

#include "base/math.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace zerocomm {

Pages::Pages(std::size_t bytes, const char* purpose) : bytes_(bytes) {
  if (bytes == 0) return;
  mapped_bytes_ = round_up(bytes, kPageBytes);
  void* address = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ZC_REQUIRE(address != MAP_FAILED, ZC_NO_MEMORY, "%s: %zu bytes wanted, and the system said: %s", purpose, bytes,
             std::strerror(errno));
  address_ = static_cast<std::byte*>(address);
}

Pages::~Pages() {
  if (address_ != nullptr) munmap(address_, mapped_bytes_);
}

}  // namespace zerocomm
