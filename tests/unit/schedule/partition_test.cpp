#include "schedule/partition.hpp"

#include <gtest/gtest.h>

#include <array>

namespace zerocomm::schedule {
namespace {

TEST(Partition, the_first_chunks_get_the_remainder) {
  const Partition partition = Partition::even(10, 4);
  EXPECT_EQ(partition.range(0), (Part{0, 3}));
  EXPECT_EQ(partition.range(1), (Part{3, 3}));
  EXPECT_EQ(partition.range(2), (Part{6, 2}));
  EXPECT_EQ(partition.range(3), (Part{8, 2}));
  EXPECT_EQ(partition.range(1, 3), (Part{3, 7}));
}

TEST(Partition, pieces_leave_the_blocks_where_they_were) {
  const Partition blocks = Partition::even(10, 4), pieces = Partition::even(10, 4, 2);
  ASSERT_EQ(pieces.chunks(), 8u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(pieces.range(2 * i, 2), blocks.range(i));
  EXPECT_EQ(pieces.range(0), (Part{0, 2}));
  EXPECT_EQ(pieces.range(1), (Part{2, 1}));
}

TEST(Partition, chunks_cover_the_vector_without_gaps) {
  for (std::size_t count = 0; count < 40; ++count)
    for (std::uint32_t blocks = 1; blocks < 9; ++blocks)
      for (std::uint32_t n_pieces = 1; n_pieces < 4; ++n_pieces) {
        const Partition partition = Partition::even(count, blocks, n_pieces);
        std::size_t end = 0;
        for (std::size_t c = 0; c < partition.chunks(); ++c) {
          EXPECT_EQ(partition.range(c).offset, end);
          end += partition.range(c).count;
        }
        EXPECT_EQ(end, count);
        EXPECT_EQ(partition.range(0, partition.chunks()), (Part{0, count}));
      }
}

TEST(Partition, explicit_counts_may_be_zero) {
  const std::array<std::size_t, 4> counts = {3, 0, 5, 0};
  const Partition partition = Partition::of_counts(counts, 2);
  EXPECT_EQ(partition.count(), 8u);
  EXPECT_EQ(partition.range(0), (Part{0, 2}));
  EXPECT_EQ(partition.range(1), (Part{2, 1}));
  EXPECT_EQ(partition.range(2), (Part{3, 0}));
  EXPECT_EQ(partition.range(4), (Part{3, 3}));
  EXPECT_EQ(partition.range(7), (Part{8, 0}));
  EXPECT_EQ(partition.range(2, 4), (Part{3, 5}));
  EXPECT_EQ(partition.range(5, 0), (Part{0, 0}));
}

TEST(Partition, a_sum_that_does_not_fit_is_refused) {
  const std::array<std::size_t, 2> counts = {SIZE_MAX, 1};
  EXPECT_THROW(Partition::of_counts(counts), Error);
}

TEST(Partition, a_chunk_that_does_not_exist_is_refused) {
  EXPECT_THROW(Partition::even(10, 4).range(4), Error);
  EXPECT_THROW(Partition::even(10, 4).range(2, 3), Error);
  EXPECT_THROW(Partition::even(10, 0), Error);
}

}  // namespace
}  // namespace zerocomm::schedule
