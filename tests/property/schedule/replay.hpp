// A second opinion on schedules, written apart from the abstract machine: it executes steps in random order over
// integers, and reads the memory of a send as late as the rules allow.
#pragma once

#include "schedule/contract.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <tuple>

namespace zerocomm::schedule {

struct ReplayResult {
  bool matched = false;     // sends and receives of every channel are the same list
  bool terminated = false;  // channels of capacity 1
  bool correct = false;     // every output holds the sum (or copy) that the collective defines
};

class Replay {
 public:
  // in_place: input and output of a rank are one buffer.
  Replay(const Schedule& schedule, std::uint64_t seed, bool in_place)
      : schedule_(schedule), in_place_(in_place), random_(seed) {}

  ReplayResult run() {
    ReplayResult result;
    result.matched = lists_match();
    if (!result.matched) return result;
    set_up();
    result.terminated = run_lanes();
    result.correct = result.terminated && outputs_are_right();
    return result;
  }

 private:
  struct Place {
    Buf buf;
    std::uint32_t chunk;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  struct Posted {
    std::uint32_t rank;
    const Step* step;
    std::set<std::uint32_t> heard;
  };
  struct LaneState {
    std::size_t next = 0;
    std::vector<std::uint64_t> accumulator;
    bool accumulates = false;
    std::vector<const Step*> untaken;
    std::set<std::uint32_t> heard;  // ranks whose arrival this lane knows of
  };

  bool lists_match() const {
    using Ends = std::vector<std::pair<std::uint32_t, int>>;
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::size_t>, std::pair<Ends, Ends>> channels;
    for (std::uint32_t r = 0; r < schedule_.key.ranks; ++r)
      for (std::size_t l = 0; l < schedule_.key.lanes; ++l)
        for (const Step& s : schedule_.ranks[r].lanes[l].steps) {
          if (s.op() == Op::send) channels[{r, s.peer, l}].first.emplace_back(s.n_chunks, s.codec);
          if (s.receives()) channels[{s.peer, r, l}].second.emplace_back(s.n_chunks, s.codec);
        }
    for (const auto& [channel, ends] : channels)
      if (ends.first != ends.second) return false;
    return true;
  }

  void set_up() {
    const Key& key = schedule_.key;
    std::mt19937_64 values(99);  // the same contributions for every interleaving
    contributions_.assign(key.ranks, std::vector<std::uint64_t>(key.chunks));
    for (auto& rank : contributions_)
      for (std::uint64_t& value : rank) value = values();
    memory_.resize(key.ranks);
    for (std::uint32_t r = 0; r < key.ranks; ++r) {
      for (std::uint32_t c = 0; c < schedule_.scratch_chunks; ++c) at(r, Buf::scratch, c) = random_();
      for (std::uint32_t c = 0; c < key.chunks; ++c) {
        at(r, Buf::output, c) = random_();
        if (input_chunks(key, r).contains(c)) at(r, Buf::input, c) = contributions_[r][c];
      }
    }
    lanes_.resize(key.ranks, std::vector<LaneState>(key.lanes));
    for (std::uint32_t r = 0; r < key.ranks; ++r)
      for (LaneState& lane : lanes_[r]) lane.heard = {r};
  }

  std::uint64_t& at(std::uint32_t rank, Buf buf, std::uint32_t chunk) {
    return memory_[rank][{in_place_ && buf == Buf::input ? Buf::output : buf, chunk}];
  }

  bool run_lanes() {
    for (;;) {
      std::vector<std::pair<std::uint32_t, std::size_t>> ready;
      bool all_done = true;
      for (std::uint32_t r = 0; r < schedule_.key.ranks; ++r)
        for (std::size_t l = 0; l < schedule_.key.lanes; ++l)
          if (lanes_[r][l].next < schedule_.ranks[r].lanes[l].steps.size()) {
            all_done = false;
            if (is_ready(r, l)) ready.emplace_back(r, l);
          }
      if (ready.empty()) return all_done;
      const auto [r, l] = ready[random_() % ready.size()];
      do_step(r, l);
    }
  }

  // A store must wait for earlier sends of the same memory, whether the call is in place or not.
  static bool same_memory(const Step& send, const Step& store) {
    if ((send.src_buf == Buf::scratch) != (store.dst_buf == Buf::scratch)) return false;
    return send.src_chunk < store.dst_chunk + store.n_chunks && store.dst_chunk < send.src_chunk + send.n_chunks;
  }

  bool is_ready(std::uint32_t r, std::size_t l) {
    LaneState& lane = lanes_[r][l];
    const Step& step = schedule_.ranks[r].lanes[l].steps[lane.next];
    if (step.op() == Op::send) return channels_[{r, step.peer, l}].empty();
    if (step.receives() && channels_[{step.peer, r, l}].empty()) return false;
    if (!step.hold())
      for (const Step* send : lane.untaken)
        if (same_memory(*send, step)) return false;
    return true;
  }

  void do_step(std::uint32_t r, std::size_t l) {
    LaneState& lane = lanes_[r][l];
    const Step& step = schedule_.ranks[r].lanes[l].steps[lane.next++];
    if (step.op() == Op::send) {
      channels_[{r, step.peer, l}].push_back({r, &step, lane.heard});
      lane.untaken.push_back(&step);
      return;
    }
    std::vector<std::uint64_t> values;
    const Step* source = &step;
    std::uint32_t from = r;
    if (step.receives()) {
      auto& channel = channels_[{step.peer, r, l}];
      const Posted message = channel.front();
      channel.pop_front();
      source = message.step;
      from = message.rank;
      lane.heard.insert(message.heard.begin(), message.heard.end());
      std::erase(lanes_[from][l].untaken, source);
    }
    for (std::uint32_t i = 0; i < step.n_chunks; ++i)
      values.push_back(at(from, source->src_buf, source->src_chunk + i));
    if (step.reduces())
      for (std::uint32_t i = 0; i < step.n_chunks; ++i)
        values[i] += lane.accumulates ? lane.accumulator[i] : at(r, step.dst_buf, step.dst_chunk + i);
    lane.accumulates = step.hold();
    if (step.hold()) {
      lane.accumulator = values;
    } else {
      for (std::uint32_t i = 0; i < step.n_chunks; ++i) at(r, step.dst_buf, step.dst_chunk + i) = values[i];
    }
  }

  bool outputs_are_right() {
    const Key& key = schedule_.key;
    for (std::uint32_t r = 0; r < key.ranks; ++r) {
      for (std::uint32_t c = 0; c < key.chunks; ++c) {
        if (!output_chunks(key, r).contains(c)) continue;
        std::uint64_t wanted = 0;
        for (std::uint32_t q = 0; q < key.ranks; ++q)
          if (input_chunks(key, q).contains(c)) wanted += contributions_[q][c];
        if (at(r, Buf::output, c) != wanted) return false;
      }
      if (key.collective != Collective::barrier) continue;
      std::set<std::uint32_t> heard;
      for (const LaneState& lane : lanes_[r]) heard.insert(lane.heard.begin(), lane.heard.end());
      if (heard.size() != key.ranks) return false;
    }
    return true;
  }

  const Schedule& schedule_;
  bool in_place_;
  std::mt19937_64 random_;
  std::vector<std::vector<std::uint64_t>> contributions_;
  std::vector<std::map<Place, std::uint64_t>> memory_;
  std::vector<std::vector<LaneState>> lanes_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::size_t>, std::deque<Posted>> channels_;
};

}  // namespace zerocomm::schedule
