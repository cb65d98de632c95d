// A collective algorithm of one's own: all-gather by recursive doubling, which the library's catalogue has not. It is
// written as text, proved, counted against the ring, and then it moves the data of four thread ranks.
#include <zerocomm/zerocomm.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

void check(zc_status status) {
  if (status == ZC_OK) return;
  std::fprintf(stderr, "%s: %s\n", zc_status_name(status), zc_last_error());
  std::exit(1);
}

struct Destroy {
  void operator()(zc_schedule* schedule) const { zc_schedule_destroy(schedule); }
};
using Schedule = std::unique_ptr<zc_schedule, Destroy>;

// In round k a rank has 2^k blocks and swaps them with the rank whose number differs in bit k alone. Ranks: a power of
// two.
std::string recursive_doubling(int ranks) {
  const std::string count = std::to_string(ranks);
  std::string text =
      "schedule all_gather recursive_doubling ranks=" + count + " root=0 chunks=" + count + " lanes=1 scratch=0\n";
  const auto line = [&](const char* verb, int peer, int first, int blocks) {
    text += std::string("  ") + verb + std::to_string(peer) + " output[" + std::to_string(first);
    text += blocks == 1 ? "]\n" : ".." + std::to_string(first + blocks - 1) + "]\n";
  };
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string own = std::to_string(rank);
    text += "rank " + own + "\nlane 0\n  copy input[" + own + "] -> output[" + own + "]\n";
    for (int blocks = 1; blocks < ranks; blocks *= 2) {
      const int peer = rank ^ blocks;
      line("send to=", peer, rank / blocks * blocks, blocks);
      line("recv from=", peer, peer / blocks * blocks, blocks);
    }
  }
  return text;
}

Schedule parse(const std::string& text) {
  zc_schedule* schedule = nullptr;
  check(zc_schedule_parse(text.c_str(), &schedule));
  return Schedule(schedule);
}

// Is it proved? What the verifier has to say goes to `words`.
bool proved(const zc_schedule* schedule, std::string& words) {
  zc_schedule_verdict verdict{};
  verdict.struct_size = sizeof verdict;
  char text[2000];
  std::size_t needed_bytes = 0;
  check(zc_schedule_verify(schedule, &verdict, text, sizeof text, &needed_bytes));
  words = text;
  return verdict.is_proved != 0;
}

zc_schedule_costs cost(const zc_schedule* schedule) {
  zc_schedule_costs costs{};
  costs.struct_size = sizeof costs;
  check(zc_schedule_cost(schedule, ZC_NONE, nullptr, &costs));  // the largest figures of any rank, in chunks
  return costs;
}

// Gathers 1000 numbers of every rank with the schedule; true if they arrive.
bool gathers(zc_comm* comm, const zc_schedule* schedule, int rank, int ranks) {
  constexpr std::size_t kCount = 1000;
  std::vector<std::int32_t> mine(kCount), all(kCount * static_cast<std::size_t>(ranks)), expected(all.size());
  std::iota(mine.begin(), mine.end(), rank * static_cast<std::int32_t>(kCount));
  std::iota(expected.begin(), expected.end(), 0);
  zc_coll_options options{};
  options.struct_size = sizeof options;
  options.schedule = schedule;
  check(zc_all_gather(comm, mine.data(), all.data(), kCount, ZC_DTYPE_I32, &options));
  return all == expected;
}

}  // namespace

int main() {
  constexpr int kRanks = 4;
  const std::string text = recursive_doubling(kRanks);
  const Schedule own = parse(text);
  std::string words;
  if (!proved(own.get(), words)) return std::puts(words.c_str()), 1;
  std::printf("recursive doubling: %s\n", words.c_str());

  // A slip of the pen is found before a byte moves: rank 0 sends the wrong blocks in the last round.
  std::string wrong_text = text;
  const std::string right = "send to=2 output[0..1]", wrong = "send to=2 output[1..2]";
  wrong_text.replace(wrong_text.find(right), right.size(), wrong);
  if (proved(parse(wrong_text).get(), words)) return std::puts("the verifier has missed the slip"), 1;
  std::printf("with a slip:        %s\n", words.substr(0, words.find('\n')).c_str());

  zc_schedule_config config{};
  config.struct_size = sizeof config;
  config.collective = ZC_COLLECTIVE_ALL_GATHER;
  config.algorithm = "ring";
  config.ranks = kRanks;
  zc_schedule* made = nullptr;
  check(zc_schedule_create(&config, &made));
  const Schedule ring(made);
  const zc_schedule_costs a = cost(own.get()), b = cost(ring.get());
  std::printf("messages per rank:  %llu, the ring's %llu; chunks sent: %llu and %llu\n",
              static_cast<unsigned long long>(a.messages_sent), static_cast<unsigned long long>(b.messages_sent),
              static_cast<unsigned long long>(a.elements_sent), static_cast<unsigned long long>(b.elements_sent));

  zc_comm* comms[kRanks];
  check(zc_comm_create_threads(kRanks, nullptr, comms));
  bool good[kRanks] = {};
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < kRanks; ++rank)
      threads.emplace_back([&, rank] { good[rank] = gathers(comms[rank], own.get(), rank, kRanks); });
  }
  bool all = a.messages_sent < b.messages_sent && a.elements_sent == b.elements_sent;
  for (int rank = 0; rank < kRanks; ++rank) {
    all = all && good[rank];
    check(zc_comm_destroy(comms[rank]));
  }
  std::puts(all ? "every rank has everything" : "FAILED");
  return all ? 0 : 1;
}
