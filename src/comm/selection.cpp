#include "comm/selection.hpp"

#include "base/check.hpp"
#include "base/config.hpp"

#include <algorithm>
#include <string_view>

namespace zerocomm::comm {
namespace {

constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr std::uint64_t kNever = UINT64_MAX;

// Moved bytes are those of CallFacts. Measured: docs/decisions/045.
struct Row {
  Collective collective;
  const char* name;
  bool pulls;
  bool spreads;
  bool only_skewed;              // where blocks are about even, to pull is to spread
  std::uint64_t spread_from;     // moved bytes from which on it spreads, where it can do both
  std::uint64_t streaming_from;  // moved bytes from which on results pass by the caches
};
constexpr Row kTable[] = {
    {Collective::all_reduce, "all_reduce", false, true, false, 0, 32 * kMiB},
    {Collective::reduce, "reduce", false, true, false, 0, 64 * kMiB},
    {Collective::reduce_scatter, "reduce_scatter", true, true, true, kNever, 64 * kMiB},
    {Collective::reduce_scatter_v, "reduce_scatter_v", true, true, true, 256 * kKiB, 64 * kMiB},
    {Collective::all_gather, "all_gather", true, true, false, 1 * kMiB, 32 * kMiB},
    {Collective::all_gather_v, "all_gather_v", true, true, false, 1 * kMiB, 32 * kMiB},
    {Collective::broadcast, "broadcast", true, true, false, 24 * kMiB, 32 * kMiB},
    {Collective::all_to_all, "all_to_all", true, false, false, kNever, 32 * kMiB},
    {Collective::gather_to_root, "gather_to_root", true, false, false, kNever, 32 * kMiB},
    {Collective::scatter_from_root, "scatter_from_root", true, false, false, kNever, 32 * kMiB},
};
// A broadcast to one rank: while that one pulls, the root has nothing to do.
constexpr std::uint64_t kSpreadBetweenTwo = 64 * kKiB;
static_assert(std::size(kTable) == Selection::kRows);

// Copies out of memory that is not shared: from here on a source is worth a system call per reader.
constexpr std::uint64_t kLeastPrivateRead = 128 * kKiB;

constexpr std::string_view kForms[] = {"staged", "pull", "spread"};

bool copies(Collective collective) {
  return collective != Collective::all_reduce && collective != Collective::reduce &&
         collective != Collective::reduce_scatter && collective != Collective::reduce_scatter_v;
}

const Row* find_row(Collective collective) {
  for (const Row& row : kTable)
    if (row.collective == collective) return &row;
  return nullptr;
}

// Which forms there are at all.
std::string forms_of(const Row& row) {
  return format("staged%s%s", row.pulls ? ", pull" : "", row.spreads ? ", spread" : "");
}

bool has_form(const Row& row, Form form) {
  return form == Form::staged || (form == Form::pull ? row.pulls : row.spreads);
}

[[noreturn]] void refuse(const std::string& item, const std::string& why) {
  throw Error(ZC_ARGUMENT, format("the variable ZC_ALGO has \"%.60s\": %s", item.c_str(), why.c_str()));
}

std::string known_names() {
  std::string names;
  for (const Row& row : kTable) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

const char* obstacle_of(Form form, const CallFacts& facts) {
  if (form == Form::staged) return nullptr;
  if (facts.swaps) return "in place, blocks change places, which needs staging";
  if (!facts.sources_shared && !(form == Form::pull && facts.sources_readable))
    return "some rank's send buffer is not memory that all ranks can reach";
  if (form == Form::spread && !facts.results_shared)
    return "some rank's recv buffer is not memory that all ranks can reach";
  return nullptr;
}

}  // namespace

const char* form_name(Form form) noexcept { return kForms[static_cast<std::size_t>(form)].data(); }

void Selection::parse(const std::string& item) {
  const std::size_t equals = item.find('=');
  if (equals == std::string::npos) refuse(item, "it takes collective=form, with commas between");
  const std::string name = item.substr(0, equals);
  std::string form = item.substr(equals + 1), stores;
  if (const std::size_t slash = form.find('/'); slash != std::string::npos) {
    stores = form.substr(slash + 1);
    form.resize(slash);
    if (stores != "cached" && stores != "streaming") refuse(item, "behind the / it takes cached or streaming");
  }
  for (std::size_t i = 0; i < kRows; ++i) {
    if (name != kTable[i].name) continue;
    Override& row = overrides_[i];
    if (row.has_form || row.stores != Asked::nothing) refuse(item, "the collective is named twice");
    if (!stores.empty()) row.stores = stores == "cached" ? Asked::cached : Asked::streaming;
    if (form == "auto") {
      if (stores.empty()) refuse(item, "auto alone asks for nothing");
      return;
    }
    row.has_form = true;
    for (const Form each : {Form::staged, Form::pull, Form::spread})
      if (form == form_name(each) && has_form(kTable[i], each)) {
        row.form = each;
        return;
      }
    refuse(item, format("%s takes auto, %s", name.c_str(), forms_of(kTable[i]).c_str()));
  }
  refuse(item, "no such collective; it takes " + known_names());
}

Selection::Selection(const std::string& text) {
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parse(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

Selection Selection::of_environment() {
  const std::optional<std::string> text = text_variable("ZC_ALGO");
  return text ? Selection(*text) : Selection();
}

Choice Selection::choose(const CallFacts& facts) const noexcept {
  Choice choice;
  const Row* const row = find_row(facts.collective);
  const bool worth_it = facts.sources_shared || facts.most_private_bytes >= kLeastPrivateRead;
  if (row == nullptr) {  // of two ranks, or zc_all_to_all_v
    choice.form = obstacle_of(Form::pull, facts) == nullptr && worth_it ? Form::pull : Form::staged;
    return choice;
  }
  const Override& asked = overrides_[static_cast<std::size_t>(row - kTable)];
  // A reduction in place stores into lines that it has just read.
  const bool in_cache = facts.in_place && !copies(facts.collective);
  const bool streams = asked.stores == Asked::nothing ? facts.moved_bytes >= row->streaming_from && !in_cache
                                                      : asked.stores == Asked::streaming;
  choice.stores = streams ? device::Stores::streaming : device::Stores::cached;
  if (asked.has_form) {
    choice.form = asked.form;
    choice.obstacle = obstacle_of(asked.form, facts);
    return choice;
  }
  const bool can_pull = row->pulls && obstacle_of(Form::pull, facts) == nullptr && worth_it;
  const bool can_spread = row->spreads && obstacle_of(Form::spread, facts) == nullptr;
  const bool between_two = facts.collective == Collective::broadcast && facts.ranks == 2;
  const std::uint64_t spread_from = between_two ? kSpreadBetweenTwo : row->spread_from;
  const bool prefers_spread = !can_pull || (facts.moved_bytes >= spread_from && (facts.is_skewed || !row->only_skewed));
  choice.form = can_spread && prefers_spread ? Form::spread : can_pull ? Form::pull : Form::staged;
  return choice;
}

bool Selection::changes(Collective collective) const noexcept {
  const Row* const row = find_row(collective);
  if (row == nullptr) return false;
  const Override& asked = overrides_[static_cast<std::size_t>(row - kTable)];
  return asked.has_form || asked.stores != Asked::nothing;
}

bool Selection::forces_staging(Collective collective) const noexcept {
  const Row* const row = find_row(collective);
  if (row == nullptr) return false;
  const Override& asked = overrides_[static_cast<std::size_t>(row - kTable)];
  return asked.has_form && asked.form == Form::staged;
}

std::uint64_t Selection::fingerprint() const {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  const auto add = [&](std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3ULL; };
  for (std::size_t i = 0; i < kRows; ++i) {
    const Row& row = kTable[i];
    const Override& asked = overrides_[i];
    for (const std::uint64_t value :
         {std::uint64_t{static_cast<std::uint32_t>(row.collective)}, std::uint64_t{row.pulls},
          std::uint64_t{row.spreads}, std::uint64_t{row.only_skewed}, row.spread_from, row.streaming_from,
          std::uint64_t{asked.has_form}, static_cast<std::uint64_t>(asked.form),
          static_cast<std::uint64_t>(asked.stores)})
      add(value);
  }
  add(kLeastPrivateRead);
  add(kSpreadBetweenTwo);
  return hash;
}

void Selection::print(const std::function<void(const char*, const std::string&, const std::string&)>& row) const {
  const auto size = [](std::uint64_t bytes) {
    return bytes >= kMiB ? format("%llu MiB", static_cast<unsigned long long>(bytes / kMiB))
                         : format("%llu KiB", static_cast<unsigned long long>(bytes / kKiB));
  };
  for (std::size_t i = 0; i < kRows; ++i) {
    const Row& each = kTable[i];
    const Override& asked = overrides_[i];
    std::string value, why;
    if (asked.has_form) {
      value = form_name(asked.form);
      why = "ZC_ALGO";
    } else {
      if (!each.spreads || each.spread_from == kNever)
        value = "pull";
      else if (!each.pulls || each.spread_from == 0)
        value = "spread";
      else
        value = format("pull; spread from %s moved%s on", size(each.spread_from).c_str(),
                       each.only_skewed ? " and uneven blocks" : "");
      if (each.collective == Collective::broadcast)
        value += format(" (%s between two ranks)", size(kSpreadBetweenTwo).c_str());
      why = "staged where memory is not shared";
    }
    if (asked.stores != Asked::nothing) {
      value += asked.stores == Asked::cached ? "; cached stores" : "; streaming stores";
      if (!asked.has_form) why += "; stores as ZC_ALGO says";
    } else {
      value += format("; streaming stores from %s moved on%s", size(each.streaming_from).c_str(),
                      copies(each.collective) ? "" : ", but for in place");
    }
    row(each.name, value, why);
  }
}

}  // namespace zerocomm::comm
