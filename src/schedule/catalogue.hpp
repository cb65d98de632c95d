// The list of algorithms: which collectives each serves, under which restrictions, and how its schedules are made.
#pragma once

#include "schedule/cost.hpp"
#include "schedule/step.hpp"

#include <span>
#include <string_view>

namespace zerocomm::schedule {

struct Algorithm {
  Collective collective;
  std::string_view name;  // of a literal
  bool canonical;  // every result is ((x0 + x1) + x2) + ..., rounded once (or nothing is added); the verifier confirms
                   // it
  bool one_lane;   // several blocks travel as one message, which only one lane has side by side
  RankSchedule (*steps)(const Key& key, std::uint32_t rank);
  Cost (*closed_form)(const Key& key);       // with one element per chunk
  std::uint32_t (*scratch)(const Key& key);  // slots on each rank; nullptr: none
};

std::span<const Algorithm> algorithms();

// nullptr if there is none of that name.
const Algorithm* find_row(Collective collective, std::string_view name);

// Throws UNSUPPORTED if there is none of that name.
const Algorithm& find_algorithm(Collective collective, std::string_view name);

// The key with the fewest chunks for so many lanes.
Key make_key(Collective collective, std::string_view algorithm, std::uint32_t ranks, std::uint32_t root = 0,
             std::uint32_t lanes = 1);

// Throws ARGUMENT unless a schedule can be made: ranks >= 1, a root that exists, 1 to 255 lanes, chunks that share out
// evenly over lanes and blocks, no chunks for a barrier.
void check_key(const Key& key);

// Can this row not make a schedule for the key?
bool wrong_for(const Algorithm& row, const Key& key);

// Slots of scratch that the algorithm of the key needs on each rank.
std::uint32_t scratch_chunks(const Key& key);

// What one rank does: all that an executor needs.
RankSchedule build_rank(const Key& key, std::uint32_t rank);

// What all ranks do: p times as much, for verifier, oracle, cost and text.
Schedule build(const Key& key);

}  // namespace zerocomm::schedule
