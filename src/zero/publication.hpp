// Life of one rank's generations: which call is legal now, and what it has to do. Pure: calls in, actions out.
//
// The rules are those of zero.h, "Legal programs". The owner's cycle is update_begin, write, publish; a pass pins the
// generation that its own rank published last; before a rank may overwrite generation g, every rank has said that it
// will never read g again.
#pragma once

#include <zerocomm/zero.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace zerocomm::zero {

enum class Step : std::uint8_t {
  drain,               // wait for copies of this rank that are under way
  drop_cache,          // forget gathered units
  set_done,            // value: this rank will never read that generation again
  wait_all_done,       // value: until every rank has said so
  set_published,       // value: generation; changed
  wait_all_published,  // value
  pull_replicas,       // stages 1, 2: bring the own replica to generation `value`
};

struct Action {
  Step step{};
  std::uint64_t value = 0;
  bool changed = false;
  friend bool operator==(const Action&, const Action&) = default;
};

// The actions of one verdict, in order. A fixed array: a step of training allocates nothing.
class ActionList {
 public:
  void push_back(const Action& action) { actions_.at(count_++) = action; }
  const Action* begin() const { return actions_.data(); }
  const Action* end() const { return actions_.data() + count_; }
  const Action& operator[](std::size_t index) const { return actions_.at(index); }
  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }

 private:
  std::array<Action, 4> actions_{};
  std::size_t count_ = 0;
};

// Outcome of a call: OK and what to do, in order; or a status with its text.
struct Verdict {
  zc_status status = ZC_OK;
  std::string text;
  ActionList actions;
};

// What another rank's published word says. One word: generation << 16 | history; bit i of history: was generation - i
// changed?
struct Published {
  std::uint64_t generation = 0;
  std::uint16_t history = 0;
};
std::uint64_t pack(const Published& published);
Published unpack(std::uint64_t word);
// Whether `generation` (<= published.generation) was published as changed; unknown (older than the history) counts as
// agreeing.
enum class Change : std::uint8_t { unchanged, changed, unknown };
Change change_of(const Published& published, std::uint64_t generation);
Published after_publish(const Published& published, bool changed);

class Publication {
 public:
  explicit Publication(zc_stage stage) : stage_(stage) {}

  Verdict begin(zc_phase phase, std::int32_t most_micro_steps);  // checks the order FIRST MIDDLE* LAST | ONLY
  Verdict acquire(std::size_t held_units) const;                 // legal inside a pass only
  Verdict end();
  Verdict update_begin(std::size_t held_units);
  Verdict cast() const;
  Verdict publish();
  Verdict publish_unchanged(std::size_t held_units);
  Verdict norm() const;  // gradients complete: after the last pass of a step, before the next begin with gradients
  Verdict read_outside() const;  // export: legal unless the update is open

  bool pass_open() const { return pass_open_; }
  bool gradients_open() const { return pass_open_ && phase_ != ZC_PHASE_EVAL; }
  zc_phase phase() const { return phase_; }
  bool step_complete() const { return step_complete_; }
  std::uint64_t gradient_passes() const {
    return gradient_passes_;
  }  // opened so far; the key of the present one is this minus 1
  std::int32_t passes_in_step() const { return passes_in_step_; }  // including the present one
  std::uint64_t pinned() const { return pinned_; }
  const Published& published() const { return published_; }
  bool update_open() const { return update_open_; }

 private:
  Verdict check_gradient_phase(zc_phase phase, std::int32_t most_micro_steps) const;
  Verdict check_closable(const char* call, std::size_t held_units) const;
  void close(ActionList& actions) const;
  void advance(ActionList& actions, bool changed);

  zc_stage stage_;
  Published published_{};
  std::uint64_t pinned_ = 0;
  std::uint64_t gradient_passes_ = 0;
  std::int32_t passes_in_step_ = 0;
  zc_phase phase_ = ZC_PHASE_NONE;
  bool pass_open_ = false;
  bool update_open_ = false;
  bool step_open_ = false;      // FIRST was seen, LAST was not
  bool step_complete_ = false;  // gradients of a whole step are reduced and not yet replaced
};

}  // namespace zerocomm::zero
