// Dispatch levels: the same kernels compiled for several instruction sets. Results are equal bit for bit at every
// level; only speed differs.
#pragma once

#include <zerocomm/status.h>

#include <cstdint>
#include <optional>
#include <string>

namespace zerocomm::device {

enum class Level : std::uint8_t {
  baseline,  // what the compiler assumes of any processor of the architecture
  avx2,      // AVX2 and F16C
  avx512,    // AVX-512 F, BW, DQ and VL
};
constexpr Level kLevels[] = {Level::baseline, Level::avx2, Level::avx512};

const char* level_name(Level level) noexcept;

// Whether processor and operating system have what the level needs, and this library was built with it.
bool has_level(Level level) noexcept;
Level best_level() noexcept;

// The level that kernels use where the caller names none, or why there is none.
struct LevelChoice {
  zc_status status = ZC_OK;
  Level level = Level::baseline;
  std::string why;
};

// `wish` is ZC_KERNELS: nothing or "auto" is the best level; a word that is no level is ARGUMENT, a level above the
// best UNSUPPORTED.
LevelChoice choose_level(const std::optional<std::string>& wish, Level best);

// The choice of this process, made from ZC_KERNELS at the first call and then kept.
const LevelChoice& level_choice() noexcept;

// ZC_OK, or the status and text of a choice that failed.
zc_status check_level() noexcept;

}  // namespace zerocomm::device
