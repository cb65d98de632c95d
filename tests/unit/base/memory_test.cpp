// Whole pages.
#include "base/memory.hpp"

#include "base/check.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace zerocomm {
namespace {

TEST(Pages, are_zeroed_aligned_and_as_large_as_asked) {
  const Pages pages(4097, "test");
  EXPECT_EQ(pages.bytes(), 4097u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pages.address()) % kPageBytes, 0u);
  for (std::size_t i = 0; i < 2 * kPageBytes; ++i) ASSERT_EQ(pages.address()[i], std::byte{0});
  pages.address()[4096] = std::byte{1};
}

TEST(Pages, of_nothing_have_no_address) {
  const Pages pages(0, "test");
  EXPECT_EQ(pages.address(), nullptr);
  EXPECT_EQ(pages.bytes(), 0u);
}

TEST(Pages, that_cannot_be_had_name_purpose_and_bytes) {
  try {
    const Pages pages(std::size_t{1} << 60, "gradient slots");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ZC_NO_MEMORY);
    EXPECT_NE(std::string(error.what()).find("gradient slots: 1152921504606846976 bytes wanted"), std::string::npos)
        << error.what();
  }
  EXPECT_THROW(Pages(SIZE_MAX, "x"), Error);
}

}  // namespace
}  // namespace zerocomm
