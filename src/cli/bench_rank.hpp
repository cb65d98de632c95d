// One rank of zc bench: does what the driver asks, and sleeps in between.
#pragma once

#include "cli/bench_clock.hpp"
#include "cli/bench_pattern.hpp"
#include "cli/bench_wire.hpp"

#include <zerocomm/comm.h>

#include <functional>

#include <optional>
#include <string>

namespace zerocomm::cli {

// Memory of zc_mem_alloc, or of the system.
class BenchBuffer {
 public:
  BenchBuffer() = default;
  // Throws Failure.
  BenchBuffer(zc_comm* comm, std::size_t bytes, bool plain);
  BenchBuffer(BenchBuffer&& other) noexcept { *this = std::move(other); }
  BenchBuffer& operator=(BenchBuffer&& other) noexcept;
  ~BenchBuffer();

  std::byte* get() const { return memory_; }
  std::size_t bytes() const { return bytes_; }

 private:
  zc_comm* comm_ = nullptr;  // of zc_mem_alloc
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

class BenchRank {
 public:
  explicit BenchRank(zc_comm* comm);

  // Answers the driver at this socket until it has no more questions. Throws Failure if it cannot be reached.
  void serve(const std::string& socket);
  // One answer.
  BenchReply answer(const std::string& line);

 private:
  struct Piece {  // of the result, and what it must be
    const std::byte* at;
    std::size_t count;
    const BenchPattern* pattern;
    std::size_t phase;
  };
  struct Call;

  BenchReply run(const BenchRequest& request);
  BenchReply bits(const BenchRequest& request);
  BenchReply reserve(const std::string& line);
  BenchReply stream(const std::string& line);
  BenchReply triad(const std::string& line);

  void choose_patterns(const BenchRequest& request);
  Call prepare(const BenchRequest& request) const;
  bool is_right(const Call& call, std::size_t phase) const;
  void settle() const;
  void barrier();
  void time(const Call& call, BenchReply& reply);
  BenchReply time_streams(int iterations, const std::function<void()>& refresh, const std::function<void()>& work);

  zc_comm* comm_;
  int cores_;  // that this rank may use
  std::int32_t rank_ = 0, ranks_ = 0;
  BenchClock clock_;
  BenchBuffer first_, second_;  // in place: the first alone
  BenchPattern source_, result_;
  zc_dtype pattern_dtype_ = ZC_DTYPE_NONE;
  zc_op pattern_op_ = ZC_OP_NONE;
  std::size_t phase_ = 0;  // of the present iteration
  int sink_ = 0;           // so that no stream is left out
};

}  // namespace zerocomm::cli
