// Sizes on the command line, and the ladder from the smallest to the largest. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace zerocomm::cli {

// "8", "64K", "1.5M", "1GiB": K, M, G and T are powers of 1024. Throws Failure (usage) that names `option`.
std::size_t parse_bytes(const std::string& option, const std::string& text);

// "64 KiB", "1.5 MiB", "100 B".
std::string bytes_text(double bytes);

// From `least` up to and with `most`, by a factor, or by a step where that is not 0. Throws Failure (usage).
std::vector<std::size_t> size_ladder(std::size_t least, std::size_t most, std::size_t step_bytes, int factor);

}  // namespace zerocomm::cli
