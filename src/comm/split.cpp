#include "comm/split.hpp"

#include "base/check.hpp"
#include "comm/collective.hpp"
#include "comm/fault.hpp"
#include "comm/native.hpp"

#include <algorithm>
#include <cstdio>
#include <new>
#include <optional>
#include <vector>

namespace zerocomm::comm {
namespace {

using transport::Segment;

// What every rank tells all others. Plain words: it travels by all_gather.
struct Wish {
  std::int64_t color = 0;
  std::int64_t key = 0;
  std::int64_t topology_hash = 0;  // 0: no text
  std::int64_t reproducible = 0;
  std::int64_t status = ZC_OK;
};
constexpr std::size_t kWishWords = sizeof(Wish) / sizeof(std::int64_t);

// Why a rank failed; told to the others only if one did.
struct alignas(std::int64_t) Reason {
  char text[512] = {};
};
constexpr std::size_t kReasonWords = sizeof(Reason) / sizeof(std::int64_t);

std::int64_t hash_text(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return text.empty() ? 0 : static_cast<std::int64_t>(hash | 1);
}

// The ranks of one colour, by key and then by rank.
std::vector<std::int32_t> ranks_of(const std::vector<Wish>& wishes, std::int64_t color) {
  std::vector<std::int32_t> ranks;
  for (std::size_t rank = 0; rank < wishes.size(); ++rank)
    if (wishes[rank].color == color) ranks.push_back(static_cast<std::int32_t>(rank));
  std::stable_sort(ranks.begin(), ranks.end(), [&](std::int32_t a, std::int32_t b) {
    return wishes[static_cast<std::size_t>(a)].key < wishes[static_cast<std::size_t>(b)].key;
  });
  return ranks;
}

// The nodes of some ranks, in order of appearance.
topo::Topology part_of(const topo::Topology& parent, const std::vector<std::int32_t>& ranks) {
  topo::Topology part;
  std::vector<std::int32_t> new_of_old(parent.node_names.size(), -1);
  for (const std::int32_t rank : ranks) {
    const auto old = static_cast<std::size_t>(parent.node_of_rank[static_cast<std::size_t>(rank)]);
    if (new_of_old[old] < 0) {
      new_of_old[old] = static_cast<std::int32_t>(part.node_names.size());
      part.node_names.push_back(parent.node_names[old]);
    }
    part.node_of_rank.push_back(new_of_old[old]);
  }
  return part;
}

// Of one colour two ranks that want children that differ, if there are any. All ranks see all wishes and find the same.
zc_status compare_wishes(const std::vector<Wish>& wishes) {
  for (std::size_t rank = 0; rank < wishes.size(); ++rank) {
    if (wishes[rank].color == ZC_NONE) continue;
    std::size_t first = 0;
    while (wishes[first].color != wishes[rank].color) ++first;
    if (wishes[rank].topology_hash != wishes[first].topology_hash)
      return fail(ZC_MISMATCH, "zc_comm_split: ranks %zu and %zu of colour %lld give different topologies", first, rank,
                  static_cast<long long>(wishes[rank].color));
    if (wishes[rank].reproducible != wishes[first].reproducible)
      return fail(ZC_MISMATCH, "zc_comm_split: of colour %lld rank %zu has reproducible %s and rank %zu has it %s",
                  static_cast<long long>(wishes[rank].color), first, wishes[first].reproducible != 0 ? "on" : "off",
                  rank, wishes[rank].reproducible != 0 ? "on" : "off");
  }
  return ZC_OK;
}

// How large private buffers are copied was found out for the first communicator of the family, whose ranks it names.
std::string inherited_copy(const Comm& parent) {
  const bool names_ranks = parent.private_copy.find("rank ") != std::string::npos;
  return parent.private_copy + (names_ranks && parent.parent_ranks.empty() ? " (before any split)" : "");
}

// One rank's part in one split.
class Split {
 public:
  Split(Comm& parent, const SplitSpec& spec) : parent_(&parent), spec_(&spec) {
    const auto ranks = static_cast<std::size_t>(parent.ranks());
    wishes_.resize(ranks);
    statuses_.resize(ranks);
    failed_ = spec.refused;
    std::snprintf(reason_.text, sizeof reason_.text, "%s", spec.refusal.c_str());
  }

  ~Split() {
    if (child_) child_->detach();  // not handed out: some rank has failed
  }
  Split(const Split&) = delete;
  Split& operator=(const Split&) = delete;

  zc_status run(std::shared_ptr<zc_comm>* child) {
    ZC_TRY(announce(nullptr, nullptr));  // another call than split is found here, before anything has happened
    step("split announced");
    ZC_TRY(exchange_wishes());
    step("split wishes known");
    attempt([&] { choose_members(); });
    ZC_TRY(bring_core());
    step("split core found");
    attempt([&] { join(); });
    step("split joined");
    ZC_TRY(conclude());
    *child = std::move(child_);
    return ZC_OK;
  }

 private:
  // Runs `body` unless this rank has failed already, and keeps what went wrong for the end, when all ranks are told.
  template <class Body>
  void attempt(Body&& body) noexcept {
    if (failed_ != ZC_OK) return;
    try {
      body();
    } catch (const Error& error) {
      fail_with(error.status(), error.what());
    } catch (const std::bad_alloc&) {
      fail_with(ZC_NO_MEMORY, "the system had no memory for the library's own bookkeeping");
    } catch (const std::exception& error) {
      fail_with(ZC_INTERNAL, error.what());
    }
  }

