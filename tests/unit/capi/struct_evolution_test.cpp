// Option structs of programs that were built with another header: shorter ones are never read or written past their
// end, longer ones may hold nothing that this library does not know.
#include "support/page_end.hpp"
#include "support/rank_threads.hpp"

#include <zerocomm/coll.h>
#include <zerocomm/window.h>

#include <gtest/gtest.h>

#include <functional>

namespace zerocomm::test {
namespace {

// Calls `use` with the struct cut down to its first `bytes` bytes, at the end of a page.
template <class Struct>
zc_status with_bytes(const Struct& whole, std::size_t bytes, const std::function<zc_status(Struct*)>& use) {
  const PageEnd memory(bytes);
  std::memcpy(memory.data(), &whole, std::min(bytes, sizeof whole));
  std::memcpy(memory.data(), &bytes, sizeof bytes);  // struct_size comes first
  return use(reinterpret_cast<Struct*>(memory.data()));
}

// Every size from the first member to far beyond ours, in steps that keep the struct aligned.
template <class Struct>
void expect_every_size_accepted(const Struct& whole, const std::function<zc_status(Struct*)>& use) {
  for (std::size_t bytes = sizeof(std::size_t); bytes <= sizeof whole + 64; bytes += alignof(Struct))
    EXPECT_EQ(with_bytes(whole, bytes, use), ZC_OK) << bytes << " bytes: " << zc_last_error();
}

template <class Struct>
void expect_unknown_member_refused(const char* name, const std::function<zc_status(Struct*)>& use) {
  const std::size_t bytes = sizeof(Struct) + 32, at = sizeof(Struct) + 17;
  const PageEnd memory(bytes);
  std::memcpy(memory.data(), &bytes, sizeof bytes);
  memory.data()[at] = std::byte{1};
  EXPECT_EQ(use(reinterpret_cast<Struct*>(memory.data())), ZC_ARGUMENT);
  const std::string text = zc_last_error();
  EXPECT_NE(text.find(std::string(name) + " has a member at byte " + std::to_string(at)), std::string::npos) << text;
}

template <class Struct>
void expect_size_needed(const char* name, const std::function<zc_status(Struct*)>& use) {
  for (const std::size_t bytes : {std::size_t{0}, sizeof(std::size_t) - 1, std::size_t{4097}, SIZE_MAX}) {
    Struct value{};
    value.struct_size = bytes;
    EXPECT_EQ(use(&value), ZC_ARGUMENT);
    EXPECT_NE(std::string(zc_last_error()).find(std::string(name) + ".struct_size is " + std::to_string(bytes)),
              std::string::npos)
        << zc_last_error();
  }
}

class StructEvolution : public ::testing::Test {
 protected:
  RankThreads ranks_{1};
  zc_comm* comm() { return ranks_.comm(0); }
};

TEST_F(StructEvolution, communicator_config_of_any_age_is_understood) {
  const std::function<zc_status(zc_comm_config*)> use = [](zc_comm_config* config) {
    zc_comm* made = nullptr;
    const zc_status status = zc_comm_create_threads(1, config, &made);
    zc_comm_destroy(made);
    return status;
  };
  zc_comm_config whole{};
  whole.topology = "only:0";
  whole.deadline_ns = kSecondNs;
  expect_every_size_accepted(whole, use);
  expect_unknown_member_refused("zc_comm_config", use);
  expect_size_needed("zc_comm_config", use);
}

TEST_F(StructEvolution, members_beyond_an_older_struct_take_their_defaults) {
  zc_comm_config whole{};
  whole.deadline_ns = 7 * kSecondNs;
  whole.spin_ns = 12345;
  const auto info_with = [&](std::size_t bytes) {
    zc_comm_info info{};
    info.struct_size = sizeof info;
    const std::function<zc_status(zc_comm_config*)> use = [&](zc_comm_config* config) {
      zc_comm* made = nullptr;
      const zc_status status = zc_comm_create_threads(1, config, &made);
      zc_comm_get_info(made, &info);
      zc_comm_destroy(made);
      return status;
    };
    EXPECT_EQ(with_bytes(whole, bytes, use), ZC_OK);
    return info;
  };
  const std::size_t up_to_deadline = offsetof(zc_comm_config, spin_ns);
  EXPECT_EQ(info_with(sizeof whole).spin_ns, 12345);
  EXPECT_EQ(info_with(up_to_deadline).deadline_ns, 7 * kSecondNs);
  EXPECT_NE(info_with(up_to_deadline).spin_ns, 12345);
  EXPECT_NE(info_with(sizeof(std::size_t)).deadline_ns, 7 * kSecondNs);
}

TEST_F(StructEvolution, options_of_calls_of_any_age_are_understood) {
  const std::function<zc_status(zc_coll_options*)> collective = [&](zc_coll_options* options) {
    return zc_barrier(comm(), options);
  };
  expect_every_size_accepted(zc_coll_options{}, collective);
  expect_unknown_member_refused("zc_coll_options", collective);
  expect_size_needed("zc_coll_options", collective);

  const std::function<zc_status(zc_wait_options*)> wait = [&](zc_wait_options* options) {
    return zc_comm_wait(
        comm(), [](void*) { return 1; }, nullptr, options);
  };
  expect_every_size_accepted(zc_wait_options{}, wait);
  expect_unknown_member_refused("zc_wait_options", wait);
  expect_size_needed("zc_wait_options", wait);

  const std::function<zc_status(zc_window_config*)> window = [&](zc_window_config* config) {
    zc_window* made = nullptr;
    const zc_status status = zc_window_create(comm(), config, &made);
    zc_window_destroy(made);
    return status;
  };
  zc_window_config whole{};
  whole.bytes = 8;
  whole.word_count = 2;
  expect_every_size_accepted(whole, window);
  expect_unknown_member_refused("zc_window_config", window);
  expect_size_needed("zc_window_config", window);
}

TEST_F(StructEvolution, answers_are_written_no_further_than_the_caller_said) {
  const std::function<zc_status(zc_stats*)> stats = [&](zc_stats* to) { return zc_comm_stats(comm(), to); };
  expect_every_size_accepted(zc_stats{}, stats);
  expect_size_needed("zc_stats", stats);
  const std::function<zc_status(zc_comm_info*)> info = [&](zc_comm_info* to) { return zc_comm_get_info(comm(), to); };
  expect_every_size_accepted(zc_comm_info{}, info);
  expect_size_needed("zc_comm_info", info);
  const std::function<zc_status(zc_ledger*)> ledger = [&](zc_ledger* to) { return zc_comm_ledger(comm(), to); };
  expect_every_size_accepted(zc_ledger{}, ledger);
  expect_size_needed("zc_ledger", ledger);

  // The size that the caller set stays; members that we do not know become zero.
  struct {
    zc_ledger known;
    std::uint64_t unknown;
  } longer{};
  longer.known.struct_size = sizeof longer;
  longer.unknown = 77;
  EXPECT_EQ(zc_comm_ledger(comm(), &longer.known), ZC_OK);
  EXPECT_EQ(longer.known.struct_size, sizeof longer);
  EXPECT_EQ(longer.unknown, 0u);
  EXPECT_GT(longer.known.total_bytes, 0u);
  EXPECT_EQ(zc_comm_ledger(comm(), nullptr), ZC_ARGUMENT);
}

}  // namespace
}  // namespace zerocomm::test
