/**
 * Collectives in C++: see coll.h, whose contracts hold.
 *
 * Counts and dtypes come from the buffers (types.hpp). Their extents are compared with each other and with the number of ranks
 * before the call: a wrong one is an Error with ARGUMENT that names the buffer, and nothing happened; as with every ARGUMENT,
 * the other ranks wait for this one until their deadline. In place means the addresses of coll.h: the same buffer twice, or
 * the rank's own block as a subspan.
 */
#pragma once

#include <zerocomm/coll.h>
#include <zerocomm/request.hpp>
#include <zerocomm/types.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace zc {

/** Options of one collective, as in zc_coll_options; what is left out has its default. */
struct CollOptions {
  std::chrono::nanoseconds deadline{0};
  zc_traffic traffic = ZC_TRAFFIC_DEFAULT;
  double premul = 0;
  Request *request = nullptr; /**< return at once; the call ends with this request, which must have none in flight */
  std::int64_t tag = 0;
  const char *algorithm = nullptr;
  const struct zc_schedule *schedule = nullptr;
  zc_switch reproducible = ZC_SWITCH_DEFAULT;

  zc_coll_options raw(zc_dtype output_dtype = ZC_DTYPE_NONE) const {
    if (request != nullptr && *request) throw Error(ZC_STATE, "the request of the options is still in flight");
    zc_coll_options options{};
    options.struct_size = sizeof options;
    options.deadline_ns = deadline.count();
    options.output_dtype = output_dtype;
    options.traffic = traffic;
    options.premul = premul;
    options.request = request != nullptr ? request->slot() : nullptr;
    options.tag = tag;
    options.algorithm = algorithm;
    options.schedule = schedule;
    options.reproducible = reproducible;
    return options;
  }
};

namespace detail {

template <class T>
constexpr zc_dtype dtype_in(std::span<T>) {
  return dtype<T>;
}

template <class Send, class Recv>
constexpr void check_move() {
  check_range<Send>();
  check_range<Recv>();
  check_same<Send, Recv>();
}

template <class Send, class Recv>
constexpr void check_reduce() {
  check_range<Send>();
  check_range<Recv>();
  check_reduction<Send, Recv>();
}

/** One count per rank; their sum, and the count of this rank. */
struct Counts {
  std::size_t total = 0;
  std::size_t own = 0;
};
inline Counts read_counts(const char *call, const char *what, CommView comm, std::span<const std::size_t> counts) {
  check_count(call, what, counts.size(), static_cast<std::size_t>(comm.size()));
  Counts result;
  for (const std::size_t count : counts) result.total += count;
  result.own = counts[static_cast<std::size_t>(comm.rank())];
  return result;
}

}  // namespace detail

/** Reduce across ranks; every rank gets the whole result. recv has as many elements as send. */
template <class Send, class Recv>
void all_reduce(CommView comm, Send &&send, Recv &&recv, zc_op op, const CollOptions &options = {}) {
  detail::check_reduce<Send, Recv>();
  const auto in = detail::input(send);
  const auto out = detail::output(recv);
  detail::check_count("zc::all_reduce", "recv", out.size(), in.size());
  const zc_coll_options raw = options.raw(detail::dtype_in(out));
  check(zc_all_reduce(comm.get(), in.data(), out.data(), in.size(), detail::dtype_in(in), op, &raw));
}

/** Reduce across ranks; rank r gets block r of the result. send has recv's elements for each rank. */
template <class Send, class Recv>
void reduce_scatter(CommView comm, Send &&send, Recv &&recv, zc_op op, const CollOptions &options = {}) {
  detail::check_reduce<Send, Recv>();
  const auto in = detail::input(send);
  const auto out = detail::output(recv);
  detail::check_multiple("zc::reduce_scatter", "send", in.size(), out.size(), comm.size());
  const zc_coll_options raw = options.raw(detail::dtype_in(out));
  check(zc_reduce_scatter(comm.get(), in.data(), out.data(), out.size(), detail::dtype_in(in), op, &raw));
}

