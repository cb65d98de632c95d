#include "options.hpp"

#include <charconv>
#include <stdexcept>

namespace fashion {
namespace {

std::size_t number(const std::string& option, const std::string& text, std::size_t least, std::size_t most) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    throw std::invalid_argument(option + " takes a number from " + std::to_string(least) + " to " +
                                std::to_string(most) + ", not '" + text + "'");
  return value;
}

}  // namespace

Options parse_options(std::span<char*> arguments) {
  Options options;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string option = arguments[i];
    if (option == "--plain") {
      options.plain = true;
      continue;
    }
    if (option != "--stage" && option != "--steps" && option != "--micro-batches" && option != "--data")
      throw std::invalid_argument("unknown option '" + option +
                                  "'; there are --stage 0..3, --steps N, --micro-batches N, --data FOLDER, --plain");
    if (++i == arguments.size()) throw std::invalid_argument(option + " needs a value");
    const std::string value = arguments[i];
    if (option == "--data") options.data = value;
    if (option == "--steps") options.steps = number(option, value, 1, 1000000);
    if (option == "--micro-batches") options.micro_batches = number(option, value, 1, 1024);
    if (option == "--stage") {
      const std::size_t stage = number(option, value, 0, 3);
      options.stage = stage == 0 ? ZC_STAGE_0 : static_cast<zc_stage>(stage);
    }
  }
  return options;
}

}  // namespace fashion
