// layout.h, except zc_gather: reads the caller's structs, calls src/shard, fills the caller's structs.
#include "capi/guard.hpp"
#include "capi/handles_layout.hpp"
#include "shard/layout_text.hpp"
#include "shard/layout_totals.hpp"
#include "shard/ownership.hpp"
#include "shard/unit_partition.hpp"

#include <memory>
#include <vector>

namespace shard = zerocomm::shard;
using zerocomm::capi::guard;
using zerocomm::capi::read_struct;
using zerocomm::capi::write_struct;

namespace {

// An array of structs of a caller whose header may be older or newer: its elements are struct_size bytes apart.
template <class Struct>
std::vector<Struct> read_array(const Struct* theirs, std::size_t count, const char* name) {
  std::vector<Struct> mine;
  if (count == 0) return mine;
  ZC_REQUIRE(theirs != nullptr, ZC_ARGUMENT, "the array of %zu %s is NULL", count, name);
  const std::size_t stride = theirs->struct_size;
  mine.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto* element = reinterpret_cast<const Struct*>(reinterpret_cast<const char*>(theirs) + i * stride);
    ZC_REQUIRE(element->struct_size == stride, ZC_ARGUMENT, "%s %zu has struct_size %zu, %s 0 has %zu", name, i,
               element->struct_size, name, stride);
    mine.push_back(read_struct(element, name));
  }
  return mine;
}

const shard::Layout& value_of(const zc_layout* layout) {
  ZC_REQUIRE(layout != nullptr, ZC_ARGUMENT, "the layout is NULL");
  return layout->value;
}

void check_index(std::size_t index, std::size_t count, const char* what) {
  ZC_REQUIRE(index < count, ZC_ARGUMENT, "%s %zu does not exist; there are %zu", what, index, count);
}

template <class Pointer>
void check_output(const Pointer* pointer, const char* name) {
  ZC_REQUIRE(pointer != nullptr, ZC_ARGUMENT, "%s is NULL", name);
}

std::size_t find_name(const std::unordered_map<std::string_view, std::size_t>& names, const char* name,
                      const char* what) {
  check_output(name, "name");
  const auto found = names.find(name);
  ZC_REQUIRE(found != names.end(), ZC_ARGUMENT, "no %s is called '%s'", what, name);
  return found->second;
}

}  // namespace

zc_status zc_layout_create(const zc_tensor* tensors, size_t tensor_count, const zc_layout_config* config,
                           zc_layout** layout) {
  return guard([&] {
    check_output(layout, "layout");
    check_output(config, "config");
    zc_layout_config mine = read_struct(config, "zc_layout_config");
    ZC_REQUIRE(mine.uses != nullptr || mine.use_count == 0, ZC_ARGUMENT, "uses is NULL, use_count is %zu",
               mine.use_count);
    const std::vector<zc_tensor> my_tensors = read_array(tensors, tensor_count, "zc_tensor");
    const std::vector<zc_use> my_uses = read_array(mine.uses, mine.use_count, "zc_use");
    if (mine.use_count > 0) mine.uses = my_uses.data();
    *layout = std::make_unique<zc_layout>(shard::make_layout(my_tensors.data(), tensor_count, mine)).release();
    return ZC_OK;
  });
}

zc_status zc_layout_destroy(zc_layout* layout) {
  delete layout;
  return ZC_OK;
}

zc_status zc_layout_get_info(const zc_layout* layout, zc_layout_info* info) {
  return guard([&] {
    const shard::Layout& value = value_of(layout);
    const shard::LayoutTotals totals = shard::layout_totals(value);
    zc_layout_info mine{};
    mine.ranks = value.ranks;
    mine.stage = value.stage;
    mine.tensor_count = value.tensors.size();
    mine.use_count = value.uses.size();
    mine.unit_count = value.units.size();
    mine.buffer_count = value.buffers.size();
    mine.bucket_count = value.buckets.size();
    mine.hash = value.hash;
    mine.stored_count = totals.stored_count;
    mine.trainable_count = totals.trainable_count;
    mine.stored_bytes = totals.stored_bytes;
    mine.padded_bytes = totals.padded_bytes;
    mine.largest_unit_bytes = totals.largest_unit_bytes;
    mine.largest_bucket_bytes = totals.largest_bucket_bytes;
    mine.placement = value.placement;
    write_struct(mine, info, "zc_layout_info");
    return ZC_OK;
  });
}

zc_status zc_layout_get_unit(const zc_layout* layout, size_t unit, zc_unit_info* info) {
  return guard([&] {
    const shard::Layout& value = value_of(layout);
    check_index(unit, value.units.size(), "unit");
    const shard::Unit& found = value.units[unit];
    zc_unit_info mine{};
    mine.name = found.name.c_str();
    mine.use_count = found.uses.size();
    mine.gathered_bytes = found.gathered_bytes;
    mine.persistent = found.persistent;
    write_struct(mine, info, "zc_unit_info");
    return ZC_OK;
  });
}

zc_status zc_layout_find_unit(const zc_layout* layout, const char* name, size_t* unit) {
  return guard([&] {
    value_of(layout);
    check_output(unit, "unit");
    *unit = find_name(layout->units, name, "unit");
    return ZC_OK;
  });
}

zc_status zc_layout_find_tensor(const zc_layout* layout, const char* name, size_t* tensor) {
  return guard([&] {
    value_of(layout);
    check_output(tensor, "tensor");
    *tensor = find_name(layout->tensors, name, "tensor");
    return ZC_OK;
  });
}

