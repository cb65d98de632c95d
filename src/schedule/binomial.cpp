// The algorithm "binomial".
//
// Ranks are counted from the root on: v = (rank - root) mod p. The parent of v is v without its lowest bit, its
// children are v + 2^j for all 2^j below that bit, and its subtree is a run of ranks from v on. The root has blocks
// where they belong in the vector; others collect the run of their subtree in scratch.
#include "schedule/binomial.hpp"

#include "schedule/builder.hpp"

#include <algorithm>
#include <bit>

namespace zerocomm::schedule {
namespace {

struct Node {
  const Key& key;
  std::uint32_t v;

  static Node of_rank(const Key& key, std::uint32_t rank) {
    return {key, static_cast<std::uint32_t>((std::uint64_t{rank} + key.ranks - key.root) % key.ranks)};
  }
  std::uint32_t rank() const { return static_cast<std::uint32_t>((std::uint64_t{key.root} + v) % key.ranks); }
  bool is_root() const { return v == 0; }
  Node parent() const { return {key, v & (v - 1)}; }
  // Ranks in the subtree, itself among them.
  std::uint32_t subtree() const { return is_root() ? key.ranks : std::min(v & (~v + 1), key.ranks - v); }
  // The largest subtree last.
  std::vector<Node> children() const {
    std::vector<Node> nodes;
    for (std::uint64_t bit = 1; bit < subtree(); bit *= 2) nodes.push_back({key, v + static_cast<std::uint32_t>(bit)});
    return nodes;
  }
  bool is_leaf() const { return subtree() == 1; }
};

// Where the blocks of a subtree lie in the vector, and from which of the subtree's chunks on.
struct SubtreeRun {
  std::uint32_t offset;
  ChunkRange chunks;
};
std::vector<SubtreeRun> in_vector(const Node& node) {
  const std::uint32_t each = node.key.chunks / node.key.ranks;
  std::vector<SubtreeRun> runs;
  for (const auto& [offset, blocks] : wrapped_blocks(node.rank(), node.subtree(), node.key.ranks))
    runs.push_back({offset * each, {blocks.first * each, blocks.count * each}});
  return runs;
}
// The blocks of `node` in the scratch of one of its ancestors, or its own.
At in_scratch(const Node& owner, const Node& node) {
  const std::uint32_t each = node.key.chunks / node.key.ranks;
  return scratch({(node.v - owner.v) * each, node.subtree() * each});
}

void broadcast(const Place& at, const Node& me, std::vector<Step>& steps) {
  const ChunkRange all = at.part({0, at.key.chunks});
  steps.push_back(me.is_root() ? copy(input(all), output(all)) : recv(me.parent().rank(), output(all)));
  const std::vector<Node> children = me.children();
  for (auto child = children.rbegin(); child != children.rend(); ++child)
    steps.push_back(send(child->rank(), output(all)));
}

void reduce_to_root(const Place& at, const Node& me, std::vector<Step>& steps) {
  const ChunkRange all = at.part({0, at.key.chunks});
  if (me.is_leaf() && !me.is_root()) {
    steps.push_back(send(me.parent().rank(), input(all)));
    return;
  }
  const At sum = me.is_root() ? output(all) : scratch(all);
  steps.push_back(copy(input(all), sum));
  for (const Node& child : me.children()) {
    steps.back() = held(steps.back());
    steps.push_back(recv_reduce(child.rank(), sum));
  }
  if (!me.is_root()) steps.push_back(send(me.parent().rank(), sum));
}

// The root takes the blocks of a child, which wrap around the end of the vector for at most one of them: `move` makes a
// step from a range of the vector and one of the child's own place.
template <class Move>
void with_root(const Node& child, At child_place, Move move) {
  for (const auto& [offset, chunks] : in_vector(child))
    move(chunks, At{child_place.buf, child_place.chunk + offset, chunks.count});
}

void gather_to_root(const Place& at, const Node& me, std::vector<Step>& steps) {
  const ChunkRange own = at.block(at.rank);
  if (!me.is_leaf() || me.is_root())
    steps.push_back(copy(input(own), me.is_root() ? output(own) : scratch({0, own.count})));
  for (const Node& child : me.children()) {
    if (me.is_root())
      with_root(child, {}, [&](ChunkRange chunks, At) { steps.push_back(recv(child.rank(), output(chunks))); });
    else
      steps.push_back(recv(child.rank(), in_scratch(me, child)));
  }
  if (me.is_root()) return;
  const At all = me.is_leaf() ? input(own) : in_scratch(me, me);
  if (!me.parent().is_root())
    steps.push_back(send(me.parent().rank(), all));
  else
    with_root(me, all, [&](ChunkRange, At mine) { steps.push_back(send(me.parent().rank(), mine)); });
}

void scatter_from_root(const Place& at, const Node& me, std::vector<Step>& steps) {
  const ChunkRange own = at.block(at.rank);
  const At all = me.is_leaf() ? output(own) : in_scratch(me, me);
  if (!me.is_root()) {
    if (!me.parent().is_root())
      steps.push_back(recv(me.parent().rank(), all));
    else
      with_root(me, all, [&](ChunkRange, At mine) { steps.push_back(recv(me.parent().rank(), mine)); });
  }
  const std::vector<Node> children = me.children();
  for (auto child = children.rbegin(); child != children.rend(); ++child) {
    if (me.is_root())
      with_root(*child, {}, [&](ChunkRange chunks, At) { steps.push_back(send(child->rank(), input(chunks))); });
    else
      steps.push_back(send(child->rank(), in_scratch(me, *child)));
  }
  if (me.is_root()) steps.push_back(copy(input(own), output(own)));
  if (!me.is_root() && !me.is_leaf()) steps.push_back(copy(scratch({0, own.count}), output(own)));
}

// g(p) of the header.
std::uint64_t gather_path(std::uint64_t ranks) {
  if (ranks <= 1) return 0;
  const std::uint64_t half = std::bit_floor(ranks - 1);
  return std::max(half - 1, ranks - half + gather_path(ranks - half));
}

}  // namespace

RankSchedule binomial_steps(const Key& key, std::uint32_t rank) {
  const Node me = Node::of_rank(key, rank);
  return each_lane(key, rank, [&](const Place& at, std::vector<Step>& steps) {
    switch (key.collective) {
      case Collective::broadcast:
        return broadcast(at, me, steps);
      case Collective::reduce:
        return reduce_to_root(at, me, steps);
      case Collective::gather_to_root:
        return gather_to_root(at, me, steps);
      default:
        return scatter_from_root(at, me, steps);
    }
  });
}

Cost binomial_cost(const Key& key) {
  const bool whole = key.collective == Collective::broadcast || key.collective == Collective::reduce;
  const bool down = key.collective == Collective::broadcast || key.collective == Collective::scatter_from_root;
  const std::uint64_t p = key.ranks, n = key.chunks, each = n / p;
  Cost cost;
  cost.ranks.resize(p);
  for (std::uint32_t rank = 0; rank < p; ++rank) {
    const Node child = Node::of_rank(key, rank);
    if (child.is_root()) continue;
    const std::uint64_t chunks = whole ? n : child.subtree() * each;
    const std::uint64_t messages = whole ? key.lanes : child.parent().is_root() ? in_vector(child).size() : 1;
    Traffic& from = cost.ranks[down ? child.parent().rank() : rank];
    Traffic& to = cost.ranks[down ? rank : child.parent().rank()];
    from.messages_sent += messages, from.elements_sent += chunks;
    to.messages_received += messages, to.elements_received += chunks;
  }
  const auto floor = static_cast<std::uint64_t>(std::bit_width(p)) - 1;
  const auto ceiling = static_cast<std::uint64_t>(std::bit_width(p - 1));
  const std::uint64_t length = key.collective == Collective::broadcast           ? ceiling * n / key.lanes
                               : key.collective == Collective::reduce            ? floor * n / key.lanes
                               : key.collective == Collective::scatter_from_root ? (p - 1) * each
                                                                                 : gather_path(p) * each;
  cost.critical_path = {floor, length};
  return cost;
}

std::uint32_t binomial_scratch(const Key& key) {
  if (key.collective == Collective::reduce) return key.ranks < 4 ? 0 : key.chunks;
  std::uint32_t most = 0;
  for (const Node& child : Node{key, 0}.children())
    if (!child.is_leaf()) most = std::max(most, child.subtree());
  return most * (key.chunks / key.ranks);
}

}  // namespace zerocomm::schedule
