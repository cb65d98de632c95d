// The requests of one rank: its table of slots, the private record of each, and whoever makes them go on.
//
// A request is posted in any free slot of the own table. Peers find it there by its key, and each takes the slots of
// all its ranks before any byte moves, so that all come to the same verdict about a request that its owner may cancel
// at any moment. When it is over, each rank counts itself in the other ranks' slots, and the owner uses its slot again
// when all have.
#pragma once

#include "comm/comm.hpp"
#include "comm/helper.hpp"
#include "comm/request.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace zerocomm::comm {

class Requests {
 public:
  // Throws std::bad_alloc, and Error(SYSTEM) if a helper thread is wanted and cannot be had.
  explicit Requests(Comm& comm);
  ~Requests();
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  // Posts it. Throws Error(NO_MEMORY); AGAIN if no slot is free. Either way nothing happened.
  // Its deadline counts from `since_ns`; 0: from now.
  zc_status make(const Operation& operation, std::int64_t tag, zc_request** request, std::int64_t since_ns = 0);
  // The blocking form: waits for a slot too, within the same deadline, unless the caller's own requests are in all of
  // them.
  zc_status make_and_wait(const Operation& operation, std::int64_t tag);

  // What request.h says of them. When `*over`, or wait() has returned, the handle is free.
  zc_status test(zc_request& request, bool* over);
  zc_status wait(zc_request& request);
  zc_status cancel(zc_request& request);

  // Every request goes on by a slice, if it can. Returns whether any has: then there may be more to do. Any thread.
  bool work() noexcept;

  // Requests that are not over here, and slots in use.
  std::size_t in_flight() const noexcept { return in_flight_.load(); }
  std::size_t listed() const noexcept { return listed_.load(); }

  // The rank leaves: nothing goes on after this, and what is in flight ends with STATE.
  void stop() noexcept;

 private:
  using Phase = zc_request::Phase;
  using TurnKey = std::tuple<std::int64_t, std::int32_t, std::int32_t>;  // tag, from, to

  Posts posts(const zc_request& request) const { return {*comm_, request.key, request.places}; }
  transport::RequestSlot& own_slot(const zc_request& request) const {
    return comm_->control().request(comm_->rank(), request.slot);
  }

  // All of these under the lock.
  void bring_memory(const Operation& operation);
  zc_request* find_free() noexcept;
  void fill_in(zc_request& request, const Operation& operation, const transport::RequestKey& key,
               std::int64_t since_ns) noexcept;
  void post(zc_request& request) noexcept;
  void list(zc_request& request) noexcept;
  void unlist(zc_request& request) noexcept;
  // Its deadline has passed: the end of the communicator, with the rank that it waits for.
  void time_out(const zc_request& request) noexcept;
  // Looks whether it can go on, and does all that needs no time. True: the transfer can go on.
  bool look(zc_request& request) noexcept;
  void gather(zc_request& request) noexcept;
  void find(zc_request& request, std::int32_t rank) const noexcept;
  zc_status take(const zc_request& request) const noexcept;
  zc_status lost(const zc_request& request, std::int32_t rank) const noexcept;
  void linger(zc_request& request) noexcept;
  // The last error of this thread is its text.
  void end(zc_request& request, zc_status status) noexcept;

  // A slice without the lock.
  static zc_status move(zc_request& request) noexcept;
  zc_status report(zc_request& request) noexcept;
  zc_status wait_for_slot(const Operation& operation, std::int64_t tag, std::int64_t deadline_ns,
                          std::int64_t since_ns) noexcept;
  std::int64_t left_ns(const zc_request& request) const noexcept;

  Comm* comm_;
  std::mutex mutex_;
  std::size_t count_;
  std::vector<Place> places_;
  std::unique_ptr<zc_request[]> requests_;
  std::vector<std::size_t> counts_;  // three arrays of counts a request, from the first one that needs any
  std::map<TurnKey, std::uint64_t> turns_;
  zc_request* first_ = nullptr;  // of those that are listed, the smallest
  std::atomic<std::size_t> in_flight_{0};
  std::atomic<std::size_t> listed_{0};
  bool stopped_ = false;
  zc_progress* progress_ = nullptr;
  std::unique_ptr<Helper> helper_;
};

}  // namespace zerocomm::comm
