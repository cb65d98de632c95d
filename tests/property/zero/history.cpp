// Random layouts, limits and programs. What all ranks have in common is the skeleton of steps; the rest is each rank's
// own.
#include "property/zero/history.hpp"

#include "unit/zero/small_layout.hpp"

#include <algorithm>
#include <numeric>

namespace zerocomm::test {
namespace {

constexpr std::size_t kTrain = 0;  // name of passes with gradients; evaluations have others

shard::Layout random_layout(Random& random) {
  std::vector<UnitSpec> units(2 + below(random, 4));
  for (UnitSpec& unit : units) unit = {chance(random, 10) ? 0 : 1 + below(random, 4), chance(random, 20)};
  std::vector<UseSpec> uses;
  for (std::size_t u = 0; u < units.size(); ++u)
    for (std::size_t i = 0; i <= below(random, 2); ++i)
      uses.push_back({"t" + std::to_string(uses.size()), u, chance(random, 5) ? 0U : 1U, {}, chance(random, 10)});
  if (!uses.front().frozen && uses.front().count > 0 && chance(random, 50))
    uses.push_back({"tie", units.size() - 1, 1, uses.front().tensor});
  return small_layout(units, uses, 1 + below(random, 3));
}

std::size_t most_bytes_of_a_unit(const shard::Layout& layout) { return zero::least_arena_bytes(layout, 1); }

class Writer {
 public:
  Writer(const History& history, Random& random) : history_(history), random_(random) {}

  void evaluate(Program& program) {
    program.push_back({OpKind::begin, 1 + below(random_, 2), 0, ZC_PHASE_EVAL});
    append_visits(program, {});
    program.push_back({OpKind::end});
  }

  void train(Program& program, zc_phase phase) {
    program.push_back({OpKind::begin, kTrain, 0, phase});
    append_visits(program, random_reports());
    program.push_back({OpKind::end});
  }

  void update(Program& program, bool changed) {
    if (changed || chance(random_, 50)) program.push_back({OpKind::update_begin});
    if (changed) program.push_back({OpKind::write});
    program.push_back({changed ? OpKind::publish : OpKind::publish_unchanged});
  }

 private:
  std::vector<Op> random_reports() {
    std::vector<Op> reports;
    for (std::size_t use = 0; use < history_.layout.uses.size(); ++use) {
      if (!history_.layout.tensors[use].trainable) continue;
      if (history_.reducer.absent_is_zero && chance(random_, 10)) continue;
      reports.push_back({chance(random_, 15) ? OpKind::absent : OpKind::ready, use});
    }
    const std::size_t order = below(random_, 3);
    if (order == 1) std::reverse(reports.begin(), reports.end());
    if (order == 2) std::shuffle(reports.begin(), reports.end(), random_);
    return reports;
  }

  std::vector<std::size_t> random_visits() {
    const std::size_t units = history_.layout.units.size();
    std::vector<std::size_t> visits(units);
    std::iota(visits.begin(), visits.end(), std::size_t{0});
    if (chance(random_, 50)) {
      for (std::size_t u = units; u-- > 0;) visits.push_back(u);
      return visits;
    }
    visits.resize(below(random_, 2 * units + 1));
    for (std::size_t& unit : visits) unit = below(random_, units);
    return visits;
  }

  // Visits, some of them nested, with the reports spread over them in their order.
  void append_visits(Program& program, const std::vector<Op>& reports) {
    const std::vector<std::size_t> visits = random_visits();
    std::size_t reported = 0;
    std::vector<Op> open;
    for (const std::size_t unit : visits) {
      const Op acquire{OpKind::acquire, unit, ++keys_};
      program.push_back(acquire);
      open.push_back({OpKind::release, unit, acquire.key});
      while (reported < reports.size() && chance(random_, 50)) program.push_back(reports[reported++]);
      if (chance(random_, 20)) program.push_back({OpKind::hint, below(random_, history_.layout.units.size())});
      while (!open.empty() && (open.size() > 2 || chance(random_, 75))) {
        const std::size_t which = below(random_, open.size());
        program.push_back(open[which]);
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
      }
    }
    program.insert(program.end(), open.begin(), open.end());
    program.insert(program.end(), reports.begin() + static_cast<std::ptrdiff_t>(reported), reports.end());
  }

