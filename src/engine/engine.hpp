// The driver of one rank's ZeRO engine, or of its gradients or parameters alone (kind.hpp): carries out what the
// machines of src/zero decide, through the public API.
//
// Machines are called under mutex_; bytes are moved and other ranks are waited for without it. Files: engine_create.cpp
// (set up), engine_places.cpp (addresses), engine_load.cpp (initial values, export), engine_fetch.cpp (acquire,
// release), engine_reduce.cpp (gradients), engine_end.cpp (the end of a pass), engine_update.cpp (norm, update,
// publish), engine_query.cpp (what callers may ask).
#pragma once

#include "base/fork.hpp"
#include "base/function_ref.hpp"
#include "base/math.hpp"
#include "engine/gathered_memory.hpp"
#include "engine/kind.hpp"
#include "engine/memory_plan.hpp"
#include "engine/words.hpp"
#include "zero/fetcher.hpp"
#include "zero/publication.hpp"
#include "zero/reducer.hpp"

#include <zerocomm/zerocomm.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

namespace zerocomm::engine {

// Frees what the C interface gave out.
struct Release {
  void operator()(zc_window* window) const { zc_window_destroy(window); }
  void operator()(zc_progress* progress) const { zc_progress_remove(progress); }
};

// Where the parameters of one buffer lie: what parameter_at counts from.
struct ParameterHome {
  zc_window* window = nullptr;
  std::byte* own = nullptr;        // this rank's part
  const std::byte* all = nullptr;  // with views: the whole buffer
};

// One thread inside a call that reads parameters. It was counted under the lock when it came in.
class Inside {
 public:
  Inside(std::uint32_t& count, std::mutex& mutex) : count_(&count), mutex_(&mutex) {}
  ~Inside() {
    const std::lock_guard lock(*mutex_);
    --*count_;
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  std::uint32_t* count_;
  std::mutex* mutex_;
};

class Engine {
 public:
  // Collective. `config` has its defaults filled in by complete_config. `shards`: the caller's memory for the
  // parameters of a fetcher, by buffer.
  Engine(zc_comm* comm, const shard::Layout& layout, const zc_zero_config& config, const Kind& kind = kWhole,
         void* const* shards = nullptr);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  zc_status load(std::size_t unit, const void* const* full, zc_dtype dtype, std::int32_t root);
  zc_status export_tensor(std::size_t tensor, zc_state state, void* destination);

  zc_status begin(const char* pass, zc_phase phase);
  zc_status acquire(std::size_t unit, const void** tensors, std::size_t tensor_capacity);
  zc_status release(std::size_t unit);
  zc_status prefetch(std::size_t unit);
  zc_status grad_ready(std::size_t use, const void* gradient);
  zc_status grad_absent(std::size_t use);
  zc_status grad_buffer(std::size_t use, void** gradient);
  zc_status end();

  // Says in the flight recorder what is about to be called.
  Engine& noted(const char* call, std::uint64_t value = 0) {
    zc_comm_note(comm_, call, value);
    return *this;
  }
  bool in_this_process() const { return fork_generation() == fork_generation_; }

  zc_status norm(zc_norm* norm);
  zc_status scale(double factor);
  zc_status update_begin();
  zc_status cast();
  zc_status publish();
  zc_status publish_unchanged();

  zc_status pieces(const zc_zero_piece** pieces, std::size_t* piece_count, std::size_t* state_count) const;
  zc_status state(zc_state state, std::size_t buffer, void** shard, std::size_t* count) const;
  zc_status reduced(std::size_t buffer, float** gradients, std::size_t* count) const;  // of a reducer
  zc_status blockers(std::size_t bucket, std::int32_t rank, std::size_t* uses, std::size_t capacity,
                     std::size_t* count) const;
  zc_zero_stats stats() const;
  zc_zero_ledger ledger() const;
  std::size_t caller_parameter_bytes() const { return plan_.caller_parameter_bytes; }

