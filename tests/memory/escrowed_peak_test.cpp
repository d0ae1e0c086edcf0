// The escrow by itself: shards count up and down, and the peak is what a watcher of every step saw.
#include <tenon/memory/concurrent/escrowed_peak.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace tenon {
namespace {

struct Shards {
  explicit Shards(std::size_t count) : counts(count), all(count) {
    for (std::size_t i = 0; i < count; ++i) all[i] = &counts[i];
  }

  static EscrowShare share_of(EscrowedCount* count) { return {count->current(), *count}; }

  void add(std::size_t shard, std::int64_t amount) {
    EscrowedCount& count = counts[shard];
    if (count.increase(amount) <= count.allowance()) return;
    ++asked;
    peak.grant(share_of(&count), all, share_of);
  }
  EscrowSum sum() const {
    EscrowSum sum;
    for (const EscrowedCount& count : counts) sum.current += count.current(), sum.came += count.came();
    return sum;
  }
  std::int64_t allowances() const {
    std::int64_t total = 0;
    for (const EscrowedCount& count : counts) total += count.allowance();
    return total;
  }

  std::vector<EscrowedCount> counts;
  std::vector<EscrowedCount*> all;
  EscrowedPeak peak;
  int asked = 0;
};

TEST(EscrowedPeak, IsTheHighestSumThatEverWas) {
  constexpr unsigned kSeed = 29;
  for (const std::size_t count : {1, 2, 5, 16}) {
    SCOPED_TRACE(testing::Message() << count << " shards, seed " << kSeed);
    std::mt19937_64 random(kSeed);
    Shards shards(count);
    std::int64_t highest = 0;
    for (int step = 0; step < 3000; ++step) {
      const std::size_t shard = random() % count;
      const auto amount = static_cast<std::int64_t>(1 + random() % 1000);
      const std::int64_t has = shards.counts[shard].current();
      if (random() % 100 < (step / 500 % 2 == 0 ? 65u : 35u))
        shards.add(shard, amount);
      else
        shards.counts[shard].decrease(std::min(amount, has));
      highest = std::max(highest, shards.sum().current);
      ASSERT_EQ(shards.peak.stat(shards.sum()).peak, highest) << "step " << step;
      ASSERT_EQ(shards.allowances() + shards.peak.undealt(), shards.peak.peak()) << "step " << step;
    }
  }
}

TEST(EscrowedPeak, IsNotAskedForWhatWasThereBefore) {
  Shards shards(2);
  for (int i = 0; i < 1000; ++i) shards.add(0, 1);
  const int rising = shards.asked;
  shards.counts[0].decrease(1000);
  for (int i = 0; i < 1000; ++i) shards.add(0, 1);
  EXPECT_EQ(shards.asked, rising) << "a shard keeps its allowance";
  shards.counts[0].decrease(1000);
  for (int i = 0; i < 500; ++i) shards.add(1, 1);
  EXPECT_LT(shards.asked, rising + 50) << "another one gets a share of the slack at a time";
  EXPECT_EQ(shards.peak.peak(), 1000);
}

TEST(EscrowedPeak, StartsAgainWhereItIsReset) {
  Shards shards(2);
  shards.add(0, 100);
  shards.add(1, 50);
  shards.counts[0].decrease(70);
  shards.peak.reset_peak(shards.sum().current, shards.all, Shards::share_of);
  shards.peak.reset_accumulated(shards.sum());
  shards.add(1, 5);
  const Stat stat = shards.peak.stat(shards.sum());
  EXPECT_EQ(stat.current, 85);
  EXPECT_EQ(stat.peak, 85);
  EXPECT_EQ(stat.allocated, 5);
  EXPECT_EQ(stat.freed, 0);
}

}  // namespace
}  // namespace tenon
