// Visits every state that the threads of a small program can reach, in all interleavings.
//
// A model is a table of lines per thread. A line makes one access to shared memory, the smallest thing that another
// thread can see; what it computes on the side is its thread's own. States are plain bytes, kept whole and compared
// whole, so no two are ever taken for one. The search goes breadth first: the first trace to a violation is a shortest.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace zerocomm::test {

// What a line did: which line of its thread comes next, or why there is none.
struct Flow {
  enum class Kind : std::uint8_t { next, jump, blocked, broken };
  Kind kind = Kind::next;
  std::uint8_t to = 0;
  const char* text = nullptr;
};
inline constexpr std::uint8_t kEnded = 0xff;  // the place of a thread that has nothing left to do

inline Flow next() { return {}; }
inline Flow jump(std::uint8_t to) { return {Flow::Kind::jump, to, nullptr}; }
inline Flow end() { return jump(kEnded); }
inline Flow blocked() { return {Flow::Kind::blocked, 0, nullptr}; }  // cannot happen now, or not in this case
inline Flow broken(const char* text) { return {Flow::Kind::broken, 0, text}; }

template <class Model>
struct Line {
  std::uint8_t label;  // its place in the table
  const char* text;
  Flow (*run)(const Model& model, typename Model::State& state, int thread, int choice);
  std::uint8_t choices = 1;  // a line with several is run once with each
  bool fate = false;         // may happen or not (a death, a deadline): nobody may count on it
};

// A model has
//   State                           a struct of bytes; state.at[thread] is the place of a thread in its table
//   State start() const
//   int threads() const
//   span<const Line> program(int thread) const
//   std::string who(int thread) const
//   const char* wrong(const State&) const    what must never be, or nullptr; asked for every state
//   const char* stuck(const State&) const    asked where nothing more happens: who hangs, or nullptr if all is over
// and may have
//   std::string note(const State&, int thread, int choice) const    for traces: what a line is about
enum class Verdict : std::uint8_t { holds, broken, deadlock, cycle, too_many_states };

struct Finding {
  Verdict verdict = Verdict::holds;
  std::string text;
  std::vector<std::string> trace;
  std::size_t states = 0;
  std::size_t moves = 0;
};

struct Limits {
  std::size_t most_states = 8'000'000;
  bool refuse_cycles = false;  // also shows that nobody can move for ever; three times the work
};

struct MixBytes {
  std::uint64_t operator()(const void* memory, std::size_t bytes) const {
    std::uint64_t sum = 0x9e3779b97f4a7c15ULL;
    for (std::size_t i = 0; i < bytes; i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, static_cast<const unsigned char*>(memory) + i, std::min<std::size_t>(8, bytes - i));
      sum = (sum ^ word) * 0xff51afd7ed558ccdULL;
      sum ^= sum >> 32;
    }
    return sum;
  }
};

template <class Model, class Hash = MixBytes>
class Explorer {
 public:
  using State = typename Model::State;
  static_assert(std::is_trivially_copyable_v<State> && std::has_unique_object_representations_v<State>);

  explicit Explorer(const Model& model, const Limits& limits = {}) : model_(&model), limits_(limits) {}

  Finding run() {
    for (int thread = 0; thread < model_->threads(); ++thread) {
      const auto lines = model_->program(thread);
      for (std::size_t i = 0; i < lines.size(); ++i)
        if (lines[i].label != i) return {Verdict::broken, std::string("line out of place: ") + lines[i].text, {}, 0, 0};
    }
    add(model_->start(), kNone, {});
    for (std::uint32_t index = 0; index < count_ && finding_.verdict == Verdict::holds; ++index) expand(index);
    if (finding_.verdict == Verdict::holds && limits_.refuse_cycles) look_for_cycle();
    finding_.states = count_;
    return finding_;
  }

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::size_t kChunk = 1 << 14;
  struct Move {
    std::uint8_t thread = 0, choice = 0;
  };
  struct Node {
    State state;
    Move move;
    std::uint32_t from;
  };

  Node& node(std::uint32_t index) { return chunks_[index / kChunk][index % kChunk]; }

  static std::uint64_t hash(const State& state) { return Hash{}(&state, sizeof state); }

  // The cell of the table that holds this state, or the empty one where it belongs. A cell has the state's number and
  // half of its hash; only the comparison of all bytes decides.
  std::size_t cell_of(const State& state, std::uint64_t sum) {
    const std::size_t mask = cells_.size() - 1;
    for (std::size_t at = sum & mask;; at = (at + 1) & mask) {
      const Cell& cell = cells_[at];
      if (cell.index == kNone) return at;
      if (cell.sum == static_cast<std::uint32_t>(sum >> 32) &&
          std::memcmp(&node(cell.index).state, &state, sizeof state) == 0)
        return at;
    }
  }

  void grow() {
    const std::size_t wanted = std::max<std::size_t>(1024, cells_.size() * 2);
    cells_ = std::vector<Cell>();  // before the new ones, for the sake of memory
    cells_.resize(wanted);
    for (std::uint32_t index = 0; index < count_; ++index) {
      const std::uint64_t sum = hash(node(index).state);
      cells_[cell_of(node(index).state, sum)] = {index, static_cast<std::uint32_t>(sum >> 32)};
    }
  }

