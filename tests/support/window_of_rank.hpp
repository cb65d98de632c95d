// A window as one rank of a test sees it, destroyed at the end of its scope.
#pragma once

#include "support/rank_failure.hpp"

#include <zerocomm/window.h>

#include <cstddef>
#include <cstdint>

namespace zerocomm::test {

class WindowOfRank {
 public:
  explicit WindowOfRank(zc_comm* comm, std::size_t bytes, std::size_t word_count = 1, void* memory = nullptr) {
    zc_window_config config{};
    config.struct_size = sizeof config;
    config.bytes = bytes;
    config.word_count = word_count;
    config.memory = memory;
    RANK_OK(zc_window_create(comm, &config, &window_));
  }
  ~WindowOfRank() { zc_window_destroy(window_); }
  WindowOfRank(const WindowOfRank&) = delete;
  WindowOfRank& operator=(const WindowOfRank&) = delete;

  zc_window* get() const { return window_; }

  template <class T>
  T* part(std::int32_t rank) const {
    void* memory = nullptr;
    std::size_t bytes = 0;
    RANK_OK(zc_window_ptr(window_, rank, &memory, &bytes));
    return static_cast<T*>(memory);
  }

 private:
  zc_window* window_ = nullptr;
};

}  // namespace zerocomm::test
