// What the survivors of a rank are told, and the checks that it is the same on all of them, at once and for good.
#pragma once

#include "support/child_ranks.hpp"

#include <zerocomm/coll.h>
#include <zerocomm/window.h>

#include <gtest/gtest.h>

#include <cstdio>

namespace zerocomm::test {

// What one rank was told. Lies in memory that the test shares with it.
struct Told {
  std::int64_t when_ns = 0;  // 0: nothing yet
  std::int32_t status = ZC_OK;
  char text[1024] = {};

  // The status and the last error of this thread.
  void tell(zc_status found) {
    when_ns = steady_ns();
    status = found;
    std::snprintf(text, sizeof text, "%s", zc_last_error());
  }
};

// Every call after the first error gives that error.
inline void check_stays(zc_comm* comm, const Told& first) {
  const auto same = [&](const char* what, zc_status found) {
    RANK_CHECK(found == first.status && std::strcmp(zc_last_error(), first.text) == 0,
               "%s gave %s \"%s\" after %s \"%s\"", what, zc_status_name(found), zc_last_error(),
               zc_status_name(static_cast<zc_status>(first.status)), first.text);
  };
  float value = 1;
  zc_window* window = nullptr;
  same("zc_comm_status", zc_comm_status(comm));
  same("zc_barrier", zc_barrier(comm, nullptr));
  same("zc_all_reduce", zc_all_reduce(comm, &value, &value, 1, ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
  same("zc_window_create", zc_window_create(comm, nullptr, &window));
  same("zc_comm_wait", zc_comm_wait(
                           comm, [](void*) { return 0; }, nullptr, nullptr));
  const zc_status after_abort = (zc_comm_abort(comm), zc_comm_status(comm));
  same("zc_comm_status after zc_comm_abort", after_abort);
}

// Returns when all ranks but one were told: destroying a communicator wakes those that still wait.
inline void wait_for_all_told(const SharedArray<Told>& told, std::int32_t except = -1) {
  wait_until([&] {
    for (std::size_t rank = 0; rank < told.count(); ++rank)
      if (static_cast<std::int32_t>(rank) != except && told[rank].when_ns == 0) return false;
    return true;
  });
}

inline std::string lost_text(std::int32_t rank, pid_t pid) {
  return format("rank %d (pid %d) ended without destroying its communicator; its last operation: ", rank, pid);
}

// All ranks but the victims were told of the end of one and the same victim. Returns the text behind "last operation:
// ".
inline std::string expect_lost(const SharedArray<Told>& told, const Children& ranks,
                               const std::vector<std::int32_t>& victims) {
  const auto is_victim = [&](std::size_t rank) {
    return std::find(victims.begin(), victims.end(), static_cast<std::int32_t>(rank)) != victims.end();
  };
  std::size_t first = 0;
  while (first < told.count() && is_victim(first)) ++first;
  for (std::size_t rank = first; rank < told.count(); ++rank) {
    if (is_victim(rank)) continue;
    EXPECT_EQ(told[rank].status, ZC_PEER_LOST) << "rank " << rank << ": " << told[rank].text;
    EXPECT_STREQ(told[rank].text, told[first].text) << "ranks " << rank << " and " << first;
  }
  if (first == told.count()) return "";
  const std::string text = told[first].text;
  for (const std::int32_t victim : victims) {
    const std::string begin = lost_text(victim, ranks.pid(victim));
    if (text.compare(0, begin.size(), begin) == 0) return text.substr(begin.size());
  }
  ADD_FAILURE() << "\"" << text << "\" names no rank that was killed; one was "
                << lost_text(victims[0], ranks.pid(victims[0]));
  return "";
}

}  // namespace zerocomm::test
