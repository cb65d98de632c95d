// Ranks that meet over the caller's own store: a map in memory that they share.
#include "processes.hpp"

#include <zerocomm/zerocomm.h>

#include <pthread.h>

#include <algorithm>
#include <array>

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
    result.progress = [](void* map) {
      ++static_cast<Map*>(map)->progressed;
      return ZC_OK;
    };
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

  int progressed = 0;              // in this process
  const char* fails_on = nullptr;  // a word of keys whose put fails in this process

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
    return locked([&] {
      const Entry* const entry = find(key);
      if (entry == nullptr || entry->bytes > capacity_bytes) return ZC_AGAIN;
      std::memcpy(value, entry->value, entry->bytes);
      *value_bytes = entry->bytes;
      return ZC_OK;
    });
  }
  zc_status remove(const char* key) {
    return locked([&] {
      if (Entry* const entry = find(key); entry != nullptr) *entry = Entry{};
      return ZC_OK;
    });
  }

  Shared* shared_;
};

void check(zc_status status) {
  if (status != ZC_OK) throw Error(status, zc_last_error());
}

void take_part(Map& map, std::int32_t rank, std::int32_t ranks, std::int64_t deadline_ns = 20 * kSecond) {
  const zc_store store = map.store();
  zc_comm_config config{};
  config.struct_size = sizeof config;
  config.ranks = ranks;
  config.rank = rank;
  config.store = &store;
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

// A program whose own runtime moves only inside of its calls: everything happens in progress.
TEST(Store, lets_the_callers_runtime_go_on_while_a_rank_waits) {
  Map map;
  Processes processes;
  processes.start([&](Report& report) {
    take_part(map, 0, 2);
    report.say(ZC_OK, std::to_string(map.progressed));
  });
  sleep_ms(100);
  processes.start([&](Report& report) {
    take_part(map, 1, 2);
    report.say(ZC_OK, "");
  });
  EXPECT_EQ(processes.report(0).status, ZC_OK) << processes.report(0).text;
  EXPECT_EQ(processes.report(1).status, ZC_OK) << processes.report(1).text;
  EXPECT_GE(std::atoi(processes.report(0).text), 5);
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
