// The C++ twin of requests: how they end, and what their destructor does.
#include <zerocomm/zerocomm.hpp>

#include "support/rank_threads.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace {

using zerocomm::test::RankFailure;
using zerocomm::test::run_ranks;

void expect(bool good, const std::string& what) {
  if (!good) throw RankFailure(what);
}

zc_status status_of(const auto& call) {
  try {
    call();
  } catch (const zc::Error& error) {
    return error.status();
  }
  return ZC_OK;
}

TEST(RequestTwin, many_are_in_flight_and_all_are_waited_for) {
  run_ranks(3, [](zc_comm* comm, std::int32_t rank) {
    std::vector<std::array<std::int32_t, 2>> sums(8);
    const std::array<std::int32_t, 2> mine{rank, 1};
    std::vector<zc::Request> requests(sums.size());
    for (std::size_t i = 0; i < sums.size(); ++i)
      zc::all_reduce(comm, mine, sums[i], ZC_OP_SUM,
                     {.request = &requests[i], .tag = static_cast<std::int64_t>(rank == 1 ? 8 - i : i + 1)});
    zc::wait_all(requests);
    for (const auto& sum : sums) expect(sum == std::array<std::int32_t, 2>{3, 3}, "sum");
    for (const zc::Request& request : requests) expect(!request, "over");
  });
}

TEST(RequestTwin, send_and_receive) {
  run_ranks(2, [](zc_comm* comm, std::int32_t rank) {
    const std::array<float, 3> sent{1, 2, static_cast<float>(rank)};
    std::array<float, 3> received{};
    zc::Request request;
    zc::send(comm, sent, 1 - rank, {.request = &request, .tag = 4});
    zc::recv(comm, received, 1 - rank, {.tag = 4});
    request.wait();
    expect(received[2] == static_cast<float>(1 - rank) && received[0] == 1, "received");
    expect(request.test(), "nothing in flight is over");
  });
}

TEST(RequestTwin, one_that_is_in_flight_is_not_used_twice) {
  run_ranks(1, [](zc_comm* comm, std::int32_t) {
    zc::Request request;
    std::array<float, 1> value{};
    zc::all_reduce(comm, value, value, ZC_OP_SUM, {.request = &request});
    if (request)
      expect(status_of([&] { zc::barrier(comm, {.request = &request}); }) == ZC_STATE, "a second call took it");
    request.wait();
  });
}

TEST(RequestTwin, a_destructor_takes_back_what_nobody_has_met) {
  run_ranks(2, [](zc_comm* comm, std::int32_t rank) {
    std::array<float, 2> value{};
    const auto begin = std::chrono::steady_clock::now();
    if (rank == 0) {
      zc::Request request;
      zc::all_reduce(comm, value, value, ZC_OP_SUM, {.request = &request, .tag = 7});
    }
    zc::barrier(comm);
    if (rank == 1) {
      zc::Request request;
      const zc_status status = status_of([&] {
        zc::all_reduce(comm, value, value, ZC_OP_SUM, {.request = &request, .tag = 7});
        request.wait();
      });
      expect(status == ZC_CANCELED, zc_status_name(status));
    }
    expect(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30), "waited for a deadline");
    zc::barrier(comm);
  });
}

TEST(RequestTwin, a_destructor_waits_for_what_all_have_met) {
  run_ranks(2, [](zc_comm* comm, std::int32_t rank) {
    std::vector<std::int32_t> value(100'000, rank + 1);
    {
      zc::Request request;
      zc::all_reduce(comm, value, value, ZC_OP_SUM, {.request = &request, .tag = 1});
      zc::barrier(comm);  // now all have come
      zc::Request moved = std::move(request);
      expect(!request, "moved from");
    }
    expect(value.front() == 3 && value.back() == 3, "the sum is there when the request is gone");
  });
}

TEST(RequestTwin, cancel_says_whether_it_did) {
  run_ranks(1, [](zc_comm* comm, std::int32_t) {
    zc::Request none;
    expect(none.cancel(), "nothing to cancel");
    zc::Request request;
    std::array<float, 1> value{};
    zc::all_reduce(comm, value, value, ZC_OP_SUM, {.request = &request});
    if (!request.cancel()) request.wait();  // the only rank has come
    expect(!request, "over");
  });
}

TEST(RequestTwin, wait_all_throws_the_first_error_and_ends_all) {
  run_ranks(2, [](zc_comm* comm, std::int32_t rank) {
    std::array<float, 1> one{};
    std::vector<float> more(static_cast<std::size_t>(rank) + 1);
    std::vector<zc::Request> requests(2);
    zc::all_reduce(comm, more, more, ZC_OP_SUM, {.request = &requests[0], .tag = 1});
    zc::all_reduce(comm, one, one, ZC_OP_SUM, {.request = &requests[1], .tag = 2});
    expect(status_of([&] { zc::wait_all(requests); }) == ZC_MISMATCH, "mismatch of the first");
    expect(!requests[0] && !requests[1], "all are over");
    zc::barrier(comm);
  });
}

}  // namespace
