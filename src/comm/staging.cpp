#include "comm/staging.hpp"

#include "base/check.hpp"
#include "comm/fault.hpp"

#include <cstdio>

namespace zerocomm::comm {

zc_status Staging::wait_for_all(std::atomic<std::uint64_t> transport::RankBlock::*counter, std::uint64_t rounds,
                                const char* doing) const noexcept {
  std::int32_t next = 0;
  const auto name_culprit = [&](std::int32_t* culprit, char* text, std::size_t capacity_bytes) {
    *culprit = next;
    std::snprintf(text, capacity_bytes, "rank %d has not %s its staging for %s", next, doing,
                  describe(what_->call).c_str());
  };
  FunctionRef<void(std::int32_t*, char*, std::size_t)> blame = name_culprit;
  const auto ready = [&]() -> int {
    while (next < comm_->ranks() && (comm_->control().rank(next).*counter).load() >= rounds) ++next;
    return next == comm_->ranks();
  };
  return comm_->wait(ready, {what_->deadline_ns, collective_name(what_->call.collective), &blame, true});
}

zc_status Staging::round(FunctionRef<void(std::byte*)> fill, FunctionRef<void()> read) noexcept {
  const std::uint64_t round = comm_->staging_rounds;
  if (round >= 2) ZC_TRY(wait_for_all(&transport::RankBlock::drained, round - 1, "read"));
  step("free half");
  fill(half(comm_->rank()));
  comm_->own_block().filled.store(round + 1);
  step("filled");
  comm_->control().ring_all();
  ZC_TRY(wait_for_all(&transport::RankBlock::filled, round + 1, "filled"));
  step("all filled");
  read();
  comm_->own_block().drained.store(round + 1);
  step("drained");
  comm_->control().ring_all();
  comm_->staging_rounds = round + 1;
  return ZC_OK;
}

}  // namespace zerocomm::comm
