#include "comm/agree.hpp"

#include "base/check.hpp"

#include <cstdio>
#include <string>

namespace zerocomm::comm {

void blame_absent(const Comm& comm, const Posts& posts, const Operation& what, std::int32_t* culprit, char* text,
                  std::size_t capacity_bytes) {
  constexpr int kMostNamed = 16;  // the rest of the text must fit too
  std::string ranks;
  int absent = 0;
  for (std::size_t i = 0; i < posts.count(); ++i) {
    const std::int32_t rank = posts.rank(i);
    if (posts.has_come(rank)) continue;
    if (*culprit == ZC_NONE) *culprit = rank;
    if (++absent <= kMostNamed) ranks += format(ranks.empty() ? "rank %d" : ", rank %d", rank);
  }
  if (absent > kMostNamed) ranks += format(" and %d more", absent - kMostNamed);
  if (absent == 0) {
    *culprit = comm.rank();
    std::snprintf(text, capacity_bytes, "all ranks have come to %s, %s, the last of them with the deadline",
                  posts.name().c_str(), describe(what.call).c_str());
    return;
  }
  const auto& block = comm.control().rank(*culprit);
  const std::uint64_t brief = block.brief.load();
  char who[48];
  comm.describe_rank(*culprit, who, sizeof who);
  std::snprintf(text, capacity_bytes, "%s did not come to %s, %s; last call of %s: %s%s", ranks.c_str(),
                posts.name().c_str(), describe(what.call).c_str(), who,
                brief == 0 ? "none" : describe_brief(brief).c_str(),
                block.detached.load() != 0 ? "; it has destroyed its communicator" : "");
}

zc_status agree(Comm& comm, const Posts& posts, const Operation& what) noexcept {
  const auto call_of = [&](std::size_t i) -> const transport::CallRecord& { return posts.of(posts.rank(i)).call; };
  // Against a rank that has a place, if there is one: all others must have the same.
  std::size_t reference = 0;
  while (reference < posts.count() && call_of(reference).in_place == transport::CallRecord::kEitherPlace) ++reference;
  if (reference == posts.count()) reference = 0;
  for (std::size_t i = 0; i < posts.count(); ++i) {
    if (i == reference || same_call(call_of(i), call_of(reference))) continue;
    Counters::add(comm.counters().mismatches, 1);
    return fail(ZC_MISMATCH, "%s: rank %d calls %s, but rank %d calls %s (this is rank %d: %s)", posts.name().c_str(),
                posts.rank(reference), describe(call_of(reference)).c_str(), posts.rank(i),
                describe(call_of(i)).c_str(), comm.rank(), describe(what.call).c_str());
  }
  for (std::size_t i = 0; i < posts.count(); ++i)
    if (const std::uint64_t failed_bytes = posts.of(posts.rank(i)).failed_bytes; failed_bytes != 0)
      return fail(ZC_NO_MEMORY, "rank %d could not get %llu bytes for %s", posts.rank(i),
                  static_cast<unsigned long long>(failed_bytes), describe(what.call).c_str());
  return ZC_OK;
}

}  // namespace zerocomm::comm