  void fail_with(zc_status status, const char* text) noexcept {
    failed_ = status;
    std::snprintf(reason_.text, sizeof reason_.text, "%s", text);
  }

  // A collective of the parent that is seen as zc_comm_split.
  zc_status announce(FunctionRef<std::uint64_t(std::uint64_t)>* prepare,
                     FunctionRef<zc_status(const Peers&)>* move) noexcept {
    Operation what;
    what.call.collective = static_cast<std::uint32_t>(Collective::comm_split);
    what.traffic = ZC_TRAFFIC_CONTROL;
    what.held = true;
    what.prepare = prepare;
    return run_collective(*parent_, what, move);
  }

  zc_status gather(const void* own, void* all, std::size_t words) {
    Options options;
    options.traffic = ZC_TRAFFIC_CONTROL;
    options.held = true;
    return all_gather(*parent_, own, all, words, nullptr, ZC_DTYPE_I64, options);
  }

  zc_status exchange_wishes() {
    const Wish own{spec_->color, spec_->key, hash_text(spec_->topology), spec_->settings.reproducible ? 1 : 0, failed_};
    ZC_TRY(gather(&own, wishes_.data(), kWishWords));
    for (std::size_t rank = 0; rank < wishes_.size(); ++rank) statuses_[rank] = wishes_[rank].status;
    ZC_TRY(agree_on_failure());
    return compare_wishes(wishes_);
  }

  // If any rank has failed, all return the first such rank's status and text.
  zc_status agree_on_failure() {
    const auto found = std::find_if(statuses_.begin(), statuses_.end(), [](std::int64_t one) { return one != ZC_OK; });
    if (found == statuses_.end()) return ZC_OK;
    const auto rank = static_cast<std::int32_t>(found - statuses_.begin());
    Options options;
    options.traffic = ZC_TRAFFIC_CONTROL;
    options.held = true;
    ZC_TRY(broadcast(*parent_, &reason_, kReasonWords, ZC_DTYPE_I64, rank, options));
    return fail(static_cast<zc_status>(*found), "zc_comm_split failed on rank %d: %s", rank, reason_.text);
  }

  void choose_members() {
    if (spec_->color == ZC_NONE) return;
    members_ = ranks_of(wishes_, spec_->color);
    rank_ = static_cast<std::int32_t>(std::find(members_.begin(), members_.end(), parent_->rank()) - members_.begin());
    topology_ = spec_->topology.empty()
                    ? part_of(parent_->group().topology(), members_)
                    : topo::parse_topology(spec_->topology, static_cast<std::int32_t>(members_.size()));
  }

  // The first rank of each colour makes the memory of the child, and the others find it.
  zc_status bring_core() {
    transport::Group& group = parent_->group();
    const bool leads = failed_ == ZC_OK && !members_.empty() && rank_ == 0;
    std::optional<std::uint64_t> key;
    const auto make = [&](std::uint64_t call) -> std::uint64_t {
      key = 2 * call;
      if (leads) attempt([&] { group.offer(*key, parent_->rank(), group.make_child(topology_)); });
      return 0;  // who has no memory says so in the end
    };
    FunctionRef<std::uint64_t(std::uint64_t)> prepare = make;
    const auto find = [&](const Peers&) {
      if (!members_.empty()) attempt([&] { core_ = group.find(*key, members_[0]); });
      return ZC_OK;
    };
    FunctionRef<zc_status(const Peers&)> move = find;
    const zc_status status = announce(&prepare, &move);
    if (leads && key) group.withdraw(*key, parent_->rank());
    return status;
  }

  void join() {
    if (members_.empty() || core_ == nullptr) return;  // its first rank has failed, and says why
    auto made = std::make_shared<zc_comm>(parent_->group().join_child(core_, topology_, rank_), rank_, spec_->settings);
    core_ = nullptr;
    made->private_copy = inherited_copy(*parent_);
    made->parent_ranks = members_;
    if (parent_->keeper() != nullptr) made->stand(parent_->keeper());
    child_ = std::move(made);
  }

  zc_status conclude() {
    const std::int64_t own = failed_;
    ZC_TRY(gather(&own, statuses_.data(), 1));
    return agree_on_failure();
  }

  Comm* parent_;
  const SplitSpec* spec_;
  std::vector<Wish> wishes_;
  std::vector<std::int64_t> statuses_;
  zc_status failed_ = ZC_OK;  // on this rank
  Reason reason_;
  std::vector<std::int32_t> members_;  // of the child, as ranks of the parent; empty without a colour
  std::int32_t rank_ = 0;              // in the child
  topo::Topology topology_;
  std::shared_ptr<Segment> core_;
  std::shared_ptr<zc_comm> child_;
};

}  // namespace

zc_status split(Comm& parent, const SplitSpec& spec, std::shared_ptr<zc_comm>* child) {
  ZC_TRY(parent.check_alive());
  transport::CallRecord call;
  call.collective = static_cast<std::uint32_t>(Collective::comm_split);
  const Hold hold(parent);
  if (!hold.is_held()) return Hold::refuse(parent, call);
  return Split(parent, spec).run(child);
}

}  // namespace zerocomm::comm
