// Ranks that read each other's memory as bound lanes allow, in random order: the results are right, also in place, and
// nobody reads the memory of a rank that has left.
#include "schedule/bound.hpp"
#include "schedule/catalogue.hpp"
#include "schedule/contract.hpp"
#include "schedule/footprint.hpp"
#include "schedule/schedule_text.hpp"

#include <gtest/gtest.h>

#include <random>

namespace zerocomm::schedule {
namespace {

class Readers {
 public:
  Readers(const Schedule& schedule, std::uint64_t seed, bool in_place)
      : schedule_(schedule), key_(schedule.key), in_place_(in_place), random_(seed) {
    for (std::uint32_t r = 0; r < key_.ranks; ++r) {
      Rank& rank = ranks_.emplace_back();
      rank.lane = bind_lane(schedule, r);
      for (auto* buffer : {&rank.input, &rank.output}) buffer->assign(key_.chunks, random_());
      rank.scratch.assign(schedule.scratch_chunks, random_());
      for (std::uint32_t c = 0; c < key_.chunks; ++c)
        if (input_chunks(key_, r).contains(c)) at(r, Buf::input, c) = contribution(r, c);
    }
  }

  // Every rank leaves with the right output, or the test has failed.
  void run(const std::string& name) {
    for (std::uint32_t left = 0; left < key_.ranks;) {
      std::vector<std::uint32_t> ready;
      for (std::uint32_t r = 0; r < key_.ranks; ++r)
        if (!ranks_[r].gone && can_go_on(r)) ready.push_back(r);
      ASSERT_FALSE(ready.empty()) << "nobody can go on: " << name;
      const std::uint32_t r = ready[random_() % ready.size()];
      if (ranks_[r].done < ranks_[r].lane.steps().size()) {
        step(r);
        continue;
      }
      check_output(r, name);
      for (auto* buffer : {&ranks_[r].input, &ranks_[r].output, &ranks_[r].scratch})
        for (std::uint64_t& value : *buffer) value = random_();
      ranks_[r].gone = true;
      ++left;
    }
  }

 private:
  struct Rank {
    BoundLane lane;
    std::size_t done = 0;  // the word that others see
    bool gone = false;
    std::vector<std::uint64_t> input, output, scratch, accumulator;
  };

  static std::uint64_t contribution(std::uint64_t rank, std::uint64_t chunk) {
    return (rank + 1) * 0x9e3779b97f4a7c15u + (chunk + 1) * 0xbf58476d1ce4e5b9u * (rank + 3);
  }
  std::uint64_t& at(std::uint32_t rank, Buf buf, std::uint32_t chunk) {
    Rank& owner = ranks_[rank];
    if (buf == Buf::scratch) return owner.scratch[chunk];
    return buf == Buf::input && !in_place_ ? owner.input[chunk] : owner.output[chunk];
  }
  bool holds(Reached condition) const { return ranks_[condition.rank].done > condition.step; }
  bool can_go_on(std::uint32_t r) const {
    const Rank& rank = ranks_[r];
    const bool at_end = rank.done == rank.lane.steps().size();
    for (const Reached condition : at_end ? rank.lane.at_end() : rank.lane.before(rank.done))
      if (!holds(condition)) return false;
    if (at_end) return true;
    const BoundStep& next = rank.lane.steps()[rank.done];
    return !next.step.receives() || holds({next.step.peer, next.peer_step});
  }

  void step(std::uint32_t r) {
    Rank& rank = ranks_[r];
    const auto& [step, peer_step, peer_buf, peer_chunk] = rank.lane.steps()[rank.done];
    const bool goes_on = in_run(schedule_.ranks[r].lanes[0], rank.done);
    std::vector<std::uint64_t> values;
    for (std::uint32_t i = 0; step.op() != Op::send && i < step.n_chunks; ++i) {
      values.push_back(step.receives() ? at(step.peer, peer_buf, peer_chunk + i)
                                       : at(r, step.src_buf, step.src_chunk + i));
      if (step.reduces()) values[i] += goes_on ? rank.accumulator[i] : at(r, step.dst_buf, step.dst_chunk + i);
    }
    if (!step.hold())
      for (std::uint32_t i = 0; i < values.size(); ++i) at(r, step.dst_buf, step.dst_chunk + i) = values[i];
    rank.accumulator = std::move(values);
    ++rank.done;
  }

  void check_output(std::uint32_t r, const std::string& name) {
    for (std::uint32_t c = 0; c < key_.chunks; ++c) {
      if (!output_chunks(key_, r).contains(c)) continue;
      std::uint64_t wanted = 0;
      for (std::uint32_t q = 0; q < key_.ranks; ++q)
        if (contributes(key_, q, c)) wanted += contribution(q, c);
      ASSERT_EQ(at(r, Buf::output, c), wanted) << "output[" << c << "] of rank " << r << ": " << name;
    }
  }

  const Schedule& schedule_;
  const Key& key_;
  bool in_place_;
  std::mt19937_64 random_;
  std::vector<Rank> ranks_;
};

TEST(BoundLanes, ranks_that_read_each_others_memory_get_the_result_of_every_row) {
  for (const Algorithm& row : algorithms())
    for (const std::uint32_t p : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 13u})
      for (const std::uint32_t pieces : {1u, 2u}) {
        Key key = make_key(row.collective, row.name, p, has_root(row.collective) ? p / 2 : 0);
        key.chunks *= pieces;
        const Schedule schedule = build(key);
        for (std::uint64_t seed = 0; seed < 6; ++seed)
          Readers(schedule, seed, seed % 2 != 0)
              .run(std::string(collective_name(row.collective)) + " " + key.algorithm + " over " + std::to_string(p));
      }
}

}  // namespace
}  // namespace zerocomm::schedule
