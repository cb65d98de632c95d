// Ranks that meet over the caller's own store: a map in memory that they share.
#include "processes.hpp"

#include <zerocomm/zerocomm.h>

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <functional>

namespace zerocomm::test {
namespace {

// Processes put and get values here. Small, and plain.
class Map {
 public:
  Map() {
    void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    shared_ = new (memory) Shared;
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared_->mutex, &kind);
    pthread_mutexattr_destroy(&kind);
  }
  ~Map() { munmap(shared_, sizeof(Shared)); }
  Map(const Map&) = delete;
  Map& operator=(const Map&) = delete;

  zc_store store() {
    zc_store result{};
    result.struct_size = sizeof result;
    result.context = this;
    result.put = [](void* map, const char* key, const void* value, std::size_t value_bytes) {
      return static_cast<Map*>(map)->put(key, value, value_bytes);
    };
    result.get = [](void* map, const char* key, void* value, std::size_t capacity_bytes, std::size_t* value_bytes) {
      return static_cast<Map*>(map)->get(key, value, capacity_bytes, value_bytes);
    };
    result.remove = [](void* map, const char* key) { return static_cast<Map*>(map)->remove(key); };
    result.progress = [](void* map) { return static_cast<Map*>(map)->progress(); };
    return result;
  }
  std::size_t entries() {
    std::size_t count = 0;
    locked([&] {
      for (const Entry& entry : shared_->entries) count += entry.key[0] != '\0';
      return ZC_OK;
    });
    return count;
  }

  // Of this process.
  int progressed = 0;
  const char* fails_on = nullptr;      // a word of keys whose put fails
  const char* get_fails_on = nullptr;  // and whose get
  int progress_fails_at = 0;           // call of progress that fails
  bool keeps = false;                  // removes nothing
  bool lazy = false;                   // what was put is seen by others after some calls of progress
  std::function<void()> more;          // done in progress

 private:
  struct Entry {
    char key[ZC_STORE_KEY_BYTES] = {};
    std::size_t bytes = 0;
    char value[ZC_STORE_VALUE_BYTES] = {};
  };
  struct Shared {
    pthread_mutex_t mutex;
    std::array<Entry, 64> entries;
  };

  zc_status progress() {
    if (++progressed == progress_fails_at) return ZC_INTERNAL;
    if (more) more();
    if (progressed % 3 != 0 || outbox_.empty()) return ZC_OK;
    const auto [key, value] = std::move(outbox_.front());
    outbox_.pop_front();
    return write(key.c_str(), value.data(), value.size());
  }

  template <class Body>
  zc_status locked(Body body) {
    pthread_mutex_lock(&shared_->mutex);
    const zc_status status = body();
    pthread_mutex_unlock(&shared_->mutex);
    return status;
  }
  Entry* find(const char* key) {
    for (Entry& entry : shared_->entries)
      if (std::strcmp(entry.key, key) == 0) return &entry;
    return nullptr;
  }
  zc_status put(const char* key, const void* value, std::size_t value_bytes) {
    if (fails_on != nullptr && std::strstr(key, fails_on) != nullptr) return ZC_SYSTEM;
    if (!lazy) return write(key, value, value_bytes);
    outbox_.emplace_back(key, std::string(static_cast<const char*>(value), value_bytes));
    return ZC_OK;
  }
  zc_status write(const char* key, const void* value, std::size_t value_bytes) {
    return locked([&] {
      Entry* entry = find(key);
      if (entry == nullptr) entry = find("");
      if (entry == nullptr || std::strlen(key) >= sizeof entry->key || value_bytes > sizeof entry->value)
        return ZC_NO_MEMORY;
      std::strcpy(entry->key, key);
      std::memcpy(entry->value, value, value_bytes);
      entry->bytes = value_bytes;
      return ZC_OK;
    });
  }
  zc_status get(const char* key, void* value, std::size_t capacity_bytes, std::size_t* value_bytes) {
    if (get_fails_on != nullptr && std::strstr(key, get_fails_on) != nullptr) return ZC_SYSTEM;
    return locked([&] {
      const Entry* const entry = find(key);
      if (entry == nullptr || entry->bytes > capacity_bytes) return ZC_AGAIN;
      std::memcpy(value, entry->value, entry->bytes);
      *value_bytes = entry->bytes;
      return ZC_OK;
    });
  }
  zc_status remove(const char* key) {
    if (keeps) return ZC_OK;
    return locked([&] {
      if (Entry* const entry = find(key); entry != nullptr) *entry = Entry{};
      return ZC_OK;
    });
  }

