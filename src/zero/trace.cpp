// Recording and re-synchronising of traces.
#include "zero/trace.hpp"

#include <algorithm>

namespace zerocomm::zero {
namespace {

std::uint64_t hash_of(std::string_view name) {  // FNV-1a
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return hash;
}

}  // namespace

void Trace::reserve(std::size_t most_visits) {
  most_visits_ = most_visits;
  order_.reserve(most_visits);
  record_.reserve(most_visits);
}

void Trace::forget() {
  order_.clear();
  record_.clear();
  position_ = 0;
}

void Trace::begin() {
  record_.clear();
  position_ = 0;
}

void Trace::visit(std::size_t unit) {
  const auto wanted = static_cast<std::uint32_t>(unit);
  if (record_.size() < most_visits_) record_.push_back(wanted);
  const auto here = order_.begin() + static_cast<std::ptrdiff_t>(position_);
  auto found = std::find(here, order_.end(), wanted);
  if (found == order_.end()) {
    found = std::find(order_.begin(), here, wanted);
    if (found == here) return;
  }
  position_ = static_cast<std::size_t>(found - order_.begin()) + 1;
}

void Trace::end() {
  if (!record_.empty()) order_.swap(record_);  // a pass that visited nothing teaches nothing
  record_.clear();
  position_ = 0;
}

TraceTable::TraceTable(std::size_t most_names, std::size_t most_visits) : entries_(most_names) {
  for (Entry& entry : entries_) entry.trace.reserve(most_visits);
}

Trace& TraceTable::find(std::string_view name) {
  const std::uint64_t key = hash_of(name);
  auto found = std::find_if(entries_.begin(), entries_.end(),
                            [key](const Entry& entry) { return entry.last_use != 0 && entry.key == key; });
  if (found == entries_.end()) {
    found = std::min_element(entries_.begin(), entries_.end(),
                             [](const Entry& a, const Entry& b) { return a.last_use < b.last_use; });
    found->key = key;
    found->trace.forget();
  }
  found->last_use = ++clock_;
  return found->trace;
}

}  // namespace zerocomm::zero
