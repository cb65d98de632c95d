// The end of a pass: waiting for its buckets, and saying what is wrong when they do not come.
#include "engine/engine.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace zerocomm::engine {

// The engine asked for something that its own plan does not allow. Fails the engine on all ranks rather than go on with
// wrong sums.
void Engine::record_engine_defect() const {
  if (zc_comm_status(comm_) != ZC_OK) return;  // the communicator died meanwhile: its error comes first
  fail_on_all_ranks(layout_.buckets.size() + 1);
}

// The first failure stands, and wakes everybody once.
void Engine::fail_on_all_ranks(std::uint64_t failure) const {
  for (std::int32_t rank = 0; rank < ranks_; ++rank) {
    std::uint64_t before = 0;
    zc_window_compare_swap(window_.get(), rank, Words::failure(), 0, failure, &before);
    if (before == 0) zc_window_add(window_.get(), rank, Words::failure(), 0, nullptr);  // wakes who waits
  }
}

zc_status Engine::check_failure() const {
  const std::uint64_t failure = load_word(rank_, Words::failure());
  if (failure == 0) return ZC_OK;
  if (Words::is_of_generation(failure))
    return fail(ZC_MISMATCH, "rank %d: some ranks published generation %llu as changed and some as unchanged", rank_,
                static_cast<unsigned long long>(failure & ~(std::uint64_t{1} << 63)));
  if (failure > layout_.buckets.size())
    return fail(ZC_INTERNAL, "rank %d: a reduction asked for memory outside the engine's plan", rank_);
  static constexpr std::array<const char*, 6> kPhases = {"none", "EVAL", "ONLY", "FIRST", "MIDDLE", "LAST"};
  const std::size_t bucket = failure - 1;
  const Arrival first = unpack_arrival(load_word(0, words_.arrived(bucket)));
  for (std::int32_t rank = 1; rank < ranks_; ++rank) {
    const Arrival other = unpack_arrival(load_word(rank, words_.arrived(bucket)));
    if (other.phase != first.phase || other.step != first.step)
      return fail(ZC_MISMATCH,
                  "gradient pass %llu: rank 0 is in phase %s, pass %u of its step, and rank %d in phase %s, pass %u of "
                  "its step "
                  "(seen by rank %d in bucket %zu)",
                  static_cast<unsigned long long>(first.passes), kPhases[std::min<std::size_t>(first.phase, 5)],
                  first.step, rank, kPhases[std::min<std::size_t>(other.phase, 5)], other.step, rank_, bucket);
  }
  return fail(ZC_MISMATCH, "rank %d: ranks were in different phases in bucket %zu", rank_, bucket);
}

// After the close of a pass that only adds up locally: adds every use to the local sums, which are the slots.
void Engine::accumulate_locally() {
  const bool first = publication_.phase() == ZC_PHASE_FIRST;
  for (std::size_t bucket = 0; bucket < layout_.buckets.size(); ++bucket)
    copy_in(bucket, static_cast<std::uint32_t>(bucket), !first);
}

// After an error, end gives the gradients back to the caller: no other thread may be copying from them.
zc_status Engine::give_up_pass(zc_status status) {
  if (status == ZC_AGAIN) return status;
  std::unique_lock lock(mutex_);
  pass_phase_.store(ZC_PHASE_NONE);
  landed_.wait(lock, [&] { return copies_ == 0; });
  return status;
}

zc_status Engine::end() {
  if (const zc_status status = zc_comm_status(comm_); status != ZC_OK) return give_up_pass(status);
  if (const zc_status status = check_failure(); status != ZC_OK) return give_up_pass(status);
  bool gradients = false, reduces = false;
  {
    const std::lock_guard lock(mutex_);
    gradients = publication_.gradients_open();
    reduces = gradients && pass_reduces(publication_.phase());
    if (gradients) {
      std::string text;
      const zc_status status = reducer_.close(&text);
      if (status != ZC_OK) return fail(status, "rank %d: %s", rank_, text.c_str());
      // What was never reported is settled now: others must not blame it.
      for (std::size_t i = 0; i < words_.report_words(); ++i)
        store_word(rank_, words_.reported(64 * i), ~std::uint64_t{0});
      note_call();
      if (reduces) observe_completed();
      in_end_ = true;
      if (!reduces) accumulate_locally();
    }
  }
  if (reduces)
    if (const zc_status status = wait_until_reduced(); status != ZC_OK) return give_up_pass(status);
  const std::lock_guard lock(mutex_);
  const zero::Verdict verdict = publication_.end();
  if (verdict.status != ZC_OK) return refuse(verdict);
  fetcher_.end_pass();
  note_call();
  in_end_ = false;
  if (reduces) {
    pass_phase_.store(ZC_PHASE_NONE);
    shared_passes_.fetch_add(1);
    reduce_bytes_ += reduce_logical_bytes_;
  }
  return ZC_OK;
}

