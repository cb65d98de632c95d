// The order in which a named pass visits units: recorded each time, expected the next time. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace zerocomm::zero {

class Trace {
 public:
  void reserve(std::size_t most_visits);
  void forget();  // for another name

  void begin();
  // Moves to just behind the expected visit of `unit`: the next one ahead, else the first one from the start. A unit
  // that the last pass did not visit leaves the position alone.
  void visit(std::size_t unit);
  void end();  // what was recorded is what the next pass of this name will be expected to do

  std::span<const std::uint32_t> order() const { return order_; }
  std::size_t position() const { return position_; }  // of the next expected visit; order().size(): none is left

 private:
  std::vector<std::uint32_t> order_, record_;
  std::size_t most_visits_ = 0;
  std::size_t position_ = 0;
};

// A fixed table of traces by name: a pass allocates nothing. The least recently used name gives way to a new one.
class TraceTable {
 public:
  TraceTable(std::size_t most_names, std::size_t most_visits);
  Trace& find(std::string_view name);

 private:
  struct Entry {
    std::uint64_t key = 0;  // hash of the name: two names of equal hash would share a trace, which costs hits only
    std::uint64_t last_use = 0;
    Trace trace;
  };
  std::vector<Entry> entries_;
  std::uint64_t clock_ = 0;
};

}  // namespace zerocomm::zero
