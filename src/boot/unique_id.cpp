#include "boot/unique_id.hpp"

#include "base/check.hpp"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace zerocomm::boot {
namespace {

constexpr std::string_view kPrefix = "zc1-", kDigits = "0123456789abcdef";

}  // namespace

std::string make_unique_job() {
  std::array<std::uint64_t, 2> bits{};
  ssize_t drawn_bytes = 0;
  while ((drawn_bytes = getrandom(bits.data(), sizeof bits, 0)) < 0 && errno == EINTR) {
  }
  ZC_REQUIRE(drawn_bytes == static_cast<ssize_t>(sizeof bits), ZC_SYSTEM, "getrandom: %s", std::strerror(errno));
  return format("%s%016llx%016llx", kPrefix.data(), static_cast<unsigned long long>(bits[0]),
                static_cast<unsigned long long>(bits[1]));
}

bool is_unique_job(std::string_view text) noexcept {
  constexpr std::size_t kDigitCount = 32;
  return text.size() == kPrefix.size() + kDigitCount && text.starts_with(kPrefix) &&
         text.substr(kPrefix.size()).find_first_not_of(kDigits) == std::string_view::npos;
}

}  // namespace zerocomm::boot
