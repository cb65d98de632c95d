// zc info: what was built, what this host has, what would be chosen and why.
#include "cli/failure.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"

#include <zerocomm/info.h>

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <vector>

namespace zerocomm::cli {
namespace {

struct Fact {
  std::string section, name, value, why;
};

std::vector<Fact> read_facts() {
  std::vector<Fact> facts;
  const zc_status status = zc_info(
      [](void* to, const char* section, const char* name, const char* value, const char* why) {
        static_cast<std::vector<Fact>*>(to)->push_back({section, name, value, why});
      },
      &facts);
  if (status != ZC_OK) throw Failure(fmt::format("zc_info: {}: {}", zc_status_name(status), zc_last_error()));
  return facts;
}

std::string plain(const std::vector<Fact>& facts) {
  constexpr int kColumn = 24;
  std::string text, section;
  for (const Fact& fact : facts) {
    if (fact.section != section)
      fmt::format_to(std::back_inserter(text), "{}{}\n", section.empty() ? "" : "\n", fact.section);
    section = fact.section;
    fmt::format_to(std::back_inserter(text), "  {:<{}} {}", fact.name, kColumn, fact.value);
    if (!fact.why.empty()) fmt::format_to(std::back_inserter(text), "  ({})", fact.why);
    text += '\n';
  }
  return text;
}

// A JSON string: facts may quote whatever the environment holds.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      result += {'\\', c};
    else if (code < 0x20)
      fmt::format_to(std::back_inserter(result), "\\u{:04x}", code);
    else
      result += c;
  }
  return result + "\"";
}

std::string json(const std::vector<Fact>& facts) {
  std::string text = "[";
  for (const Fact& fact : facts)
    fmt::format_to(std::back_inserter(text), "{}\n{{\"section\":{},\"name\":{},\"value\":{},\"why\":{}}}",
                   text.size() == 1 ? "" : ",", quoted(fact.section), quoted(fact.name), quoted(fact.value),
                   quoted(fact.why));
  return text + "\n]\n";
}

}  // namespace

void run_info(const InfoOptions& options) {
  const std::vector<Fact> facts = read_facts();
  write_output(options.json ? json(facts) : plain(facts), options.output);
}

}  // namespace zerocomm::cli
