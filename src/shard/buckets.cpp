// Buckets: which gradients are reduced together, and where each rank's share of them lies.
#include "shard/build_steps.hpp"

#include <algorithm>

namespace zerocomm::shard {
namespace {

struct OpenBucket {
  Bucket bucket;
  std::size_t real_bytes = 0;
  std::size_t last_step = 0;  // when its last member came, counted in reverse order of use
};

void close(OpenBucket& open, std::vector<OpenBucket>& closed) {
  if (!open.bucket.uses.empty()) closed.push_back(std::move(open));
  open = OpenBucket{};
}

// Members of every bucket, in the order in which backward completes the buckets.
std::vector<OpenBucket> group_uses(const Layout& layout) {
  std::vector<OpenBucket> open(layout.buffers.size()), closed;
  for (std::size_t step = 0; step < layout.uses.size(); ++step) {
    const std::size_t i = layout.uses.size() - 1 - step;
    const Use& use = layout.uses[i];
    if (use.stored != i || use.in_tensor.count == 0 || !layout.tensors[use.tensor].trainable) continue;
    const std::size_t buffer = layout.blocks[use.block].buffer;
    const std::size_t bytes = checked_mul(use.in_tensor.count, zc_dtype_bytes(layout.buffers[buffer].gradient_dtype));
    if (checked_add(open[buffer].real_bytes, bytes) > layout.bucket_bytes) close(open[buffer], closed);
    open[buffer].bucket.buffer = buffer;
    open[buffer].bucket.uses.push_back(i);
    open[buffer].real_bytes += bytes;
    open[buffer].last_step = step;
  }
  for (OpenBucket& last : open) close(last, closed);
  std::sort(closed.begin(), closed.end(),
            [](const OpenBucket& a, const OpenBucket& b) { return a.last_step < b.last_step; });
  return closed;
}

void place_uses(Layout& layout, std::size_t index) {
  Bucket& bucket = layout.buckets[index];
  const std::size_t bytes = zc_dtype_bytes(layout.buffers[bucket.buffer].gradient_dtype);
  const std::size_t step = alignment_count(layout.alignment_bytes, bytes);
  std::size_t end = 0;
  for (const std::size_t i : bucket.uses) {
    Use& use = layout.uses[i];
    use.bucket = index;
    use.bucket_offset = round_up(end, step);
    end = checked_add(use.bucket_offset, use.in_tensor.count);
    bucket.count += use.in_tensor.count;
    for_each_run(use, layout.blocks[use.block], [&](const OwnedRun& run) {
      bucket.runs.push_back(
          BucketRun{use.bucket_offset + run.use_offset, run.count, run.owner, run.shard_offset, i, run.use_offset});
    });
  }
  bucket.padded_count = round_up(end, step);
  checked_mul(bucket.padded_count, 8);
}

}  // namespace

void add_buckets(Layout& layout) {
  for (OpenBucket& closed : group_uses(layout)) {
    layout.buckets.push_back(std::move(closed.bucket));
    place_uses(layout, layout.buckets.size() - 1);
  }
  for (Use& use : layout.uses) {
    use.bucket = layout.uses[use.stored].bucket;
    use.bucket_offset = layout.uses[use.stored].bucket_offset;
  }
}

}  // namespace zerocomm::shard
