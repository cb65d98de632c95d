// Layouts of model files, through the public interface.
#include "cli/model_layout.hpp"

#include "cli/failure.hpp"

namespace zerocomm::cli {

zc_stage stage_of(int number) {
  constexpr zc_stage kStages[] = {ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3};
  if (number < 0 || number > 3)
    throw Failure("stage " + std::to_string(number) + " does not exist; there are 0, 1, 2 and 3", Exit::usage);
  return kStages[number];
}

void require_ok(zc_status status, const std::string& what) {
  if (status != ZC_OK) throw Failure(what + ": " + zc_last_error() + " (" + zc_status_name(status) + ")");
}

LayoutPointer make_layout(const Manifest& manifest, const CutOptions& cut, int stage) {
  const TensorList list = tensor_list(manifest);
  zc_layout_config config{};
  config.struct_size = sizeof config;
  config.ranks = cut.ranks;
  config.stage = stage_of(stage);
  config.alignment_bytes = cut.alignment_bytes;
  config.bucket_bytes = cut.bucket_bytes;
  config.persistent_bytes = cut.persistent_bytes;
  config.placement = cut.flat ? ZC_PLACEMENT_FLAT : ZC_PLACEMENT_PER_UNIT;
  config.uses = list.uses.data();
  config.use_count = list.uses.size();
  zc_layout* layout = nullptr;
  require_ok(zc_layout_create(list.tensors.data(), list.tensors.size(), &config, &layout), cut.model);
  return LayoutPointer(layout);
}

}  // namespace zerocomm::cli
