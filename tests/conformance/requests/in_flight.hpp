// Short forms of calls with a request, for the tests of this folder.
#pragma once

#include "support/rank_threads.hpp"

#include <zerocomm/mem.h>
#include <zerocomm/request.h>

#include <cstdint>
#include <vector>

namespace zerocomm::test {

inline zc_coll_options with_tag(std::int64_t tag, zc_request** request = nullptr, std::int64_t deadline_ns = 0) {
  zc_coll_options options{};
  options.struct_size = sizeof options;
  options.tag = tag;
  options.request = request;
  options.deadline_ns = deadline_ns;
  return options;
}

// An all-reduce in flight, with what it must give.
struct Sum {
  std::vector<std::int64_t> data;
  zc_request* request = nullptr;

  // In place; element i of rank r is base + r + i.
  zc_status begin(zc_comm* comm, std::int32_t rank, std::int64_t tag, std::size_t count, std::int64_t base = 0,
                  std::int64_t deadline_ns = 0) {
    data.resize(count);
    for (std::size_t i = 0; i < count; ++i) data[i] = base + rank + static_cast<std::int64_t>(i);
    const zc_coll_options options = with_tag(tag, &request, deadline_ns);
    return zc_all_reduce(comm, data.data(), data.data(), count, ZC_DTYPE_I64, ZC_OP_SUM, &options);
  }
  void check(std::int32_t ranks, std::int64_t base = 0) const {
    for (std::size_t i = 0; i < data.size(); ++i) {
      const std::int64_t wanted = ranks * (base + static_cast<std::int64_t>(i)) + std::int64_t{ranks} * (ranks - 1) / 2;
      RANK_CHECK(data[i] == wanted, "element %zu is %lld, not %lld", i, static_cast<long long>(data[i]),
                 static_cast<long long>(wanted));
    }
  }
  void end(std::int32_t ranks, std::int64_t base = 0) {
    RANK_OK(zc_request_wait(&request));
    RANK_CHECK(request == nullptr, "a handle is left");
    check(ranks, base);
  }
};

inline bool is_over(zc_request** request) {
  std::int32_t done = 0;
  RANK_OK(zc_request_test(request, &done));
  RANK_CHECK((done == 1) == (*request == nullptr), "done %d with a handle %p", done, static_cast<void*>(*request));
  return done == 1;
}

// The communicator is as it was.
inline void check_alive(zc_comm* comm, std::int32_t rank, std::int32_t ranks) {
  Sum sum;
  RANK_OK(sum.begin(comm, rank, 99, 3));
  sum.end(ranks);
  RANK_OK(zc_barrier(comm, nullptr));
}

}  // namespace zerocomm::test
