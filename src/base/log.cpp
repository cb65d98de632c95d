#include "base/log.hpp"

#include <cstdarg>
#include <cstdio>
#include <mutex>

namespace zerocomm {
namespace {

struct Sink {
  zc_log_fn callback = nullptr;
  void* context = nullptr;
  zc_log_level level = ZC_LOG_OFF;
};
std::mutex sink_mutex;
Sink sink;

Sink current_sink() noexcept {
  const std::lock_guard lock(sink_mutex);
  return sink;
}

}  // namespace

void set_log(zc_log_fn callback, void* context, zc_log_level level) noexcept {
  const std::lock_guard lock(sink_mutex);
  sink = {callback, context, callback == nullptr ? ZC_LOG_OFF : level};
}

void log(zc_log_level level, const char* pattern, ...) noexcept {
  const Sink to = current_sink();  // a copy: the callback runs without the lock
  if (level > to.level || to.callback == nullptr) return;
  char line[1024];
  std::va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(line, sizeof line, pattern, arguments);
  va_end(arguments);
  to.callback(to.context, level, line);
}

}  // namespace zerocomm
