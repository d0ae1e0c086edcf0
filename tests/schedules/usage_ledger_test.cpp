// UsageLedger: counts and peaks are right in whatever order threads count, settle, read and reset.
#include <schedules/seeds.h>

#include <tenon/memory/stack/usage_ledger.h>

#include <random>
#include <vector>

namespace tenon {
namespace {

using test::run_scheduled;
using test::try_seeds;

MemoryStats stats_of(const UsageLedger& ledger) {
  MemoryStats stats;
  ledger.read(stats);
  return stats;
}

TEST(UsageLedgerSchedules, ThePeakIsAtLeastWhatWasLiveAtOneTime) {
  try_seeds(300, [](std::uint64_t seed) {
    UsageLedger ledger(false);
    const auto rise = [&](std::size_t bytes) {
      return [&ledger, bytes] {
        // Up and down, which moves headroom about, and up for good.
        for (int round = 0; round < 4; ++round) {
          ledger.add(bytes / 2, bytes / 2, Purpose::kData);
          ledger.remove(bytes / 2, bytes / 2, Purpose::kData);
        }
        for (int round = 0; round < 8; ++round) ledger.add(bytes, bytes, Purpose::kData);
      };
    };
    const auto fall = [&](std::size_t bytes) {
      return [&ledger, bytes] {
        for (int round = 0; round < 8; ++round) ledger.remove(bytes, bytes, Purpose::kData);
      };
    };
    for (int wave = 0; wave < 3; ++wave) {
      run_scheduled(seed + 1000 * static_cast<std::uint64_t>(wave), {rise(10), rise(70), rise(300)});
      run_scheduled(seed, {fall(300), fall(10), fall(70)});
    }
    const MemoryStats stats = stats_of(ledger);
    EXPECT_EQ(stats.requested_bytes.current, 0);
    EXPECT_EQ(stats.allocations.current, 0);
    EXPECT_EQ(stats.allocations.allocated, 3 * 3 * (8 + 4));
    // All that the threads had at the end of each wave, and at most half a block more of each.
    EXPECT_GE(stats.requested_bytes.peak, 8 * 380);
    EXPECT_LE(stats.requested_bytes.peak, 8 * 380 + 190);
    EXPECT_GE(stats.allocations.peak, 24);
  });
}

TEST(UsageLedgerSchedules, ReadersAndResetsSeeWholeSteps) {
  try_seeds(200, [](std::uint64_t seed) {
    UsageLedger ledger(false);
    const auto churn = [&] {
      for (int round = 0; round < 15; ++round) {
        ledger.add(10, 16, Purpose::kOther);
        ledger.remove(10, 16, Purpose::kOther);
      }
    };
    const auto reader = [&] {
      for (int round = 0; round < 5; ++round) {
        const MemoryStats stats = stats_of(ledger);
        EXPECT_EQ(stats.requested_bytes.current * 16, stats.allocated_bytes.current * 10);
        EXPECT_EQ(stats.allocations.current * 10, stats.requested_bytes.current);
        EXPECT_LE(stats.requested_bytes.current, stats.requested_bytes.peak);
        EXPECT_LE(stats.requested_bytes.peak, 20);
        if (round == 2) ledger.reset_peak();
        if (round == 3) ledger.reset_accumulated();
      }
    };
    run_scheduled(seed, {churn, churn, reader});
    EXPECT_EQ(ledger.allocated_bytes(), 0);
    EXPECT_EQ(ledger.live_blocks(), 0);
  });
}

}  // namespace
}  // namespace tenon