 private:
  // Set up.
  void check_agreement(std::uint64_t layout_hash, const void* const* shards) const;
  MemoryPlan agreed_plan(const shard::Layout& layout, void* const* shards) const;
  void make_windows(void* const* shards);
  void list_pieces();
  void count_logical_bytes();
  void fill(void* memory, std::size_t bytes) const;  // poison, if it is on
  zc_coll_options control() const;                   // options of a collective that carries no data

  // Places (engine_places.cpp). Offsets of blocks and uses are elements.
  std::byte* own(std::size_t offset_bytes) const { return own_memory_ + offset_bytes; }
  Part owned_part(const shard::Use& use, std::int32_t rank) const;
  std::size_t place(const shard::Block& block, std::int32_t rank, std::size_t block_offset, bool full) const;
  std::size_t parameter_at(const shard::Block& block, std::int32_t rank, std::size_t block_offset) const;
  std::size_t master_bytes_at(const shard::Block& block, std::int32_t rank, std::size_t block_offset) const;
  std::size_t gradient_bytes_at(std::size_t use, std::int32_t rank, std::size_t use_offset) const;
  std::byte* own_parameter(const shard::Block& block, std::size_t block_offset) const;
  float* gradient_at(std::size_t use, std::size_t use_offset) const;
  float* master_at(std::size_t use, std::size_t use_offset) const;
  std::byte* gathered(std::size_t unit, std::size_t offset_bytes) const;
  const void* use_address(std::size_t use) const;
  zc_status read_owned(const shard::Block& block, std::int32_t owner, std::byte* to_block) const;
  std::uint64_t load_word(std::int32_t rank, std::size_t word) const;
  void store_word(std::int32_t rank, std::size_t word, std::uint64_t value) const;

  // Loading.
  zc_dtype given_dtype(std::size_t use, zc_dtype dtype) const;
  zc_status store_use(std::size_t use, std::size_t first, std::size_t count, const std::byte* data, zc_dtype dtype);
  zc_status compare_load(std::size_t unit, const void* const* full, zc_dtype dtype, std::int32_t root);
  zc_status broadcast_use(std::size_t use, const void* data, zc_dtype dtype, std::int32_t root, std::byte* staging);

  // Fetching.
  zc_status pin(std::size_t unit);
  zc_status pin_needed(std::size_t unit);
  zc_status pin_all(std::size_t unit);
  bool gathers() const { return !plan_.full_parameters && !plan_.views; }
  zc_status wait_for_view(std::uint64_t generation);
  zc_status fetch(std::size_t unit, std::size_t offset_bytes, std::uint64_t generation);
  void land(std::size_t unit, zc_status status);
  void fetch_ahead();
  zc_status carry_out_prefetch(const zero::Plan& plan, std::unique_lock<std::mutex>& lock);
  bool owners_published(std::uint64_t generation) const;
  zc_status wait_for_owners(std::uint64_t generation);
  zc_status wait_for_words(std::size_t word, std::uint64_t least, const char* label,
                           std::uint64_t (*read)(std::uint64_t), const char* what);
  zc_status check_changes(std::uint64_t generation) const;
  std::int64_t patience_ns(std::int32_t rank) const;
  void poison_dropped(const zero::Plan& plan);
  std::size_t held_units() const;
  void note_memory();
  void note_call() const;
  zc_status refuse(const zero::Verdict& verdict) const;

  // Reducing.
  bool pass_reduces(zc_phase phase) const;
  void open_gradient_pass(zc_phase phase);
  zc_status report(std::size_t use, const void* gradient, bool absent);
  void pump() noexcept;
  bool grant_one();
  bool reduce_one();
  void observe_completed();
  void copy_in(std::size_t bucket, std::uint32_t slot, bool accumulate);
  void add_parts(std::size_t use, std::byte* to, zc_dtype wire, bool accumulate);
  void show_pieces(std::size_t bucket, std::uint32_t slot) const;  // to the caller's pre_reduce
  void accumulate_locally();
  bool runnable(std::size_t bucket, std::uint64_t passes, Arrival* arrivals) const;
  bool claim(std::size_t bucket, std::size_t slice, std::uint64_t passes) const;
  bool reduce_slice(std::size_t bucket, std::size_t slice, const Arrival* arrivals);
  zc_status wait_until_reduced();
  zc_status give_up_pass(zc_status status);
  bool has_claimed(std::size_t bucket, std::uint64_t passes, std::int32_t rank) const;
  void blame_unreduced(std::int32_t* culprit, char* text, std::size_t capacity_bytes) const;
  void fail_on_all_ranks(std::uint64_t failure) const;
  std::vector<std::size_t> blocking_uses(std::size_t bucket, std::int32_t rank) const;
  zc_status check_failure() const;
  void record_engine_defect() const;

