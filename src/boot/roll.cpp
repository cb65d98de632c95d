#include "boot/roll.hpp"

#include "boot/local_socket.hpp"
#include "boot/rendezvous_verdict.hpp"

#include <algorithm>
#include <utility>

namespace zerocomm::boot {
namespace {

bool same_process(const Identity& a, const Identity& b) {
  return a.rank == b.rank && a.pid == b.pid && a.pid_namespace == b.pid_namespace && a.boot_id == b.boot_id;
}

}  // namespace

Roll::Roll(const JoinRequest& request, const Identity& own, const Deadline& deadline, std::uint64_t hash, bool one_host)
    : request_(request),
      hash_(hash),
      one_host_(one_host),
      earliest_(deadline),
      earliest_ns_(request.deadline_ns),
      identities_(static_cast<std::size_t>(request.ranks)),
      here_(identities_.size()),
      missing_(identities_.size() - 1) {
  identities_[0] = own;
  here_[0] = true;
}

Roll::Place Roll::call(const wire::Hello& hello) {
  if (hello.job_hash != hash_ || hello.ranks < 1 || hello.identity.rank < 0 || hello.identity.rank >= hello.ranks)
    return Place::none;
  const auto rank = static_cast<std::size_t>(hello.identity.rank);
  const bool taken = rank < here_.size() && here_[rank];
  if (auto error = disagreement(hello, request_, identities_[0], taken ? &identities_[rank] : nullptr))
    settle(*std::move(error));
  if (taken || rank >= here_.size()) return Place::aside;
  if (one_host_)
    if (auto error = other_ipc(hello.identity, identities_[0])) settle(*std::move(error));
  identities_[rank] = hello.identity;
  here_[rank] = true;
  --missing_;
  if (hello.left_ns < earliest_.left_ns()) {
    earliest_ = Deadline::after(std::max<std::int64_t>(hello.left_ns, 0));
    earliest_ns_ = hello.deadline_ns;
    earliest_rank_ = hello.identity.rank;
  }
  return Place::seat;
}

Roll::Late Roll::call_late(const wire::Hello& hello) {
  if (hello.job_hash != hash_) return Late::stranger;
  const auto rank = static_cast<std::size_t>(std::max(hello.identity.rank, 0));
  if (rank >= here_.size()) return Late::tell;
  if (here_[rank] && same_process(identities_[rank], hello.identity)) return Late::told_before;
  if (!here_[rank]) --missing_;
  here_[rank] = true;
  identities_[rank] = hello.identity;
  return Late::tell;
}

void Roll::settle(Error error) {
  if (!verdict_) verdict_ = std::move(error);
}

std::string Roll::within() const {
  return format("within %s, the deadline of rank %d", seconds_text(earliest_ns_).c_str(), earliest_rank_);
}

std::string Roll::missing_text(const std::string& where, std::size_t strangers) const {
  RankList names;
  for (std::size_t i = 0; i < here_.size(); ++i)
    if (!here_[i]) names.add(format("rank %zu", i));
  std::string text = format("%s did not come %s; %zu of %zu came to %s", names.text().c_str(), within().c_str(),
                            here_.size() - missing_, here_.size(), where.c_str());
  if (strangers > 0) text += format("; callers turned away that are none of them: %zu", strangers);
  return text;
}

}  // namespace zerocomm::boot