/** reduce_scatter with blocks of different counts, one per rank. */
template <class Send, class Recv>
void reduce_scatter_v(CommView comm, Send &&send, Recv &&recv, std::span<const std::size_t> counts, zc_op op,
                      const CollOptions &options = {}) {
  detail::check_reduce<Send, Recv>();
  const auto in = detail::input(send);
  const auto out = detail::output(recv);
  const detail::Counts wanted = detail::read_counts("zc::reduce_scatter_v", "counts", comm, counts);
  detail::check_count("zc::reduce_scatter_v", "send", in.size(), wanted.total);
  detail::check_count("zc::reduce_scatter_v", "recv", out.size(), wanted.own);
  const zc_coll_options raw = options.raw(detail::dtype_in(out));
  check(zc_reduce_scatter_v(comm.get(), in.data(), out.data(), counts.data(), detail::dtype_in(in), op, &raw));
}

/** Every rank gets the blocks of all ranks, in rank order. recv has send's elements for each rank. */
template <class Send, class Recv>
void all_gather(CommView comm, Send &&send, Recv &&recv, const CollOptions &options = {}) {
  detail::check_move<Send, Recv>();
  const auto in = detail::input(send);
  const auto out = detail::output(recv);
  detail::check_multiple("zc::all_gather", "recv", out.size(), in.size(), comm.size());
  const zc_coll_options raw = options.raw();
  check(zc_all_gather(comm.get(), in.data(), out.data(), in.size(), detail::dtype_in(in), &raw));
}

/** all_gather with blocks of different counts, one per rank. */
template <class Send, class Recv>
void all_gather_v(CommView comm, Send &&send, Recv &&recv, std::span<const std::size_t> counts,
                  const CollOptions &options = {}) {
  detail::check_move<Send, Recv>();
  const auto in = detail::input(send);
  const auto out = detail::output(recv);
  const detail::Counts wanted = detail::read_counts("zc::all_gather_v", "counts", comm, counts);
  detail::check_count("zc::all_gather_v", "send", in.size(), wanted.own);
  detail::check_count("zc::all_gather_v", "recv", out.size(), wanted.total);
  const zc_coll_options raw = options.raw();
  check(zc_all_gather_v(comm.get(), in.data(), out.data(), counts.data(), detail::dtype_in(in), &raw));
}

/** Every rank gets the root's elements. The count must be the same on all ranks: MISMATCH otherwise. */
template <class Buffer>
void broadcast(CommView comm, Buffer &&buffer, std::int32_t root, const CollOptions &options = {}) {
  detail::check_range<Buffer>();
  const auto both = detail::output(buffer);
  const zc_coll_options raw = options.raw();
  check(zc_broadcast(comm.get(), both.data(), both.size(), detail::dtype_in(both), root, &raw));
}

/** Reduce across ranks; the root gets the result. recv has send's elements on the root, and is ignored elsewhere. */
template <class Send, class Recv>
void reduce(CommView comm, Send &&send, Recv &&recv, zc_op op, std::int32_t root, const CollOptions &options = {}) {
  detail::check_reduce<Send, Recv>();
  const auto in = detail::input(send);
  const auto out = detail::output(recv);
  if (comm.rank() == root) detail::check_count("zc::reduce", "recv", out.size(), in.size());
  const zc_coll_options raw = options.raw(detail::dtype_in(out));
  check(zc_reduce(comm.get(), in.data(), out.data(), in.size(), detail::dtype_in(in), op, root, &raw));
}

