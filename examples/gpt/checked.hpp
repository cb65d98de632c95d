// Turns a bad status of the library into an exception that carries its text.
#pragma once

#include <zerocomm/zerocomm.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace gpt {

inline void check(zc_status status) {
  if (status != ZC_OK) throw std::runtime_error(std::string(zc_status_name(status)) + ": " + zc_last_error());
}

// Handles that free themselves, also when a constructor throws half way.
struct Destroy {
  void operator()(zc_comm* comm) const { zc_comm_destroy(comm); }
  void operator()(zc_layout* layout) const { zc_layout_destroy(layout); }
  void operator()(zc_zero* zero) const { zc_zero_destroy(zero); }
};
using CommHandle = std::unique_ptr<zc_comm, Destroy>;
using LayoutHandle = std::unique_ptr<zc_layout, Destroy>;
using ZeroHandle = std::unique_ptr<zc_zero, Destroy>;

}  // namespace gpt
