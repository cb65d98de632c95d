// What the processor has, and what ZC_KERNELS asks for.
#include "device/level.hpp"

#include "base/check.hpp"
#include "base/config.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace zerocomm::device {
namespace {

constexpr const char* kVariable = "ZC_KERNELS";

#if defined(__x86_64__)
// __builtin_cpu_supports also asks whether the operating system saves the registers. It does not know F16C everywhere,
// but that needs only the registers of AVX2.
bool has_avx2() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

bool has_avx512() noexcept {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#else
constexpr bool has_avx2() noexcept { return false; }
constexpr bool has_avx512() noexcept { return false; }
#endif

}  // namespace

const char* level_name(Level level) noexcept {
  switch (level) {
    case Level::baseline:
      return "baseline";
    case Level::avx2:
      return "avx2";
    case Level::avx512:
      return "avx512";
  }
  return "unknown";
}

bool has_level(Level level) noexcept { return level >= Level::baseline && level <= best_level(); }

// Asked once: a virtual machine takes microseconds to answer.
Level best_level() noexcept {
  static const Level best = has_avx512() ? Level::avx512 : has_avx2() ? Level::avx2 : Level::baseline;
  return best;
}

LevelChoice choose_level(const std::optional<std::string>& wish, Level best) {
  if (!wish || *wish == "auto") return {ZC_OK, best, "the best here"};  // so short that it takes no memory
  for (const Level level : kLevels) {
    if (*wish != level_name(level)) continue;
    if (level <= best) return {ZC_OK, level, "by ZC_KERNELS"};
    return {ZC_UNSUPPORTED, best,
            format("the variable %s is \"%s\"; the best that this processor has is %s", kVariable, level_name(level),
                   level_name(best))};
  }
  return {ZC_ARGUMENT, best,
          format("the variable %s is \"%.40s\"; it takes auto, baseline, avx2 or avx512", kVariable, wish->c_str())};
}

const LevelChoice& level_choice() noexcept {
  static const LevelChoice choice = choose_level(text_variable(kVariable), best_level());
  return choice;
}

zc_status check_level() noexcept {
  const LevelChoice& choice = level_choice();
  return choice.status == ZC_OK ? ZC_OK : fail(choice.status, "%s", choice.why.c_str());
}

}  // namespace zerocomm::device
