#include "boot/rendezvous_verdict.hpp"

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
  const std::uint64_t ipc = theirs.identity.ipc_namespace;
  if (ipc != own.ipc_namespace && ipc != 0 && own.ipc_namespace != 0)  // 0: without /proc nobody can say
    return Error(
        ZC_UNSUPPORTED,
        format("%s is in IPC namespace %llu, %s in %llu: these count as two hosts, and ranks on several hosts are "
               "not supported by this version",
               who.c_str(), static_cast<unsigned long long>(ipc), zero.c_str(),
               static_cast<unsigned long long>(own.ipc_namespace)));
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

Error other_version(std::int32_t pid, std::uint32_t version, std::int32_t own_pid) {
  return {ZC_MISMATCH,
          format("process %d speaks version %u of the joining, process %d version %u: all ranks must use the "
                 "same ZeroComm",
                 pid, version, own_pid, wire::kVersion)};
}

}  // namespace zerocomm::boot
