// The ranks of Gloo that zc bench measures: processes that talk by TCP over the loopback interface. Gloo brings no
// launcher, so this program starts them itself.
#include <gloo/allgather.h>
#include <gloo/allgather_ring.h>
#include <gloo/allreduce_bcube.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/config.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peer.h"

namespace {

using Context = std::shared_ptr<gloo::Context>;

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr std::chrono::seconds kLongestWait{120};
// A rank of Gloo's reduce-scatter moves its result to the front, over data that may wait to be sent still; what the
// socket takes at once is safe. In 200 calls over 512 KiB in all, 10 results of rank 0 were wrong; none with half of
// that.
constexpr std::size_t kMostReduceScatterBytes = 128 * kKiB;

std::size_t bytes_of(peer_dtype dtype) { return dtype == PEER_F64 || dtype == PEER_I64 ? 8 : 4; }

enum class AllReduce { ring, chunked_ring, halving_doubling, bcube };

// The fastest of Gloo's classes for all-reduce, as measured over loopback on two cores with 2, 4 and 8 ranks.
AllReduce best_all_reduce(std::size_t ranks, std::size_t bytes) {
  const bool power_of_two = (ranks & (ranks - 1)) == 0;
  if (!power_of_two) return bytes <= 128 * kKiB ? AllReduce::ring : AllReduce::chunked_ring;
  if (ranks == 2) return bytes <= 256 * kKiB ? AllReduce::ring : AllReduce::halving_doubling;
  if (ranks == 4 && bytes >= 16 * kMiB) return AllReduce::chunked_ring;
  return AllReduce::bcube;
}

template <class T>
std::unique_ptr<gloo::Algorithm> make_all_reduce(const Context& context, T* data, std::size_t count) {
  const std::vector<T*> pointers{data};
  const int elements = static_cast<int>(count);
  switch (best_all_reduce(static_cast<std::size_t>(context->size), count * sizeof(T))) {
    case AllReduce::ring:
      return std::make_unique<gloo::AllreduceRing<T>>(context, pointers, elements);
    case AllReduce::chunked_ring:
      return std::make_unique<gloo::AllreduceRingChunked<T>>(context, pointers, elements);
    case AllReduce::halving_doubling:
      return std::make_unique<gloo::AllreduceHalvingDoubling<T>>(context, pointers, elements);
    case AllReduce::bcube:
      return std::make_unique<gloo::AllreduceBcube<T>>(context, pointers, elements);
  }
  return nullptr;
}

void run_barrier(const Context& context) {
  gloo::BarrierOptions options(context);
  options.setTag(1);
  options.setTimeout(kLongestWait);
  gloo::barrier(options);
}

// The reductions work in place, all of them: out of place, the copy belongs to the operation.
template <class T>
std::function<void()> after_copy(const peer_call& call, std::unique_ptr<gloo::Algorithm> algorithm) {
  const std::shared_ptr<gloo::Algorithm> shared = std::move(algorithm);
  if (call.in_place != 0) return [shared] { shared->run(); };
  return [shared, call] {
    std::memcpy(call.result, call.source, call.count * sizeof(T));
    shared->run();
  };
}

template <class T>
std::function<void()> make_all_gather(const Context& context, const peer_call& call) {
  T* result = static_cast<T*>(call.result);
  T* source =
      call.in_place != 0 ? result + static_cast<std::size_t>(context->rank) * call.part : static_cast<T*>(call.source);
  if (context->size == 2 || call.count * sizeof(T) <= 64 * kMiB) {
    const auto ring = std::make_shared<gloo::AllgatherRing<T>>(context, std::vector<const T*>{source}, result,
                                                               static_cast<int>(call.part));
    return [ring] { ring->run(); };
  }
  return [context, call, source, result] {
    gloo::AllgatherOptions options(context);
    options.setInput(source, call.part);
    options.setOutput(result, call.count);
    gloo::allgather(options);
  };
}

template <class T>
std::function<void()> make_run(const Context& context, const peer_call& call) {
  T* result = static_cast<T*>(call.result);
  switch (call.op) {
    case PEER_ALL_REDUCE:
    case PEER_REDUCE_SCATTER_BY_ALL_REDUCE:
      return after_copy<T>(call, make_all_reduce<T>(context, result, call.count));
    case PEER_REDUCE_SCATTER: {
      const std::vector<int> parts(static_cast<std::size_t>(context->size), static_cast<int>(call.part));
      return after_copy<T>(call, std::make_unique<gloo::ReduceScatterHalvingDoubling<T>>(
                                     context, std::vector<T*>{result}, static_cast<int>(call.count), parts));
    }
    case PEER_ALL_GATHER:
      return make_all_gather<T>(context, call);
    case PEER_BROADCAST:
      return [context, call, result] {
        gloo::BroadcastOptions options(context);
        options.setOutput(result, call.count);
        options.setRoot(0);
        gloo::broadcast(options);
      };
    case PEER_BARRIER:
      return [context] { run_barrier(context); };
    case PEER_REDUCE:
    case PEER_ALL_TO_ALL:
      break;
  }
  return nullptr;
}

struct Rank {
  Context context;
  std::function<void()> run;
  std::string failure;
};

// What a call threw, as text that outlives it.
template <class F>
const char* guarded(Rank& rank, F&& call) {
  try {
    return call();
  } catch (const std::exception& error) {
    rank.failure = error.what();
    return rank.failure.c_str();
  }
}

const char* prepare(void* state, const peer_call* call) {
  Rank& rank = *static_cast<Rank*>(state);
  return guarded(rank, [&]() -> const char* {
    rank.run = nullptr;
    if (call->op != PEER_BARRIER && call->count == 0) return "Gloo takes no empty buffers";
    if (call->op == PEER_REDUCE_SCATTER && (rank.context->size & (rank.context->size - 1)) != 0)
      return "Gloo's reduce-scatter does not end unless the number of ranks is a power of two";
    if (call->op == PEER_REDUCE_SCATTER && call->count * bytes_of(call->dtype) > kMostReduceScatterBytes)
      return "Gloo's reduce-scatter overwrites what it still sends, so that large results are wrong now and then";
    if (call->count > INT_MAX) return "Gloo's classes count elements in an int";
    switch (call->dtype) {
      case PEER_F32:
        rank.run = make_run<float>(rank.context, *call);
        break;
      case PEER_F64:
        rank.run = make_run<double>(rank.context, *call);
        break;
      case PEER_I32:
        rank.run = make_run<std::int32_t>(rank.context, *call);
        break;
      case PEER_I64:
        rank.run = make_run<std::int64_t>(rank.context, *call);
        break;
    }
    return rank.run ? nullptr
                    : "this peer measures Gloo's all_reduce, reduce_scatter, all_gather, broadcast and barrier";
  });
}

const char* run(void* state, const peer_call* /*call*/) {
  Rank& rank = *static_cast<Rank*>(state);
  return guarded(rank, [&]() -> const char* { return rank.run(), nullptr; });
}

const char* barrier(void* state) {
  Rank& rank = *static_cast<Rank*>(state);
  return guarded(rank, [&]() -> const char* { return run_barrier(rank.context), nullptr; });
}

void forget(void* state) { static_cast<Rank*>(state)->run = nullptr; }

int be_rank(int number, const peer_options& options, const std::string& folder) {
  const int driver = peer_connect(options.socket_name);
  if (driver < 0) return 1;
  gloo::transport::tcp::attr attributes;
  attributes.iface = "lo";
  gloo::rendezvous::FileStore store(folder);
  const auto context = std::make_shared<gloo::rendezvous::Context>(number, options.ranks);
  context->setTimeout(kLongestWait);
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  context->connectFullMesh(store, device);
  Rank rank{context, nullptr, ""};
  run_barrier(context);
  if (number == 0) std::filesystem::remove_all(folder);  // everybody has met

  const std::string version = "Gloo " + std::to_string(GLOO_VERSION_MAJOR) + "." + std::to_string(GLOO_VERSION_MINOR) +
                              "." + std::to_string(GLOO_VERSION_PATCH) + ", tcp over lo";
  peer_library library{};
  library.version = version.c_str();
  library.rank = number;
  library.ranks = options.ranks;
  library.state = &rank;
  library.prepare = prepare;
  library.run = run;
  library.barrier = barrier;
  library.forget = forget;
  return peer_serve(driver, options.group, &library) == PEER_FAILED ? 1 : 0;
}

// Status of the ranks together: 0 if all of them ended well. When one does not, the others are ended.
int wait_for_ranks(std::vector<pid_t> living) {
  int status = 0;
  for (;;) {
    int ending = 0;
    const pid_t pid = waitpid(-1, &ending, 0);
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) return status;
    std::erase(living, pid);
    if (ending == 0 || status != 0) continue;
    status = 1;
    if (WIFSIGNALED(ending))
      std::fprintf(stderr, "peer: process %d was killed by signal %d\n", static_cast<int>(pid), WTERMSIG(ending));
    for (const pid_t other : living) kill(other, SIGKILL);
  }
}

}  // namespace

int main(int argc, char** argv) {
  peer_options options;
  peer_read_options(argc, argv, 1, &options);
  std::string folder = (std::filesystem::temp_directory_path() / "zc_peer_gloo.XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    std::fprintf(stderr, "peer: no folder %s: %s\n", folder.c_str(), std::strerror(errno));
    return 1;
  }
  const pid_t self = getpid();
  std::vector<pid_t> ranks;
  for (int number = 0; number < options.ranks; ++number) {
    const pid_t pid = fork();
    if (pid == 0) {
      int status = 1;
      try {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == self) status = be_rank(number, options, folder);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "peer: rank %d: %s\n", number, error.what());
      }
      _exit(status);
    }
    if (pid < 0) std::fprintf(stderr, "peer: rank %d cannot be started: %s\n", number, std::strerror(errno));
    if (pid > 0) ranks.push_back(pid);
  }
  if (ranks.size() < static_cast<std::size_t>(options.ranks))
    for (const pid_t pid : ranks) kill(pid, SIGKILL);
  const int status = wait_for_ranks(ranks);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return status;
}