  // Updating.
  zc_status change_generation(FunctionRef<zero::Verdict()> decide);
  zc_status carry_out(const zero::Action& action);
  zc_status pull_replicas();

  zc_comm* comm_;
  const Kind kind_;
  const shard::Layout layout_;
  const zc_zero_config config_;
  const std::int32_t rank_;
  const std::int32_t ranks_;
  const std::int64_t deadline_ns_;
  const std::uint32_t fork_generation_ = fork_generation();
  const MemoryPlan plan_;
  const Words words_;
  const GatheredMemory gathered_memory_;
  std::unique_ptr<zc_window, Release> window_;
  std::byte* own_memory_ = nullptr;
  std::vector<std::unique_ptr<zc_window, Release>> windows_apart_;  // of parameters
  std::vector<ParameterHome> parameters_;                           // by buffer
  std::vector<zc_zero_piece> pieces_;
  std::size_t state_count_ = 0;
  std::vector<std::size_t> unit_logical_bytes_;  // that a fetch of the unit makes this rank receive
  std::size_t publish_logical_bytes_ = 0;        // the same for a publication in stages 1 and 2
  std::size_t reduce_logical_bytes_ = 0;         // the same for a gradient pass

  mutable std::mutex mutex_;        // guards the machines and what follows up to the atomics
  std::condition_variable landed_;  // a fetch of this rank has ended
  zero::Publication publication_;
  char open_pass_[64] = {};  // the beginning of its name, for texts
  zero::Reducer reducer_;
  zero::Fetcher fetcher_;
  std::vector<std::uint32_t> holds_;           // acquires of each unit
  std::vector<std::uint32_t> failed_fetches_;  // of each unit
  std::vector<const void*> gradients_;         // by use, of the present pass
  std::vector<std::uint32_t> slot_of_bucket_;  // in the present pass
  std::vector<std::uint8_t> brought_;          // by stored use: some gradient is in its slot
  bool in_end_ = false;
  std::uint32_t acquiring_ = 0;  // threads inside acquire or export
  std::uint32_t copies_ = 0;     // threads that copy gradients into slots
  std::size_t used_peak_bytes_ = 0;
  std::uint32_t slots_in_use_ = 0;
  std::uint64_t buckets_reduced_ = 0;
  std::uint64_t buckets_before_end_ = 0;
  std::uint64_t reduce_bytes_ = 0;

  std::atomic<std::uint64_t> shared_passes_{0};      // gradient passes reduced so far: the key of the bucket entries
  std::atomic<zc_phase> pass_phase_{ZC_PHASE_NONE};  // of the open pass, if it reduces
  std::atomic<std::int32_t> passes_in_step_{0};
  std::atomic<std::uint64_t> slices_own_{0};
  std::atomic<std::uint64_t> slices_helped_{0};
  std::atomic<std::uint64_t> gather_bytes_{0};
  std::atomic<std::uint64_t> views_{0};
  std::atomic<std::uint64_t> seen_generation_{0};   // with views: all owners have published it
  std::unique_ptr<zc_progress, Release> progress_;  // last: no work of this engine runs once it is gone
};

// Fills in defaults that depend on nothing but the config, and checks the rest. Throws Error(ARGUMENT).
zc_zero_config complete_config(const zc_zero_config& config, const Kind& kind = kWhole);

}  // namespace zerocomm::engine

// The handles of the C interface.
struct zc_zero final : zerocomm::engine::Engine {
  using Engine::Engine;
};
struct zc_reducer final : zerocomm::engine::Engine {
  using Engine::Engine;
};
struct zc_fetcher final : zerocomm::engine::Engine {
  using Engine::Engine;
};
