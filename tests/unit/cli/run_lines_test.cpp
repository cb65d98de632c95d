// Lines of a rank with its number in front.
#include "cli/run_lines.hpp"

#include <gtest/gtest.h>

namespace {

using zerocomm::cli::kPieceBytes;
using zerocomm::cli::LinePrefixer;

std::string take(LinePrefixer& lines, const std::string& bytes) {
  std::string out;
  lines.take(bytes, out);
  return out;
}

std::string finish(LinePrefixer& lines) {
  std::string out;
  lines.finish(out);
  return out;
}

TEST(LinePrefixer, every_line_has_the_rank_in_front) {
  LinePrefixer lines(12);
  EXPECT_EQ(take(lines, "a\n\nb c\n"), "[12] a\n[12] \n[12] b c\n");
  EXPECT_EQ(finish(lines), "");
}

TEST(LinePrefixer, a_line_is_held_back_until_it_is_whole) {
  LinePrefixer lines(0);
  EXPECT_EQ(take(lines, "one\ntw"), "[0] one\n");
  EXPECT_EQ(take(lines, "o"), "");
  EXPECT_EQ(take(lines, "\nthree"), "[0] two\n");
  EXPECT_EQ(finish(lines), "[0] three\n");
  EXPECT_EQ(finish(lines), "");
}

TEST(LinePrefixer, bytes_pass_unchanged) {
  LinePrefixer lines(1);
  const std::string odd("\0\xff\r\t\x1b[0m", 8);
  EXPECT_EQ(take(lines, odd + "\n"), "[1] " + odd + "\n");
}

TEST(LinePrefixer, a_line_as_long_as_a_piece_is_not_cut) {
  LinePrefixer lines(3);
  const std::string line(kPieceBytes, 'x');
  EXPECT_EQ(take(lines, line), "");
  EXPECT_EQ(take(lines, "\n"), "[3] " + line + "\n");
  EXPECT_EQ(take(lines, line + "\n"), "[3] " + line + "\n");
}

TEST(LinePrefixer, longer_lines_come_in_marked_pieces) {
  for (const std::size_t step : {std::size_t{1}, std::size_t{1000}, kPieceBytes, 5 * kPieceBytes}) {
    LinePrefixer lines(3);
    const std::string line = std::string(kPieceBytes, 'a') + std::string(kPieceBytes, 'b') + "c\nnext\n";
    std::string out;
    for (std::size_t at = 0; at < line.length(); at += step) lines.take(line.substr(at, step), out);
    EXPECT_EQ(out, "[3] " + std::string(kPieceBytes, 'a') + "\n[3]+ " + std::string(kPieceBytes, 'b') +
                       "\n[3]+ c\n[3] next\n")
        << step;
  }
}

TEST(LinePrefixer, a_long_line_that_never_ends_is_passed_on_too) {
  LinePrefixer lines(3);
  EXPECT_EQ(take(lines, std::string(kPieceBytes + 1, 'a')), "[3] " + std::string(kPieceBytes, 'a') + "\n");
  EXPECT_EQ(finish(lines), "[3]+ a\n");
}

}  // namespace
