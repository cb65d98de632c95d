// Clocks in lanes and messages. Local steps take no time: on these links only messages do.
#include "schedule/cost.hpp"

#include "base/check.hpp"
#include "schedule/machine.hpp"
#include "schedule/verify.hpp"

namespace zerocomm::schedule {
namespace {

class Clocks {
 public:
  Clocks(const Schedule& schedule, const Partition& partition, LinkModel links)
      : schedule_(schedule), partition_(partition), links_(links) {
    traffic.resize(schedule.key.ranks);
    lanes_.resize(std::size_t{schedule.key.ranks} * schedule.key.lanes);
    scratch_elements_.assign(schedule.key.ranks, std::vector<std::uint64_t>(schedule.scratch_chunks, 0));
    for (std::uint32_t rank = 0; rank < schedule.key.ranks; ++rank)
      for (std::uint32_t lane = 0; lane < schedule.key.lanes; ++lane)
        lane_of({rank, lane, 0}).done.resize(schedule.ranks[rank].lanes[lane].steps.size());
    for (LaneClock& lane : lanes_) lane.taken.resize(lane.done.size());
  }

  struct Message {
    std::vector<std::uint64_t> elements;  // of each chunk
    PathLength arrives;
  };

  void after(StepRef at, StepRef earlier) { advance(lane_of(at).now, lane_of(earlier).done[earlier.step]); }
  void after_take(StepRef at, StepRef send) { advance(lane_of(at).now, lane_of(send).taken[send.step]); }

  Message post(StepRef at, const Step& step) {
    LaneClock& lane = lane_of(at);
    Message message{elements_at(at.rank, step.src_buf, step.src_chunk, step.n_chunks), {}};
    std::uint64_t elements = 0;
    for (const std::uint64_t n : message.elements) elements += n;
    advance(lane.link_free, lane.now);
    lane.link_free.elements += elements;
    message.arrives = {lane.link_free.alphas + 1, lane.link_free.elements};
    traffic[at.rank].messages_sent += 1;
    traffic[at.rank].elements_sent += elements;
    traffic[step.peer].messages_received += 1;
    traffic[step.peer].elements_received += elements;
    finish(at);
    return message;
  }

  void take(StepRef at, const Step& step, const Message& message, StepRef send) {
    advance(lane_of(at).now, message.arrives);
    lane_of(send).taken[send.step] = lane_of(at).now;
    fill_scratch(at, step, message.elements);
    finish(at);
  }

  void local(StepRef at, const Step& step) {
    fill_scratch(at, step, elements_at(at.rank, step.src_buf, step.src_chunk, step.n_chunks));
    finish(at);
  }

  PathLength critical_path() const {
    PathLength longest;
    for (const LaneClock& lane : lanes_) advance(longest, lane.now);
    return longest;
  }

  std::vector<Traffic> traffic;

 private:
  struct LaneClock {
    PathLength now;
    PathLength link_free;
    std::vector<PathLength> done, taken;  // of each step
  };

  LaneClock& lane_of(StepRef at) { return lanes_[std::size_t{at.rank} * schedule_.key.lanes + at.lane]; }
  void finish(StepRef at) { lane_of(at).done[at.step] = lane_of(at).now; }

  void advance(PathLength& clock, PathLength to) const {
    const auto time = [&](PathLength t) { return t.alphas * links_.alpha + t.elements * links_.beta; };
    if (time(to) > time(clock)) clock = to;
  }

  std::vector<std::uint64_t> elements_at(std::uint32_t rank, Buf buf, std::uint32_t chunk, std::uint32_t n) const {
    std::vector<std::uint64_t> elements;
    for (std::uint32_t c = chunk; c < chunk + n; ++c)
      elements.push_back(buf == Buf::scratch ? scratch_elements_[rank][c] : partition_.range(c).count);
    return elements;
  }
  void fill_scratch(StepRef at, const Step& step, const std::vector<std::uint64_t>& elements) {
    if (step.dst_buf != Buf::scratch) return;
    for (std::uint32_t i = 0; i < step.n_chunks; ++i) scratch_elements_[at.rank][step.dst_chunk + i] = elements[i];
  }

  const Schedule& schedule_;
  const Partition& partition_;
  LinkModel links_;
  std::vector<LaneClock> lanes_;
  std::vector<std::vector<std::uint64_t>> scratch_elements_;  // whatever chunk a slot holds just now
};

}  // namespace

namespace {

// No clock goes beyond what all steps take one after the other.
void require_countable(const Schedule& schedule, const Partition& partition, LinkModel links) {
  std::uint64_t messages = 0, chunks = 0;
  for (const RankSchedule& rank : schedule.ranks)
    for (const Lane& lane : rank.lanes) {
      messages += lane.steps.size();
      for (const Step& step : lane.steps) chunks += step.n_chunks;
    }
  std::uint64_t elements = 0, latency = 0, transfer = 0, sum = 0;
  ZC_REQUIRE(
      !__builtin_mul_overflow(chunks, partition.count(), &elements) &&
          !__builtin_mul_overflow(elements, links.beta, &transfer) &&
          !__builtin_mul_overflow(messages, links.alpha, &latency) && !__builtin_add_overflow(transfer, latency, &sum),
      ZC_OVERFLOW,
      "%llu steps with %llu chunks of a vector of %zu elements, at %llu a message and %llu an element, take more "
      "than 64 bits can count",
      static_cast<unsigned long long>(messages), static_cast<unsigned long long>(chunks), partition.count(),
      static_cast<unsigned long long>(links.alpha), static_cast<unsigned long long>(links.beta));
}

}  // namespace

Cost cost_of(const Schedule& schedule, const Partition& partition, LinkModel links) {
  require_runnable(schedule);
  ZC_REQUIRE(schedule.key.chunks == 0 || partition.chunks() == schedule.key.chunks, ZC_ARGUMENT,
             "a partition into %zu chunks for a schedule of %u", partition.chunks(), schedule.key.chunks);
  require_countable(schedule, partition, links);
  Clocks clocks(schedule, partition, links);
  ZC_REQUIRE(run_schedule(schedule, clocks, kUnbounded).finished(), ZC_ARGUMENT, "the schedule never ends");
  return {clocks.traffic, clocks.critical_path()};
}

std::string path_text(PathLength path) {
  std::string text;
  if (path.alphas > 0) text = format("%llua", static_cast<unsigned long long>(path.alphas));
  if (path.elements > 0)
    text += format("%s%llub", text.empty() ? "" : " + ", static_cast<unsigned long long>(path.elements));
  return text.empty() ? "0" : text;
}

}  // namespace zerocomm::schedule
