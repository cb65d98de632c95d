// One rank's part of a case: buffers, the call, the checks.
#include "collectives/case.hpp"
#include "support/guarded_buffer.hpp"
#include "support/rank_failure.hpp"

#include <zerocomm/request.h>

#include <algorithm>
#include <memory>

namespace zerocomm::test {
namespace {

// Where a rank's input and output lie. In place both are in `first`.
struct Buffers {
  std::unique_ptr<GuardedBuffer> first;   // send, or the one buffer
  std::unique_ptr<GuardedBuffer> second;  // recv
  std::byte* send = nullptr;
  std::byte* recv = nullptr;
};

std::byte* null_if_empty(GuardedBuffer& buffer, bool shifted) {
  return buffer.bytes() == 0 && shifted ? nullptr : buffer.data();
}

Buffers lay_out(const Case& what, std::int32_t rank, const Bytes& input) {
  const std::size_t each = zc_dtype_bytes(what.dtype), out_each = zc_dtype_bytes(what.output);
  const std::size_t send_bytes = send_count(what, rank) * each, recv_bytes = recv_count(what, rank) * out_each;
  Buffers result;
  if (what.in_place || what.form == Form::broadcast) {
    result.first = std::make_unique<GuardedBuffer>(std::max(send_bytes, recv_bytes), what.shifted ? each : 0);
    result.send = result.recv = null_if_empty(*result.first, what.shifted);
    const std::size_t own_bytes = what.form == Form::all_to_all_v ? 0 : block_offset(what, rank) * each;
    const bool is_root = rank == what.root;
    if (result.send != nullptr && (what.form == Form::reduce_scatter || what.form == Form::reduce_scatter_v ||
                                   (what.form == Form::scatter_from_root && is_root)))
      result.recv += own_bytes;
    if (result.send != nullptr && (what.form == Form::all_gather || what.form == Form::all_gather_v ||
                                   (what.form == Form::gather_to_root && is_root)))
      result.send += own_bytes;
  } else {
    result.first = std::make_unique<GuardedBuffer>(send_bytes, what.shifted ? each : 0);
    result.second = std::make_unique<GuardedBuffer>(recv_bytes, what.shifted ? out_each : 0);
    result.send = null_if_empty(*result.first, what.shifted);
    result.recv = null_if_empty(*result.second, what.shifted);
  }
  if (!input.empty()) std::memcpy(result.send, input.data(), input.size());
  return result;
}

zc_status all_to_all_v(zc_comm* comm, const Case& what, std::int32_t rank, const std::byte* send, std::byte* recv,
                       const zc_coll_options& options) {
  std::vector<std::size_t> sent, expected;
  for (std::int32_t peer = 0; peer < what.ranks; ++peer) {
    sent.push_back(pair_count(what, rank, peer));
    expected.push_back(pair_count(what, peer, rank));
  }
  // A request has copied them when the call returns.
  return zc_all_to_all_v(comm, send, sent.data(), recv, expected.data(), what.dtype, &options);
}

zc_status begin(zc_comm* comm, const Case& what, std::int32_t rank, std::byte* send, std::byte* recv,
                zc_request** request) {
  zc_coll_options options{};
  options.struct_size = sizeof options;
  options.request = request;
  if (request != nullptr) options.tag = static_cast<std::int64_t>(what.count % 3);
  options.output_dtype = what.output == what.dtype ? ZC_DTYPE_NONE : what.output;
  if (what.op == ZC_OP_PREMUL_SUM) options.premul = what.premul;
  switch (what.form) {
    case Form::all_reduce:
      return zc_all_reduce(comm, send, recv, what.count, what.dtype, what.op, &options);
    case Form::reduce_scatter:
      return zc_reduce_scatter(comm, send, recv, what.count, what.dtype, what.op, &options);
    case Form::reduce_scatter_v:
      return zc_reduce_scatter_v(comm, send, recv, what.counts.data(), what.dtype, what.op, &options);
    case Form::all_gather:
      return zc_all_gather(comm, send, recv, what.count, what.dtype, &options);
    case Form::all_gather_v:
      return zc_all_gather_v(comm, send, recv, what.counts.data(), what.dtype, &options);
    case Form::reduce:
      return zc_reduce(comm, send, recv, what.count, what.dtype, what.op, what.root, &options);
    case Form::all_to_all:
      return zc_all_to_all(comm, send, recv, what.count, what.dtype, &options);
    case Form::all_to_all_v:
      return all_to_all_v(comm, what, rank, send, recv, options);
    case Form::gather_to_root:
      return zc_gather_to_root(comm, send, recv, what.count, what.dtype, what.root, &options);
    case Form::scatter_from_root:
      return zc_scatter_from_root(comm, send, recv, what.count, what.dtype, what.root, &options);
    default:
      return zc_broadcast(comm, recv, what.count, what.dtype, what.root, &options);
  }
}

zc_status call(zc_comm* comm, const Case& what, std::int32_t rank, std::byte* send, std::byte* recv) {
  if (!what.request) return begin(comm, what, rank, send, recv, nullptr);
  zc_request* request = nullptr;
  const zc_status status = begin(comm, what, rank, send, recv, &request);
  RANK_CHECK((request != nullptr) == (status == ZC_OK), "%s: a request and %s", describe(what).c_str(),
             zc_status_name(status));
  if (status != ZC_OK) return status;
  const zc_status ended = zc_request_wait(&request);
  RANK_CHECK(request == nullptr, "%s: the request is still there", describe(what).c_str());
  return ended;
}

// A reduction in place writes the rank's own block; everything else of the input stays.
void check_input_kept(const Case& what, std::int32_t rank, const Bytes& input, const Buffers& buffers) {
  if (input.empty() || what.form == Form::broadcast) return;
  const bool scatters = what.form == Form::reduce_scatter || what.form == Form::reduce_scatter_v ||
                        (what.form == Form::scatter_from_root && rank == what.root);
  // A rank that gets nothing has nothing in place.
  const bool in_place = what.in_place && recv_count(what, rank) != 0;
  if (in_place && !scatters) return;
  const std::size_t each = zc_dtype_bytes(what.dtype);
  const std::size_t own = in_place ? block_offset(what, rank) * each : input.size();
  const std::size_t end = in_place ? own + block_count(what, rank) * each : input.size();
  RANK_CHECK(std::memcmp(buffers.send, input.data(), own) == 0, "%s: the input was written", describe(what).c_str());
  RANK_CHECK(end == input.size() || std::memcmp(buffers.send + end, input.data() + end, input.size() - end) == 0,
             "%s: the input behind the own block was written", describe(what).c_str());
}

// Bits of NaN are outside equality with the oracle, and yet all ranks have the same.
void check_equal_on_all_ranks(zc_comm* comm, const Case& what, std::uint64_t hash) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(what.ranks));
  const auto own = static_cast<std::int64_t>(hash);
  RANK_OK(zc_all_gather(comm, &own, all.data(), 1, ZC_DTYPE_I64, nullptr));
  RANK_CHECK(std::equal(all.begin() + 1, all.end(), all.begin()), "%s: results differ between ranks",
             describe(what).c_str());
}

}  // namespace

