// Puts a rank's number in front of every line that it writes. Pure.
#pragma once

#include <string>
#include <string_view>

namespace zerocomm::cli {

// Longest piece of a line that is held back; all the memory that a stream of a rank takes.
inline constexpr std::size_t kPieceBytes = 8192;

class LinePrefixer {
 public:
  explicit LinePrefixer(int rank);

  // Appends to `out` the lines that are whole now, each as "[rank] line". A longer line than kPieceBytes comes in
  // pieces, each a line for itself; all but the first begin with "[rank]+ ".
  void take(std::string_view bytes, std::string& out);
  // The stream has ended: a last line without its newline gets one.
  void finish(std::string& out);

 private:
  void put(std::string_view text, std::string& out);

  std::string first_, later_;  // the two prefixes
  std::string held_;           // of a line that is not whole, at most kPieceBytes
  bool is_later_ = false;      // held_ continues a line that has been cut
};

}  // namespace zerocomm::cli
