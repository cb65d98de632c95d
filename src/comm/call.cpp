#include "comm/call.hpp"

#include "base/check.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>

namespace zerocomm::comm {
namespace {

struct Row {
  Collective collective;
  const char* name;
  bool has_root;
  bool has_op;
  bool has_data;
};
constexpr Row kRows[] = {
    {Collective::all_reduce, "zc_all_reduce", false, true, true},
    {Collective::reduce_scatter, "zc_reduce_scatter", false, true, true},
    {Collective::reduce_scatter_v, "zc_reduce_scatter_v", false, true, true},
    {Collective::all_gather, "zc_all_gather", false, false, true},
    {Collective::all_gather_v, "zc_all_gather_v", false, false, true},
    {Collective::broadcast, "zc_broadcast", true, false, true},
    {Collective::barrier, "zc_barrier", false, false, false},
    {Collective::window_create, "zc_window_create", false, false, false},
    {Collective::gather_unit, "zc_gather", false, false, false},
    {Collective::reduce, "zc_reduce", true, true, true},
    {Collective::all_to_all, "zc_all_to_all", false, false, true},
    {Collective::all_to_all_v, "zc_all_to_all_v", false, false, true},
    {Collective::gather_to_root, "zc_gather_to_root", true, false, true},
    {Collective::scatter_from_root, "zc_scatter_from_root", true, false, true},
    {Collective::send, "zc_send", false, false, true},
    {Collective::recv, "zc_recv", false, false, true},
    {Collective::comm_split, "zc_comm_split", false, false, false},
    {Collective::window_view, "zc_window_view", false, false, false},
};

const Row* find_row(std::uint32_t collective) {
  for (const Row& row : kRows)
    if (static_cast<std::uint32_t>(row.collective) == collective) return &row;
  return nullptr;
}

}  // namespace

const char* collective_name(std::uint32_t collective) {
  const Row* row = find_row(collective);
  return row ? row->name : "no call";
}

std::string describe(const transport::CallRecord& call) {
  const Row* row = find_row(call.collective);
  if (row == nullptr) return "no call";
  std::string text = format("%s(", row->name);
  if (row->has_data) {
    const auto dtype = static_cast<zc_dtype>(call.dtype), output = static_cast<zc_dtype>(call.output_dtype);
    text += format("count %llu, %s", static_cast<unsigned long long>(call.count), zc_dtype_name(dtype));
    if (output != dtype && call.output_dtype != 0) text += format(" to %s", zc_dtype_name(output));
    if (row->has_op) text += format(", %s", zc_op_name(static_cast<zc_op>(call.op)));
    if (call.op == ZC_OP_PREMUL_SUM) text += format(", premul %.17g", std::bit_cast<double>(call.premul_bits));
    if (row->collective == Collective::send && call.root >= 0) text += format(", to rank %d", call.root);
    if (row->collective == Collective::recv && call.root >= 0) text += format(", from rank %d", call.root);
    if (row->has_root && call.root >= 0) text += format(", root %d", call.root);
    if (call.counts_hash != 0)
      text += format(", counts #%08llx", static_cast<unsigned long long>(call.counts_hash & 0xffffffff));
    if (call.in_place == 1) text += ", in place";
    if (call.schedule == transport::CallRecord::kByTable)
      text += ", form by the table";
    else if (call.schedule != 0)
      text += format(", schedule #%08llx", static_cast<unsigned long long>(call.schedule & 0xffffffff));
  } else if (row->collective == Collective::window_create) {
    text +=
        format("words %llu%s", static_cast<unsigned long long>(call.count), call.in_place == 1 ? ", contiguous" : "");
  } else if (row->collective == Collective::window_view) {
    text += format("window of call %llu", static_cast<unsigned long long>(call.count));
  } else if (row->collective == Collective::gather_unit) {
    text += format("layout #%016llx, unit %llu", static_cast<unsigned long long>(call.counts_hash),
                   static_cast<unsigned long long>(call.count));
  }
  return text + ")";
}

std::uint64_t pack_brief(const transport::CallRecord& call) {
  constexpr std::uint64_t kMostCount = (1ULL << 40) - 1;
  return std::min(call.count, kMostCount) << 24 | std::uint64_t{call.op & 0xff} << 16 |
         std::uint64_t{call.dtype & 0xff} << 8 | (call.collective & 0xff);
}

std::string describe_brief(std::uint64_t brief) {
  transport::CallRecord call;
  call.collective = brief & 0xff;
  call.dtype = brief >> 8 & 0xff;
  call.op = brief >> 16 & 0xff;
  call.count = brief >> 24;
  return describe(call);
}

std::uint64_t hash_counts(const std::size_t* counts, std::size_t count) {
  std::uint64_t hash = 0x9e3779b97f4a7c15ULL + count;
  for (std::size_t i = 0; i < count; ++i) {
    hash = (hash ^ counts[i]) * 0xff51afd7ed558ccdULL;
    hash ^= hash >> 32;
  }
  return hash | 1;  // 0 means: none
}

bool same_call(const transport::CallRecord& a, const transport::CallRecord& b) {
  constexpr auto kSend = static_cast<std::uint32_t>(Collective::send),
                 kRecv = static_cast<std::uint32_t>(Collective::recv);
  if ((a.collective == kSend && b.collective == kRecv) || (a.collective == kRecv && b.collective == kSend))
    return a.count == b.count && a.dtype == b.dtype;
  constexpr std::uint32_t kEither = transport::CallRecord::kEitherPlace;
  transport::CallRecord other = b;
  if (a.in_place == kEither || b.in_place == kEither) other.in_place = a.in_place;
  return a == other;
}

Relation relate(const void* send, std::size_t send_bytes, const void* recv, std::size_t recv_bytes,
                const void* send_in_place, const void* recv_in_place) {
  if (send_bytes == 0 || recv_bytes == 0) return Relation::empty;
  const auto s = reinterpret_cast<std::uintptr_t>(send), r = reinterpret_cast<std::uintptr_t>(recv);
  if (send == send_in_place && recv == recv_in_place) return Relation::in_place;
  // By distances: the sum of an address and a length may be too large for a word.
  const bool apart = s <= r ? r - s >= send_bytes : s - r >= recv_bytes;
  return apart ? Relation::disjoint : Relation::overlapping;
}

}  // namespace zerocomm::comm
