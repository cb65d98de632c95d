#include "cli/run_lines.hpp"

#include <algorithm>

namespace zerocomm::cli {

LinePrefixer::LinePrefixer(int rank)
    : first_("[" + std::to_string(rank) + "] "), later_("[" + std::to_string(rank) + "]+ ") {}

void LinePrefixer::put(std::string_view text, std::string& out) {
  out += is_later_ ? later_ : first_;
  out += held_;
  out += text;
  out += '\n';
  held_.clear();
}

void LinePrefixer::take(std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    const std::size_t end = std::min(bytes.find('\n'), bytes.length());
    const std::size_t room = kPieceBytes - held_.length();
    if (end > room) {  // a line of exactly kPieceBytes is not cut: its newline may come next
      put(bytes.substr(0, room), out);
      is_later_ = true;
      bytes.remove_prefix(room);
    } else if (end == bytes.length()) {
      held_ += bytes;
      return;
    } else {
      put(bytes.substr(0, end), out);
      is_later_ = false;
      bytes.remove_prefix(end + 1);
    }
  }
}

void LinePrefixer::finish(std::string& out) {
  if (!held_.empty()) put({}, out);
  is_later_ = false;
}

}  // namespace zerocomm::cli
