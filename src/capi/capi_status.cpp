// version.h, and the log callback of status.h.
#include "base/check.hpp"
#include "base/log.hpp"

#include <zerocomm/version.h>

#define ZC_TEXT_OF(x) #x
#define ZC_TEXT(x) ZC_TEXT_OF(x)

int32_t zc_version(void) { return ZC_VERSION; }

const char* zc_version_text(void) {
  return ZC_TEXT(ZC_VERSION_MAJOR) "." ZC_TEXT(ZC_VERSION_MINOR) "." ZC_TEXT(ZC_VERSION_PATCH);
}

zc_status zc_log_set(zc_log_fn callback, void* context, zc_log_level level) {
  if (level < ZC_LOG_OFF || level > ZC_LOG_DEBUG)
    return zerocomm::fail(ZC_ARGUMENT, "log level %d is none", static_cast<int>(level));
  zerocomm::set_log(callback, context, level);
  return ZC_OK;
}
