// A layout as text: for people, and as JSON for programs.
#pragma once

#include "shard/layout.hpp"

namespace zerocomm::shard {

std::string layout_plain(const Layout& layout);

// One object, "format": "zc.layout", "version": 1. Everything is an index into the list of the same name.
std::string layout_json(const Layout& layout);

}  // namespace zerocomm::shard
