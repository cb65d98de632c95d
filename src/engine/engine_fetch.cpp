// Passes and parameters: begin, acquire, release, and the copies of stage 3.
#include "base/clock.hpp"
#include "engine/engine.hpp"

#include <cstdio>

namespace zerocomm::engine {

using zero::Need;
using zero::Plan;
using zero::Verdict;

zc_status Engine::begin(const char* pass, zc_phase phase) {
  ZC_REQUIRE(pass != nullptr && *pass != '\0', ZC_ARGUMENT, "rank %d: a pass needs a name", rank_);
  ZC_TRY(zc_comm_status(comm_));
  ZC_TRY(check_failure());
  {
    const std::lock_guard lock(mutex_);
    ZC_TRY(check_changes(publication_.published().generation));
    const bool one_is_open = publication_.pass_open();
    const Verdict verdict = publication_.begin(phase, config_.micro_steps);
    if (verdict.status != ZC_OK && one_is_open)
      return fail(verdict.status, "rank %d: pass \"%s\" while pass \"%s\" is open: %s", rank_, pass, open_pass_,
                  named(kind_, verdict.text).c_str());
    if (verdict.status != ZC_OK) return refuse(verdict);
    std::snprintf(open_pass_, sizeof open_pass_, "%s", pass);
    fetcher_.begin_pass(pass);
    if (phase != ZC_PHASE_EVAL) open_gradient_pass(phase);
    note_call();
  }
  if (gathers()) fetch_ahead();
  return ZC_OK;
}

// Pins one storing unit and makes it resident.
zc_status Engine::pin(std::size_t unit) {
  std::unique_lock lock(mutex_);
  for (;;) {
    // Together with the plan: once update_begin has closed the engine, no fetch may start.
    const Verdict verdict = publication_.acquire(held_units());
    if (verdict.status != ZC_OK) return refuse(verdict);
    const std::uint64_t generation = publication_.pinned();
    const Plan plan = fetcher_.acquire(unit);
    if (plan.status != ZC_OK) return fail(plan.status, "rank %d: %s", rank_, plan.text.c_str());
    poison_dropped(plan);
    switch (plan.need) {
      case Need::resident:
        return ZC_OK;
      case Need::fetch: {
        note_memory();
        lock.unlock();
        const zc_status status = fetch(plan.unit, plan.offset_bytes, generation);
        lock.lock();
        land(unit, status);
        return status;
      }
      case Need::busy: {
        const std::uint32_t failed = failed_fetches_[unit];
        landed_.wait(lock, [&] { return failed != failed_fetches_[unit] || !fetcher_.fetching(unit); });
        if (failed == failed_fetches_[unit]) return ZC_OK;
        break;  // that fetch failed, and took our pin with it
      }
      case Need::retry:
        landed_.wait(lock);
        break;
    }
  }
}

zc_status Engine::pin_needed(std::size_t unit) {
  const std::vector<std::size_t>& needs = layout_.units[unit].needs;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const zc_status status = pin(needs[i]);
    if (status == ZC_OK) continue;
    const std::lock_guard lock(mutex_);
    while (i-- > 0) poison_dropped(fetcher_.release(needs[i]));
    return status;
  }
  return ZC_OK;
}

zc_status Engine::acquire(std::size_t unit, const void** tensors, std::size_t tensor_capacity) {
  ZC_REQUIRE(unit < layout_.units.size(), ZC_ARGUMENT, "rank %d: unit %zu of a layout with %zu units", rank_, unit,
             layout_.units.size());
  const std::vector<std::size_t>& uses = layout_.units[unit].uses;
  ZC_REQUIRE(tensors != nullptr && tensor_capacity >= uses.size(), ZC_ARGUMENT,
             "rank %d: unit %s has %zu tensors, and there is room for %zu", rank_, layout_.units[unit].name.c_str(),
             uses.size(), tensors == nullptr ? 0 : tensor_capacity);
  ZC_TRY(zc_comm_status(comm_));
  std::uint64_t generation = 0;
  {
    const std::lock_guard lock(mutex_);
    const Verdict verdict = publication_.acquire(held_units());
    if (verdict.status != ZC_OK) return refuse(verdict);
    generation = publication_.pinned();
    note_call();
    ++acquiring_;
  }
  const Inside inside(acquiring_, mutex_);
  if (plan_.views) ZC_TRY(wait_for_view(generation));
  if (gathers()) ZC_TRY(pin_all(unit));
  const std::lock_guard lock(mutex_);
  if (gathers()) fetcher_.visit(unit);
  ++holds_[unit];
  for (std::size_t i = 0; i < uses.size(); ++i) tensors[i] = use_address(uses[i]);
  if (plan_.views) views_.fetch_add(1);
  return ZC_OK;
}

