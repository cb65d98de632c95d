/**
 * Requests in C++: see request.h, whose contracts hold.
 */
#pragma once

#include <zerocomm/request.h>
#include <zerocomm/comm.hpp>

#include <optional>
#include <span>
#include <utility>

namespace zc {

/**
 * One call in flight, or none. Start it with the option `request`: zc::all_reduce(comm, in, out, ZC_OP_SUM, {.request = &request}).
 *
 * A destructor that finds it in flight takes it back: it is canceled if some rank has not come yet (that rank gets CANCELED, now
 * instead of a TIMEOUT later), else waited for, at most until its deadline; how it ended is then lost. So the buffers are the
 * caller's again when the Request is gone: declare it after them. It must go before its communicator.
 */
class Request {
 public:
  Request() = default;
  /** Take over a request that the C API made. */
  explicit Request(zc_request *owned) noexcept : request_(owned) {}
  Request(Request &&other) noexcept : request_(other.release()) {}
  Request &operator=(Request &&other) noexcept {
    if (this != &other) {
      end();
      request_ = other.release();
    }
    return *this;
  }
  ~Request() { end(); }

  /** Is it in flight, as far as this handle knows? */
  explicit operator bool() const noexcept { return request_ != nullptr; }

  /** Is it over? Never waits. Throws how it ended, if with an error. */
  [[nodiscard]] bool test() {
    std::int32_t done = 0;
    check(zc_request_test(&request_, &done));
    return done != 0;
  }

  /** Wait until it is over. Throws how it ended, if with an error; it is over then too. */
  void wait() { check(zc_request_wait(&request_)); }

  /** Take it back before it is matched. False: all ranks have come, it goes on. */
  [[nodiscard]] bool cancel() {
    const zc_status status = request_ == nullptr ? ZC_OK : zc_request_cancel(&request_);
    if (status != ZC_STATE) check(status);
    return status == ZC_OK;
  }

  /** The request for calls of the C API, which set it to NULL when it is over. */
  zc_request **slot() noexcept { return &request_; }

  /** Give it away: the caller ends it. */
  [[nodiscard]] zc_request *release() noexcept { return std::exchange(request_, nullptr); }

 private:
  // What went wrong was for whoever waits; here nobody does.
  void end() noexcept {
    if (request_ == nullptr) return;
    if (zc_request_cancel(&request_) == ZC_OK) return;
    if (zc_request_wait(&request_) != ZC_OK) request_ = nullptr;
  }

  zc_request *request_ = nullptr;
};

/** Wait for all, in any order. All are over afterwards; the first error is thrown. */
inline void wait_all(std::span<Request> requests) {
  std::optional<Error> first;
  for (Request &request : requests) {
    const zc_status status = zc_request_wait(request.slot());
    if (status != ZC_OK && !first) first.emplace(status, zc_last_error());
  }
  if (first) throw Error(*first);
}

}  // namespace zc
