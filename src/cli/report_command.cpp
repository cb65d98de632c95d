// zc report: a page from what zc bench -J wrote.
#include "cli/failure.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/report.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace zerocomm::cli {
namespace {

// A job writes some kilobytes a row.
constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

std::string read_text(const std::string& path) {
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (!file) throw Failure(path + ": " + std::strerror(errno), Exit::usage);
  std::string text;
  char chunk[1 << 16];
  errno = 0;
  for (std::size_t got = 0; (got = std::fread(chunk, 1, sizeof chunk, file.get())) > 0;) {
    text.append(chunk, got);
    if (text.size() > kMaxFileBytes)
      throw Failure(path + ": larger than " + std::to_string(kMaxFileBytes) + " bytes; not a file of zc bench -J",
                    Exit::usage);
  }
  if (std::ferror(file.get()) != 0) throw Failure(path + ": " + std::strerror(errno), Exit::usage);
  return text;
}

}  // namespace

void run_report(const ReportOptions& options) {
  Report report;
  for (const std::string& path : options.files) add_report_file(report, read_text(path), path);
  write_output(report_html(report), options.output);
}

}  // namespace zerocomm::cli
