// The cgroups that this process is in, as folders: versions 1 and 2, inside and outside of containers.
#pragma once

#include "base/function_ref.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace zerocomm {

// One kind of cgroups. Version 2 mounts all controllers together.
struct CgroupKind {
  std::string_view file_system;
  std::string_view controller;  // of version 1; empty for version 2
};

// Calls `visit` with the kind's index and the folder of every cgroup of this process, from its own up to the mount. /
// is the folder `root`, which holds proc/ and the cgroup mounts; folders are told without it. Kinds that are not there
// are left out.
void visit_cgroups(const std::string& root, std::span<const CgroupKind> kinds,
                   FunctionRef<void(std::size_t, const std::string&)> visit);

// A whole file; empty if it cannot be read.
std::string read_small_file(const std::string& path);

// The number that a text begins with, and the number after `key` in lines of "key number".
std::optional<std::uint64_t> leading_number(std::string_view text);
std::optional<std::uint64_t> number_of(std::string_view lines, std::string_view key);

}  // namespace zerocomm