void run_case(zc_comm* comm, std::int32_t rank, const Case& what, const Prepared& prepared) {
  const auto self = static_cast<std::size_t>(rank);
  const Bytes &input = prepared.inputs[self], &expected = prepared.outputs[self];
  const Buffers buffers = lay_out(what, rank, input);
  const zc_status status = call(comm, what, rank, buffers.send, buffers.recv);
  RANK_CHECK(status == ZC_OK, "%s: %s: %s", describe(what).c_str(), zc_status_name(status), zc_last_error());

  const std::size_t count = recv_count(what, rank), out_each = zc_dtype_bytes(what.output);
  RANK_CHECK(expected.size() == count * out_each, "%s: the oracle gives %zu bytes", describe(what).c_str(),
             expected.size());
  const std::size_t wrong = first_difference(what.output, buffers.recv, expected.data(), count);
  RANK_CHECK(wrong == count, "%s: element %zu is %.17g, not %.17g", describe(what).c_str(), wrong,
             load_element(what.output, buffers.recv + wrong * out_each),
             load_element(what.output, expected.data() + wrong * out_each));
  RANK_CHECK(buffers.first->guards_intact() && (!buffers.second || buffers.second->guards_intact()),
             "%s: memory outside the buffers was written", describe(what).c_str());
  check_input_kept(what, rank, input, buffers);
  if (replicates(what.form)) check_equal_on_all_ranks(comm, what, hash_bytes(buffers.recv, count * out_each));
}

}  // namespace zerocomm::test
