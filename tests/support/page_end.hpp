// Memory that ends exactly at a page that nobody may touch.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <stdexcept>

namespace zerocomm::test {

class PageEnd {
 public:
  // `bytes` bytes, at most one page, zeroed.
  explicit PageEnd(std::size_t bytes) : page_bytes_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))), bytes_(bytes) {
    void* memory = mmap(nullptr, 2 * page_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("mmap");
    memory_ = static_cast<std::byte*>(memory);
    if (mprotect(memory_ + page_bytes_, page_bytes_, PROT_NONE) != 0) throw std::runtime_error("mprotect");
  }
  ~PageEnd() { munmap(memory_, 2 * page_bytes_); }
  PageEnd(const PageEnd&) = delete;
  PageEnd& operator=(const PageEnd&) = delete;

  std::byte* data() const { return memory_ + page_bytes_ - bytes_; }

 private:
  std::size_t page_bytes_;
  std::size_t bytes_;
  std::byte* memory_ = nullptr;
};

}  // namespace zerocomm::test