// Until all shards are of the generation of this pass. They stay so until this rank, too, is done with it.
zc_status Engine::wait_for_view(std::uint64_t generation) {
  if (seen_generation_.load() == generation) return ZC_OK;
  ZC_TRY(wait_for_owners(generation));
  ZC_TRY(check_changes(generation));
  seen_generation_.store(generation);
  return ZC_OK;
}

// Pins what a unit needs, if need be after everything else was dropped.
zc_status Engine::pin_all(std::size_t unit) {
  zc_status status = pin_needed(unit);
  if (status != ZC_BUDGET || layout_.units[unit].needs.size() < 2) return status;
  // One of several needed units may lie in the middle of the arena. Start from an empty one.
  {
    std::unique_lock lock(mutex_);
    landed_.wait(lock, [&] { return !fetcher_.any_fetching(); });
    poison_dropped(fetcher_.drop_unheld());
  }
  return pin_needed(unit);
}

zc_status Engine::release(std::size_t unit) {
  ZC_REQUIRE(unit < layout_.units.size(), ZC_ARGUMENT, "rank %d: unit %zu of a layout with %zu units", rank_, unit,
             layout_.units.size());
  {
    const std::lock_guard lock(mutex_);
    ZC_REQUIRE(holds_[unit] != 0, ZC_STATE, "rank %d: unit %s is not held", rank_, layout_.units[unit].name.c_str());
    --holds_[unit];
    note_call();
    if (!gathers()) return ZC_OK;
    for (const std::size_t need : layout_.units[unit].needs) poison_dropped(fetcher_.release(need));
  }
  fetch_ahead();
  return ZC_OK;
}

zc_status Engine::prefetch(std::size_t unit) {
  ZC_REQUIRE(unit < layout_.units.size(), ZC_ARGUMENT, "rank %d: unit %zu of a layout with %zu units", rank_, unit,
             layout_.units.size());
  for (const std::size_t need : layout_.units[unit].needs) {
    std::unique_lock lock(mutex_);
    ZC_REQUIRE(publication_.pass_open(), ZC_STATE, "rank %d: %s_prefetch outside a pass", rank_, kind_.prefix);
    if (!gathers()) return ZC_OK;
    if (fetcher_.resident(need) || fetcher_.fetching(need)) continue;
    if (!owners_published(publication_.pinned()))
      return fail(ZC_AGAIN, "rank %d: not all owners have published", rank_);
    const std::optional<Plan> plan = fetcher_.prefetch(need);
    if (!plan)
      return fail(ZC_AGAIN, "rank %d: no room to fetch unit %s ahead", rank_, layout_.units[need].name.c_str());
    ZC_TRY(carry_out_prefetch(*plan, lock));
  }
  return ZC_OK;
}

// Fetches a planned unit without the lock, and takes the lock again.
zc_status Engine::carry_out_prefetch(const Plan& plan, std::unique_lock<std::mutex>& lock) {
  poison_dropped(plan);
  note_memory();
  const std::size_t unit = plan.unit, offset_bytes = plan.offset_bytes;
  const std::uint64_t generation = publication_.pinned();
  lock.unlock();
  const zc_status status = fetch(unit, offset_bytes, generation);
  lock.lock();
  land(unit, status);
  return status;
}

// Under the lock: a fetch of this rank has ended.
void Engine::land(std::size_t unit, zc_status status) {
  fetcher_.landed(unit, status == ZC_OK);
  if (status != ZC_OK) ++failed_fetches_[unit];
  landed_.notify_all();
}

void Engine::fetch_ahead() {
  std::unique_lock lock(mutex_);
  while (publication_.pass_open() && owners_published(publication_.pinned())) {
    const std::optional<Plan> plan = fetcher_.prefetch();
    if (!plan || carry_out_prefetch(*plan, lock) != ZC_OK)
      return;  // an error comes back at the acquire that needs the unit
  }
}

// Copies a unit's shards of one generation from all ranks to its place.
zc_status Engine::fetch(std::size_t unit, std::size_t offset_bytes, std::uint64_t generation) {
  ZC_TRY(wait_for_owners(generation));
  ZC_TRY(check_changes(generation));
  for (const std::size_t index : layout_.units[unit].blocks) {
    const shard::Block& block = layout_.blocks[index];
    std::byte* to = gathered(unit, offset_bytes) + block.unit_offset_bytes;
    for (std::int32_t step = 0; step < ranks_; ++step)
      ZC_TRY(read_owned(block, (rank_ + step) % ranks_, to));  // every rank begins with another owner
  }
  gather_bytes_ += unit_logical_bytes_[unit];
  return ZC_OK;
}

bool Engine::owners_published(std::uint64_t generation) const {
  for (std::int32_t rank = 0; rank < ranks_; ++rank)
    if (zero::unpack(load_word(rank, Words::published())).generation < generation) return false;
  return true;
}

