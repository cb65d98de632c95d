// What addresses a host name stands for, found within a deadline: the system's resolver knows none.
#pragma once

#include "base/clock.hpp"

#include <functional>
#include <string>
#include <vector>

namespace zerocomm::boot {

// Finds the numbers of a name, each once. Throws Error with the reason if there are none. May take its time, and is
// called on a thread that handles no signal.
using NameResolver = std::function<std::vector<std::string>(const std::string& name)>;

// The system's: files, DNS, whatever it is set up for.
std::vector<std::string> system_names(const std::string& name);

struct Named {
  std::vector<std::string> numbers;
  std::string error;    // why there are none
  bool in_time = true;  // false: the resolver has not answered until the deadline
};

// A resolver that has not answered is left alone: its thread ends when it does, and nobody looks at what it found.
// Empty `resolver`: the system's. Throws Error(SYSTEM) if there is no thread to be had.
Named find_numbers(const std::string& name, const Deadline& deadline, const NameResolver& resolver);

}  // namespace zerocomm::boot
