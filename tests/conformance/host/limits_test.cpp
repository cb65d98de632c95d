// Limits of the process: where they allow a communicator there is one, and where they do not every rank says so.
#include "host/box.hpp"

#include <sys/resource.h>

namespace zerocomm::test {
namespace {

constexpr std::int32_t kRanks = 3;

void limit(int what, rlim_t value) {
  const rlimit both{value, value};
  RANK_CHECK(setrlimit(static_cast<__rlimit_resource_t>(what), &both) == 0, "%s", std::strerror(errno));
}

rlim_t address_space_now() {
  std::ifstream file("/proc/self/statm");
  rlim_t pages = 0;
  file >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

// Leaves that many descriptors to be opened, and no more.
void leave_descriptors(int left) {
  constexpr int kMost = 100;
  std::vector<int> taken;
  for (int each = 0; each >= 0 && each < kMost;) taken.push_back(each = open("/dev/null", O_RDONLY | O_CLOEXEC));
  for (int i = 0; i <= left; ++i) {  // the last of them is beyond the limit
    close(taken.back());
    taken.pop_back();
  }
  limit(RLIMIT_NOFILE, kMost);
}

struct Outcome {
  std::int32_t status = ZC_INTERNAL;  // if it said nothing
  char text[1024] = {};
};

// Makes a communicator under limits and uses it if there is one. Every rank comes to an end in time.
std::vector<std::pair<zc_status, std::string>> create_under(const Children::Body& limits) {
  const zc_unique_id id = make_id();
  const SharedArray<Outcome> outcomes(kRanks);
  Children ranks(kRanks, [&](std::int32_t rank) {
    limits(rank);
    zc_comm_config config = process_config(id, kRanks, rank);
    config.init_deadline_ns = kSecondNs;
    zc_comm* comm = nullptr;
    const zc_status status = zc_comm_create(&config, &comm);
    std::snprintf(outcomes[rank].text, sizeof outcomes[rank].text, "%s", status == ZC_OK ? "" : zc_last_error());
    outcomes[rank].status = status;
    if (status != ZC_OK) return;
    use_everything(comm, rank);
    RANK_OK(zc_comm_destroy(comm));
  });
  expect_ok(ranks.wait(kSlack * 20 * kSecondNs));
  std::vector<std::pair<zc_status, std::string>> result;
  for (const Outcome& each : outcomes) result.emplace_back(static_cast<zc_status>(each.status), each.text);
  return result;
}

// All ranks got the same. Returns it.
zc_status expect_alike(const std::vector<std::pair<zc_status, std::string>>& outcomes, const std::string& part) {
  for (const auto& [status, text] : outcomes) {
    EXPECT_EQ(status, outcomes[0].first) << text;
    EXPECT_EQ(text, outcomes[0].second);
    if (status != ZC_OK) {
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
  }
  return outcomes[0].first;
}

TEST(Limits, of_address_space_make_a_smaller_extent) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need the address space themselves";
  for (const std::int32_t only : {-1, 0, 1}) {
    // Where rank 0 has no limit its extent is too large for the others, and everybody is told.
    const auto outcomes = create_under([&](std::int32_t rank) {
      if (only == -1 || only == rank) limit(RLIMIT_AS, rlim_t{1} << 30);
    });
    EXPECT_EQ(expect_alike(outcomes, "(ZC_SHM_BYTES sets another extent)"), only == 1 ? ZC_SYSTEM : ZC_OK);
  }
}

TEST(Limits, of_address_space_that_leave_no_room_are_told_to_all) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need the address space themselves";
  const auto outcomes = create_under([&](std::int32_t rank) {
    if (rank == 2) limit(RLIMIT_AS, address_space_now() + (8 << 20));
  });
  EXPECT_EQ(expect_alike(outcomes, "shared memory: mapping"), ZC_SYSTEM);
}

TEST(Limits, of_file_sizes_make_a_smaller_extent_and_no_signal) {
  EXPECT_EQ(expect_alike(create_under([](std::int32_t) { limit(RLIMIT_FSIZE, 32 << 20); }), ""), ZC_OK);
  EXPECT_EQ(expect_alike(create_under([](std::int32_t) { limit(RLIMIT_FSIZE, 1 << 20); }), "(ZC_SHM_BYTES)"),
            ZC_NO_MEMORY);
}

TEST(Limits, of_locked_memory_do_not_matter) {
  EXPECT_EQ(expect_alike(create_under([](std::int32_t) { limit(RLIMIT_MEMLOCK, 0); }), ""), ZC_OK);
}

// From none on, on all ranks.
TEST(Limits, of_descriptors_give_a_communicator_or_an_error_on_every_rank) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need descriptors themselves";
  bool failed = false, made = false;
  for (int more = 0; more < 12 && !HasFailure(); ++more) {
    const auto outcomes = create_under([&](std::int32_t) { leave_descriptors(more); });
    for (const auto& [status, text] : outcomes) {
      EXPECT_TRUE(status == ZC_OK || status == ZC_SYSTEM || status == ZC_TIMEOUT || status == ZC_PEER_LOST)
          << more << " descriptors: " << text;
      (status == ZC_OK ? made : failed) = true;
      if (status == ZC_TIMEOUT || status == ZC_PEER_LOST) {
        EXPECT_NE(text.find("rank "), std::string::npos) << text;
      }
    }
  }
  EXPECT_TRUE(failed && made);
}

// A rank that cannot even speak to the others says so itself; they name it when their time is up.
TEST(Limits, of_descriptors_on_one_rank_are_told_by_it) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need descriptors themselves";
  const auto outcomes = create_under([&](std::int32_t rank) {
    if (rank == 1) leave_descriptors(0);
  });
  EXPECT_EQ(outcomes[1].first, ZC_SYSTEM) << outcomes[1].second;
  EXPECT_NE(outcomes[1].second.find("Too many open files"), std::string::npos) << outcomes[1].second;
  for (const std::size_t rank : {std::size_t{0}, std::size_t{2}}) {
    EXPECT_EQ(outcomes[rank].first, ZC_TIMEOUT) << outcomes[rank].second;
    EXPECT_NE(outcomes[rank].second.find("rank 1"), std::string::npos) << outcomes[rank].second;
  }
}

}  // namespace
}  // namespace zerocomm::test
