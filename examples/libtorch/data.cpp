#include "data.hpp"

#include <zlib.h>

#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <utility>

namespace fashion {
namespace {

// An idx file: two zeros, the type (8: bytes), the number of dimensions, the dimensions as big-endian words, the bytes.
class IdxFile {
 public:
  IdxFile(std::string path, unsigned dimensions) : path_(std::move(path)), file_(gzopen(path_.c_str(), "rb"), gzclose) {
    if (!file_) fail("cannot be opened");
    if (word() != (0x0800U | dimensions)) fail("is no idx file of bytes with the expected number of dimensions");
  }

  std::uint32_t word() {
    std::uint32_t value = 0;
    for (const std::uint8_t byte : bytes(4)) value = value << 8U | byte;
    return value;
  }

  std::vector<std::uint8_t> bytes(std::size_t count) {
    std::vector<std::uint8_t> result(count);
    if (gzfread(result.data(), 1, count, file_.get()) != count) fail("is too short or damaged");
    return result;
  }

  [[noreturn]] void fail(const std::string& what) const { throw std::runtime_error(path_ + " " + what); }

 private:
  std::string path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
};

}  // namespace

Pictures read_pictures(const std::string& folder, const std::string& part) {
  IdxFile images(folder + "/" + part + "-images-idx3-ubyte.gz", 3);
  IdxFile labels(folder + "/" + part + "-labels-idx1-ubyte.gz", 1);
  const std::size_t count = images.word();
  if (count > 60000 || images.word() != kSide || images.word() != kSide) images.fail("has other sizes than 28 x 28");
  if (labels.word() != count) labels.fail("has not one label for each picture");

  Pictures pictures;
  pictures.pixels = images.bytes(count * kPixels);
  for (const std::uint8_t label : labels.bytes(count)) {
    if (label > 9) labels.fail("has a label above 9");
    pictures.labels.push_back(label);
  }
  return pictures;
}

std::vector<std::size_t> shuffled(std::size_t count, std::uint32_t seed) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(seed);
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

}  // namespace fashion
