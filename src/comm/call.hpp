// What a collective call is, as ranks compare it and as people read it. Pure.
#pragma once

#include "transport/control.hpp"

#include <zerocomm/coll.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace zerocomm::comm {

enum class Collective : std::uint32_t {
  none,
  all_reduce,
  reduce_scatter,
  reduce_scatter_v,
  all_gather,
  all_gather_v,
  broadcast,
  barrier,
  window_create,
  gather_unit,
  reduce,
  all_to_all,
  all_to_all_v,
  gather_to_root,
  scatter_from_root,
  send,
  recv,
  comm_split,
  window_view,
};

const char* collective_name(std::uint32_t collective);

// "zc_all_reduce(count 5, f32, sum, in place)".
std::string describe(const transport::CallRecord& call);

// A call in one word, for others to read at any time: collective, dtype, operation, count. And its text.
std::uint64_t pack_brief(const transport::CallRecord& call);
std::string describe_brief(std::uint64_t brief);

// A hash of `count` numbers that depends on their order.
std::uint64_t hash_counts(const std::size_t* counts, std::size_t count);

// Do the calls of two ranks agree? A rank with an empty buffer agrees with both places; a send agrees with a receive.
bool same_call(const transport::CallRecord& a, const transport::CallRecord& b);

// Two ranges of one rank's call: which relation do they have? `empty`: one of them is, and pointers are ignored.
enum class Relation : std::uint8_t { disjoint, in_place, overlapping, empty };
// `send_in_place` and `recv_in_place` are where the two must start to be in place.
Relation relate(const void* send, std::size_t send_bytes, const void* recv, std::size_t recv_bytes,
                const void* send_in_place, const void* recv_in_place);

}  // namespace zerocomm::comm
