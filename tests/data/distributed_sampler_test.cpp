// torch.utils.data.distributed.DistributedSampler: every so-manieth example, padded or cut.
#include "support/expect_error.h"

#include <tenon/core/error.h>
#include <tenon/data/distributed_sampler.h>
#include <tenon/nn/serialize/archive.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <vector>

namespace tenon {
namespace {

using data::distributed::DistributedSampler;
using data::distributed::DistributedSamplerOptions;
using testing::ElementsAre;
using Indices = std::vector<std::size_t>;

Indices all_of(DistributedSampler& sampler) {
  Indices all;
  while (const auto batch = sampler.next(3)) all.insert(all.end(), batch->begin(), batch->end());
  return all;
}

Indices share(std::size_t size, std::size_t rank, bool drop_last) {
  DistributedSampler sampler(size, {.num_replicas = 4, .rank = rank, .shuffle = false, .drop_last = drop_last});
  return all_of(sampler);
}

TEST(DistributedSampler, ARankGetsEverySoManiethExample) {
  EXPECT_THAT(share(12, 1, false), ElementsAre(1, 5, 9));
  EXPECT_THAT(share(12, 3, true), ElementsAre(3, 7, 11));
}

TEST(DistributedSampler, WhatIsMissingAtTheEndIsRepeatedFromTheBeginning) {
  EXPECT_THAT(share(10, 1, false), ElementsAre(1, 5, 9));
  EXPECT_THAT(share(10, 2, false), ElementsAre(2, 6, 0));
  EXPECT_THAT(share(10, 3, false), ElementsAre(3, 7, 1));
}

TEST(DistributedSampler, FewerExamplesThanRanksAreRepeatedAsOftenAsNeeded) {
  EXPECT_THAT(share(1, 0, false), ElementsAre(0));
  EXPECT_THAT(share(1, 3, false), ElementsAre(0));
  EXPECT_THAT(share(0, 3, false), ElementsAre());
}

TEST(DistributedSampler, WithDropLastWhatDoesNotDivideIsLeftOut) {
  EXPECT_THAT(share(10, 0, true), ElementsAre(0, 4));
  EXPECT_THAT(share(10, 3, true), ElementsAre(3, 7));
  EXPECT_THAT(share(3, 0, true), ElementsAre());
}

TEST(DistributedSampler, ShuffledSharesAreDisjointAndCoverTheData) {
  std::set<std::size_t> seen;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    DistributedSampler sampler(100, {.num_replicas = 4, .rank = rank, .seed = 5});
    EXPECT_EQ(sampler.size(), 25U);
    for (const std::size_t index : all_of(sampler)) EXPECT_TRUE(seen.insert(index).second);
  }
  EXPECT_EQ(seen.size(), 100U);
}

TEST(DistributedSampler, TheOrderDependsOnSeedPlusEpoch) {
  const auto order = [](std::uint64_t seed, std::size_t epoch) {
    DistributedSampler sampler(50, {.num_replicas = 2, .seed = seed});
    sampler.set_epoch(epoch);
    sampler.reset();
    return all_of(sampler);
  };
  EXPECT_EQ(order(3, 0), order(3, 0));
  EXPECT_NE(order(3, 0), order(3, 1));
  EXPECT_EQ(order(3, 1), order(4, 0));
}

TEST(DistributedSampler, WithoutAnotherEpochTheOrderStays) {
  DistributedSampler sampler(50, {.num_replicas = 2});
  const Indices first = all_of(sampler);
  sampler.reset();
  EXPECT_EQ(all_of(sampler), first);
}

TEST(DistributedSampler, GoesOnWhereItWasSaved) {
  DistributedSampler sampler(50, {.num_replicas = 2, .rank = 1});
  sampler.set_epoch(7);
  sampler.reset();
  sampler.next(10);
  OutputArchive archive;
  sampler.save(archive);
  std::stringstream file;
  archive.save_to(file);
  const Indices rest = all_of(sampler);
  DistributedSampler other(50, {.num_replicas = 2, .rank = 1});
  InputArchive saved;
  saved.load_from(file);
  other.load(saved);
  EXPECT_EQ(other.epoch(), 7U);
  EXPECT_EQ(all_of(other), rest);
}

TEST(DistributedSampler, ARankThatIsNoneIsRefused) {
  test::expect_error([] { DistributedSampler(10, {.num_replicas = 2, .rank = 2}); }, "got rank 2 of 2");
  test::expect_error([] { DistributedSampler(10, {.num_replicas = 2, .rank = 5}); }, "got rank 5 of 2");
  test::expect_error([] { DistributedSampler(10, {.num_replicas = 0}); }, "rank 0 of 0");
}

}  // namespace
}  // namespace tenon
