// Layouts of model files, through the public interface.
#pragma once

#include "cli/manifest.hpp"
#include "cli/options.hpp"

#include <memory>

namespace zerocomm::cli {

struct DestroyLayout {
  void operator()(zc_layout* layout) const { zc_layout_destroy(layout); }
};
using LayoutPointer = std::unique_ptr<zc_layout, DestroyLayout>;

// The stage with this number, 0 to 3.
zc_stage stage_of(int number);

// Throws Failure with the library's text if a call did not succeed.
void require_ok(zc_status status, const std::string& what);

LayoutPointer make_layout(const Manifest& manifest, const CutOptions& cut, int stage);

}  // namespace zerocomm::cli