zc_status Engine::wait_until_reduced() {
  zc_wait_options options{};
  options.struct_size = sizeof options;
  options.deadline_ns = config_.deadline_ns;
  options.label = kind_.gradients && !kind_.parameters ? "zc_reducer_end" : "zc_zero_end";
  options.blame = [](void* context, std::int32_t* rank, char* text, std::size_t capacity_bytes) {
    static_cast<const Engine*>(context)->blame_unreduced(rank, text, capacity_bytes);
  };
  options.extend_ns = [](void* context) -> std::int64_t {
    const auto& engine = *static_cast<const Engine*>(context);
    std::int32_t culprit = ZC_NONE;
    char text[1] = "";
    engine.blame_unreduced(&culprit, text, sizeof text);
    return culprit == ZC_NONE || culprit == engine.rank_ ? 0 : engine.patience_ns(culprit);
  };
  const zc_ready_fn ready = [](void* context) -> int {
    auto& engine = *static_cast<Engine*>(context);
    engine.pump();
    if (const zc_status status = engine.check_failure(); status != ZC_OK) return -static_cast<int>(status);
    const std::lock_guard lock(engine.mutex_);
    engine.observe_completed();
    return engine.reducer_.finished();
  };
  return zc_comm_wait(comm_, ready, this, &options);
}

// Has this rank taken a slice of the bucket in this pass?
bool Engine::has_claimed(std::size_t bucket, std::uint64_t passes, std::int32_t rank) const {
  for (std::size_t slice = 0; slice < static_cast<std::size_t>(ranks_); ++slice) {
    const std::uint64_t word = load_word(words_.home(bucket), words_.claim(bucket, slice));
    if (claimed_passes(word) == passes && claiming_rank(word) == rank) return true;
  }
  return false;
}

void Engine::blame_unreduced(std::int32_t* culprit, char* text, std::size_t capacity_bytes) const {
  const std::uint64_t passes = shared_passes_.load() + 1;
  for (std::size_t bucket = 0; bucket < layout_.buckets.size(); ++bucket) {
    if (load_word(words_.home(bucket), words_.completed(bucket)) >= passes) continue;
    for (std::int32_t rank = 0; rank < ranks_; ++rank) {
      if (unpack_arrival(load_word(rank, words_.arrived(bucket))).passes >= passes) continue;
      *culprit = rank;
      std::string missing;
      for (const std::size_t use : blocking_uses(bucket, rank)) {
        if (missing.size() > 200) {
          missing += ", ...";
          break;
        }
        missing += (missing.empty() ? "" : ", ") + layout_.tensors[layout_.uses[use].tensor].name;
      }
      std::snprintf(text, capacity_bytes, "bucket %zu of gradient pass %llu waits for rank %d%s%s", bucket,
                    static_cast<unsigned long long>(passes), rank, missing.empty() ? "" : ", which has not reported ",
                    missing.c_str());
      return;
    }
    // One of those who took a slice has not finished it. Of several nobody can say which.
    std::string takers;
    std::int32_t last = ZC_NONE;
    int others = 0;
    for (std::int32_t rank = 0; rank < ranks_; ++rank) {
      if (rank == rank_ || !has_claimed(bucket, passes, rank)) continue;
      last = rank;
      ++others;
      takers += (takers.empty() ? ": slices of it were taken by rank " : ", rank ") + std::to_string(rank);
    }
    if (others == 1) *culprit = last;
    std::snprintf(text, capacity_bytes, "bucket %zu of gradient pass %llu is complete and not yet reduced%.200s",
                  bucket, static_cast<unsigned long long>(passes), takers.c_str());
    return;
  }
}

// Parts of a bucket that a rank has not reported in the present pass of this rank.
std::vector<std::size_t> Engine::blocking_uses(std::size_t bucket, std::int32_t rank) const {
  std::vector<std::size_t> blocking;
  const bool same_pass = load_word(rank, Words::pass()) == load_word(rank_, Words::pass());
  for (const std::size_t stored : layout_.buckets[bucket].uses)
    for (const std::size_t use : layout_.uses[stored].parts)
      if (!same_pass || (load_word(rank, words_.reported(use)) >> use % 64 & 1) == 0) blocking.push_back(use);
  return blocking;
}

}  // namespace zerocomm::engine
