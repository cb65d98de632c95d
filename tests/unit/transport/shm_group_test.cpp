// Memory that processes share: what is taken, who gives it back, and that a place is taken again only when it is free.
#include "transport/shm_group.hpp"
#include "base/check.hpp"
#include "base/math.hpp"
#include "base/memory.hpp"
#include "base/memory_limit.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <string>

namespace zerocomm::transport {
namespace {

constexpr std::uint64_t kExtent = std::uint64_t{64} << 20;

std::uint64_t backed_bytes(const Descriptor& descriptor) {
  struct stat info {};
  EXPECT_EQ(fstat(descriptor.get(), &info), 0);
  return static_cast<std::uint64_t>(info.st_blocks) * 512;
}

class SharedMemory : public ::testing::Test {
 protected:
  Descriptor descriptor_ = ShmGroup::create(2, 1, kExtent);
  ShmGroup first_{descriptor_, topo::one_node(2), 0};
  ShmGroup second_{descriptor_, topo::one_node(2), 1};
};

TEST_F(SharedMemory, is_one_mapping_in_a_process) {
  EXPECT_EQ(&first_.control().header(), &second_.control().header());
  EXPECT_EQ(first_.staging(1, 0), second_.staging(1, 0));
  EXPECT_EQ(first_.staging(0, 0) + first_.staging_half_bytes(), first_.staging(0, 1));
}

TEST_F(SharedMemory, is_zeroed_aligned_and_reachable_by_all) {
  const auto segment = first_.allocate(0, 10'000, "test");
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(segment->address) % kPageBytes, 0u);
  for (std::size_t i = 0; i < 10'000; ++i) ASSERT_EQ(segment->address[i], std::byte{});
  const BufferRef inside = first_.refer(segment->address + 100, 9'900);
  EXPECT_TRUE(second_.is_shared(inside));
  EXPECT_EQ(second_.reach(0, inside), segment->address + 100);
  int own = 0;
  const BufferRef outside = first_.refer(&own, sizeof own);
  EXPECT_FALSE(second_.is_shared(outside));
  EXPECT_EQ(second_.reach(0, outside), nullptr);
  EXPECT_EQ(first_.reach(0, outside), &own);
  EXPECT_TRUE(second_.is_shared(first_.refer(nullptr, 0)));
}

TEST_F(SharedMemory, is_given_back_by_the_last_user_whoever_that_is) {
  const std::uint64_t before = backed_bytes(descriptor_);
  const std::size_t control_before = first_.control_bytes(0);
  auto segment = first_.allocate(0, 5 * kPageBytes, "test");
  EXPECT_EQ(backed_bytes(descriptor_), before + 6 * kPageBytes);
  EXPECT_EQ(first_.control_bytes(0), control_before + kPageBytes);
  first_.offer(8, 0, segment);
  auto found = second_.find(8, 0);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->address, segment->address);
  EXPECT_EQ(found->bytes, 5 * kPageBytes);
  EXPECT_EQ(second_.find(10, 0), nullptr);
  first_.withdraw(8, 0);
  EXPECT_EQ(second_.find(8, 0), nullptr);
  std::byte* const address = segment->address;
  std::memset(address, 1, 5 * kPageBytes);
  segment.reset();
  EXPECT_EQ(first_.control_bytes(0), control_before);
  EXPECT_EQ(backed_bytes(descriptor_), before + 6 * kPageBytes);  // the other rank uses it still
  EXPECT_NE(first_.allocate(0, kPageBytes, "test")->address, address);
  const std::uint64_t one_more = backed_bytes(descriptor_);
  found.reset();
  EXPECT_EQ(backed_bytes(descriptor_), one_more - 6 * kPageBytes);
  const auto again = first_.allocate(0, 3 * kPageBytes, "test");
  EXPECT_EQ(again->address, address);
  for (std::size_t i = 0; i < 3 * kPageBytes; ++i) ASSERT_EQ(again->address[i], std::byte{});
}

TEST_F(SharedMemory, takes_old_places_again_for_ever) {
  for (int i = 0; i < 100; ++i) EXPECT_NE(second_.allocate(1, 10 << 20, "test")->address, nullptr);
}

TEST_F(SharedMemory, beyond_its_extent_is_an_error_with_the_numbers) {
  try {
    first_.allocate(0, kExtent, "test");
    FAIL() << "it was given";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ZC_NO_MEMORY);
    EXPECT_NE(std::string(error.what()).find(std::to_string(kExtent + kPageBytes) + " bytes of shared memory wanted"),
              std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("ZC_SHM_BYTES"), std::string::npos) << error.what();
  }
  EXPECT_NE(first_.allocate(0, 1, "test")->address, nullptr);
}

TEST(SharedMemoryOfTheHost, beyond_what_is_left_is_an_error_and_no_signal) {
  const std::size_t wanted = round_up(memory_room().left_bytes + (std::size_t{256} << 20), kPageBytes);
  const Descriptor descriptor = ShmGroup::create(1, 1, wanted + kExtent);
  ShmGroup group(descriptor, topo::one_node(1), 0);
  try {
    group.allocate(0, wanted, "test");
    FAIL() << "it was given";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ZC_NO_MEMORY);
    EXPECT_NE(std::string(error.what()).find(std::to_string(wanted + kPageBytes) + " bytes of shared memory wanted"),
              std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find(" are left: "), std::string::npos) << error.what();
  }
}

TEST(SharedMemoryOfTheHost, leaves_no_mapping_and_no_descriptor) {
  const auto mappings = [] {
    std::ifstream maps("/proc/self/maps");
    std::string line;
    int count = 0;
    while (std::getline(maps, line))
      count += line.find("zerocomm") != std::string::npos && line.find("memfd") != std::string::npos;
    return count;
  };
  const int before = mappings();
  {
    const Descriptor descriptor = ShmGroup::create(1, 1, kExtent);
    const ShmGroup group(descriptor, topo::one_node(1), 0);
    EXPECT_EQ(mappings(), before + 1);
  }
  EXPECT_EQ(mappings(), before);
}

}  // namespace
}  // namespace zerocomm::transport