  const History& history_;
  Random& random_;
  std::size_t keys_ = 0;
};

zc_phase phase_of(std::size_t pass, std::size_t passes) {
  if (passes == 1) return ZC_PHASE_ONLY;
  if (pass == 0) return ZC_PHASE_FIRST;
  return pass + 1 == passes ? ZC_PHASE_LAST : ZC_PHASE_MIDDLE;
}

}  // namespace

History random_history(Random& random) {
  History history;
  const std::size_t ranks = 2 + below(random, 3);
  history.layout = random_layout(random);
  history.stage = chance(random, 75) ? ZC_STAGE_3 : ZC_STAGE_2;
  history.reducer.slots = static_cast<std::uint32_t>(1 + below(random, 3));
  history.reducer.own_slots = chance(random, 10);
  history.reducer.launch_at_end = chance(random, 15);
  history.reducer.absent_is_zero = chance(random, 50);
  history.fetcher.alignment_bytes = 1 + below(random, 2);
  history.fetcher.max_held_bytes = most_bytes_of_a_unit(history.layout) + below(random, 5);
  history.fetcher.arena_bytes = std::max(zero::least_arena_bytes(history.layout, history.fetcher.alignment_bytes),
                                         history.fetcher.max_held_bytes) +
                                below(random, 5);
  history.fetcher.prefetch = static_cast<std::int32_t>(below(random, 4)) - 1;
  history.fetcher.drop_released = chance(random, 15);
  history.most_micro_steps = 3;
  history.ahead_at_once = below(random, 4);
  history.gradients_wait_for_end = chance(random, 30);
  history.copy_speed = chance(random, 50) ? 1 : 8;
  history.programs.resize(ranks);
  for (std::size_t r = 0; r < ranks; ++r) history.speeds.push_back(chance(random, 30) ? 1 : 1 + below(random, 30));

  std::vector<Writer> writers(ranks, Writer(history, random));
  const auto maybe_evaluate = [&](std::size_t r, std::size_t percent) {
    while (chance(random, percent)) writers[r].evaluate(history.programs[r]);
  };
  for (std::size_t step = 1 + below(random, 3); step-- > 0;) {
    const std::size_t passes = below(random, 4);  // none: only the weights are edited
    const bool changed = chance(random, 70);
    for (std::size_t r = 0; r < ranks; ++r) {
      for (std::size_t pass = 0; pass < passes; ++pass) {
        maybe_evaluate(r, 15);
        writers[r].train(history.programs[r], phase_of(pass, passes));
      }
      maybe_evaluate(r, 30);
      writers[r].update(history.programs[r], changed);
    }
  }
  for (std::size_t r = 0; r < ranks; ++r) maybe_evaluate(r, 50);
  return history;
}

History history_of(const shard::Layout& layout, const std::vector<std::vector<std::size_t>>& visits,
                   const std::vector<std::vector<std::size_t>>& reports) {
  History history;
  history.layout = layout;
  history.reducer.slots = 2;
  history.fetcher.alignment_bytes = 1;
  history.fetcher.arena_bytes = 2 * zero::least_arena_bytes(layout, 1);
  history.fetcher.max_held_bytes = zero::least_arena_bytes(layout, 1);
  history.ahead_at_once = 1;
  history.speeds.assign(visits.size(), 1);
  for (std::size_t r = 0; r < visits.size(); ++r) {
    Program program;
    for (int step = 0; step < 2; ++step) {
      program.push_back({OpKind::begin, kTrain, 0, ZC_PHASE_ONLY});
      std::size_t key = 0;
      for (const std::size_t unit : visits[r]) {
        program.push_back({OpKind::acquire, unit, ++key});
        program.push_back({OpKind::release, unit, key});
      }
      for (const std::size_t use : reports[r]) program.push_back({OpKind::ready, use});
      program.insert(program.end(), {{OpKind::end}, {OpKind::update_begin}, {OpKind::write}, {OpKind::publish}});
    }
    history.programs.push_back(program);
  }
  return history;
}

}  // namespace zerocomm::test
