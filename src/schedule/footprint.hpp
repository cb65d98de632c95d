// Which chunks of memory a step reads and writes. Shared by verifier and anti_deps, so that both mean the same.
#pragma once

#include "schedule/contract.hpp"

namespace zerocomm::schedule {

// A range of places in one rank's memory. Input and output have the same places: a schedule must also be right in
// place. Scratch comes after the chunks of the vector.
using Places = ChunkRange;

inline Places places_of(const Key& key, Buf buf, std::uint32_t chunk, std::uint32_t n_chunks) {
  if (buf == Buf::none) return {};
  return {buf == Buf::scratch ? key.chunks + chunk : chunk, n_chunks};
}
constexpr bool overlap(Places a, Places b) {
  return a.count > 0 && b.count > 0 && a.first < b.first + b.count && b.first < a.first + a.count;
}

// Does a held run of this lane reach into step `index`?
inline bool in_run(const Lane& lane, std::size_t index) { return index > 0 && lane.steps[index - 1].hold(); }

// The source of a send, copy or reduce. A send's source is read at any time until the message was taken.
inline Places source_places(const Key& key, const Step& step) {
  return places_of(key, step.src_buf, step.src_chunk, step.n_chunks);
}

// The destination, if this step reads it: a reducing step that does not go on from the accumulator.
inline Places read_destination(const Key& key, const Lane& lane, std::size_t index) {
  const Step& step = lane.steps[index];
  if (!step.reduces() || in_run(lane, index)) return {};
  return places_of(key, step.dst_buf, step.dst_chunk, step.n_chunks);
}

// The destination, if this step stores to it: a held step does not.
inline Places written_places(const Key& key, const Step& step) {
  if (step.hold()) return {};
  return places_of(key, step.dst_buf, step.dst_chunk, step.n_chunks);
}

}  // namespace zerocomm::schedule
