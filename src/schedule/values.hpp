// Domain "values" of the machine, for one accumulation type.
#pragma once

#include "base/check.hpp"
#include "schedule/arithmetic.hpp"
#include "schedule/footprint.hpp"
#include "schedule/oracle.hpp"

#include <utility>

namespace zerocomm::schedule {

// The elements of one chunk. Every state is exact in the accumulation type.
template <class T>
struct Cell {
  std::vector<T> values;
  std::uint32_t contributions = 1;
  enum class State : std::uint8_t {
    raw,      // a contribution as it was brought: premul still to come
    open,     // in an accumulator
    rounded,  // representable in the output type
  } state = State::raw;
};

// How chunks are reduced. Moves use integers and the default: nothing happens to a chunk.
template <class T>
struct Reduction {
  zc_op op = ZC_OP_SUM;
  T premul{};
  zc_dtype output = ZC_DTYPE_NONE;
  std::uint32_t ranks = 1;

  Cell<T> opened(Cell<T> cell) const {
    if (cell.state == Cell<T>::State::raw && op == ZC_OP_PREMUL_SUM)
      for (T& value : cell.values) value = multiply(value, premul);
    cell.state = Cell<T>::State::open;
    return cell;
  }

  Cell<T> combined(Cell<T> a, Cell<T> b) const {
    a = opened(std::move(a)), b = opened(std::move(b));
    ZC_REQUIRE(a.values.size() == b.values.size(), ZC_ARGUMENT, "the schedule adds chunks of %zu and %zu elements",
               a.values.size(), b.values.size());
    for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] = combine(op, a.values[i], b.values[i]);
    a.contributions += b.contributions;
    return a;
  }

  // Ends a run. What was rounded before stays as it is.
  Cell<T> closed(Cell<T> cell) const {
    if (cell.state == Cell<T>::State::rounded) return cell;
    cell = opened(std::move(cell));
    if constexpr (std::is_floating_point_v<T>)
      if (op == ZC_OP_AVG && cell.contributions == ranks)
        for (T& value : cell.values) value = value / static_cast<T>(ranks);
    if constexpr (std::is_same_v<T, float>)
      for (T& value : cell.values) value = round_to(output, value);
    cell.state = Cell<T>::State::rounded;
    return cell;
  }
};

template <class T>
class Values {
 public:
  using Message = std::vector<Cell<T>>;

  // Output and scratch start empty; the caller fills input[rank][chunk].
  Values(const Schedule& schedule, Reduction<T> reduction) : schedule_(schedule), reduction_(reduction) {
    const std::size_t p = schedule.key.ranks;
    input.resize(p, Message(schedule.key.chunks));
    output = input;
    scratch_.resize(p, Message(schedule.scratch_chunks));
    accumulators_.resize(p, std::vector<Message>(schedule.key.lanes));
  }

  std::vector<Message> input, output;

  // Values do not depend on time.
  void after(StepRef, StepRef) {}
  void after_take(StepRef, StepRef) {}

  Message post(StepRef at, const Step& step) { return read(at.rank, step.src_buf, step.src_chunk, step.n_chunks); }
  void take(StepRef at, const Step& step, Message message, StepRef) { arrive(at, step, std::move(message)); }
  void local(StepRef at, const Step& step) { arrive(at, step, post(at, step)); }

 private:
  Message& buffer(std::uint32_t rank, Buf buf) {
    return buf == Buf::input ? input[rank] : buf == Buf::output ? output[rank] : scratch_[rank];
  }
  Message read(std::uint32_t rank, Buf buf, std::uint32_t chunk, std::uint32_t n) {
    if (buf == Buf::none) return {};
    const Message& from = buffer(rank, buf);
    return Message(from.begin() + chunk, from.begin() + chunk + n);
  }

  void arrive(StepRef at, const Step& step, Message cells) {
    Message& accumulator = accumulators_[at.rank][at.lane];
    if (step.reduces()) {
      Message before = in_run(schedule_.ranks[at.rank].lanes[at.lane], at.step)
                           ? std::move(accumulator)
                           : read(at.rank, step.dst_buf, step.dst_chunk, step.n_chunks);
      for (std::size_t i = 0; i < cells.size(); ++i)
        cells[i] = reduction_.combined(std::move(before[i]), std::move(cells[i]));
    }
    if (step.hold()) {
      accumulator = std::move(cells);
      return;
    }
    const bool closes = step.reduces() || step.dst_buf == Buf::output;
    for (std::uint32_t i = 0; i < step.n_chunks; ++i)
      buffer(at.rank, step.dst_buf)[step.dst_chunk + i] = closes ? reduction_.closed(std::move(cells[i])) : cells[i];
  }

  const Schedule& schedule_;
  Reduction<T> reduction_;
  std::vector<Message> scratch_;
  std::vector<std::vector<Message>> accumulators_;
};

}  // namespace zerocomm::schedule
