// A thread that makes the requests of one rank go on while no call of the program does. Asleep when there are none.
#pragma once

#include "base/wait.hpp"

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

namespace zerocomm::comm {

class Requests;

class Helper {
 public:
  // Sleeps on that bell while requests wait for others. Throws Error(SYSTEM).
  Helper(Requests& requests, Bell& bell);
  // Returns when the thread has ended. In a child of its process there is none.
  ~Helper();
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  // There is a new request.
  void wake() noexcept;

 private:
  void run() noexcept;

  Requests* requests_;
  Bell* bell_;
  std::uint32_t generation_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::unique_ptr<std::thread> thread_;
};

}  // namespace zerocomm::comm
