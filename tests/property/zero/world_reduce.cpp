// Gradients: slots, arrivals and reductions, with sums of numbers that tell rank, use and pass apart.
#include "property/zero/world.hpp"

#include <algorithm>

namespace zerocomm::test {

std::uint64_t World::value(std::size_t r, std::size_t use, std::uint64_t pass) const {
  return present_.count({r, use, pass}) == 0 ? 0 : 1 + (r * 131 + use * 17 + pass * 100003) * 2654435761U % 1000003;
}

void World::report(std::size_t r, const Op& op) {
  Rank& rank = *ranks_[r];
  std::string text;
  const bool ready = op.kind == OpKind::ready;
  const zc_status status = ready ? rank.reducer.ready(op.index, &text) : rank.reducer.absent(op.index, &text);
  if (status != ZC_OK) return fail("report: " + text);
  if (ready) present_.insert({r, op.index, rank.reducer.pass()});
  rank.stirred = true;
  finish_op(rank);
}

bool World::complete(const Bucket& bucket) const {
  return std::all_of(bucket.arrivals.begin(), bucket.arrivals.end(), [](const Arrival& a) { return a.present; });
}

// One look at the shared counts, which may miss the newest of some buckets; then at most one grant.
void World::look(std::size_t r) {
  Rank& rank = *ranks_[r];
  bool missed = false;
  std::size_t in_use = 0;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    std::uint64_t completed = buckets_[b].completed;
    if (faults_.free_at_arrival && complete(buckets_[b])) ++completed;
    if (chance(random_, 80))
      rank.reducer.observe(b, completed);
    else
      missed = true;
    if (rank.reducer.granted(b) && !rank.reducer.reduced(b)) ++in_use;
  }
  const bool full = faults_.no_reserved_slot && in_use >= history_.reducer.slots;
  rank.stirred = missed;
  if (!full) grant(r);
}

void World::grant(std::size_t r) {
  Rank& rank = *ranks_[r];
  const std::optional<zero::Grant> grant = rank.reducer.next();
  if (!grant.has_value()) return;
  rank.stirred = true;
  const std::uint64_t pass = rank.reducer.pass();
  Arrival& arrival = buckets_[grant->bucket].arrivals[r];
  if (arrival.present) return fail("a bucket arrives twice");
  std::uint64_t sum = 0;
  for (const std::size_t stored : history_.layout.buckets[grant->bucket].uses) {
    for (const std::size_t part : history_.layout.uses[stored].parts) {
      if (rank.reducer.is_absent(part) == (present_.count({r, part, pass}) == 1))
        return fail("a part changed its mind");
      sum += value(r, part, pass);
    }
  }
  if (grant->slot == zero::kNoSlot) {
    if (sum != 0) return fail("a gradient got no slot");
    ++reached_.empty_arrivals;
  } else {
    Slot& slot = slots_[r].at(grant->slot);
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      const Arrival& other = buckets_[b].arrivals[r];
      if (other.present && other.slot == grant->slot) return fail("a slot is reused before its bucket is reduced");
    }
    slot = {grant->bucket, pass, sum};
    if (!history_.reducer.own_slots && grant->slot + 1 == history_.reducer.slots) ++reached_.reserved_slots;
  }
  arrival = {true, pass, grant->slot};
}

// Every arrival's slot still holds what was put there.
void World::check_slots(std::size_t b) {
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const Arrival& arrival = buckets_[b].arrivals[r];
    if (arrival.pass != buckets_[b].completed) return fail("a reduction mixes passes");
    if (arrival.slot == zero::kNoSlot) continue;
    const Slot& slot = slots_[r][arrival.slot];
    if (slot.bucket != b || slot.pass != arrival.pass) return fail("a slot was reused while a reduction reads it");
  }
}

// Start or end of a reduction.
void World::reduce(std::size_t b) {
  Bucket& bucket = buckets_[b];
  check_slots(b);
  if (!bucket.reducing) {
    bucket.reducing = true;
    bucket.incoming = 0;
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      if (bucket.arrivals[r].slot != zero::kNoSlot) bucket.incoming += slots_[r][bucket.arrivals[r].slot].sum;
    return;
  }
  const zc_phase phase = ranks_[0]->phases.at(bucket.completed);
  if (phase == ZC_PHASE_ONLY || phase == ZC_PHASE_FIRST) {
    bucket.passes.clear();
    bucket.sum = 0;
  }
  bucket.passes.push_back(bucket.completed++);
  bucket.sum += bucket.incoming;
  bucket.reducing = false;
  for (Arrival& arrival : bucket.arrivals) arrival = {};
  for (const auto& rank : ranks_) rank->stirred = true;
}

bool World::may_end(const Rank& rank) const {
  if (!faults_.end_when_granted) return rank.reducer.finished();
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    if (!rank.reducer.granted(b)) return false;
  return true;
}

// The pass is over on this rank: every accumulator it could read now must hold exactly the passes of this step.
void World::finish_end(std::size_t r) {
  Rank& rank = *ranks_[r];
  if (rank.publication.gradients_open()) {
    const std::uint64_t last = rank.reducer.pass();
    const auto in_step = static_cast<std::uint64_t>(rank.publication.passes_in_step());
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      if (buckets_[b].completed != last + 1 || buckets_[b].reducing)
        return fail("`end` returns before bucket " + std::to_string(b) + " is reduced");
      std::vector<std::uint64_t> passes;
      std::uint64_t sum = 0;
      for (std::uint64_t pass = last + 1 - in_step; pass <= last; ++pass) {
        passes.push_back(pass);
        for (std::size_t other = 0; other < ranks_.size(); ++other)
          for (const std::size_t stored : history_.layout.buckets[b].uses)
            for (const std::size_t part : history_.layout.uses[stored].parts) sum += value(other, part, pass);
      }
      if (buckets_[b].passes != passes) return fail("an accumulator holds other passes than those of the step");
      if (buckets_[b].sum != sum) return fail("an accumulator holds a wrong sum");
    }
    if (buckets_.empty() == false && rank.reducer.reduced_count() != buckets_.size() && !faults_.end_when_granted)
      return fail("`end` returns before the rank has seen every bucket reduced");
  }
  if (const zero::Verdict verdict = rank.publication.end(); verdict.status != ZC_OK)
    return fail("end: " + verdict.text);
  rank.fetcher.end_pass();
  finish_op(rank);
}

}  // namespace zerocomm::test
