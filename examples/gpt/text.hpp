// The training text and the micro-batches drawn from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace gpt {

// The longest file of Debian's common licences (the first by name if several are equally long); empty if none.
std::filesystem::path default_text();

class Text {
 public:
  // Reads the whole file. Throws std::runtime_error with one clear line if it is missing, unreadable, empty, or
  // too short for one row of context + 1 bytes.
  static Text load(const std::filesystem::path& path, std::size_t context);

  Text(std::vector<std::uint8_t> bytes, std::size_t context);

  std::span<const std::uint8_t> bytes() const { return bytes_; }
  std::size_t byte_count() const { return bytes_.size(); }

  // Micro-batch `micro` of step `step`: rows * (context + 1) bytes, each row from a place of its own. Depends on
  // the arguments alone, so it does not matter which rank draws it.
  std::vector<std::uint8_t> batch(std::uint64_t seed, std::size_t step, std::size_t micro, std::size_t rows) const;

 private:
  std::vector<std::uint8_t> bytes_;
  std::size_t context_;
};

}  // namespace gpt