zc_status zc_layout_unit_use(const zc_layout* layout, size_t unit, size_t position, size_t* use) {
  return guard([&] {
    const shard::Layout& value = value_of(layout);
    check_output(use, "use");
    check_index(unit, value.units.size(), "unit");
    check_index(position, value.units[unit].uses.size(), "position");
    *use = value.units[unit].uses[position];
    return ZC_OK;
  });
}

zc_status zc_layout_get_use(const zc_layout* layout, size_t use, zc_use_info* info) {
  return guard([&] {
    const shard::Layout& value = value_of(layout);
    check_index(use, value.uses.size(), "use");
    const shard::Use& found = value.uses[use];
    zc_use_info mine{};
    mine.tensor = found.tensor;
    mine.stored_tensor = value.tensors[found.tensor].owner;
    mine.unit = found.unit;
    mine.position = found.position;
    mine.buffer = value.blocks[found.block].buffer;
    mine.bucket = found.bucket == shard::kNoIndex ? ZC_NONE : static_cast<std::int64_t>(found.bucket);
    mine.in_tensor = found.in_tensor;
    mine.flat_offset = ZC_NONE;
    if (value.placement == ZC_PLACEMENT_FLAT && found.in_tensor.count > 0)
      mine.flat_offset =
          static_cast<std::int64_t>(shard::place_in_buffer(value.blocks[found.block], value.ranks, found.block_offset));
    write_struct(mine, info, "zc_use_info");
    return ZC_OK;
  });
}

zc_status zc_layout_get_buffer(const zc_layout* layout, size_t buffer, zc_buffer_info* info) {
  return guard([&] {
    const shard::Layout& value = value_of(layout);
    check_index(buffer, value.buffers.size(), "buffer");
    const shard::Buffer& found = value.buffers[buffer];
    zc_buffer_info mine{};
    mine.dtype = found.dtype;
    mine.gradient_dtype = found.gradient_dtype;
    mine.shard_gradient_dtype = found.shard_gradient_dtype;
    mine.frozen = !found.trainable;
    mine.group = found.group;
    mine.count = found.count;
    mine.shard_count = found.shard_count;
    write_struct(mine, info, "zc_buffer_info");
    return ZC_OK;
  });
}

zc_status zc_layout_get_bucket(const zc_layout* layout, size_t bucket, zc_bucket_info* info) {
  return guard([&] {
    const shard::Layout& value = value_of(layout);
    check_index(bucket, value.buckets.size(), "bucket");
    const shard::Bucket& found = value.buckets[bucket];
    zc_bucket_info mine{};
    mine.buffer = found.buffer;
    mine.use_count = found.uses.size();
    mine.count = found.count;
    mine.bytes = shard::bucket_slot_bytes(value, found);
    write_struct(mine, info, "zc_bucket_info");
    return ZC_OK;
  });
}

zc_status zc_layout_pieces(const zc_layout* layout, int32_t rank, size_t buffer, const zc_piece** pieces,
                           size_t* piece_count) {
  return guard([&] {
    const shard::Layout& value = value_of(layout);
    check_output(pieces, "pieces");
    check_output(piece_count, "piece_count");
    ZC_REQUIRE(rank >= 0 && rank < value.ranks, ZC_ARGUMENT, "rank %d of a layout of %d ranks", rank, value.ranks);
    check_index(buffer, value.buffers.size(), "buffer");
    const std::vector<zc_piece>& found = value.pieces[static_cast<std::size_t>(rank)][buffer];
    *pieces = found.data();
    *piece_count = found.size();
    return ZC_OK;
  });
}

zc_status zc_layout_print(const zc_layout* layout, zc_text_form form, char* text, size_t capacity_bytes,
                          size_t* needed_bytes) {
  return guard([&] {
    const shard::Layout& value = value_of(layout);
    ZC_REQUIRE(form == ZC_TEXT_DEFAULT || form == ZC_TEXT_PLAIN || form == ZC_TEXT_JSON, ZC_ARGUMENT,
               "text form %d does not exist", static_cast<int>(form));
    ZC_REQUIRE(text != nullptr || capacity_bytes == 0, ZC_ARGUMENT, "text is NULL, capacity_bytes is %zu",
               capacity_bytes);
    const std::string whole = form == ZC_TEXT_JSON ? shard::layout_json(value) : shard::layout_plain(value);
    if (capacity_bytes > 0) {
      const std::size_t copied = whole.size() < capacity_bytes ? whole.size() : capacity_bytes - 1;
      std::memcpy(text, whole.data(), copied);
      text[copied] = '\0';
    }
    if (needed_bytes != nullptr) *needed_bytes = whole.size() + 1;
    return ZC_OK;
  });
}

zc_status zc_layout_view(const zc_layout* layout, size_t unit, const void* const* buffers, const void** tensors,
                         size_t tensor_capacity) {
  return guard([&] {
    shard::view_unit(value_of(layout), unit, buffers, tensors, tensor_capacity);
    return ZC_OK;
  });
}

zc_status zc_partition(const zc_layout* layout, int32_t rank, size_t unit, const void* const* full,
                       void* const* shards) {
  return guard([&] {
    shard::partition_unit(value_of(layout), rank, unit, full, shards);
    return ZC_OK;
  });
}
