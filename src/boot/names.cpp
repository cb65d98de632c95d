#include "boot/names.hpp"

#include "base/check.hpp"

#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace zerocomm::boot {
namespace {

// Belongs to the thread and to who waits for it: whoever is last frees it.
struct Search {
  std::string name;
  NameResolver resolver;
  std::mutex mutex;
  std::condition_variable done_changed;
  bool done = false;
  Named found;
};

void search(Search& it) {
  Named found;
  try {
    found.numbers = it.resolver(it.name);
    if (found.numbers.empty()) found.error = "it stands for no address";
  } catch (const std::exception& error) {
    found.error = error.what();
  }
  const std::lock_guard lock(it.mutex);
  it.found = std::move(found);
  it.done = true;
  it.done_changed.notify_all();
}

}  // namespace

std::vector<std::string> system_names(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(name.c_str(), nullptr, &hints, &list);
  ZC_REQUIRE(error == 0, ZC_SYSTEM, "%s", error == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
  std::vector<std::string> numbers;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (getnameinfo(one->ai_addr, one->ai_addrlen, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) continue;
    if (std::find(numbers.begin(), numbers.end(), text.data()) == numbers.end()) numbers.emplace_back(text.data());
  }
  return numbers;
}

Named find_numbers(const std::string& name, const Deadline& deadline, const NameResolver& resolver) {
  const auto it = std::make_shared<Search>();
  it->name = name;
  it->resolver = resolver ? resolver : NameResolver(system_names);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int refused = 0;
  try {
    std::thread([it] { search(*it); }).detach();
  } catch (const std::system_error& error) {
    refused = error.code().value();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ZC_REQUIRE(refused == 0, ZC_SYSTEM, "starting a thread that resolves '%s': %s", name.c_str(),
             std::generic_category().message(refused).c_str());
  std::unique_lock lock(it->mutex);
  while (!it->done) {
    const std::int64_t left_ns = deadline.left_ns();
    if (left_ns == 0) return {{}, "the resolver did not answer in time", false};
    it->done_changed.wait_for(lock, std::chrono::nanoseconds(std::min<std::int64_t>(left_ns, 1'000'000'000)));
  }
  return std::move(it->found);
}

}  // namespace zerocomm::boot
