// What the tests of the models share: run a case, print how large it was, compare the verdict.
#pragma once

#include "model/explorer.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <ostream>
#include <string>

namespace zerocomm::test {

// Cases that take long are cut where code runs many times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(NDEBUG)
inline constexpr bool kSmallCases = true;
#else
inline constexpr bool kSmallCases = false;
#endif

inline const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::holds:
      return "holds";
    case Verdict::broken:
      return "broken";
    case Verdict::deadlock:
      return "deadlock";
    case Verdict::cycle:
      return "cycle";
    case Verdict::too_many_states:
      break;
  }
  return "too many states";
}

inline std::string trace_of(const Finding& finding) {
  std::string text = finding.text;
  for (const std::string& line : finding.trace) text += "\n  " + line;
  return text;
}

// All interleavings of the case keep all its promises.
template <class Model>
void expect_holds(const std::string& name, const Model& model, const Limits& limits = {}) {
  const Finding finding = explore(model, limits);
  std::printf("%s: %s, %zu states, %zu moves\n", name.c_str(), name_of(finding.verdict), finding.states, finding.moves);
  EXPECT_EQ(finding.verdict, Verdict::holds) << name << ": " << trace_of(finding);
}

// A case that lacks one rule, and what that must lead to.
template <class Model>
struct Control {
  const char* name;  // the rule
  Model model;
  Verdict verdict;
  const char* text;  // part of the text of the violation
};
template <class Model>
void PrintTo(const Control<Model>& control, std::ostream* out) {
  *out << control.name;
}
// The last part of the names of tests over controls.
inline constexpr auto kNameOfControl = [](const auto& info) { return std::string(info.param.name); };

// The case holds with the rule, and without it the violation is found.
template <class Model>
void expect_needed(const Control<Model>& control) {
  Model whole = control.model;
  whole.without = {};
  expect_holds(std::string("with ") + control.name, whole);
  const Finding finding = explore(control.model);
  std::printf("without %s: %s after %zu moves, %zu states: %s\n", control.name, name_of(finding.verdict),
              finding.trace.size(), finding.states, finding.text.c_str());
  EXPECT_EQ(finding.verdict, control.verdict) << trace_of(finding);
  EXPECT_NE(finding.text.find(control.text), std::string::npos) << trace_of(finding);
}

}  // namespace zerocomm::test
