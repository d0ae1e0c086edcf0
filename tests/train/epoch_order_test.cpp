// The order of an epoch: a permutation that depends on the seed alone.
#include <tenon/train/input/batches.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace tenon::test {
namespace {

TEST(EpochOrder, IsAPermutation) {
  std::vector<std::int64_t> order = train::epoch_order(1000, 47, true);
  std::sort(order.begin(), order.end());
  std::vector<std::int64_t> all(1000);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(order, all);
}

TEST(EpochOrder, DependsOnTheSeedAlone) {
  EXPECT_EQ(train::epoch_order(100, 5, true), train::epoch_order(100, 5, true));
  EXPECT_NE(train::epoch_order(100, 5, true), train::epoch_order(100, 6, true));
}

TEST(EpochOrder, WithoutShufflingIsTheFilesOrder) {
  EXPECT_EQ(train::epoch_order(3, 5, false), (std::vector<std::int64_t>{0, 1, 2}));
}

TEST(EpochOrder, IsWhatTheComparisonWithPyTorchComputesToo) {  // bench/train/common.py
  EXPECT_EQ(train::epoch_order(8, 1, true), (std::vector<std::int64_t>{4, 3, 2, 7, 5, 6, 0, 1}));
  EXPECT_EQ(train::epoch_order(10, 47, true), (std::vector<std::int64_t>{9, 1, 4, 3, 8, 6, 7, 0, 2, 5}));
}

}  // namespace
}  // namespace tenon::test
