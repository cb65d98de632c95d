// Bookkeeping of the gradients of one pass. docs/protocol.md, "Slots", says why one slot is reserved.
#include "zero/reducer.hpp"

#include "base/check.hpp"

#include <algorithm>

namespace zerocomm::zero {
namespace {

constexpr std::size_t kMostNamed = 5;  // tensors that an error text lists

zc_status refuse(zc_status status, std::string* text, const std::string& reason) {
  if (text != nullptr) *text = reason;
  return status;
}

}  // namespace

Reducer::Reducer(const shard::Layout& layout, const ReducerConfig& config)
    : layout_(&layout),
      config_(config),
      buckets_(layout.buckets.size()),
      parts_(layout.uses.size(), Part::waiting),
      bucket_of_(layout.uses.size(), shard::kNoIndex),
      slot_used_(config.own_slots ? layout.buckets.size() : config.slots, 0) {
  ZC_REQUIRE(config.own_slots || config.slots >= 1, ZC_ARGUMENT, "0 gradient slots");
  ZC_REQUIRE(slot_used_.size() < kNoSlot, ZC_ARGUMENT, "%zu gradient slots, the most is %u", slot_used_.size(),
             kNoSlot - 1);
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    for (const std::size_t stored : layout.buckets[b].uses) {
      for (const std::size_t part : layout.uses[stored].parts) {
        bucket_of_[part] = b;
        ++buckets_[b].part_count;
      }
    }
  }
}

void Reducer::begin(std::uint64_t pass) {
  ZC_ASSERT(std::count(slot_used_.begin(), slot_used_.end(), std::uint8_t{1}) == 0);
  pass_ = pass;
  open_ = true;
  closing_ = false;
  std::fill(parts_.begin(), parts_.end(), Part::waiting);
  for (BucketState& bucket : buckets_) {
    bucket.waiting = bucket.part_count;
    bucket.absent = 0;
    bucket.slot = kNoSlot;
    bucket.granted = false;
    bucket.in_slot = false;
  }
}

zc_status Reducer::ready(std::size_t use, std::string* text) { return report(use, Part::ready, text); }

zc_status Reducer::absent(std::size_t use, std::string* text) { return report(use, Part::absent, text); }

zc_status Reducer::report(std::size_t use, Part part, std::string* text) {
  if (use >= parts_.size())
    return refuse(ZC_ARGUMENT, text, format("use %zu of a layout with %zu uses", use, parts_.size()));
  const shard::Use& which = layout_->uses[use];
  const char* name = layout_->tensors[which.tensor].name.c_str();
  if (!layout_->tensors[which.tensor].trainable)
    return refuse(ZC_ARGUMENT, text, format("a gradient of tensor '%s' (use %zu), which is frozen", name, use));
  if (!open_ || closing_)
    return refuse(ZC_STATE, text,
                  format("a gradient of tensor '%s' (use %zu) outside a pass with gradients", name, use));
  if (bucket_of_[use] == shard::kNoIndex) return ZC_OK;  // no elements
  if (parts_[use] != Part::waiting)
    return refuse(ZC_STATE, text,
                  format("the gradient of tensor '%s' (use %zu) was reported %s before in this pass", name, use,
                         parts_[use] == Part::ready ? "ready" : "absent"));
  parts_[use] = part;
  BucketState& bucket = buckets_[bucket_of_[use]];
  --bucket.waiting;
  if (part == Part::absent) ++bucket.absent;
  return ZC_OK;
}

zc_status Reducer::close(std::string* text) {
  if (!open_) return refuse(ZC_STATE, text, "no pass with gradients is open");
  if (closing_) return ZC_OK;
  std::size_t missing_count = 0;
  std::string names;
  for (std::size_t use = 0; use < parts_.size(); ++use) {
    if (bucket_of_[use] == shard::kNoIndex || parts_[use] != Part::waiting) continue;
    if (config_.absent_is_zero) {
      report(use, Part::absent, nullptr);
    } else if (++missing_count <= kMostNamed) {
      names += format("%s'%s' (use %zu)", missing_count > 1 ? ", " : "",
                      layout_->tensors[layout_->uses[use].tensor].name.c_str(), use);
    }
  }
  if (missing_count > kMostNamed) names += format(" and %zu more", missing_count - kMostNamed);
  if (missing_count > 0)
    return refuse(
        ZC_ARGUMENT, text,
        format("pass %llu ends without the gradients of %s", static_cast<unsigned long long>(pass_), names.c_str()));
  closing_ = true;
  return ZC_OK;
}

void Reducer::observe(std::size_t bucket, std::uint64_t completed) {
  BucketState& state = buckets_[bucket];
  state.completed = std::max(state.completed, completed);
  if (!state.in_slot || !reduced(bucket)) return;
  slot_used_[state.slot] = 0;
  state.in_slot = false;
}

// A slot for a bucket that is complete, or kNoSlot if it has to wait for one.
std::uint32_t Reducer::free_slot(std::size_t bucket, std::size_t lowest) const {
  if (config_.own_slots) return static_cast<std::uint32_t>(bucket);
  const std::uint32_t reserved = config_.slots - 1;
  for (std::uint32_t slot = 0; slot < reserved; ++slot)
    if (slot_used_[slot] == 0) return slot;
  return slot_used_[reserved] == 0 && bucket == lowest ? reserved : kNoSlot;
}

std::optional<Grant> Reducer::next() {
  if (!open_ || (config_.launch_at_end && !closing_)) return std::nullopt;
  const std::size_t lowest = lowest_unreduced();
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    BucketState& bucket = buckets_[b];
    if (bucket.granted || bucket.waiting != 0) continue;
    if (bucket.absent < bucket.part_count) {
      bucket.slot = free_slot(b, lowest);
      if (bucket.slot == kNoSlot) continue;
      slot_used_[bucket.slot] = 1;
      bucket.in_slot = true;
    }
    bucket.granted = true;
    return Grant{b, bucket.slot};
  }
  return std::nullopt;
}

bool Reducer::finished() const {
  return std::all_of(buckets_.begin(), buckets_.end(),
                     [this](const BucketState& bucket) { return bucket.completed > pass_ && !bucket.in_slot; });
}

bool Reducer::is_absent(std::size_t use) const { return parts_[use] == Part::absent; }

std::vector<std::size_t> Reducer::missing(std::size_t bucket) const {
  std::vector<std::size_t> uses;
  if (!open_) return uses;
  for (const std::size_t stored : layout_->buckets[bucket].uses)
    for (const std::size_t part : layout_->uses[stored].parts)
      if (parts_[part] == Part::waiting) uses.push_back(part);
  return uses;
}

std::size_t Reducer::lowest_unreduced() const {
  std::size_t bucket = 0;
  while (bucket < buckets_.size() && reduced(bucket)) ++bucket;
  return bucket;
}

bool Reducer::granted(std::size_t bucket) const { return buckets_[bucket].granted; }

bool Reducer::reduced(std::size_t bucket) const { return buckets_[bucket].completed > pass_; }

std::size_t Reducer::reduced_count() const {
  std::size_t count = 0;
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    if (reduced(b)) ++count;
  return count;
}

}  // namespace zerocomm::zero
