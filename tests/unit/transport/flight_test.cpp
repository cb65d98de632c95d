// The flight recorder: what was recorded is read back, by others too, until younger records take its place.
#include "transport/flight.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>

namespace zerocomm::transport {
namespace {

FlightRecord record_of(std::uint64_t call) {
  FlightRecord record;
  record.begin_ns = static_cast<std::int64_t>(1000 + call);
  record.kind = 7;
  record.call = call;
  record.brief = ~call;
  std::memcpy(record.label, "0123456789abcdef", sizeof record.label);
  return record;
}

TEST(FlightRing, gives_back_what_was_recorded_and_how_it_ended) {
  const auto ring = std::make_unique<FlightRing>();
  EXPECT_EQ(ring->last(), 0u);
  FlightRecord found;
  EXPECT_FALSE(ring->read(0, &found));
  EXPECT_FALSE(ring->read(1, &found));
  EXPECT_EQ(ring->begin(record_of(5)), 1u);
  ASSERT_TRUE(ring->read(1, &found));
  EXPECT_EQ(found.number, 1u);
  EXPECT_EQ(found.begin_ns, 1005);
  EXPECT_EQ(found.end_ns, 0);
  EXPECT_EQ(found.kind, 7u);
  EXPECT_EQ(found.call, 5u);
  EXPECT_EQ(found.brief, ~std::uint64_t{5});
  EXPECT_EQ(std::string(found.label, sizeof found.label), "0123456789abcdef");
  ring->finish(1, -30, 2000);
  ASSERT_TRUE(ring->read(1, &found));
  EXPECT_EQ(found.status, -30);
  EXPECT_EQ(found.end_ns, 2000);
  EXPECT_EQ(found.kind, 7u);
}

TEST(FlightRing, keeps_the_youngest_records) {
  const auto ring = std::make_unique<FlightRing>();
  for (std::uint64_t call = 1; call <= kFlightRecords + 3; ++call) EXPECT_EQ(ring->begin(record_of(call)), call);
  FlightRecord found;
  EXPECT_FALSE(ring->read(3, &found));
  ASSERT_TRUE(ring->read(4, &found));
  EXPECT_EQ(found.call, 4u);
  ASSERT_TRUE(ring->read(kFlightRecords + 3, &found));
  EXPECT_EQ(found.call, kFlightRecords + 3);
  ring->finish(3, 1, 1);  // it is gone, and its place belongs to another one
  ASSERT_TRUE(ring->read(kFlightRecords + 3, &found));
  EXPECT_EQ(found.status, 0);
}

// A reader sees whole records or none, whatever the writer does meanwhile.
TEST(FlightRing, never_shows_half_a_record) {
  const auto ring = std::make_unique<FlightRing>();
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (std::uint64_t call = 1; call <= 200'000; ++call) ring->begin(record_of(call));
    done.store(true);
  });
  std::uint64_t read = 0;
  do {
    FlightRecord found;
    const std::uint64_t last = ring->last();
    if (last == 0 || !ring->read(last > kFlightRecords / 2 ? last - kFlightRecords / 2 : last, &found)) continue;
    ++read;
    ASSERT_EQ(found.call, found.number);
    ASSERT_EQ(found.brief, ~found.call);
    ASSERT_EQ(found.begin_ns, static_cast<std::int64_t>(1000 + found.call));
  } while (!done.load());
  writer.join();
  EXPECT_GT(read, 0u);
}

}  // namespace
}  // namespace zerocomm::transport
