// Results as expressions over contributions: x3[7] is what rank 3 brought for chunk 7. Equal expressions have equal
// numbers, so comparing two results is comparing two integers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace zerocomm::schedule {

using ExprId = std::uint32_t;
inline constexpr ExprId kUndefined = 0;

class Expressions {
 public:
  ExprId leaf(std::uint32_t rank, std::uint32_t chunk) { return intern(Kind::leaf, rank, chunk); }
  // Commutative: a + b and b + a have one number. A sum with something undefined is undefined.
  ExprId sum(ExprId a, ExprId b);
  // Rounding twice is rounding once.
  ExprId rounded(ExprId a);

  // What a lossy encoding leaves of a value: bits of its own, whoever is in it. Encoding twice loses twice.
  ExprId coded(ExprId a, std::uint8_t codec);
  // Most lossy encodings between a contribution and `id`.
  std::uint32_t losses(ExprId id) const { return nodes_[id].losses; }

  // How often each rank's contribution to `chunk` is in `id`; `foreign` counts contributions to other chunks.
  struct Counts {
    std::vector<std::uint64_t> per_rank;
    std::uint64_t foreign = 0;
  };
  Counts counts(ExprId id, std::uint32_t chunk, std::uint32_t ranks) const;

  // "round(x0[2] + x1[2])", cut off where it gets long.
  std::string text(ExprId id) const;

 private:
  enum class Kind : std::uint8_t { undefined, leaf, sum, round, code };
  struct Node {
    Kind kind = Kind::undefined;
    std::uint32_t a = 0;  // leaf: rank; else an operand, whose number is smaller
    std::uint32_t b = 0;  // leaf: chunk; sum: the other operand; code: the codec
    std::uint32_t losses = 0;
  };
  ExprId intern(Kind kind, std::uint32_t a, std::uint32_t b);
  void append_text(ExprId id, std::string& text) const;

  std::vector<Node> nodes_{Node{}};
  std::map<std::tuple<Kind, std::uint32_t, std::uint32_t>, ExprId> numbers_;
};

}  // namespace zerocomm::schedule
