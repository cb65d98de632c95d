// The shape of the model: GPT-2's architecture over bytes.
// Two sizes are named: `tiny` trains in seconds, `small` is what the quickstart uses.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace gpt {

struct Config {
  std::size_t layers = 0;
  std::size_t width = 0;         // d, elements of one token's vector
  std::size_t heads = 0;         // divides width
  std::size_t context = 0;       // T, tokens the model looks at
  std::size_t vocabulary = 256;  // V, one token per byte value

  std::size_t head_width() const { return width / heads; }
};

inline constexpr Config kTiny{.layers = 2, .width = 64, .heads = 4, .context = 64};
inline constexpr Config kSmall{.layers = 6, .width = 256, .heads = 8, .context = 128};

inline std::optional<Config> find_config(std::string_view name) {
  if (name == "tiny") return kTiny;
  if (name == "small") return kSmall;
  return std::nullopt;
}

}  // namespace gpt
