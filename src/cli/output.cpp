// Writes a command's text and notices when it does not arrive: a full disk shows up in flush or close.
#include "cli/output.hpp"

#include "cli/failure.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace zerocomm::cli {

void write_output(const std::string& text, const std::string& path) {
  const std::string name = path.empty() ? "standard output" : path;
  std::FILE* file = path.empty() ? stdout : std::fopen(path.c_str(), "wb");
  if (file == nullptr) throw Failure(name + ": cannot be written: " + std::strerror(errno));
  errno = 0;
  bool arrived = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  arrived = std::fflush(file) == 0 && arrived;
  int reason = errno;
  if (file != stdout && std::fclose(file) != 0) {
    if (arrived) reason = errno;
    arrived = false;
  }
  if (!arrived) throw Failure(name + ": cannot be written: " + std::strerror(reason));
}

}  // namespace zerocomm::cli
