// Large memory: whole pages, zeroed, counted. Every buffer of the library that holds data comes from here.
#pragma once

#include <cstddef>
#include <memory>

namespace zerocomm {

inline constexpr std::size_t kPageBytes = 4096;

// A run of zeroed pages, freed with its last user. `address` is nullptr for 0 bytes.
class Pages {
 public:
  // Throws Error(NO_MEMORY) with the bytes wanted; `purpose` goes into the text.
  Pages(std::size_t bytes, const char* purpose);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::byte* address() const noexcept { return address_; }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::byte* address_ = nullptr;
  std::size_t bytes_ = 0;         // as asked
  std::size_t mapped_bytes_ = 0;  // whole pages
};

}  // namespace zerocomm
