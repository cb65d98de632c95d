// Model files ("format": "zc.model", version 1): a list of tensors in the order in which a forward pass uses them.
#pragma once

#include <zerocomm/layout.h>

#include <string>
#include <vector>

namespace zerocomm::cli {

struct ManifestTensor {
  std::string name;
  std::string unit;
  std::string tied_to;  // empty: not tied
  std::size_t count = 0;
  zc_dtype dtype = ZC_DTYPE_NONE;
  bool frozen = false;
};

struct ManifestUse {
  std::size_t tensor = 0;
  zc_span slice{};
  std::string unit;
};

// A model, expanded: repeats unrolled, buffers left out, stacked tensors turned into one use per layer.
struct Manifest {
  std::string name;
  std::vector<ManifestTensor> tensors;
  std::vector<ManifestUse> uses;
};

// Reads a file. Throws Failure with the path and what is wrong.
Manifest read_manifest(const std::string& path);

// The same from text; `source` names it in errors.
Manifest parse_manifest(const std::string& text, const std::string& source);

// What zc_layout_create takes. Points into the manifest, which must outlive it.
struct TensorList {
  std::vector<zc_tensor> tensors;
  std::vector<zc_use> uses;
};
TensorList tensor_list(const Manifest& manifest);

}  // namespace zerocomm::cli
