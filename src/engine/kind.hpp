// The objects that are made of an engine: all of it, its gradients alone, or its parameters alone. Data.
#pragma once

#include "shard/layout.hpp"

#include <string>

namespace zerocomm::engine {

struct Kind {
  const char* prefix;  // of the calls of the C interface
  bool gradients;      // slots, reduced gradients
  bool parameters;     // replicas or shards, masters, gathered units
};

inline constexpr Kind kWhole{"zc_zero", true, true};
inline constexpr Kind kReducer{"zc_reducer", true, false};
inline constexpr Kind kFetcher{"zc_fetcher", false, true};

// What an object of a kind works on. A reducer that cuts gradients does it as stage 2, which has them in one array per
// buffer. A fetcher's layout is of stage 3 and trains nothing.
shard::Layout layout_of(const Kind& kind, const shard::Layout& layout);

// The text of a machine of src/zero, which knows the calls by their names in an engine.
std::string named(const Kind& kind, std::string text);

}  // namespace zerocomm::engine
