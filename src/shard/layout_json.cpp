// A layout as JSON. docs/layouts.md lists the members.
#include "base/check.hpp"
#include "shard/json_writer.hpp"
#include "shard/layout_text.hpp"
#include "shard/layout_totals.hpp"
#include "shard/ownership.hpp"
#include "shard/stage_table.hpp"

namespace zerocomm::shard {
namespace {

void write_indices(JsonWriter& json, const char* name, const std::vector<std::size_t>& indices) {
  json.key(name).begin_array();
  for (const std::size_t index : indices) json.value(index);
  json.end_array();
}

void write_head(JsonWriter& json, const Layout& layout) {
  const LayoutTotals totals = layout_totals(layout);
  json.member("format", "zc.layout").member("version", 1).member("ranks", layout.ranks);
  json.member("stage", stage_row(layout.stage).number);
  if (layout.placement == ZC_PLACEMENT_FLAT) json.member("placement", "flat");
  json.member("alignment_bytes", layout.alignment_bytes).member("bucket_bytes", layout.bucket_bytes);
  json.member("persistent_bytes", layout.persistent_bytes);
  json.member("hash", format("%016llx", static_cast<unsigned long long>(layout.hash)).c_str());
  json.line().key("totals").begin_object();
  json.member("stored_count", totals.stored_count).member("trainable_count", totals.trainable_count);
  json.member("stored_bytes", totals.stored_bytes).member("padded_bytes", totals.padded_bytes);
  json.member("tied_tensors", totals.tied_tensors).member("largest_unit_bytes", totals.largest_unit_bytes);
  json.member("largest_bucket_bytes", totals.largest_bucket_bytes).end_object();
}

void write_tensors(JsonWriter& json, const Layout& layout) {
  json.line().key("tensors").begin_array();
  for (std::size_t t = 0; t < layout.tensors.size(); ++t) {
    const Tensor& tensor = layout.tensors[t];
    json.line().begin_object().member("name", std::string_view(tensor.name)).member("count", tensor.count);
    json.member("dtype", zc_dtype_name(tensor.dtype)).member("trainable", tensor.trainable);
    json.member("group", tensor.group);
    if (tensor.owner != t) json.member("tied_to", tensor.owner);
    json.end_object();
  }
  json.end_array();
}

void write_units(JsonWriter& json, const Layout& layout) {
  json.line().key("units").begin_array();
  for (const Unit& unit : layout.units) {
    json.line()
        .begin_object()
        .member("name", std::string_view(unit.name))
        .member("gathered_bytes", unit.gathered_bytes);
    json.member("persistent", unit.persistent);
    write_indices(json, "uses", unit.uses);
    write_indices(json, "blocks", unit.blocks);
    write_indices(json, "needs", unit.needs);
    json.end_object();
  }
  json.end_array().line().key("uses").begin_array();
  for (const Use& use : layout.uses) {
    json.line().begin_object().member("tensor", use.tensor).member("offset", use.in_tensor.offset);
    json.member("count", use.in_tensor.count).member("stored", use.stored).member("block", use.block);
    json.member("block_offset", use.block_offset);
    if (use.bucket != kNoIndex) json.member("bucket", use.bucket).member("bucket_offset", use.bucket_offset);
    json.end_object();
  }
  json.end_array();
}

void write_buffers(JsonWriter& json, const Layout& layout) {
  json.line().key("buffers").begin_array();
  for (const Buffer& buffer : layout.buffers) {
    json.line().begin_object().member("dtype", zc_dtype_name(buffer.dtype));
    json.member("gradient_dtype", zc_dtype_name(buffer.gradient_dtype));
    json.member("shard_gradient_dtype", zc_dtype_name(buffer.shard_gradient_dtype));
    json.member("trainable", buffer.trainable).member("group", buffer.group).member("count", buffer.count);
    json.member("shard_count", buffer.shard_count).end_object();
  }
  json.end_array().line().key("blocks").begin_array();
  for (const Block& block : layout.blocks) {
    json.line().begin_object().member("unit", block.unit).member("buffer", block.buffer).member("count", block.count);
    if (layout.placement == ZC_PLACEMENT_FLAT)
      json.member("flat_offset", place_in_buffer(block, layout.ranks, 0));
    else
      json.member("shard_count", block.shard_count).member("shard_offset", block.shard_offset);
    json.member("unit_offset_bytes", block.unit_offset_bytes).end_object();
  }
  json.end_array();
}

void write_buckets(JsonWriter& json, const Layout& layout) {
  json.line().key("buckets").begin_array();
  for (const Bucket& bucket : layout.buckets) {
    json.line().begin_object().member("buffer", bucket.buffer).member("count", bucket.count);
    json.member("bytes", bucket_slot_bytes(layout, bucket));
    write_indices(json, "uses", bucket.uses);
    json.end_object();
  }
  json.end_array();
}

// shards[rank][buffer].pieces: [tensor, tensor_offset, shard_offset, count].
void write_shards(JsonWriter& json, const Layout& layout) {
  json.line().key("shards").begin_array();
  for (std::size_t rank = 0; rank < layout.pieces.size(); ++rank) {
    json.line().begin_array();
    for (std::size_t b = 0; b < layout.buffers.size(); ++b) {
      const std::size_t owned = owned_count(layout, rank, b);
      json.line().begin_object().member("count", owned).member("padding", layout.buffers[b].shard_count - owned);
      json.key("pieces").begin_array();
      for (const zc_piece& piece : layout.pieces[rank][b])
        json.begin_array()
            .value(piece.tensor)
            .value(piece.tensor_offset)
            .value(piece.shard_offset)
            .value(piece.count)
            .end_array();
      json.end_array().end_object();
    }
    json.end_array();
  }
  json.end_array();
}

}  // namespace

std::string layout_json(const Layout& layout) {
  JsonWriter json;
  json.begin_object();
  write_head(json, layout);
  write_tensors(json, layout);
  write_units(json, layout);
  write_buffers(json, layout);
  write_buckets(json, layout);
  write_shards(json, layout);
  json.end_object();
  return json.take() + "\n";
}

}  // namespace zerocomm::shard
