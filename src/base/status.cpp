// Names and meanings of statuses, and the last error text of each thread.
#include "base/check.hpp"

#include <zerocomm/types.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace zerocomm {
namespace {

struct Row {
  zc_status status;
  const char* name;
  zc_scope scope;
  bool buffers_defined;
  bool comm_usable;
  const char* text;
};

constexpr Row kRows[] = {
#define ZC_STATUS_ROW(name, number, scope, defined, usable, meaning) \
  {ZC_##name, #name, ZC_SCOPE_##scope, defined != 0, usable != 0, meaning},
    ZC_STATUS_LIST(ZC_STATUS_ROW)
#undef ZC_STATUS_ROW
};

const Row* find_row(zc_status status) {
  for (const Row& row : kRows)
    if (row.status == status) return &row;
  return nullptr;
}

constexpr std::size_t kTextBytes = 2048;
thread_local char last_error_text[kTextBytes] = "";

}  // namespace

std::string format(const char* pattern, ...) {
  std::va_list arguments;
  va_start(arguments, pattern);
  std::va_list again;
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, pattern, arguments);
  va_end(arguments);
  std::string text(length > 0 ? static_cast<std::size_t>(length) : 0, '\0');
  if (length > 0) std::vsnprintf(text.data(), text.size() + 1, pattern, again);
  va_end(again);
  return text;
}

zc_status record_error(zc_status status, const char* text) noexcept {
  const std::size_t length = strnlen(text, kTextBytes - 1);
  std::memmove(last_error_text, text, length);
  last_error_text[length] = '\0';
  return status;
}

zc_status fail(zc_status status, const char* pattern, ...) noexcept {
  char text[kTextBytes];
  std::va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return record_error(status, text);
}

}  // namespace zerocomm

using zerocomm::find_row;

const char* zc_status_name(zc_status status) {
  const auto* row = find_row(status);
  return row ? row->name : "UNKNOWN";
}

const char* zc_status_text(zc_status status) {
  const auto* row = find_row(status);
  return row ? row->text : "not a status of this library";
}

zc_scope zc_status_scope(zc_status status) {
  const auto* row = find_row(status);
  return row ? row->scope : ZC_SCOPE_PROCESS;
}

int zc_status_buffers_defined(zc_status status) {
  const auto* row = find_row(status);
  return row && row->buffers_defined;
}

int zc_status_comm_usable(zc_status status) {
  const auto* row = find_row(status);
  return row && row->comm_usable;
}

const char* zc_last_error(void) { return zerocomm::last_error_text; }
