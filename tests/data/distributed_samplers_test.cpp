// Distributed samplers: shares that are disjoint and cover the data set.
#include "support/expect_error.h"

#include <tenon/data/distributed_samplers.h>
#include <tenon/nn/serialize/serialize.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <vector>

namespace tenon::test {
namespace {

using namespace data::samplers;  // NOLINT
using ::testing::ElementsAre;
using Indices = std::vector<std::size_t>;

template <class Sampler>
Indices share(Sampler& sampler) {
  Indices all;
  while (const auto batch = sampler.next(2)) all.insert(all.end(), batch->begin(), batch->end());
  return all;
}

template <class Sampler>
Indices all_shares(bool duplicates, std::size_t epoch) {
  Indices all;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    Sampler sampler(10, 3, rank, duplicates);
    sampler.set_epoch(epoch);
    sampler.reset();
    const Indices one = share(sampler);
    EXPECT_EQ(one.size(), duplicates ? 4 : 3);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

TEST(DistributedSampler, SharesCoverTheDataSet) {
  for (const bool shuffled : {false, true}) {
    Indices with =
        shuffled ? all_shares<DistributedRandomSampler>(true, 2) : all_shares<DistributedSequentialSampler>(true, 2);
    std::sort(with.begin(), with.end());
    EXPECT_THAT(with, ElementsAre(0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9));
    Indices without =
        shuffled ? all_shares<DistributedRandomSampler>(false, 2) : all_shares<DistributedSequentialSampler>(false, 2);
    std::sort(without.begin(), without.end());
    EXPECT_THAT(without, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
  }
}

// More replicas than elements: each gets one, taken around as often as it needs.
TEST(DistributedSampler, SharesOfAFewElementsGoAroundThem) {
  for (std::size_t size = 1; size <= 5; ++size) {
    for (std::size_t replicas = 1; replicas <= 12; ++replicas) {
      std::vector<std::size_t> times(size, 0);
      for (std::size_t rank = 0; rank < replicas; ++rank) {
        DistributedSequentialSampler sampler(size, replicas, rank, /*allow_duplicates=*/true);
        sampler.reset();
        for (const std::size_t index : share(sampler)) {
          ASSERT_LT(index, size) << "of " << replicas << " replicas";
          ++times[index];
        }
      }
      const auto [least, most] = std::ranges::minmax(times);
      EXPECT_GE(least, 1u);
      EXPECT_LE(most - least, 1u) << size << " elements for " << replicas << " replicas";
    }
  }
}

TEST(DistributedSampler, AnEpochIsAnOrder) {
  EXPECT_EQ(all_shares<DistributedRandomSampler>(true, 1), all_shares<DistributedRandomSampler>(true, 1));
  EXPECT_NE(all_shares<DistributedRandomSampler>(true, 1), all_shares<DistributedRandomSampler>(true, 2));
}

TEST(DistributedSampler, TwoElementsComeInEitherOrder) {
  std::vector<Indices> seen;
  for (std::size_t epoch = 0; epoch < 20; ++epoch) {
    DistributedRandomSampler sampler(2, 1, 0);
    sampler.set_epoch(epoch);
    sampler.reset();
    seen.push_back(share(sampler));
  }
  EXPECT_THAT(seen, ::testing::Contains(ElementsAre(0, 1)));
  EXPECT_THAT(seen, ::testing::Contains(ElementsAre(1, 0)));
}

TEST(DistributedSampler, ASavedOneContinuesWhereItWas) {
  DistributedRandomSampler sampler(10, 2, 1);
  sampler.set_epoch(3);
  sampler.reset();
  sampler.next(2);
  std::stringstream stream;
  save(sampler, stream);
  DistributedRandomSampler loaded(10, 2, 1);
  load(loaded, stream);
  EXPECT_EQ(loaded.epoch(), 3);
  EXPECT_EQ(share(loaded), share(sampler));
}

TEST(DistributedSampler, RefusesARankOutsideItsReplicasAndAPositionOfAnother) {
  expect_error([] { DistributedSequentialSampler(10, 2, 3); }, "rank 3 of 2");
  EXPECT_THROW(DistributedSequentialSampler(10, 2, 2), Error);
  DistributedSequentialSampler first(10, 2, 0), second(10, 2, 1);
  std::stringstream stream;
  save(first, stream);
  expect_error([&] { load(second, stream); }, "outside this replica's share");
}

}  // namespace
}  // namespace tenon::test
