// A rank's child communicator, destroyed at the end of its scope, and checks of what it is.
#pragma once

#include "support/rank_failure.hpp"

#include <zerocomm/coll.h>
#include <zerocomm/comm.h>

#include <utility>
#include <vector>

namespace zerocomm::test {

class Child {
 public:
  Child(zc_comm* parent, std::int32_t color, std::int32_t key, const zc_comm_config* config = nullptr) {
    RANK_OK(zc_comm_split(parent, color, key, config, &comm_));
  }
  ~Child() { zc_comm_destroy(comm_); }
  Child(Child&& other) noexcept : comm_(std::exchange(other.comm_, nullptr)) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  operator zc_comm*() const { return comm_; }

  void destroy() { RANK_OK(zc_comm_destroy(std::exchange(comm_, nullptr))); }

 private:
  zc_comm* comm_ = nullptr;
};

inline std::int32_t rank_in(const zc_comm* comm) {
  std::int32_t rank = -1;
  RANK_OK(zc_comm_rank(comm, &rank));
  return rank;
}

inline std::int32_t size_of(const zc_comm* comm) {
  std::int32_t size = -1;
  RANK_OK(zc_comm_size(comm, &size));
  return size;
}

// The communicator consists of these ranks, which each give the number they are known by, and sums over them.
inline void check_members(zc_comm* comm, std::int64_t own, const std::vector<std::int64_t>& wanted) {
  RANK_CHECK(size_of(comm) == static_cast<std::int32_t>(wanted.size()), "%d ranks, not %zu", size_of(comm),
             wanted.size());
  std::vector<std::int64_t> found(wanted.size());
  RANK_OK(zc_all_gather(comm, &own, found.data(), 1, ZC_DTYPE_I64, nullptr));
  std::int64_t sum = own, wanted_sum = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    RANK_CHECK(found[i] == wanted[i], "rank %zu is %lld, not %lld", i, static_cast<long long>(found[i]),
               static_cast<long long>(wanted[i]));
    wanted_sum += wanted[i];
  }
  RANK_OK(zc_all_reduce(comm, &sum, &sum, 1, ZC_DTYPE_I64, ZC_OP_SUM, nullptr));
  RANK_CHECK(sum == wanted_sum, "sum %lld, not %lld", static_cast<long long>(sum), static_cast<long long>(wanted_sum));
}

}  // namespace zerocomm::test
