// V2 to V7 by one run over expressions, V8 by one on clocks.
#include "schedule/verify.hpp"

#include "base/check.hpp"
#include "schedule/catalogue.hpp"
#include "schedule/contributions.hpp"
#include "schedule/machine.hpp"
#include "schedule/schedule_text.hpp"

#include <algorithm>

namespace zerocomm::schedule {
namespace {

void set(Verdict& verdict, Property property, std::optional<Violation> violation) {
  verdict.findings[static_cast<std::size_t>(property)] = violation ? Finding::broken : Finding::holds;
  if (violation) verdict.violations.push_back(std::move(*violation));
}

std::optional<Violation> check_termination(const Schedule& schedule, const Outcome& outcome) {
  if (outcome.finished()) return std::nullopt;
  constexpr std::size_t kShown = 8;
  std::string text = format("%zu lanes cannot go on:", outcome.stuck.size());
  for (std::size_t i = 0; i < std::min(kShown, outcome.stuck.size()); ++i) {
    const auto& [at, why] = outcome.stuck[i];
    const char* reason = why == Blocked::channel_full    ? "earlier messages on this channel were not taken"
                         : why == Blocked::channel_empty ? "no message comes"
                         : why == Blocked::wait          ? "the step it waits for is not done"
                                                         : "an earlier send of what it writes was not taken";
    text += (i == 0 ? " " : "; ") + place_text(schedule, at) + ": " + reason;
  }
  return Violation{Property::termination, outcome.stuck.front().at, text};
}

// The wrong contributions of an expression in words; empty if it is right.
std::string wrong_contributions(const Key& key, const Expressions& expressions, ExprId id, std::uint32_t chunk) {
  if (id == kUndefined) return "is undefined";
  const Expressions::Counts found = expressions.counts(id, chunk, key.ranks);
  if (found.foreign > 0) return "holds contributions to other chunks";
  for (std::uint32_t rank = 0; rank < key.ranks; ++rank) {
    const std::uint64_t wanted = contributes(key, rank, chunk) ? 1 : 0;
    if (found.per_rank[rank] != wanted)
      return format("holds the contribution of rank %u %llu times, not %llu", rank,
                    static_cast<unsigned long long>(found.per_rank[rank]), static_cast<unsigned long long>(wanted));
  }
  return {};
}

std::optional<Violation> check_result(const Schedule& schedule, Contributions& run) {
  const Key& key = schedule.key;
  for (std::uint32_t rank = 0; rank < key.ranks; ++rank) {
    const ChunkRuns output = output_chunks(key, rank);
    for (std::uint32_t c = 0; c < key.chunks; ++c) {
      if (!output.contains(c)) continue;
      const std::string wrong = wrong_contributions(key, run.expressions(), run.output(rank, c), c);
      if (!wrong.empty())
        return Violation{
            Property::result, std::nullopt,
            format("output[%u] of rank %u ", c, rank) + wrong + ": " + run.expressions().text(run.output(rank, c))};
    }
    for (std::uint32_t from = 0; key.collective == Collective::barrier && from < key.ranks; ++from)
      if (from != rank && !run.races().heard(rank, from))
        return Violation{Property::result, std::nullopt, format("rank %u may leave before rank %u came", rank, from)};
  }
  return std::nullopt;
}

std::optional<Violation> check_agreement(const Schedule& schedule, Contributions& run) {
  for (std::uint32_t c = 0; c < schedule.key.chunks; ++c) {
    std::optional<std::uint32_t> first;
    for (std::uint32_t rank = 0; rank < schedule.key.ranks; ++rank) {
      if (!output_chunks(schedule.key, rank).contains(c)) continue;
      if (!first) first = rank;
      if (run.output(rank, c) != run.output(*first, c))
        return Violation{Property::agreement, std::nullopt,
                         format("output[%u] is ", c) + run.expressions().text(run.output(*first, c)) +
                             format(" on rank %u, but ", *first) + run.expressions().text(run.output(rank, c)) +
                             format(" on rank %u", rank)};
    }
  }
  return std::nullopt;
}

bool is_canonical(const Schedule& schedule, Contributions& run) {
  if (!is_reduction(schedule.key.collective)) return true;  // a move has no order of additions
  Expressions& expressions = run.expressions();
  for (std::uint32_t c = 0; c < schedule.key.chunks; ++c) {
    ExprId sum = expressions.leaf(0, c);
    for (std::uint32_t rank = 1; rank < schedule.key.ranks; ++rank)
      sum = expressions.sum(sum, expressions.leaf(rank, c));
    for (std::uint32_t rank = 0; rank < schedule.key.ranks; ++rank)
      if (output_chunks(schedule.key, rank).contains(c) && run.output(rank, c) != expressions.rounded(sum))
        return false;
  }
  return true;
}

std::optional<Violation> check_races(const Schedule& schedule, const RaceCheck& races) {
  if (!races.race()) return std::nullopt;
  const auto& [first, second, place] = *races.race();
  const bool scratch = place >= schedule.key.chunks;
  return Violation{Property::races, second,
                   place_text(schedule, second) + " and " + place_text(schedule, first) +
                       format(" touch %s %u and nothing orders them", scratch ? "scratch slot" : "chunk",
                              scratch ? place - schedule.key.chunks : place)};
}

std::optional<Violation> check_stale_reads(const Schedule& schedule, const Contributions& run) {
  if (!run.stale_read()) return std::nullopt;
  const auto& [at, what] = *run.stale_read();
  return Violation{Property::stale_reads, at, place_text(schedule, at) + " " + what};
}

std::optional<Violation> check_loss(const Schedule& schedule, Contributions& run) {
  const Expressions& expressions = run.expressions();
  for (std::uint32_t rank = 0; rank < schedule.key.ranks; ++rank)
    for (std::uint32_t c = 0; c < schedule.key.chunks; ++c) {
      const ExprId found = run.output(rank, c);
      if (!output_chunks(schedule.key, rank).contains(c) || expressions.losses(found) <= schedule.loss) continue;
      return Violation{Property::loss, std::nullopt,
                       format("output[%u] of rank %u holds something that was encoded %u times, not at most loss=%u: ",
                              c, rank, expressions.losses(found), schedule.loss) +
                           expressions.text(found)};
    }
  return std::nullopt;
}

std::string difference(const Cost& found, const Cost& wanted) {
  const auto text = [](const Traffic& t) {
    return format("sends %llu messages with %llu chunks and receives %llu with %llu",
                  static_cast<unsigned long long>(t.messages_sent), static_cast<unsigned long long>(t.elements_sent),
                  static_cast<unsigned long long>(t.messages_received),
                  static_cast<unsigned long long>(t.elements_received));
  };
  for (std::size_t rank = 0; rank < found.ranks.size(); ++rank)
    if (found.ranks[rank] != wanted.ranks[rank])
      return format("rank %zu ", rank) + text(found.ranks[rank]) + ", but the closed form " + text(wanted.ranks[rank]);
  return "the critical path is " + path_text(found.critical_path) + ", not " + path_text(wanted.critical_path);
}

// Sets V8 if the schedule says that it is a row of the catalogue.
void check_cost(Verdict& verdict, const Schedule& schedule) {
  const Key& key = schedule.key;
  const Algorithm* row = find_row(key.collective, key.algorithm);
  if (row == nullptr || wrong_for(*row, key)) return;
  const Cost found = cost_of(schedule, Partition::unit(key.chunks)), wanted = row->closed_form(key);
  if (found == wanted)
    set(verdict, Property::cost, std::nullopt);
  else
    set(verdict, Property::cost, Violation{Property::cost, std::nullopt, difference(found, wanted)});
}

}  // namespace

const char* property_name(Property property) {
  static constexpr const char* kNames[kProperties] = {"V0 shape",       "V1 matching",  "V2 termination",
                                                      "V3 result",      "V4 agreement", "V5 races",
                                                      "V6 stale reads", "V7 loss",      "V8 cost"};
  return kNames[static_cast<std::size_t>(property)];
}

std::string Verdict::text() const {
  if (ok()) return canonical ? "ok, canonical" : "ok";
  std::string lines;
  for (const Violation& violation : violations)
    lines += std::string(property_name(violation.property)) + ": " + violation.text + "\n";
  return lines;
}

Verdict verify(const Schedule& schedule) {
  Verdict verdict;
  verdict.findings.fill(Finding::unknown);
  set(verdict, Property::shape, check_shape(schedule));
  if (!verdict.ok()) return verdict;
  ZC_REQUIRE(std::size_t{schedule.key.ranks} * schedule.key.lanes <= kMaxVerifiedLanes, ZC_UNSUPPORTED,
             "%u ranks with %u lanes; at most %zu lanes in all can be verified", schedule.key.ranks, schedule.key.lanes,
             kMaxVerifiedLanes);
  require_reach(schedule);
  set(verdict, Property::matching, check_matching(schedule));
  if (!verdict.ok()) return verdict;

  Contributions run(schedule);
  set(verdict, Property::termination, check_termination(schedule, run_schedule(schedule, run, 1)));
  if (!verdict.ok()) return verdict;
  set(verdict, Property::result, check_result(schedule, run));
  set(verdict, Property::agreement, check_agreement(schedule, run));
  set(verdict, Property::races, check_races(schedule, run.races()));
  set(verdict, Property::stale_reads, check_stale_reads(schedule, run));
  set(verdict, Property::loss, check_loss(schedule, run));
  check_cost(verdict, schedule);
  verdict.canonical = verdict.ok() && is_canonical(schedule, run);
  return verdict;
}

}  // namespace zerocomm::schedule
