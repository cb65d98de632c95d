// Expressions, each kept once.
#include "schedule/expression.hpp"

#include "base/check.hpp"

#include <algorithm>

namespace zerocomm::schedule {

ExprId Expressions::intern(Kind kind, std::uint32_t a, std::uint32_t b) {
  const auto [entry, is_new] = numbers_.try_emplace({kind, a, b}, static_cast<ExprId>(nodes_.size()));
  if (is_new) {
    std::uint32_t losses = kind == Kind::leaf ? 0 : nodes_[a].losses;
    if (kind == Kind::sum) losses = std::max(losses, nodes_[b].losses);
    if (kind == Kind::code) ++losses;
    nodes_.push_back({kind, a, b, losses});
  }
  return entry->second;
}

ExprId Expressions::sum(ExprId a, ExprId b) {
  if (a == kUndefined || b == kUndefined) return kUndefined;
  return intern(Kind::sum, std::min(a, b), std::max(a, b));
}

ExprId Expressions::rounded(ExprId a) {
  if (nodes_[a].kind == Kind::round || a == kUndefined) return a;
  return intern(Kind::round, a, 0);
}

ExprId Expressions::coded(ExprId a, std::uint8_t codec) { return a == kUndefined ? a : intern(Kind::code, a, codec); }

Expressions::Counts Expressions::counts(ExprId id, std::uint32_t chunk, std::uint32_t ranks) const {
  Counts result{std::vector<std::uint64_t>(ranks, 0), 0};
  const auto add = [](std::uint64_t& to, std::uint64_t n) {
    if (__builtin_add_overflow(to, n, &to)) to = UINT64_MAX;  // doubling 64 times is as wrong as doubling once
  };
  std::vector<std::uint64_t> uses(std::size_t{id} + 1, 0);
  uses[id] = 1;
  for (ExprId i = id; i > kUndefined; --i) {  // operands have smaller numbers
    const Node& node = nodes_[i];
    if (uses[i] == 0) continue;
    if (node.kind == Kind::leaf) {
      add(node.b == chunk ? result.per_rank[node.a] : result.foreign, uses[i]);
    } else {
      add(uses[node.a], uses[i]);
      if (node.kind == Kind::sum) add(uses[node.b], uses[i]);
    }
  }
  return result;
}

void Expressions::append_text(ExprId id, std::string& text) const {
  constexpr std::size_t kLongest = 240;
  if (text.size() > kLongest) {
    if (!text.ends_with("...")) text += "...";
    return;
  }
  const Node& node = nodes_[id];
  switch (node.kind) {
    case Kind::undefined:
      text += "undefined";
      return;
    case Kind::leaf:
      text += format("x%u[%u]", node.a, node.b);
      return;
    case Kind::sum:
      text += "(";
      append_text(node.a, text);
      text += " + ";
      append_text(node.b, text);
      text += ")";
      return;
    case Kind::round:
      text += "round ";
      append_text(node.a, text);
      return;
    case Kind::code:
      text += format("codec%u(", node.b);
      append_text(node.a, text);
      text += ")";
      return;
  }
}

std::string Expressions::text(ExprId id) const {
  std::string text;
  append_text(id, text);
  return text;
}

}  // namespace zerocomm::schedule
