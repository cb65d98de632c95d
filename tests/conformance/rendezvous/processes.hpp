// Ranks that are processes of their own, made by fork from a test that has one thread. Each says how its joining went.
#pragma once

#include "base/clock.hpp"
#include "boot/local_socket.hpp"
#include "boot/rendezvous.hpp"
#include "boot/unique_id.hpp"

#include "base/check.hpp"

#include <gtest/gtest.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace zerocomm::test {

inline constexpr std::int64_t kMs = 1'000'000, kSecond = 1'000 * kMs;

inline void sleep_ms(std::int64_t duration_ms) {
  timespec left{static_cast<std::time_t>(duration_ms / 1000), static_cast<long>(duration_ms % 1000 * kMs)};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

// Open descriptors of a process; of this one by default. The one that counts is always among them.
inline int descriptors(pid_t pid = 0) {
  DIR* const folder = opendir(pid == 0 ? "/proc/self/fd" : format("/proc/%d/fd", pid).c_str());
  if (folder == nullptr) return -1;
  int count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

// Connects to a socket as soon as somebody listens.
inline Descriptor call(const std::string& name) {
  for (int turn = 0; turn < 5000; ++turn) {
    int error = 0;
    Descriptor connection = boot::connect_to(name, &error);
    if (connection) return connection;
    sleep_ms(1);
  }
  throw std::runtime_error("nobody listens on " + name);
}

// The next that calls a socket.
inline Descriptor accept_call(const Descriptor& listener) {
  for (int turn = 0; turn < 5000; ++turn) {
    int error = 0;
    Descriptor connection = boot::accept_from(listener, &error);
    if (connection) return connection;
    sleep_ms(1);
  }
  throw std::runtime_error("nobody calls");
}

// What one process has to tell. Lies in memory that parent and children share.
struct Report {
  bool ended = false;  // by itself, having said all of this
  std::int32_t status = -1;
  std::int32_t leaked = 0;  // descriptors
  std::int64_t elapsed_ns = 0;
  char text[2048] = {};

  void say(std::int32_t found, const std::string& what) {
    status = found;
    text[what.copy(text, sizeof text - 1)] = '\0';
  }
};

class Processes {
 public:
  explicit Processes(std::size_t most = 64) : most_(most) {
    void* const memory =
        mmap(nullptr, most * sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    reports_ = static_cast<Report*>(memory);
    for (std::size_t i = 0; i < most; ++i) new (&reports_[i]) Report;
  }
  ~Processes() {
    for (std::size_t i = 0; i < pids_.size(); ++i) wait(i);
    munmap(reports_, most_ * sizeof(Report));
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  // Runs body(report) in a child. An Error that it throws is reported. Returns the report's number.
  template <class Body>
  std::size_t start(Body&& body) {
    if (pids_.size() == most_) throw std::length_error("more processes than there are reports");
    Report& report = reports_[pids_.size()];
    const pid_t child = fork();
    if (child == 0) {
      const int before = descriptors();
      const std::int64_t start_ns = now_ns();
      try {
        body(report);
      } catch (const Error& error) {
        report.say(error.status(), error.what());
      } catch (const std::exception& error) {
        report.say(-2, error.what());
      }
      report.elapsed_ns = now_ns() - start_ns;
      report.leaked = descriptors() - before;
      report.ended = true;
      _exit(0);
    }
    EXPECT_GT(child, 0);
    pids_.push_back(child);
    reaped_.push_back(false);
    return pids_.size() - 1;
  }

  pid_t pid(std::size_t index) const { return pids_[index]; }
  void kill(std::size_t index, int signal) const { ::kill(pids_[index], signal); }

  // Until one has ended. If it does not for a long time it is killed, and that is a failure.
  void wait(std::size_t index) {
    if (reaped_[index]) return;
    reaped_[index] = true;
    const std::int64_t end_ns = now_ns() + 60 * kSecond;
    while (waitpid(pids_[index], nullptr, WNOHANG) == 0) {
      if (now_ns() > end_ns) {
        ADD_FAILURE() << "process " << index << " does not end";
        ::kill(pids_[index], SIGKILL);
        waitpid(pids_[index], nullptr, 0);
        break;
      }
      sleep_ms(1);
    }
  }

  // Waits for a process that ends by itself.
  const Report& report(std::size_t index) {
    wait(index);
    EXPECT_TRUE(reports_[index].ended) << "process " << index;
    EXPECT_EQ(reports_[index].leaked, 0) << "process " << index;
    return reports_[index];
  }

 private:
  std::size_t most_;
  Report* reports_ = nullptr;
  std::vector<pid_t> pids_;
  std::vector<bool> reaped_;
};

inline boot::JoinRequest request_of(const std::string& job, std::int32_t rank, std::int32_t ranks,
                                    std::int64_t deadline_ns = 10 * kSecond) {
  boot::JoinRequest request;
  request.job = job;
  request.rank = rank;
  request.ranks = ranks;
  request.agreed = 7;
  request.agreed_text = "seven";
  request.deadline_ns = deadline_ns;
  return request;
}

// A segment that holds what all ranks said.
inline constexpr auto segment_with = [](const std::vector<boot::Identity>& ranks) {
  Descriptor segment(memfd_create("test", MFD_CLOEXEC));
  const std::size_t bytes = ranks.size() * sizeof ranks[0];
  if (write(segment.get(), ranks.data(), bytes) != static_cast<ssize_t>(bytes)) throw Error(ZC_SYSTEM, "write");
  return segment;
};

// What a rank sees must be what rank 0 saw.
inline void check_joined(const boot::Rendezvous& joined, const boot::JoinRequest& request) {
  const std::vector<boot::Identity>& ranks = joined.ranks();
  const std::size_t bytes = ranks.size() * sizeof ranks[0];
  std::vector<boot::Identity> found(ranks.size() + 1);
  ZC_ASSERT(ranks.size() == static_cast<std::size_t>(request.ranks));
  ZC_ASSERT(pread(joined.segment().get(), found.data(), bytes + 1, 0) == static_cast<ssize_t>(bytes));
  ZC_ASSERT(std::memcmp(found.data(), ranks.data(), bytes) == 0);
  ZC_ASSERT((fcntl(joined.segment().get(), F_GETFD) & FD_CLOEXEC) != 0);
  const boot::Identity own = boot::own_identity(request.rank);
  ZC_ASSERT(std::memcmp(&ranks[static_cast<std::size_t>(request.rank)], &own, sizeof own) == 0);
  for (std::size_t i = 0; i < ranks.size(); ++i) ZC_ASSERT(ranks[i].rank == static_cast<std::int32_t>(i));
}

// Joins, checks, runs `between`, confirms.
template <class Between>
void join_and(Report& report, const boot::JoinRequest& request, Between&& between) {
  const auto joined = boot::Rendezvous::join(request, segment_with);
  check_joined(*joined, request);
  between(*joined);
  joined->confirm();
  report.say(ZC_OK, "");
}
inline void join(Report& report, const boot::JoinRequest& request) {
  join_and(report, request, [](boot::Rendezvous&) {});
}

// All of these processes got that status and one text, which holds every part. Returns the text.
inline std::string expect_same(Processes& processes, const std::vector<std::size_t>& which, zc_status status,
                               const std::vector<std::string>& parts) {
  std::string text;
  for (const std::size_t index : which) {
    const Report& report = processes.report(index);
    EXPECT_EQ(report.status, status) << "process " << index << ": " << report.text;
    if (index == which.front()) text = report.text;
    EXPECT_EQ(report.text, text) << "process " << index;
  }
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in '" << text << "'";
  return text;
}

}  // namespace zerocomm::test
