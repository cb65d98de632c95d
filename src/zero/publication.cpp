// Which calls are legal when, and the waits that make one-sided reads safe. docs/protocol.md, "Publication", has the
// why.
#include "zero/publication.hpp"

#include "base/check.hpp"

#include <algorithm>
#include <utility>

namespace zerocomm::zero {
namespace {

constexpr std::uint32_t kHistoryBits = 16;

const char* name_of(zc_phase phase) {
  switch (phase) {
    case ZC_PHASE_EVAL:
      return "EVAL";
    case ZC_PHASE_ONLY:
      return "ONLY";
    case ZC_PHASE_FIRST:
      return "FIRST";
    case ZC_PHASE_MIDDLE:
      return "MIDDLE";
    case ZC_PHASE_LAST:
      return "LAST";
    case ZC_PHASE_NONE:
    case ZC_PHASE_FORCE_INT_:
      break;
  }
  return "NONE";
}

Verdict refused(std::string text, zc_status status = ZC_STATE) { return {status, std::move(text), {}}; }

}  // namespace

std::uint64_t pack(const Published& published) { return published.generation << kHistoryBits | published.history; }

Published unpack(std::uint64_t word) { return {word >> kHistoryBits, static_cast<std::uint16_t>(word)}; }

Change change_of(const Published& published, std::uint64_t generation) {
  if (generation > published.generation) return Change::unknown;
  const std::uint64_t age = published.generation - generation;
  if (age >= kHistoryBits) return Change::unknown;
  return (published.history >> age & 1) != 0 ? Change::changed : Change::unchanged;
}

Published after_publish(const Published& published, bool changed) {
  return {published.generation + 1, static_cast<std::uint16_t>(published.history << 1 | (changed ? 1 : 0))};
}

Verdict Publication::check_gradient_phase(zc_phase phase, std::int32_t most_micro_steps) const {
  const bool opens = phase == ZC_PHASE_ONLY || phase == ZC_PHASE_FIRST;
  if (opens && step_open_)
    return refused(format("a pass with phase %s, but a step is open: %d passes since FIRST, LAST has not come",
                          name_of(phase), passes_in_step_));
  if (!opens && !step_open_)
    return refused(format("a pass with phase %s, but no step is open: FIRST comes before it", name_of(phase)));
  // A pass that leaves the step open needs room for a LAST after it.
  const std::int32_t most = std::max<std::int32_t>(most_micro_steps, 1);
  const bool closes = phase == ZC_PHASE_ONLY || phase == ZC_PHASE_LAST;
  const std::int32_t number = opens ? 1 : passes_in_step_ + 1;
  if (number + (closes ? 0 : 1) > most)
    return refused(format("gradient pass %d of a step with phase %s, but zc_zero_config.micro_steps allows %d passes",
                          number, name_of(phase), most));
  return {};
}

Verdict Publication::begin(zc_phase phase, std::int32_t most_micro_steps) {
  if (phase < ZC_PHASE_EVAL || phase > ZC_PHASE_LAST)
    return refused(format("phase %d of a pass: say EVAL, ONLY, FIRST, MIDDLE or LAST", static_cast<int>(phase)),
                   ZC_ARGUMENT);
  if (pass_open_) return refused(format("a pass with phase %s is open: zc_zero_end comes first", name_of(phase_)));
  if (update_open_) return refused("the update is open: zc_zero_publish comes before the next pass");
  if (phase != ZC_PHASE_EVAL) {
    if (Verdict verdict = check_gradient_phase(phase, most_micro_steps); verdict.status != ZC_OK) return verdict;
    const bool opens = phase == ZC_PHASE_ONLY || phase == ZC_PHASE_FIRST;
    passes_in_step_ = opens ? 1 : passes_in_step_ + 1;
    step_open_ = phase != ZC_PHASE_ONLY;
    step_complete_ = false;
    ++gradient_passes_;
  }
  phase_ = phase;
  pass_open_ = true;
  pinned_ = published_.generation;
  return {};
}

Verdict Publication::acquire(std::size_t /*held_units*/) const {
  if (pass_open_) return {};
  if (update_open_) return refused("the update is open: units can be had in a pass, after zc_zero_publish");
  return refused("no pass is open: zc_zero_begin comes before units are acquired or prefetched");
}

Verdict Publication::end() {
  if (!pass_open_) return refused("no pass is open");
  if (phase_ == ZC_PHASE_ONLY || phase_ == ZC_PHASE_LAST) {
    step_open_ = false;
    step_complete_ = true;
  }
  pass_open_ = false;
  return {};
}

Verdict Publication::check_closable(const char* call, std::size_t held_units) const {
  if (pass_open_)
    return refused(format("%s while a pass with phase %s is open: zc_zero_end comes first", call, name_of(phase_)));
  if (held_units != 0)
    return refused(format("%s while %zu units are held: zc_zero_release comes first", call, held_units));
  if (step_open_)
    return refused(
        format("%s in the middle of a step: %d gradient passes since FIRST, LAST has not come", call, passes_in_step_));
  return {};
}

// After this, no copy of the present generation is under way or kept, and none will start.
void Publication::close(ActionList& actions) const {
  actions.push_back({Step::drain});
  actions.push_back({Step::drop_cache});
  actions.push_back({Step::set_done, published_.generation});
}

void Publication::advance(ActionList& actions, bool changed) {
  published_ = after_publish(published_, changed);
  actions.push_back({Step::set_published, published_.generation, changed});
  update_open_ = false;
  step_complete_ = false;
  passes_in_step_ = 0;
}

Verdict Publication::update_begin(std::size_t held_units) {
  if (update_open_) return refused("zc_zero_update_begin while the update is open already");
  Verdict verdict = check_closable("zc_zero_update_begin", held_units);
  if (verdict.status != ZC_OK) return verdict;
  close(verdict.actions);
  if (stage_ != ZC_STAGE_0) verdict.actions.push_back({Step::wait_all_done, published_.generation});
  update_open_ = true;
  return verdict;
}

Verdict Publication::cast() const {
  return update_open_ ? Verdict{} : refused("zc_zero_cast outside an update: zc_zero_update_begin comes first");
}

Verdict Publication::publish() {
  if (!update_open_) return refused("zc_zero_publish without zc_zero_update_begin");
  Verdict verdict;
  advance(verdict.actions, true);
  if (stage_ == ZC_STAGE_1 || stage_ == ZC_STAGE_2) {
    verdict.actions.push_back({Step::wait_all_published, published_.generation});
    verdict.actions.push_back({Step::pull_replicas, published_.generation});
  }
  return verdict;
}

Verdict Publication::publish_unchanged(std::size_t held_units) {
  Verdict verdict;
  if (!update_open_) {
    verdict = check_closable("zc_zero_publish_unchanged", held_units);
    if (verdict.status != ZC_OK) return verdict;
    close(verdict.actions);
  }
  advance(verdict.actions, false);
  return verdict;
}

Verdict Publication::norm() const {
  if (step_complete_) return {};
  if (gradients_open()) return refused("gradients are not complete: a pass with gradients is open");
  if (step_open_)
    return refused(format("gradients are not complete: %d passes since FIRST, LAST has not come", passes_in_step_));
  return refused("there are no gradients: no step was completed since the last publication");
}

Verdict Publication::read_outside() const {
  return update_open_ ? refused("the update is open: parameters are not whole before zc_zero_publish") : Verdict{};
}

}  // namespace zerocomm::zero
