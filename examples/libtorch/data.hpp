// Fashion-MNIST as Debian's package dataset-fashion-mnist brings it: 60,000 and 10,000 pictures of 28 x 28 pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fashion {

constexpr std::size_t kSide = 28, kPixels = kSide * kSide;

struct Pictures {
  std::vector<std::uint8_t> pixels;  // count x kPixels
  std::vector<std::int64_t> labels;  // count, 0 to 9
  std::size_t count() const { return labels.size(); }
};

// `part` is "train" or "t10k". Throws std::runtime_error that names the file.
Pictures read_pictures(const std::string& folder, const std::string& part);

// What the network sees of a pixel: 0 in the mean over all pictures, with a deviation of 1.
inline float brightness(std::uint8_t pixel) { return (static_cast<float>(pixel) / 255.0F - 0.286F) / 0.353F; }

// 0 to count - 1 in an order that depends on the seed alone.
std::vector<std::size_t> shuffled(std::size_t count, std::uint32_t seed);

}  // namespace fashion
