// Environment variables of the library: one table, and the only getenv in the project.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace zerocomm {

struct Variable {
  const char* name;
  const char* unit;
  const char* meaning;
};

// Every variable of its own that the library reads, for printing.
std::span<const Variable> variables();

// Text from the environment, or nothing if the variable is unset or empty. Launchers' variables are read by it too.
std::optional<std::string> text_variable(const char* name);

// A whole number from the environment, or nothing if the variable is unset. Throws Error(ARGUMENT) if it is not a
// number in range.
std::optional<std::int64_t> integer_variable(const char* name, std::int64_t least, std::int64_t most);

}  // namespace zerocomm
