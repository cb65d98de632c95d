// Layouts and texts of objects that are parts of an engine.
#include "engine/kind.hpp"

#include <string_view>

namespace zerocomm::engine {

shard::Layout layout_of(const Kind& kind, const shard::Layout& layout) {
  shard::Layout result = layout;
  if (!kind.parameters && layout.stage != ZC_STAGE_0) result.stage = ZC_STAGE_2;
  if (kind.gradients) return result;
  result.stage = ZC_STAGE_3;
  result.buckets.clear();
  for (shard::Unit& unit : result.units)
    unit.persistent = layout.persistent_bytes > 0 && unit.gathered_bytes <= layout.persistent_bytes;
  for (shard::Tensor& tensor : result.tensors) tensor.trainable = false;
  for (shard::Buffer& buffer : result.buffers) buffer.trainable = false;
  for (shard::Use& use : result.uses) use.bucket = shard::kNoIndex;
  return result;
}

std::string named(const Kind& kind, std::string text) {
  constexpr std::string_view kOfEngine = kWhole.prefix;
  const std::string_view prefix = kind.prefix;
  for (std::size_t at = text.find(kOfEngine); at != std::string::npos; at = text.find(kOfEngine, at + prefix.size()))
    text.replace(at, kOfEngine.size(), prefix);
  return text;
}

}  // namespace zerocomm::engine
