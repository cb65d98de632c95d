#include "base/fork.hpp"

#include <pthread.h>

#include <atomic>
#include <mutex>

namespace zerocomm {
namespace {

std::atomic<std::uint32_t> generation{0};
std::once_flag handler_installed;

}  // namespace

std::uint32_t fork_generation() noexcept {
  std::call_once(handler_installed, [] { pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1); }); });
  return generation.load(std::memory_order_relaxed);
}

}  // namespace zerocomm
