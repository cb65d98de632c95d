// A child made by fork gets an error code from everything that belongs to its parent, and the parent does not notice.
#include "support/rank_threads.hpp"

#include <zerocomm/coll.h>
#include <zerocomm/mem.h>
#include <zerocomm/window.h>

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace zerocomm::test {
namespace {

// Exit status of a child that runs `body`; 0 when it returns true.
template <class Body>
int in_child(Body&& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + status;
}

TEST(Fork, child_is_refused_everything_and_the_parent_goes_on) {
  RankThreads ranks(2);
  std::array<zc_window*, 2> windows{};
  ranks.run([&](zc_comm* comm, std::int32_t rank) {
    zc_window_config config{};
    config.struct_size = sizeof config;
    config.bytes = 8;
    RANK_OK(zc_window_create(comm, &config, &windows[static_cast<std::size_t>(rank)]));
  });
  zc_comm* comm = ranks.comm(0);
  const int status = in_child([&] {
    std::uint64_t word = 0;
    void* memory = nullptr;
    char byte = 0;
    zc_window* window = nullptr;
    int wrong = 0;
    const auto expect = [&](const char* what, zc_status found) {
      if (found == ZC_FORKED) return;
      ++wrong;
      std::fprintf(stderr, "in the child, %s gave %s\n", what, zc_status_name(found));
    };
    expect("barrier", zc_barrier(comm, nullptr));
    expect("broadcast", zc_broadcast(comm, &byte, 1, ZC_DTYPE_U8, 0, nullptr));
    expect("window_create", zc_window_create(comm, nullptr, &window));
    expect("status", zc_comm_status(comm));
    expect("wait", zc_comm_wait(
                       comm, [](void*) { return 1; }, nullptr, nullptr));
    expect("abort", zc_comm_abort(comm));
    expect("mem_alloc", zc_mem_alloc(comm, 8, &memory));
    expect("signal", zc_window_signal(windows[0], 5));
    expect("window_wait", zc_window_wait(windows[0], 1, 0, nullptr));
    expect("read", zc_window_read(windows[0], 1, 0, &byte, 1, 0, nullptr));
    expect("load", zc_window_load(windows[0], 0, 0, &word));
    expect("store", zc_window_store(windows[0], 0, 0, 7));
    expect("add", zc_window_add(windows[0], 0, 0, 7, nullptr));
    expect("compare_swap", zc_window_compare_swap(windows[0], 0, 0, 0, 7, nullptr));
    expect("window_destroy", zc_window_destroy(windows[0]));
    expect("destroy", zc_comm_destroy(comm));
    return wrong == 0;
  });
  EXPECT_EQ(status, 0);
  ranks.run([&](zc_comm* own, std::int32_t rank) {
    RANK_OK(zc_barrier(own, nullptr));
    std::uint64_t word = 99;
    RANK_OK(zc_window_load(windows[static_cast<std::size_t>(rank)], 0, 0, &word));
    RANK_CHECK(word == 0, "the child wrote %llu", static_cast<unsigned long long>(word));
    RANK_OK(zc_window_destroy(windows[static_cast<std::size_t>(rank)]));
  });
}

TEST(Fork, child_may_make_a_communicator_of_its_own) {
  RankThreads parents(1);
  EXPECT_EQ(in_child([] {
              zc_comm* comm = nullptr;
              return zc_comm_create_threads(1, nullptr, &comm) == ZC_OK && zc_barrier(comm, nullptr) == ZC_OK &&
                     zc_comm_destroy(comm) == ZC_OK;
            }),
            0);
  EXPECT_EQ(zc_barrier(parents.comm(0), nullptr), ZC_OK);
}

}  // namespace
}  // namespace zerocomm::test
