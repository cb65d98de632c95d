#include "boot/rendezvous_verdict.hpp"

#include <algorithm>

namespace zerocomm::boot {

std::string rank_text(const Identity& identity) { return format("rank %d (pid %d)", identity.rank, identity.pid); }

void RankList::add(const std::string& name) {
  constexpr std::size_t kMostNamed = 16;
  if (++count_ > kMostNamed)
    ++more_;
  else
    text_ += (count_ > 1 ? ", " : "") + name;
}

std::string RankList::text() const { return more_ > 0 ? text_ + format(" and %zu more", more_) : text_; }

std::optional<Error> disagreement(const wire::Hello& theirs, const JoinRequest& request, const Identity& own,
                                  const Identity* seated) {
  const std::string who = rank_text(theirs.identity), zero = rank_text(own);
  if (theirs.ranks != request.ranks)
    return Error(ZC_MISMATCH, format("%s is one of %d ranks, %s is one of %d", who.c_str(), theirs.ranks, zero.c_str(),
                                     request.ranks));
  if (seated != nullptr)
    return Error(ZC_MISMATCH, format("rank %d came twice, as process %d and as process %d", theirs.identity.rank,
                                     seated->pid, theirs.identity.pid));
  if (theirs.agreed == request.agreed) return std::nullopt;
  const std::string their_text = wire::get_text(theirs.agreed_text);
  const std::string own_text = request.agreed_text.substr(0, wire::kAgreedCharacters);
  std::string hashes;
  if (their_text == own_text)
    hashes = format(", which differ after what is shown: %016llx and %016llx",
                    static_cast<unsigned long long>(theirs.agreed), static_cast<unsigned long long>(request.agreed));
  return Error(ZC_MISMATCH, format("%s has \"%s\", %s has \"%s\"%s", who.c_str(), their_text.c_str(), zero.c_str(),
                                   own_text.c_str(), hashes.c_str()));
}

std::optional<Error> other_ipc(const Identity& theirs, const Identity& own) {
  // 0: without /proc nobody can say.
  if (theirs.ipc_namespace == own.ipc_namespace || theirs.ipc_namespace == 0 || own.ipc_namespace == 0) return {};
  return Error(
      ZC_UNSUPPORTED,
      format("%s is in IPC namespace %llu, %s in %llu: these count as two hosts, and ranks on several hosts are "
             "not supported by this version",
             rank_text(theirs).c_str(), static_cast<unsigned long long>(theirs.ipc_namespace), rank_text(own).c_str(),
             static_cast<unsigned long long>(own.ipc_namespace)));
}

bool same_host(const Identity& a, const Identity& b) noexcept {
  const auto differ = [](std::uint64_t left, std::uint64_t right) { return left != right && left != 0 && right != 0; };
  return !differ(a.network_namespace, b.network_namespace) && !differ(a.ipc_namespace, b.ipc_namespace) &&
         !differ(a.boot_id[0], b.boot_id[0]) && !differ(a.boot_id[1], b.boot_id[1]);
}

std::optional<Error> several_hosts(const std::vector<Identity>& ranks) {
  constexpr std::size_t kMostHosts = 8;
  struct Host {
    const Identity* first;
    RankList names;
  };
  std::vector<Host> hosts;
  for (const Identity& rank : ranks) {
    auto host = std::find_if(hosts.begin(), hosts.end(), [&](const Host& it) { return same_host(*it.first, rank); });
    if (host == hosts.end()) host = hosts.insert(host, Host{&rank, {}});
    host->names.add(format("%d", rank.rank));
  }
  if (hosts.size() <= 1) return {};
  std::string text = format("the ranks are on %zu hosts:", hosts.size());
  for (std::size_t i = 0; i < std::min(hosts.size(), kMostHosts); ++i)
    text += format("%s %.63s (boot %08llx, network namespace %llu, IPC namespace %llu) has rank %s", i > 0 ? ";" : "",
                   hosts[i].first->host.data(), static_cast<unsigned long long>(hosts[i].first->boot_id[0] >> 32),
                   static_cast<unsigned long long>(hosts[i].first->network_namespace),
                   static_cast<unsigned long long>(hosts[i].first->ipc_namespace), hosts[i].names.text().c_str());
  if (hosts.size() > kMostHosts) text += format("; and %zu hosts more", hosts.size() - kMostHosts);
  return Error(ZC_UNSUPPORTED, text +
                                   ". They have found each other, but data between hosts comes with a later version "
                                   "of the library: start all ranks on one host");
}

Error other_version(std::int32_t pid, std::uint32_t version, std::int32_t own_pid) {
  return {ZC_MISMATCH,
          format("process %d speaks version %u of the joining, process %d version %u: all ranks must use the "
                 "same ZeroComm",
                 pid, version, own_pid, wire::kVersion)};
}

}  // namespace zerocomm::boot
