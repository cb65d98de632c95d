// Loading a text, what is said when that fails, and drawing micro-batches.
#include "text.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace gpt {
namespace {

std::string error_of(const std::filesystem::path& path, std::size_t context) {
  try {
    Text::load(path, context);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

class TextFile : public ::testing::Test {
 protected:
  TextFile() : path_(std::filesystem::temp_directory_path() / ("gpt_text_test." + std::to_string(::getpid()))) {}
  ~TextFile() override { std::filesystem::remove(path_); }

  std::string path() const { return path_.string(); }
  void write(const std::string& content) const { std::ofstream(path_, std::ios::binary) << content; }

 private:
  std::filesystem::path path_;
};

TEST_F(TextFile, that_is_missing_empty_too_short_or_a_directory_is_one_clear_line) {
  EXPECT_EQ(error_of(path(), 8), "text " + path() + ": no such file");
  write("");
  EXPECT_EQ(error_of(path(), 8), "text " + path() + ": is empty");
  write("12345678");
  EXPECT_EQ(error_of(path(), 8), "text " + path() + ": has 8 bytes, the model needs at least 9");
  EXPECT_EQ(error_of("/", 8), "text /: is a directory, not a file");
  EXPECT_NE(error_of("", 8).find("name one with --text FILE"), std::string::npos);
}

TEST_F(TextFile, of_exactly_one_row_is_enough) {
  write(std::string("12345\0789", 9));
  const Text text = Text::load(path(), 8);
  const std::string expected("12345\0789", 9);
  const std::vector<std::uint8_t> batch = text.batch(1, 0, 0, 1);
  EXPECT_EQ(std::string(batch.begin(), batch.end()), expected);
}

Text ramp() {
  std::vector<std::uint8_t> bytes(256);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  return {bytes, 16};
}

TEST(Batch, consists_of_rows_cut_from_the_text) {
  const std::vector<std::uint8_t> batch = ramp().batch(1, 2, 3, 4);
  ASSERT_EQ(batch.size(), 4U * 17U);
  for (std::size_t row = 0; row < 4; ++row) {
    for (std::size_t i = 0; i + 1 < 17; ++i) EXPECT_EQ(batch[row * 17 + i] + 1, batch[row * 17 + i + 1]);
  }
}

TEST(Batch, depends_on_seed_step_and_micro_alone) {
  const Text text = ramp();
  EXPECT_EQ(text.batch(1, 2, 3, 4), text.batch(1, 2, 3, 4));
  EXPECT_NE(text.batch(1, 2, 3, 4), text.batch(2, 2, 3, 4));
  EXPECT_NE(text.batch(1, 2, 3, 4), text.batch(1, 3, 3, 4));
  EXPECT_NE(text.batch(1, 2, 3, 4), text.batch(1, 2, 2, 4));
}

TEST(Batch, reaches_the_first_and_the_last_byte) {
  const Text text = ramp();
  std::vector<std::uint8_t> seen;
  for (std::size_t step = 0; step < 1000; ++step) {
    const std::vector<std::uint8_t> batch = text.batch(1, step, 0, 4);
    seen.insert(seen.end(), batch.begin(), batch.end());
  }
  EXPECT_EQ(*std::min_element(seen.begin(), seen.end()), 0);
  EXPECT_EQ(*std::max_element(seen.begin(), seen.end()), 255);
}

}  // namespace
}  // namespace gpt
