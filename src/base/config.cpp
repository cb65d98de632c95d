#include "base/config.hpp"

#include "base/check.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace zerocomm {
namespace {

constexpr Variable kVariables[] = {
    {"ZC_DEADLINE_MS", "milliseconds", "longest wait of any call, where the program sets none"},
    {"ZC_POISON", "0 or 1", "1: engines fill released memory with NaN, where the program does not say"},
    {"ZC_SPIN_NS", "nanoseconds", "time to spin before sleeping, where the program sets none; 0: never"},
};

}  // namespace

std::span<const Variable> variables() { return kVariables; }

std::optional<std::int64_t> integer_variable(const char* name, std::int64_t least, std::int64_t most) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text, &end, 10);
  ZC_REQUIRE(errno == 0 && *end == '\0' && value >= least && value <= most, ZC_ARGUMENT,
             "the variable %s is \"%.40s\"; it takes a whole number from %lld to %lld", name, text,
             static_cast<long long>(least), static_cast<long long>(most));
  return value;
}

}  // namespace zerocomm