zc_status Engine::wait_for_owners(std::uint64_t generation) {
  return wait_for_words(
      Words::published(), generation, "a fetch", [](std::uint64_t word) { return zero::unpack(word).generation; },
      "has published generation");
}

// Waits until `read` of a word is at least `least` on every rank.
zc_status Engine::wait_for_words(std::size_t word, std::uint64_t least, const char* label,
                                 std::uint64_t (*read)(std::uint64_t), const char* what) {
  struct Wait {
    const Engine* engine;
    std::size_t word;
    std::uint64_t least;
    std::uint64_t (*read)(std::uint64_t);
    const char* what;
    std::int32_t next;
  } wait{this, word, least, read, what, 0};
  zc_wait_options options{};
  options.struct_size = sizeof options;
  options.deadline_ns = config_.deadline_ns;
  options.label = label;
  options.blame = [](void* context, std::int32_t* rank, char* text, std::size_t capacity_bytes) {
    const auto& at = *static_cast<const Wait*>(context);
    *rank = at.next;
    std::snprintf(text, capacity_bytes, "rank %d %s %llu, and %llu is waited for", at.next, at.what,
                  static_cast<unsigned long long>(at.read(at.engine->load_word(at.next, at.word))),
                  static_cast<unsigned long long>(at.least));
  };
  options.extend_ns = [](void* context) -> std::int64_t {
    const auto& at = *static_cast<const Wait*>(context);
    return at.engine->patience_ns(at.next);
  };
  const zc_ready_fn ready = [](void* context) -> int {
    auto& at = *static_cast<Wait*>(context);
    while (at.next < at.engine->ranks_ && at.read(at.engine->load_word(at.next, at.word)) >= at.least) ++at.next;
    return at.next == at.engine->ranks_;
  };
  return zc_comm_wait(comm_, ready, &wait, &options);
}

// How much longer to wait for a rank. One that is inside a pass may compute for long: its time counts from its last
// call.
std::int64_t Engine::patience_ns(std::int32_t rank) const {
  const std::uint64_t called_ns = load_word(rank, Words::called());
  return called_ns == 0 ? 0 : static_cast<std::int64_t>(called_ns) + deadline_ns_ - now_ns();
}

// MISMATCH if two ranks published one generation in different ways. Looks only at what is published already.
zc_status Engine::check_changes(std::uint64_t generation) const {
  zero::Change first = zero::Change::unknown;
  std::int32_t first_rank = 0;
  for (std::int32_t rank = 0; rank < ranks_; ++rank) {
    const zero::Published published = zero::unpack(load_word(rank, Words::published()));
    if (published.generation < generation) continue;
    const zero::Change change = zero::change_of(published, generation);
    if (change == zero::Change::unknown || change == first) continue;
    if (first != zero::Change::unknown) {
      fail_on_all_ranks(Words::failure_of_generation(generation));
      return fail(ZC_MISMATCH, "rank %d: generation %llu was published as %s by rank %d and as %s by rank %d", rank_,
                  static_cast<unsigned long long>(generation), first == zero::Change::changed ? "changed" : "unchanged",
                  first_rank, change == zero::Change::changed ? "changed" : "unchanged", rank);
    }
    first = change;
    first_rank = rank;
  }
  return ZC_OK;
}

// Under the lock. Says when this rank last called inside a pass: others measure their patience from there. Wakes
// nobody.
void Engine::note_call() const {
  const std::uint64_t before = load_word(rank_, Words::called());
  const std::uint64_t now = publication_.pass_open() ? static_cast<std::uint64_t>(now_ns()) : 0;
  if (before != now) zc_window_compare_swap(window_.get(), rank_, Words::called(), before, now, nullptr);
}

void Engine::poison_dropped(const Plan& plan) {
  if (config_.poison == 0) return;
  for (std::size_t i = 0; i < plan.dropped.size(); ++i)
    fill(gathered(plan.dropped[i], plan.dropped_offset_bytes[i]), layout_.units[plan.dropped[i]].gathered_bytes);
}

std::size_t Engine::held_units() const {
  std::size_t count = acquiring_;  // what another thread is acquiring is as good as held
  for (const std::uint32_t holds : holds_) count += holds != 0;
  return count;
}

void Engine::note_memory() {
  const std::size_t slot_bytes = plan_.own_slots || plan_.slots == 0 ? 0 : plan_.ledger.slot_bytes / plan_.slots;
  used_peak_bytes_ = std::max(used_peak_bytes_, fetcher_.resident_bytes() + slots_in_use_ * slot_bytes);
}

zc_status Engine::refuse(const Verdict& verdict) const {
  return fail(verdict.status, "rank %d: %s", rank_, named(kind_, verdict.text).c_str());
}

}  // namespace zerocomm::engine