  Shared* shared_;
  std::deque<std::pair<std::string, std::string>> outbox_;
};

void check(zc_status status) {
  if (status != ZC_OK) throw Error(status, zc_last_error());
}

void take_part(Map& map, std::int32_t rank, std::int32_t ranks, std::int64_t deadline_ns = 20 * kSecond,
               const zc_unique_id* id = nullptr) {
  const zc_store store = map.store();
  zc_comm_config config{};
  config.struct_size = sizeof config;
  config.ranks = ranks;
  config.rank = rank;
  config.store = &store;
  config.id = id;
  config.init_deadline_ns = deadline_ns;
  zc_comm* comm = nullptr;
  check(zc_comm_create(&config, &comm));
  std::int64_t value = rank + 1;
  check(zc_all_reduce(comm, &value, &value, 1, ZC_DTYPE_I64, ZC_OP_SUM, nullptr));
  ZC_ASSERT(value == std::int64_t{ranks} * (ranks + 1) / 2);
  check(zc_comm_destroy(comm));
}

TEST(Store, makes_communicators_one_after_the_other_and_leaves_no_key_behind) {
  Map map;
  Processes processes;
  for (std::int32_t rank = 0; rank < 4; ++rank)
    processes.start([&, rank](Report& report) {
      for (int turn = 0; turn < 3; ++turn) take_part(map, rank, 4);
      report.say(ZC_OK, std::to_string(map.progressed));
    });
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(processes.report(i).status, ZC_OK) << processes.report(i).text;
  EXPECT_EQ(map.entries(), 0u);
}

// Ranks that never leave the broadcast of the id, as those that have it no longer make progress for the others.
// A program whose own runtime moves only inside of its calls: the id goes from rank to rank, and what was put becomes
// seen, in progress alone. A rank that has the id is in zc_comm_create while others still wait for it, and rank 0 has
// met all before they can read so.
TEST(Store, lets_the_callers_runtime_go_on_until_all_have_joined) {
  constexpr std::int32_t kRanks = 8;
  struct Ring {
    std::atomic<int> have;
    zc_unique_id id;
  };
  void* const memory = mmap(nullptr, sizeof(Ring), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  Ring& ring = *new (memory) Ring{};
  Map map;
  map.lazy = true;
  Processes processes;
  for (std::int32_t rank = 0; rank < kRanks; ++rank)
    processes.start([&, rank](Report& report) {
      map.more = [&] {
        if (map.progressed % 5 == 0 && ring.have.load() == rank + 1) ring.have.store(rank + 2);
      };
      if (rank == 0) {
        check(zc_unique_id_create(&ring.id));
        ring.have.store(1);
      }
      while (ring.have.load() < rank + 1) sleep_ms(1);
      take_part(map, rank, kRanks, 20 * kSecond, &ring.id);
      report.say(ZC_OK, "");
    });
  for (std::size_t i = 0; i < kRanks; ++i) EXPECT_EQ(processes.report(i).status, ZC_OK) << processes.report(i).text;
  munmap(memory, sizeof(Ring));
}

// A job that was started again, over a store that forgets nothing.
TEST(Store, with_the_keys_of_an_earlier_job_of_that_name_does_no_harm) {
  Map map;
  map.keeps = true;
  std::size_t before = 0;
  for (int turn = 0; turn < 3; ++turn) {
    Processes processes;
    for (const std::int32_t rank : turn == 1 ? std::array{2, 1, 0} : std::array{0, 1, 2})
      processes.start([&, rank](Report& report) {
        sleep_ms(turn == 1 ? 30 * (2 - rank) : 30 * rank);  // who reads old keys first
        take_part(map, rank, 3);
        report.say(ZC_OK, "");
      });
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(processes.report(i).status, ZC_OK) << processes.report(i).text;
    EXPECT_EQ(map.entries(), turn == 0 ? (before = map.entries()) : before);
  }
  EXPECT_EQ(before, 5u);  // rank 0's number, and a hello and a verdict of each other
}

TEST(Store, without_rank_0_ends_with_the_key_that_is_not_there) {
  Map map;
  Processes processes;
  processes.start([&](Report& report) {
    take_part(map, 1, 2, 200 * kMs);
    report.say(ZC_OK, "");
  });
  EXPECT_EQ(processes.report(0).status, ZC_TIMEOUT) << processes.report(0).text;
  EXPECT_NE(std::string(processes.report(0).text).find("rank 0 did not come within 0.2 s: the store has no 'zerocomm/"),
            std::string::npos)
      << processes.report(0).text;
}

TEST(Store, whose_progress_or_get_fails_says_so) {
  const auto failing = [](std::int32_t rank, const char* part, auto&& make_fail) {
    Map map;
    make_fail(map);
    Processes processes;
    processes.start([&](Report& report) {
      take_part(map, rank, 2, 300 * kMs);
      report.say(ZC_OK, "");
    });
    EXPECT_EQ(processes.report(0).status, ZC_TRANSPORT) << processes.report(0).text;
    EXPECT_NE(std::string(processes.report(0).text).find(part), std::string::npos) << processes.report(0).text;
  };
  for (const std::int32_t rank : {0, 1})
    failing(rank, "the store's progress returned INTERNAL", [](Map& map) { map.progress_fails_at = 4; });
  failing(0, "rank 0: the store's get of 'zerocomm/", [](Map& map) { map.get_fails_on = "hello/1"; });
  failing(1, "rank 1: the store's get of 'zerocomm/", [](Map& map) { map.get_fails_on = "zero"; });
}

TEST(Store, tells_ranks_of_several_hosts_who_is_where) {
  Map map;
  Processes processes;
  for (const std::int32_t rank : {1, 0, 2})
    processes.start([&, rank](Report& report) {
      if (rank == 1 && unshare(CLONE_NEWIPC) != 0) return report.say(-3, "");  // the same network, another memory
      take_part(map, rank, 3, 5 * kSecond);
      report.say(ZC_OK, "");
    });
  if (processes.report(0).status == -3) {
    for (const std::size_t i : {1u, 2u}) processes.kill(i, SIGKILL);
    GTEST_SKIP() << "this user may not make namespaces";
  }
  expect_same(
      processes, {0, 1, 2}, ZC_UNSUPPORTED,
      {"the ranks are on 2 hosts:", "has rank 0, 2;", "has rank 1.", "data between hosts comes with a later version"});
}

TEST(Store, that_fails_says_what_it_was_asked) {
  Map map;
  Processes processes;
  processes.start([&](Report& report) {
    take_part(map, 0, 2, kSecond);
    report.say(ZC_OK, "");
  });
  processes.start([&](Report& report) {
    map.fails_on = "hello";
    take_part(map, 1, 2, kSecond);
    report.say(ZC_OK, "");
  });
  EXPECT_EQ(processes.report(1).status, ZC_TRANSPORT);
  EXPECT_NE(std::string(processes.report(1).text).find("rank 1: the store's put of '"), std::string::npos);
  EXPECT_NE(std::string(processes.report(1).text).find("returned SYSTEM"), std::string::npos);
  EXPECT_EQ(processes.report(0).status, ZC_TIMEOUT);
  EXPECT_NE(std::string(processes.report(0).text).find("rank 1 did not come"), std::string::npos);
}

TEST(Store, without_its_functions_is_an_argument_error) {
  zc_store store{};
  store.struct_size = sizeof store;
  zc_comm_config config{};
  config.struct_size = sizeof config;
  config.ranks = 2;
  config.store = &store;
  zc_comm* comm = nullptr;
  EXPECT_EQ(zc_comm_create(&config, &comm), ZC_ARGUMENT);
  EXPECT_NE(std::string(zc_last_error()).find("put, get and remove"), std::string::npos);
}

}  // namespace
}  // namespace zerocomm::test
