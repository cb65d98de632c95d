// Windows: memory of every rank that the others can reach, and 64-bit words to signal with.
#pragma once

#include "comm/comm.hpp"

#include <zerocomm/window.h>

#include <memory>
#include <vector>

namespace zerocomm::comm {

class Window {
 public:
  // Collective. Throws Error, or returns through `status` what the collective returned.
  Window(Comm& comm, const zc_window_config& config, zc_status* status);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  Comm& comm() const noexcept { return *comm_; }
  std::size_t word_count() const noexcept { return word_count_; }
  std::byte* memory(std::int32_t rank) const noexcept { return part(rank).address; }
  std::size_t bytes(std::int32_t rank) const noexcept { return part(rank).bytes; }
  std::atomic<std::uint64_t>& word(std::int32_t rank, std::size_t index) const noexcept {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(words_[static_cast<std::size_t>(rank)]->address)[index];
  }

  zc_status wait(std::int32_t rank, std::uint64_t generation, const WaitSpec& spec) const noexcept;
  zc_status read(std::int32_t rank, std::size_t offset_bytes, void* destination, std::size_t bytes,
                 std::uint64_t generation, zc_traffic traffic, const WaitSpec& spec) const;
  void reduce(const zc_window_reduction& reduction) const;
  // Waits for all ranks. Throws Error(UNSUPPORTED) unless the window is contiguous.
  zc_status view(std::int64_t deadline_ns) const;
  std::size_t total_bytes() const noexcept;

  // Throws Error(ARGUMENT) unless rank (and word) exist.
  void check_rank(std::int32_t rank) const;
  void check_word(std::int32_t rank, std::size_t word) const;

 private:
  const transport::Segment& part(std::int32_t rank) const noexcept { return *parts_[static_cast<std::size_t>(rank)]; }

  zc_status exchange_bytes(std::size_t bytes, std::vector<std::uint64_t>* all) const;
  zc_status attach(std::uint64_t call, const std::vector<std::uint64_t>& part_bytes);

  std::shared_ptr<Comm> comm_;
  std::size_t word_count_;
  bool contiguous_;
  std::uint64_t call_ = 0;     // that made it
  std::size_t own_bytes_ = 0;  // that the library allocated
  std::size_t own_word_bytes_ = 0;
  std::vector<std::shared_ptr<transport::Segment>> parts_;
  std::vector<std::shared_ptr<transport::Segment>> words_;
};

}  // namespace zerocomm::comm

// The handle of the C interface.
struct zc_window final : zerocomm::comm::Window {
  using Window::Window;
};
