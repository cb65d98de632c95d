// Monotonic time and deadlines.
#pragma once

#include <cstdint>
#include <limits>

namespace zerocomm {

// Nanoseconds of a clock that never goes back.
std::int64_t now_ns() noexcept;

// The end of a wait. A deadline of ZC_POLL means: look once.
class Deadline {
 public:
  static Deadline after(std::int64_t duration_ns) noexcept {
    if (duration_ns < 0) return Deadline(0);
    const std::int64_t now = now_ns();
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    return Deadline(duration_ns > kMost - now ? kMost : now + duration_ns);
  }
  bool is_poll() const noexcept { return end_ns_ == 0; }
  // Nanoseconds that are left, not below 0.
  std::int64_t left_ns() const noexcept {
    const std::int64_t left = end_ns_ - now_ns();
    return left > 0 ? left : 0;
  }
  // Moves the end back by a duration; a poll stays one.
  void extend(std::int64_t duration_ns) noexcept {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    if (!is_poll()) end_ns_ = duration_ns > kMost - end_ns_ ? kMost : end_ns_ + duration_ns;
  }

 private:
  explicit Deadline(std::int64_t end_ns) : end_ns_(end_ns) {}
  std::int64_t end_ns_;
};

}  // namespace zerocomm