/** Every rank sends a block to every rank: send and recv have equal counts, which divide by the number of ranks. */
template <class Send, class Recv>
void all_to_all(CommView comm, Send &&send, Recv &&recv, const CollOptions &options = {}) {
  detail::check_move<Send, Recv>();
  const auto in = detail::input(send);
  const auto out = detail::output(recv);
  const std::int32_t ranks = comm.size();
  const std::size_t block = in.size() / static_cast<std::size_t>(ranks);
  detail::check_multiple("zc::all_to_all", "send", in.size(), block, ranks);
  detail::check_count("zc::all_to_all", "recv", out.size(), in.size());
  const zc_coll_options raw = options.raw();
  check(zc_all_to_all(comm.get(), in.data(), out.data(), block, detail::dtype_in(in), &raw));
}

/** all_to_all with blocks of different counts: one per rank of what is sent, and of what is received. */
template <class Send, class Recv>
void all_to_all_v(CommView comm, Send &&send, std::span<const std::size_t> send_counts, Recv &&recv,
                  std::span<const std::size_t> recv_counts, const CollOptions &options = {}) {
  detail::check_move<Send, Recv>();
  const auto in = detail::input(send);
  const auto out = detail::output(recv);
  const detail::Counts sent = detail::read_counts("zc::all_to_all_v", "send_counts", comm, send_counts);
  const detail::Counts received = detail::read_counts("zc::all_to_all_v", "recv_counts", comm, recv_counts);
  detail::check_count("zc::all_to_all_v", "send", in.size(), sent.total);
  detail::check_count("zc::all_to_all_v", "recv", out.size(), received.total);
  const zc_coll_options raw = options.raw();
  check(zc_all_to_all_v(comm.get(), in.data(), send_counts.data(), out.data(), recv_counts.data(), detail::dtype_in(in),
                        &raw));
}

/** The root gets the blocks of all ranks. recv has send's elements for each rank on the root, and is ignored elsewhere. */
template <class Send, class Recv>
void gather_to_root(CommView comm, Send &&send, Recv &&recv, std::int32_t root, const CollOptions &options = {}) {
  detail::check_move<Send, Recv>();
  const auto in = detail::input(send);
  const auto out = detail::output(recv);
  if (comm.rank() == root) detail::check_multiple("zc::gather_to_root", "recv", out.size(), in.size(), comm.size());
  const zc_coll_options raw = options.raw();
  check(zc_gather_to_root(comm.get(), in.data(), out.data(), in.size(), detail::dtype_in(in), root, &raw));
}

/** Every rank gets its block. send has recv's elements for each rank on the root, and is ignored elsewhere. */
template <class Send, class Recv>
void scatter_from_root(CommView comm, Send &&send, Recv &&recv, std::int32_t root, const CollOptions &options = {}) {
  detail::check_move<Send, Recv>();
  const auto in = detail::input(send);
  const auto out = detail::output(recv);
  if (comm.rank() == root) detail::check_multiple("zc::scatter_from_root", "send", in.size(), out.size(), comm.size());
  const zc_coll_options raw = options.raw();
  check(zc_scatter_from_root(comm.get(), in.data(), out.data(), out.size(), detail::dtype_in(out), root, &raw));
}

/** Send elements to one rank, which receives as many with zc::recv. */
template <class Send>
void send(CommView comm, Send &&send, std::int32_t to, const CollOptions &options = {}) {
  detail::check_range<Send>();
  const auto in = detail::input(send);
  const zc_coll_options raw = options.raw();
  check(zc_send(comm.get(), in.data(), in.size(), detail::dtype_in(in), to, &raw));
}

/** Receive what rank `from` sends. */
template <class Recv>
void recv(CommView comm, Recv &&recv, std::int32_t from, const CollOptions &options = {}) {
  detail::check_range<Recv>();
  const auto out = detail::output(recv);
  const zc_coll_options raw = options.raw();
  check(zc_recv(comm.get(), out.data(), out.size(), detail::dtype_in(out), from, &raw));
}

/** No rank returns before every rank has called. */
inline void barrier(CommView comm, const CollOptions &options = {}) {
  const zc_coll_options raw = options.raw();
  check(zc_barrier(comm.get(), &raw));
}

}  // namespace zc
