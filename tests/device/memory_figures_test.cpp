// Under which of PyTorch's keys each figure stands, in the statistics, in the table for people and in a snapshot.
#include <tenon/core/error.h>
#include <tenon/device/memory_api.h>
#include <tenon/device/memory_summary.h>
#include <tenon/memory/history/history.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <device/fake_driver.h>
#include <support/message_of.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tenon {
namespace {

using test::fake;
using test::FakeDevices;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// The four figures of a stat, from this number on.
Stat from(std::int64_t number) { return {number, number + 1, number + 2, number + 3}; }
void fill(PoolStats& stats, std::int64_t number) {
  for (int pool = 0; pool < 3; ++pool) stats[pool] = from(number + 10 * pool);
}
void expect_from(const MemoryStatsTable& table, const std::string& key, std::int64_t number) {
  EXPECT_EQ(table.at(key + ".current"), number) << key;
  EXPECT_EQ(table.at(key + ".peak"), number + 1) << key;
  EXPECT_EQ(table.at(key + ".allocated"), number + 2) << key;
  EXPECT_EQ(table.at(key + ".freed"), number + 3) << key;
}

/// Each figure is another number.
MemoryStats numbered(bool has_pools) {
  MemoryStats stats;
  stats.allocations = from(10'000);
  stats.allocated_bytes = from(10'100);
  stats.requested_bytes = from(10'200);
  stats.reserved_bytes = from(10'300);
  stats.segments = from(10'400);
  stats.ooms = 1;
  stats.device_synchronizations = 2;
  stats.device_growths = 3;
  stats.device_shrinks = 4;
  PolicyStats& policy = stats.policy;
  policy.has_pools = has_pools;
  std::int64_t next = 100;
  for (PoolStats* pools :
       {&policy.allocation, &policy.allocated_bytes, &policy.active, &policy.active_bytes, &policy.requested_bytes,
        &policy.segment, &policy.reserved_bytes, &policy.inactive_split, &policy.inactive_split_bytes}) {
    fill(*pools, next);
    next += 100;
  }
  policy.oversize_allocations = from(2000);
  policy.oversize_segments = from(2100);
  policy.retries = 5;
  policy.synchronizations = 6;
  policy.max_split_size = 7;
  policy.private_pools.push_back({.pool = 9, .reserved_bytes = {}});
  fill(policy.private_pools.back().reserved_bytes, 3000);
  return stats;
}

TEST(MemoryFigures, OfAPolicyWithPoolsAreItsOwnWhereTheHostHasNone) {
  const MemoryStatsTable table = memory_stats_table(numbered(true));
  expect_from(table, "allocation.all", 10'000);
  expect_from(table, "allocated_bytes.all", 10'100);
  expect_from(table, "active.all", 300);
  expect_from(table, "active_bytes.all", 400);
  expect_from(table, "requested_bytes.all", 500);
  expect_from(table, "segment.all", 600);
  expect_from(table, "reserved_bytes.all", 10'300);
  expect_from(table, "inactive_split.all", 800);
  expect_from(table, "inactive_split_bytes.all", 900);
  std::int64_t number = 100;
  for (const char* key : {"allocation", "allocated_bytes", "active", "active_bytes", "requested_bytes", "segment",
                          "reserved_bytes", "inactive_split", "inactive_split_bytes"}) {
    expect_from(table, key + std::string(".small_pool"), number + 10);
    expect_from(table, key + std::string(".large_pool"), number + 20);
    number += 100;
  }
  expect_from(table, "oversize_allocations", 2000);
  expect_from(table, "oversize_segments", 2100);
  expect_from(table, "reserved_bytes_by_private_pools.0_9.all", 3000);
  expect_from(table, "reserved_bytes_by_private_pools.0_9.small_pool", 3010);
  expect_from(table, "reserved_bytes_by_private_pools.0_9.large_pool", 3020);
  EXPECT_EQ(table.at("num_alloc_retries"), 5);
  EXPECT_EQ(table.at("num_ooms"), 1);
  EXPECT_EQ(table.at("num_oom_rejections"), 0);
  EXPECT_EQ(table.at("num_sync_all_streams"), 6);
  EXPECT_EQ(table.at("num_device_alloc"), 3);
  EXPECT_EQ(table.at("num_device_free"), 4);
  EXPECT_EQ(table.at("max_split_size"), 7);
}

TEST(MemoryFigures, OfAPolicyWithoutPoolsAreTheHosts) {
  const MemoryStatsTable table = memory_stats_table(numbered(false));
  expect_from(table, "active.all", 10'000);
  expect_from(table, "active_bytes.all", 10'100);
  expect_from(table, "requested_bytes.all", 10'200);
  expect_from(table, "segment.all", 10'400);
  EXPECT_EQ(table.at("num_sync_all_streams"), 2);
}

TEST(MemoryFigures, OfPageLockedMemoryAreWhatIsOwnedAndWhatIsHandedOut) {
  const FakeDevices devices;
  const auto pinned = pinned_host_allocator(fake());
  const Block first = pinned->allocate({.bytes = 1000}), second = pinned->allocate({.bytes = 3000});
  pinned->deallocate(pinned->allocate({.bytes = 3 * MiB}));
  pinned->deallocate(second);
  EXPECT_EQ(empty_host_cache(fake()), 4 * MiB + 4096);
  const MemoryStatsTable stats = host_memory_stats(fake());
  const auto expect = [&](const std::string& key, std::int64_t current, std::int64_t peak, std::int64_t allocated) {
    EXPECT_EQ(stats.at(key + ".current"), current) << key;
    EXPECT_EQ(stats.at(key + ".peak"), peak) << key;
    EXPECT_EQ(stats.at(key + ".allocated"), allocated) << key;
    EXPECT_EQ(stats.at(key + ".freed"), allocated - current) << key;
  };
  const auto all = static_cast<std::int64_t>(4 * MiB + 4096 + 1024);
  expect("allocations", 1, 3, 3);
  expect("allocated_bytes", 1024, all, all);
  expect("active_requests", 1, 3, 3);
  expect("active_bytes", 1024, all, all);
  EXPECT_EQ(stats.at("num_host_alloc"), 3);
  EXPECT_EQ(stats.at("num_host_free"), 2);
  pinned->deallocate(first);
}

TEST(MemorySummaryTable, HasTheCountsOfFailuresInItsHead) {
  const std::string text = memory_summary_of(memory_stats_table(numbered(true)), 12, true);
  EXPECT_THAT(text, HasSubstr("|            CUDA OOMs: 1            |        cudaMalloc retries: 5         |\n"));
  EXPECT_THAT(text, HasSubstr("|                  PyTorch CUDA memory summary, device ID 12                |\n"));
}

TEST(MemorySummaryTable, OfACudaDeviceHasPyTorchsHeadAndOthersTheirName) {
  const FakeDevices devices;
  const std::string of_cuda = memory_summary(Device(kCUDA, 1), true);
  EXPECT_THAT(of_cuda, HasSubstr("PyTorch CUDA memory summary, device ID 1 "));
  EXPECT_THAT(of_cuda, HasSubstr("CUDA OOMs"));
  const std::string of_fake = memory_summary(fake(2), true);
  EXPECT_THAT(of_fake, HasSubstr("|                         memory summary of fake:2                          |\n"));
  EXPECT_THAT(of_fake, HasSubstr("|                 OOMs: 0            |        allocation retries: 0         |\n"));
  EXPECT_THAT(of_fake, Not(HasSubstr("from large pool")));
  EXPECT_THAT(memory_summary(fake(2)), HasSubstr("from large pool"));
}

TEST(MemoryFraction, IsOfTheCapacityToTheNearestByteAndNeverNone) {
  const FakeDevices devices(1001);
  const auto limit_of = [](double fraction) {
    set_per_process_memory_fraction(fraction, fake());
    return device_state(fake()).memory_limit();
  };
  EXPECT_EQ(get_per_process_memory_fraction(fake()), 1);
  EXPECT_EQ(limit_of(0.5), 501U);
  EXPECT_EQ(get_per_process_memory_fraction(fake()), 501. / 1001);
  EXPECT_EQ(limit_of(0.4), 400U);
  EXPECT_EQ(limit_of(0), 1U) << "0 would be no limit";
  EXPECT_EQ(limit_of(1), 0U);
  for (const double wrong : {-0.5, 1.5})
    EXPECT_THAT(test::message_of([&] { set_per_process_memory_fraction(wrong, fake()); }),
                StartsWith(wrong < 0 ? "a memory fraction of -0.5 on fake:0: it must be from 0 to 1"
                                     : "a memory fraction of 1.5 on fake:0: it must be from 0 to 1"));
  EXPECT_EQ(limit_of(0.4), 400U);
}

TEST(MemoryFraction, OfADeviceWithoutACapacityIsOne) {
  const FakeDevices devices(0);
  device_state(fake()).set_memory_limit(1000);
  EXPECT_EQ(get_per_process_memory_fraction(fake()), 1) << "whatever limits it";
}

TEST(MemorySnapshots, SayWhatTheHistoryLostAndWhichOptionsTheAllocatorHas) {
  const FakeDevices devices;
  StackConfig config{.policy = test::simple_policy()};
  config.policy.options = {OptionSpec::boolean("first", true, "an option"), OptionSpec::boolean("second", true, "")};
  config.options = Options(config.policy.options);
  config.options.set_text("second", "false");
  swap_allocator(config, fake());
  AllocatorStack& allocator = device_state(fake()).allocator();
  record_memory_history({.max_entries = 3}, fake());
  allocator.deallocate(allocator.allocate({.bytes = 1000}));
  const MemorySnapshot snapshot = memory_snapshot(fake());
  EXPECT_EQ(snapshot.events.size(), 3U);
  EXPECT_EQ(snapshot.events_lost, device_state(fake()).history().recorded() - 1 - 3) << "the snapshot is one more";
  EXPECT_EQ(snapshot.events_lost, 1U);
  EXPECT_EQ(snapshot.options,
            (std::vector<std::pair<std::string, std::string>>{{"first", "true"}, {"second", "false"}}));
  stop_memory_history(fake());
  const std::uint64_t recorded = device_state(fake()).history().recorded();
  EXPECT_EQ(memory_snapshot(fake()).events_lost, 0U);
  EXPECT_EQ(device_state(fake()).history().recorded(), recorded) << "where none is kept a snapshot is no event";
}

TEST(MemoryOfDevices, AnAllocatorIsSwappedAndPutBackOnItsDeviceAlone) {
  const FakeDevices devices;
  const auto first = device_state(fake(1)).shared_allocator(), other = device_state(fake(2)).shared_allocator();
  EXPECT_EQ(swap_allocator({.policy = test::simple_policy()}, fake(1)), first);
  EXPECT_EQ(device_state(fake(2)).shared_allocator(), other);
  const auto second = device_state(fake(1)).shared_allocator();
  {
    const AllocatorGuard guard(fake(1), first);
    EXPECT_EQ(device_state(fake(1)).shared_allocator(), first);
  }
  EXPECT_EQ(device_state(fake(1)).shared_allocator(), second);
  const Block block = second->allocate({.bytes = 700});
  EXPECT_EQ(memory_allocated(fake(1)), 1024U);
  EXPECT_EQ(memory_allocated(fake(2)), 0U);
  second->deallocate(block);
}

}  // namespace
}  // namespace tenon
