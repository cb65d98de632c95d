// Turns a bad status of the library into an exception that carries its text.
#pragma once

#include <zerocomm/zerocomm.h>

#include <stdexcept>
#include <string>

namespace gpt {

inline void check(zc_status status) {
  if (status != ZC_OK) throw std::runtime_error(std::string(zc_status_name(status)) + ": " + zc_last_error());
}

}  // namespace gpt
