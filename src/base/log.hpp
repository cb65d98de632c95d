// Log lines for people. Silent unless the program sets a callback; never called on the data path or under a lock.
#pragma once

#include <zerocomm/status.h>

namespace zerocomm {

void set_log(zc_log_fn callback, void* context, zc_log_level level) noexcept;

[[gnu::format(printf, 2, 3)]] void log(zc_log_level level, const char* pattern, ...) noexcept;

}  // namespace zerocomm
