// Proves that a schedule does what its collective promises, or says where it does not.
//
// The proof ends at the schedule: memory ordering, streams and networks below are not in it.
#pragma once

#include "schedule/step.hpp"

#include <array>
#include <optional>
#include <string>

namespace zerocomm::schedule {

enum class Property : std::uint8_t {
  shape,        // V0: numbers are in range; a held run is a run
  matching,     // V1: the k-th send on a channel meets the k-th receive, with equal n_chunks and codec
  termination,  // V2: ends with channels of capacity 1 and the write-after-read waits in force
  result,       // V3: every output chunk holds the contributions that the collective defines, each once
  agreement,    // V4: all copies of an output chunk are the same expression, up to commutativity: equal bits
  races,        // V5: two lanes of a rank touch a chunk only if a lane, a wait or a message orders them
  stale_reads,  // V6: nothing is read before it was written or, in place, after it was overwritten
  loss,         // V7: no contribution is encoded lossily more often, on its way to an output, than schedule.loss says
  cost,         // V8: costs what the closed form of the algorithm says; unknown for algorithms outside the catalogue
};
inline constexpr std::size_t kProperties = 9;

const char* property_name(Property property);  // "V1 matching"

// unknown: it makes no sense to ask, because an earlier property is broken or (V8) nothing is known to compare with.
enum class Finding : std::uint8_t { holds, broken, unknown };

struct Violation {
  Property property;
  std::optional<StepRef> at;  // where there is one step to point at
  std::string text;           // which rank, lane and step, and what is wrong
};

struct Verdict {
  std::array<Finding, kProperties> findings{};
  std::vector<Violation> violations;  // the first of each broken property
  // Every output chunk is round(((x0 + x1) + x2) + ...): bits equal those of every other canonical schedule.
  bool canonical = false;

  Finding of(Property property) const { return findings[static_cast<std::size_t>(property)]; }
  bool ok() const { return violations.empty(); }
  std::string text() const;  // "ok, canonical", or one line for each violation
};

// All ranks are held at once, with clocks that know of all lanes: more is UNSUPPORTED.
inline constexpr std::size_t kMaxVerifiedLanes = 256;                // ranks * lanes
inline constexpr std::uint64_t kMaxPlaces = std::uint64_t{1} << 22;  // ranks * (chunks + scratch)

// V0 and V1 alone.
std::optional<Violation> check_shape(const Schedule& schedule);
std::optional<Violation> check_matching(const Schedule& schedule);

// Throws UNSUPPORTED if there are more than kMaxPlaces.
void require_reach(const Schedule& schedule);

// Throws ARGUMENT unless V0 and V1 hold: what the other domains need in order to run at all. UNSUPPORTED: more than
// kMaxPlaces.
void require_runnable(const Schedule& schedule);

Verdict verify(const Schedule& schedule);

}  // namespace zerocomm::schedule
