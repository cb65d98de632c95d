// Reading schedules from text: one line, one rule; the first line that breaks it is named.
#include "base/check.hpp"
#include "schedule/builder.hpp"
#include "schedule/schedule_text.hpp"

#include <charconv>

namespace zerocomm::schedule {
namespace {

class Line {
 public:
  Line(std::string_view text, std::size_t number) : text_(text), number_(number) {
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t begin = rest.find_first_not_of(" \t\r");
      if (begin == std::string_view::npos) break;
      rest.remove_prefix(begin);
      const std::size_t end = std::min(rest.find_first_of(" \t\r"), rest.size());
      words_.push_back(rest.substr(0, end));
      rest.remove_prefix(end);
    }
  }

  bool is_empty() const { return words_.empty() || words_.front().front() == '#'; }
  bool at_end() const { return next_ == words_.size(); }
  std::string_view peek() const { return at_end() ? std::string_view{} : words_[next_]; }
  std::string_view word() {
    if (at_end()) wrong("the line ends too early");
    return words_[next_++];
  }
  bool accept(std::string_view word) {
    if (peek() != word || at_end()) return false;
    ++next_;
    return true;
  }
  void end() const {
    if (!at_end()) wrong("a word too many");
  }

  std::uint32_t number(std::string_view digits) const {
    std::uint32_t value = 0;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || stop != digits.data() + digits.size()) wrong("a number of 32 bits was expected");
    return value;
  }
  // "name=7"
  std::uint32_t field(std::string_view name) {
    const std::string_view text = word();
    if (!text.starts_with(name) || !text.substr(name.size()).starts_with('=')) wrong("another field was expected");
    return number(text.substr(name.size() + 1));
  }

  // "input[2..5]", "input[2]" or "none"
  At range() {
    const std::string_view text = word();
    if (text == "none") return {};
    const std::size_t open = text.find('['), dots = text.find("..");
    if (open == std::string_view::npos || text.back() != ']') wrong("a range such as input[2..5] was expected");
    const std::string_view name = text.substr(0, open);
    const Buf buf = name == "input"     ? Buf::input
                    : name == "output"  ? Buf::output
                    : name == "scratch" ? Buf::scratch
                                        : Buf::none;
    if (buf == Buf::none) wrong("buffers are input, output and scratch");
    const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
    if (dots == std::string_view::npos) return {buf, number(inside), 1};
    const std::size_t cut = inside.find("..");
    if (cut == std::string_view::npos) wrong("a range such as input[2..5] was expected");
    const std::uint32_t first = number(inside.substr(0, cut)), last = number(inside.substr(cut + 2));
    if (last < first || last - first == UINT32_MAX) wrong("a range that ends before it begins");
    return {buf, first, last - first + 1};
  }

  [[noreturn]] void wrong(const char* why) const {
    throw Error(ZC_ARGUMENT, format("line %zu: %s: '%.*s'", number_, why,
                                    static_cast<int>(std::min<std::size_t>(text_.size(), 200)), text_.data()));
  }

 private:
  std::string_view text_;
  std::size_t number_;
  std::vector<std::string_view> words_;
  std::size_t next_ = 0;
};

void read_header(Line& line, Schedule& schedule) {
  Key& key = schedule.key;
  const std::string_view name = line.word();
  bool known = false;
  for (std::size_t i = 0; i < kCollectives; ++i)
    if (name == collective_name(static_cast<Collective>(i))) key.collective = static_cast<Collective>(i), known = true;
  if (!known) line.wrong("not a collective");
  key.algorithm = line.word();
  key.ranks = line.field("ranks");
  key.root = line.field("root");
  key.chunks = line.field("chunks");
  key.lanes = line.field("lanes");
  schedule.scratch_chunks = line.field("scratch");
  if (line.peek().starts_with("loss=")) schedule.loss = line.field("loss");
}

void read_suffixes(Line& line, Step& step) {
  if (line.accept("hold")) step = held(step);
  if (line.peek().starts_with("codec=")) {
    const std::uint32_t codec = line.field("codec");
    if (codec == 0 || codec > UINT8_MAX) line.wrong("a codec is 1 to 255");
    step.codec = static_cast<std::uint8_t>(codec);
  }
  if (line.peek().starts_with("wait=")) {
    const std::string_view text = line.word().substr(5);
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) line.wrong("a wait is written wait=LANE:STEP");
    const std::uint32_t lane = line.number(text.substr(0, colon)), earlier = line.number(text.substr(colon + 1));
    if (lane >= kMaxLanes || earlier >= kMaxSteps) line.wrong("a wait beyond any lane or step");
    step.wait = wait_for(lane, earlier);
  }
}

Step read_step(Line& line) {
  const std::string_view op = line.word();
  Step step;
  if (op == "send") {
    const std::uint32_t peer = line.field("to");
    step = send(peer, line.range());
  } else if (op == "recv" || op == "recv_reduce") {
    const std::uint32_t peer = line.field("from");
    const At destination = line.range();
    step = op == "recv" ? recv(peer, destination) : recv_reduce(peer, destination);
  } else if (op == "copy" || op == "reduce") {
    const At source = line.range();
    if (!line.accept("->")) line.wrong("'->' was expected");
    const At destination = line.range();
    if (source.n_chunks != destination.n_chunks) line.wrong("source and destination differ in chunks");
    step = op == "copy" ? copy(source, destination) : reduce(source, destination);
  } else {
    line.wrong("ops are send, recv, recv_reduce, copy, reduce");
  }
  read_suffixes(line, step);
  return step;
}

}  // namespace

Schedule from_text(std::string_view text) {
  Schedule schedule;
  bool has_header = false;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    Line line(text.substr(0, end), ++number);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.is_empty()) continue;
    if (!has_header) {
      if (!line.accept("schedule")) line.wrong("the first line begins with 'schedule'");
      read_header(line, schedule);
      has_header = true;
    } else if (line.accept("rank")) {
      if (line.number(line.word()) != schedule.ranks.size()) line.wrong("ranks are numbered in order");
      schedule.ranks.emplace_back();
    } else if (line.accept("lane")) {
      if (schedule.ranks.empty()) line.wrong("a lane before the first rank");
      if (line.number(line.word()) != schedule.ranks.back().lanes.size()) line.wrong("lanes are numbered in order");
      schedule.ranks.back().lanes.emplace_back();
    } else {
      if (schedule.ranks.empty() || schedule.ranks.back().lanes.empty()) line.wrong("a step before the first lane");
      schedule.ranks.back().lanes.back().steps.push_back(read_step(line));
    }
    line.end();
  }
  ZC_REQUIRE(has_header, ZC_ARGUMENT, "the text holds no schedule");
  ZC_REQUIRE(schedule.ranks.size() == schedule.key.ranks, ZC_ARGUMENT, "%zu of %u ranks", schedule.ranks.size(),
             schedule.key.ranks);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank)
    ZC_REQUIRE(schedule.ranks[rank].lanes.size() == schedule.key.lanes, ZC_ARGUMENT, "rank %zu has %zu of %u lanes",
               rank, schedule.ranks[rank].lanes.size(), schedule.key.lanes);
  return schedule;
}

}  // namespace zerocomm::schedule
