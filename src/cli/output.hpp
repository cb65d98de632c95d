// Where a command's text goes.
#pragma once

#include <string>

namespace zerocomm::cli {

// Writes to the file, or to stdout if `path` is empty. Throws Failure unless every byte arrived.
void write_output(const std::string& text, const std::string& path);

}  // namespace zerocomm::cli
