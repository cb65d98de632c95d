// Reading the text and choosing places in it.
#include "text.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "counter_random.hpp"

namespace gpt {
namespace {

constexpr const char* kLicences = "/usr/share/common-licenses";

std::uintmax_t regular_bytes(const std::filesystem::directory_entry& entry) {
  std::error_code ignored;
  if (entry.is_symlink(ignored) || !entry.is_regular_file(ignored)) return 0;
  const std::uintmax_t bytes = entry.file_size(ignored);
  return ignored ? 0 : bytes;
}

}  // namespace

std::filesystem::path default_text() {
  std::filesystem::path longest;
  std::uintmax_t longest_bytes = 0;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(kLicences, missing)) {
    const std::uintmax_t bytes = regular_bytes(entry);
    if (bytes > longest_bytes || (bytes > 0 && bytes == longest_bytes && entry.path() < longest)) {
      longest = entry.path();
      longest_bytes = bytes;
    }
  }
  return longest;
}

Text Text::load(const std::filesystem::path& path, std::size_t context) {
  if (path.empty()) {
    throw std::runtime_error(std::string("no text: ") + kLicences + " has no file; name one with --text FILE");
  }
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) throw std::runtime_error("text " + path.string() + ": no such file");
  if (std::filesystem::is_directory(path, ignored)) {
    throw std::runtime_error("text " + path.string() + ": is a directory, not a file");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("text " + path.string() + ": cannot be opened");
  std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  bytes.shrink_to_fit();
  if (file.bad()) throw std::runtime_error("text " + path.string() + ": cannot be read");
  if (bytes.empty()) throw std::runtime_error("text " + path.string() + ": is empty");
  if (bytes.size() < context + 1) {
    throw std::runtime_error("text " + path.string() + ": has " + std::to_string(bytes.size()) +
                             " bytes, the model needs at least " + std::to_string(context + 1));
  }
  return {std::move(bytes), context};
}

Text::Text(std::vector<std::uint8_t> bytes, std::size_t context) : bytes_(std::move(bytes)), context_(context) {
  if (bytes_.size() < context_ + 1) throw std::invalid_argument("a text holds at least context + 1 bytes");
}

std::vector<std::uint8_t> Text::batch(std::uint64_t seed, std::size_t step, std::size_t micro, std::size_t rows) const {
  const std::size_t row_bytes = context_ + 1;
  const std::size_t places = bytes_.size() - row_bytes + 1;
  const std::uint64_t key = derive_key(derive_key(seed, step), micro);
  std::vector<std::uint8_t> batch(rows * row_bytes);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t place = static_cast<std::size_t>(derive_key(key, row) % places);
    std::copy_n(bytes_.data() + place, row_bytes, batch.data() + row * row_bytes);
  }
  return batch;
}

}  // namespace gpt
