// The hash that ranks compare when they create an engine.
#include "shard/build_steps.hpp"

#include <string_view>

namespace zerocomm::shard {
namespace {

class Hash {
 public:
  void add(std::uint64_t word) {
    state_ = (state_ ^ word) * 0x9e3779b97f4a7c15u;
    state_ ^= state_ >> 32;
    state_ *= 0xd6e8feb86659fd93u;
    state_ ^= state_ >> 29;
  }
  void add_text(std::string_view text) {
    add(text.size());
    for (const char c : text) add(static_cast<unsigned char>(c));
  }
  void add_signed(std::int64_t number) { add(static_cast<std::uint64_t>(number)); }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0x243f6a8885a308d3u;
};

}  // namespace

// Arguments, and what this version of the library made of them: two versions that pad differently must not agree.
std::uint64_t layout_hash(const Layout& layout) {
  Hash hash;
  hash.add_signed(layout.ranks);
  hash.add_signed(layout.stage);
  hash.add(layout.alignment_bytes);
  hash.add(layout.bucket_bytes);
  hash.add(layout.persistent_bytes);
  hash.add(layout.tensors.size());
  for (const Tensor& tensor : layout.tensors) {
    hash.add_text(tensor.name);
    hash.add(tensor.count);
    hash.add(tensor.dtype);
    hash.add(tensor.gradient_dtype);
    hash.add(tensor.trainable);
    hash.add_signed(tensor.group);
    hash.add(tensor.owner);
  }
  hash.add(layout.uses.size());
  for (const Use& use : layout.uses) {
    hash.add(use.tensor);
    hash.add(use.stored);
    hash.add(use.unit);
    hash.add(use.in_tensor.offset);
    hash.add(use.in_tensor.count);
    hash.add(use.block);
    hash.add(use.block_offset);
    hash.add(use.bucket);
    hash.add(use.bucket_offset);
  }
  hash.add(layout.units.size());
  for (const Unit& unit : layout.units) {
    hash.add_text(unit.name);
    hash.add(unit.persistent);
  }
  hash.add(layout.buffers.size());
  for (const Buffer& buffer : layout.buffers) {
    hash.add(buffer.shard_gradient_dtype);
    hash.add(buffer.shard_count);
  }
  hash.add(layout.blocks.size());
  for (const Block& block : layout.blocks) {
    hash.add(block.buffer);
    hash.add(block.shard_count);
    hash.add(block.shard_offset);
    hash.add(block.unit_offset_bytes);
  }
  if (layout.placement == ZC_PLACEMENT_FLAT) {  // the other placement has the hash that it always had
    hash.add(layout.placement);
    for (const Block& block : layout.blocks) {
      hash.add(block.cut_offset);
      hash.add(block.count);
    }
  }
  hash.add(layout.buckets.size());
  for (const Bucket& bucket : layout.buckets) {
    hash.add(bucket.buffer);
    hash.add(bucket.uses.size());
    hash.add(bucket.padded_count);
  }
  return hash.value();
}

}  // namespace zerocomm::shard