  void add(const State& state, std::uint32_t from, Move move) {
    if (5 * (count_ + 1) > 3 * cells_.size()) grow();
    const std::uint64_t sum = hash(state);
    const std::size_t cell = cell_of(state, sum);
    if (cells_[cell].index != kNone) return;
    if (count_ == limits_.most_states) {
      finding_.verdict = Verdict::too_many_states;
      finding_.text = "more states than allowed";
      return;
    }
    if (count_ % kChunk == 0) chunks_.push_back(std::make_unique_for_overwrite<Node[]>(kChunk));
    node(static_cast<std::uint32_t>(count_)) = {state, move, from};
    cells_[cell] = {static_cast<std::uint32_t>(count_), static_cast<std::uint32_t>(sum >> 32)};
    ++count_;
    if (const char* text = model_->wrong(state); text != nullptr) {
      finding_.verdict = Verdict::broken;
      finding_.text = text;
      tell(static_cast<std::uint32_t>(count_ - 1));
    }
  }

  // Calls then(state after, move, flow, fate) for everything that can happen in `state`.
  template <class Then>
  void for_each_move(const State& state, Then&& then) const {
    for (int thread = 0; thread < model_->threads(); ++thread) {
      const std::uint8_t at = state.at[thread];
      if (at == kEnded) continue;
      const Line<Model>& line = model_->program(thread)[at];
      for (std::uint8_t choice = 0; choice < line.choices; ++choice) {
        State after = state;
        const Flow flow = line.run(*model_, after, thread, choice);
        if (flow.kind == Flow::Kind::blocked) continue;
        after.at[thread] = flow.kind == Flow::Kind::jump ? flow.to : static_cast<std::uint8_t>(at + 1);
        then(after, Move{static_cast<std::uint8_t>(thread), choice}, flow, line.fate);
      }
    }
  }

  void expand(std::uint32_t index) {
    const State state = node(index).state;
    bool moved = false;
    for_each_move(state, [&](const State& after, Move move, const Flow& flow, bool fate) {
      if (finding_.verdict != Verdict::holds) return;
      ++finding_.moves;
      moved = moved || !fate;
      if (flow.kind != Flow::Kind::broken) return add(after, index, move);
      finding_.verdict = Verdict::broken;
      finding_.text = flow.text;
      tell(index);
      finding_.trace.push_back(line_of(state, move));
    });
    if (moved || finding_.verdict != Verdict::holds) return;
    if (const char* text = model_->stuck(state); text != nullptr) {
      finding_.verdict = Verdict::deadlock;
      finding_.text = text;
      tell(index);
    }
  }

  std::string line_of(const State& before, Move move) const {
    const Line<Model>& line = model_->program(move.thread)[before.at[move.thread]];
    std::string text = model_->who(move.thread) + ": " + line.text;
    if constexpr (requires { model_->note(before, int{}, int{}); }) {
      if (const std::string note = model_->note(before, move.thread, move.choice); !note.empty()) return text + note;
    }
    return line.choices > 1 ? text + " (" + std::to_string(move.choice) + ")" : text;
  }

  // The way from the start to a state.
  void tell(std::uint32_t index) {
    for (; node(index).from != kNone; index = node(index).from)
      finding_.trace.insert(finding_.trace.begin(), line_of(node(node(index).from).state, node(index).move));
  }

  // Takes away states that nothing left leads to; what cannot be taken away lies on a cycle or behind one.
  void look_for_cycle() {
    const auto for_each_next = [&](std::uint32_t index, auto&& then) {
      const State state = node(index).state;
      for_each_move(
          state, [&](const State& after, Move, const Flow&, bool) { then(cells_[cell_of(after, hash(after))].index); });
    };
    std::vector<std::uint32_t> ways(count_, 0), free{0};
    for (std::uint32_t index = 0; index < count_; ++index) for_each_next(index, [&](std::uint32_t to) { ++ways[to]; });
    std::size_t taken = 0;
    for (; !free.empty(); ++taken) {
      const std::uint32_t index = free.back();
      free.pop_back();
      for_each_next(index, [&](std::uint32_t to) {
        if (--ways[to] == 0) free.push_back(to);
      });
    }
    if (taken == count_) return;
    finding_.verdict = Verdict::cycle;
    finding_.text = "the same state again";
    tell(static_cast<std::uint32_t>(std::find_if(ways.begin(), ways.end(), [](std::uint32_t n) { return n != 0; }) -
                                    ways.begin()));
  }

  struct Cell {
    std::uint32_t index = kNone;
    std::uint32_t sum = 0;
  };

  const Model* model_;
  Limits limits_;
  std::vector<std::unique_ptr<Node[]>> chunks_;
  std::vector<Cell> cells_;
  std::size_t count_ = 0;
  Finding finding_;
};

template <class Model>
Finding explore(const Model& model, const Limits& limits = {}) {
  return Explorer<Model>(model, limits).run();
}

}  // namespace zerocomm::test
