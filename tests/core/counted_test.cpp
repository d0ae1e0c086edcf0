// Numbers and what they count.
#include <tenon/core/text/counted.h>

#include <gtest/gtest.h>

#include <cstdint>

namespace tenon {
namespace {

TEST(Counted, IsInTheSingularOfOneAlone) {
  EXPECT_EQ(counted(0, "block"), "0 blocks");
  EXPECT_EQ(counted(1, "block"), "1 block");
  EXPECT_EQ(counted(std::uint64_t{2}, "block"), "2 blocks");
  EXPECT_EQ(counted(-1, "step"), "-1 steps");
}

TEST(Counted, TakesAPluralThatDoesNotEndInSAlone) {
  EXPECT_EQ(counted(1, "micro-batch", "micro-batches"), "1 micro-batch");
  EXPECT_EQ(counted(3, "micro-batch", "micro-batches"), "3 micro-batches");
  EXPECT_EQ(counted(1, "buffer has", "buffers have"), "1 buffer has");
}

}  // namespace
}  // namespace tenon
