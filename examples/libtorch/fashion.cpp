#include "fashion.hpp"

#include <zlib.h>

#include <array>
#include <stdexcept>
#include <vector>

namespace {

// An idx file: two zero bytes, the element type (8: unsigned bytes), the number of dimensions, each as a big-endian
// word.
torch::Tensor read_idx(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot read " + path + " (Debian's package is dataset-fashion-mnist)");
  const auto take = [&](void* to, unsigned bytes) {
    if (gzread(file, to, bytes) == static_cast<int>(bytes)) return;
    gzclose(file);
    throw std::runtime_error(path + " is shorter than its first bytes say");
  };
  std::array<unsigned char, 4> word{};
  take(word.data(), 4);
  if (word[0] != 0 || word[1] != 0 || word[2] != 8 || word[3] < 1 || word[3] > 3) {
    gzclose(file);
    throw std::runtime_error(path + " is no idx file of bytes");
  }
  std::vector<std::int64_t> sizes(word[3]);
  std::int64_t count = 1;
  for (std::int64_t& extent : sizes) {
    take(word.data(), 4);
    extent = word[0] << 24 | word[1] << 16 | word[2] << 8 | word[3];
    count *= extent;
  }
  torch::Tensor result = torch::empty(sizes, torch::kUInt8);
  take(result.data_ptr(), static_cast<unsigned>(count));
  gzclose(file);
  return result;
}

}  // namespace

Fashion Fashion::read(const std::string& directory, const std::string& part) {
  const torch::Tensor images = read_idx(directory + "/" + part + "-images-idx3-ubyte.gz");
  return {images.reshape({images.size(0), -1}).to(torch::kFloat32).div(255),
          read_idx(directory + "/" + part + "-labels-idx1-ubyte.gz").to(torch::kInt64)};
}

Fashion Fashion::rows(std::int64_t first, std::int64_t count) const {
  const torch::Tensor index = torch::arange(first, first + count).remainder(labels.size(0));
  return {images.index_select(0, index), labels.index_select(0, index)};
}
