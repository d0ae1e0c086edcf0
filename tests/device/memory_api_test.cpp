// The user's memory functions, on a device of 100 MiB.
#include <tenon/core/error.h>
#include <tenon/device/memory_api.h>
#include <tenon/memory/history/history.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <device/fake_driver.h>
#include <support/message_of.h>
#include <sstream>

namespace tenon {
namespace {

using test::fake;
using test::FakeDevices;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct MemoryApi : ::testing::Test {
  AllocatorStack& allocator() { return device_state(fake()).allocator(); }
  FakeDevices devices;
};

TEST_F(MemoryApi, AllocatedReservedAndTheirPeaks) {
  const Block first = allocator().allocate({.bytes = 3 * MiB + 1});
  EXPECT_EQ(memory_allocated(fake()), 3 * MiB + 512);
  EXPECT_EQ(memory_reserved(fake()), 3 * MiB + 512);
  allocator().deallocate(first);
  EXPECT_EQ(memory_allocated(fake()), 0u);
  EXPECT_EQ(memory_reserved(fake()), 3 * MiB + 512);
  EXPECT_EQ(empty_cache(fake()), 3 * MiB + 512);
  EXPECT_EQ(memory_reserved(fake()), 0u);
  EXPECT_EQ(max_memory_allocated(fake()), 3 * MiB + 512);
  EXPECT_EQ(max_memory_reserved(fake()), 3 * MiB + 512);
  reset_peak_memory_stats(fake());
  EXPECT_EQ(max_memory_allocated(fake()), 0u);
  EXPECT_EQ(max_memory_reserved(fake()), 0u);
}

TEST_F(MemoryApi, StatsHaveEveryKeyOfPyTorchInItsOrder) {
  const MemoryStatsTable stats = memory_stats(fake());
  std::vector<std::string> expected;
  for (const char* key : {"active", "active_bytes", "allocated_bytes", "allocation", "inactive_split",
                          "inactive_split_bytes", "requested_bytes", "reserved_bytes", "segment"}) {
    for (const char* pool : {"all", "large_pool", "small_pool"}) {
      for (const char* figure : {"allocated", "current", "freed", "peak"}) {
        expected.push_back(std::string(key) + "." + pool + "." + figure);
      }
    }
  }
  for (const char* key : {"oversize_allocations", "oversize_segments"}) {
    for (const char* figure : {"allocated", "current", "freed", "peak"})
      expected.push_back(std::string(key) + "." + figure);
  }
  for (const char* key : {"max_split_size", "num_alloc_retries", "num_device_alloc", "num_device_free",
                          "num_oom_rejections", "num_ooms", "num_sync_all_streams"}) {
    expected.emplace_back(key);
  }
  std::sort(expected.begin(), expected.end());
  std::vector<std::string> keys;
  for (const auto& [key, value] : stats) keys.push_back(key);
  EXPECT_EQ(keys, expected);
}

TEST_F(MemoryApi, StatsOfAPolicyWithoutPoolsAreTheHosts) {
  const Block block = allocator().allocate({.bytes = 1000});
  allocator().deallocate(allocator().allocate({.bytes = 5000}));
  const MemoryStatsTable stats = memory_stats(fake());
  EXPECT_EQ(stats.at("allocation.all.current"), 1);
  EXPECT_EQ(stats.at("allocation.all.peak"), 2);
  EXPECT_EQ(stats.at("allocated_bytes.all.current"), 1024);
  EXPECT_EQ(stats.at("active_bytes.all.peak"), 1024 + 5120);
  EXPECT_EQ(stats.at("requested_bytes.all.freed"), 5000);
  EXPECT_EQ(stats.at("segment.all.current"), 2);
  EXPECT_EQ(stats.at("reserved_bytes.all.current"), 1024 + 5120);
  EXPECT_EQ(stats.at("num_device_alloc"), 2);
  EXPECT_EQ(stats.at("num_ooms"), 0);
  EXPECT_EQ(stats.at("max_split_size"), -1);
  EXPECT_THROW(allocator().allocate({.bytes = 200 * MiB}), OutOfMemory);
  EXPECT_EQ(memory_stats(fake()).at("num_ooms"), 1);
  reset_accumulated_memory_stats(fake());
  EXPECT_EQ(memory_stats(fake()).at("num_ooms"), 0);
  EXPECT_EQ(memory_stats(fake()).at("allocation.all.allocated"), 0);
  EXPECT_EQ(memory_stats(fake()).at("allocation.all.current"), 1);
  allocator().deallocate(block);
}

TEST_F(MemoryApi, AFractionLimitsReservedMemoryUnderEveryAllocatorAndOneLiftsIt) {
  set_per_process_memory_fraction(0.5, fake());
  EXPECT_DOUBLE_EQ(get_per_process_memory_fraction(fake()), 0.5);
  const Block block = allocator().allocate({.bytes = 40 * MiB});
  EXPECT_THROW(allocator().allocate({.bytes = 11 * MiB}), OutOfMemory);
  StackConfig config{.policy = test::simple_policy()};
  const auto old = swap_allocator(config, fake());
  EXPECT_THROW(allocator().allocate({.bytes = 51 * MiB}), OutOfMemory) << "the next allocator has the limit too";
  old->deallocate(block);
  set_per_process_memory_fraction(1.0, fake());
  EXPECT_DOUBLE_EQ(get_per_process_memory_fraction(fake()), 1.0);
  old->trim();
  allocator().deallocate(allocator().allocate({.bytes = 90 * MiB}));
  EXPECT_THROW(set_per_process_memory_fraction(1.1, fake()), Error);
  EXPECT_THROW(set_per_process_memory_fraction(-0.1, fake()), Error);
  EXPECT_THROW(set_per_process_memory_fraction(std::nan(""), fake()), Error);
}

TEST(MemoryApiWithoutCapacity, TakesNoFractionButOne) {
  const FakeDevices devices(0);
  EXPECT_EQ(test::message_of([] { set_per_process_memory_fraction(0.5, fake()); }),
            "fake:0 has no capacity to take a fraction of; layer 'limit' sets a limit in bytes");
  EXPECT_NO_THROW(set_per_process_memory_fraction(1.0, fake()));
  EXPECT_EQ(get_per_process_memory_fraction(fake()), 1.0);
}

TEST_F(MemoryApi, ASnapshotHasTheStacksOfLiveBlocksWhereEventsKeepNone) {
  record_memory_history({.stacks = StackContext::kState}, fake());
  const Block live = allocator().allocate({.bytes = 1000});
  const MemorySnapshot snapshot = memory_snapshot(fake());
  for (const HistoryEvent& event : snapshot.events) EXPECT_EQ(event.stack, 0u);
  const StackId stack = snapshot.segments.at(0).blocks.at(0).stack;
  ASSERT_NE(stack, 0u);
  EXPECT_FALSE(snapshot.stacks.frames_of(stack).empty());
  allocator().deallocate(live);
  stop_memory_history(fake());
}

TEST_F(MemoryApi, MemGetInfoIsTheDevicesOwnView) {
  const Block block = allocator().allocate({.bytes = 30 * MiB});
  EXPECT_EQ(mem_get_info(fake()).free_bytes, 70 * MiB);
  EXPECT_EQ(mem_get_info(fake()).total_bytes, 100 * MiB);
  allocator().deallocate(block);
}

TEST_F(MemoryApi, UsageByPurposeAndLabel) {
  const LabelGuard label("memory_api_test.block");
  const Block block = allocator().allocate(
      {.bytes = 100, .purpose = Purpose::kOptimizerState, .label = current_label(), .elements = ElementKind::kInt8});
  const auto usage = memory_by_purpose(fake());
  ASSERT_EQ(usage.size(), static_cast<std::size_t>(kPurposeCount));
  EXPECT_EQ(usage[4].purpose, Purpose::kOptimizerState);
  EXPECT_EQ(usage[4].requested_bytes.current, 100);
  EXPECT_EQ(usage[4].by_element[static_cast<std::size_t>(ElementKind::kInt8)].current, 100);
  EXPECT_EQ(usage[4].by_element[static_cast<std::size_t>(ElementKind::kFloat32)].current, 0);
  ASSERT_EQ(memory_by_label(fake()).size(), 1u);
  EXPECT_EQ(memory_by_label(fake())[0].label, "memory_api_test.block");
  allocator().deallocate(block);
}

TEST_F(MemoryApi, ASnapshotShowsSegmentsBlocksAndHistory) {
  record_memory_history({.stacks = StackContext::kAll}, fake());
  const Block live = allocator().allocate({.bytes = 1000, .stream = {3}});
  allocator().deallocate(allocator().allocate({.bytes = 2000}));
  MemorySnapshot snapshot = memory_snapshot(fake());
  EXPECT_EQ(snapshot.device, fake());
  EXPECT_EQ(snapshot.allocator, "simple");
  ASSERT_EQ(snapshot.segments.size(), 2u);
  const Segment& segment = snapshot.segments[0];
  EXPECT_EQ(segment.bytes, 1024u);
  EXPECT_EQ(segment.allocated_bytes(), 1024u);
  EXPECT_EQ(segment.requested_bytes(), 1000u);
  EXPECT_EQ(segment.stream.id, 3u);
  ASSERT_EQ(segment.blocks.size(), 1u);
  EXPECT_EQ(segment.blocks[0].state, BlockState::kActive);
  ASSERT_NE(segment.blocks[0].stack, 0u);
  EXPECT_FALSE(snapshot.stacks.frames_of(segment.blocks[0].stack).empty());
  EXPECT_EQ(snapshot.segments[1].blocks[0].state, BlockState::kFree);
  EXPECT_LT(snapshot.segments[0].address, snapshot.segments[1].address);
  EXPECT_EQ(snapshot.events.size(), 6u);
  EXPECT_EQ(snapshot.reserved_bytes(), memory_reserved(fake()));
  EXPECT_EQ(snapshot.active_bytes(), 1024u);
  snapshot = memory_snapshot(fake());
  EXPECT_EQ(snapshot.events.back().action, HistoryAction::kSnapshot) << "the one before";
  EXPECT_EQ(snapshot.events.back().bytes, 1024u);
  allocator().deallocate(live);
  stop_memory_history(fake());
  EXPECT_TRUE(memory_snapshot(fake()).events.empty());
}

TEST_F(MemoryApi, ASnapshotOfAHistoryWithoutStacksHasTheEmptyOneAlone) {
  record_memory_history({}, fake());
  allocator().deallocate(allocator().allocate({.bytes = 512}));
  EXPECT_EQ(memory_snapshot(fake()).stacks.stacks, CallStacks::only_stack_0());
  stop_memory_history(fake());
}

TEST_F(MemoryApi, TheHistoryGoesOnAcrossASwapOfAllocators) {
  record_memory_history({}, fake());
  allocator().deallocate(allocator().allocate({.bytes = 512}));
  swap_allocator({.policy = test::simple_policy()}, fake());
  allocator().deallocate(allocator().allocate({.bytes = 1024}));
  const auto events = device_state(fake()).history().events();
  EXPECT_EQ(events.size(), 8u);
  EXPECT_EQ(events[5].bytes, 1024u);
}

TEST_F(MemoryApi, AnAllocatorGuardPutsTheOldOneBack) {
  AllocatorStack* before = &allocator();
  {
    const AllocatorGuard guard(fake(), test::make_stack(device_state(fake()).driver().memory()));
    EXPECT_NE(&allocator(), before);
  }
  EXPECT_EQ(&allocator(), before);
}

TEST_F(MemoryApi, PinnedHostMemoryHasAnAllocatorOfItsOwnAndPyTorchsFigures) {
  const auto pinned = pinned_host_allocator(fake());
  EXPECT_EQ(pinned_host_allocator(fake()), pinned);
  const Block block = pinned->allocate({.bytes = 1000});
  pinned->deallocate(pinned->allocate({.bytes = 3 * MiB}));
  std::vector<std::string> keys;
  for (const auto& [key, value] : host_memory_stats(fake())) keys.push_back(key);
  std::vector<std::string> expected;
  for (const char* key : {"active_bytes", "active_requests", "allocated_bytes", "allocations"})
    for (const char* figure : {"allocated", "current", "freed", "peak"})
      expected.push_back(std::string(key) + "." + figure);
  expected.insert(expected.end(), {"num_host_alloc", "num_host_free"});
  EXPECT_EQ(keys, expected);
  EXPECT_EQ(host_memory_stats(fake()).at("active_bytes.current"), 1024);
  EXPECT_EQ(host_memory_stats(fake()).at("allocated_bytes.current"), static_cast<std::int64_t>(4 * MiB) + 1024);
  EXPECT_EQ(host_memory_stats(fake()).at("active_requests.peak"), 2);
  EXPECT_EQ(host_memory_stats(fake()).at("num_host_alloc"), 2);
  EXPECT_EQ(empty_host_cache(fake()), 4 * MiB);
  reset_accumulated_host_memory_stats(fake());
  reset_peak_host_memory_stats(fake());
  EXPECT_EQ(host_memory_stats(fake()).at("num_host_alloc"), 0);
  EXPECT_EQ(host_memory_stats(fake()).at("active_requests.peak"), 1);
  EXPECT_EQ(memory_allocated(fake()), 0u) << "the device's own figures know nothing of it";
  pinned->deallocate(block);
}

TEST_F(MemoryApi, TheSummaryIsHeadedByTheDevicesName) {
  std::istringstream text(memory_summary(fake()));
  std::string line, head;
  for (int i = 0; std::getline(text, line); ++i) {
    EXPECT_EQ(line.size(), 77u) << line;
    if (i < 4) head += line;
  }
  EXPECT_NE(head.find("memory summary of " + device_state(fake()).device().str()), std::string::npos) << head;
  EXPECT_EQ(head.find("CUDA"), std::string::npos) << head;
  EXPECT_EQ(head.find("cudaMalloc"), std::string::npos) << head;
}

TEST_F(MemoryApi, MemPoolsNeedAPolicyThatHasThem) { EXPECT_THROW(make_mem_pool(fake()), Error); }

// The example of the specification: 4,000,000 bytes allocated, freed, allocated again, then 1,000 bytes, by PyTorch's
// rules. The text is what torch.cuda.memory_summary() prints for these figures.
TEST(MemorySummary, IsPyTorchsTableToTheCharacter) {
  MemoryStats stats;
  PolicyStats& policy = stats.policy;
  policy.has_pools = true;
  const auto fill = [](PoolStats& stat, Stat large, Stat small) {
    stat[static_cast<int>(StatPool::kLarge)] = large;
    stat[static_cast<int>(StatPool::kSmall)] = small;
    stat[0] = {large.current + small.current, large.peak + small.peak, large.allocated + small.allocated,
               large.freed + small.freed};
  };
  fill(policy.allocation, {1, 1, 2, 1}, {1, 1, 1, 0});
  fill(policy.active, {1, 1, 2, 1}, {1, 1, 1, 0});
  fill(policy.segment, {1, 1, 1, 0}, {1, 1, 1, 0});
  fill(policy.inactive_split, {1, 1, 2, 1}, {1, 1, 1, 0});
  fill(policy.allocated_bytes, {4000256, 4000256, 8000512, 4000256}, {1024, 1024, 1024, 0});
  fill(policy.active_bytes, {4000256, 4000256, 8000512, 4000256}, {1024, 1024, 1024, 0});
  fill(policy.requested_bytes, {4000000, 4000000, 8000000, 4000000}, {1000, 1000, 1000, 0});
  fill(policy.reserved_bytes, {20971520, 20971520, 20971520, 0}, {2097152, 2097152, 2097152, 0});
  fill(policy.inactive_split_bytes, {16971264, 16971264, 33942528, 16971264}, {2096128, 2096128, 2096128, 0});
  stats.allocations = policy.allocation[0];
  stats.allocated_bytes = policy.allocated_bytes[0];
  stats.reserved_bytes = policy.reserved_bytes[0];
  const std::string expected =
      R"(|===========================================================================|
|                  PyTorch CUDA memory summary, device ID 0                 |
|---------------------------------------------------------------------------|
|            CUDA OOMs: 0            |        cudaMalloc retries: 0         |
|===========================================================================|
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
|---------------------------------------------------------------------------|
| Allocated memory      |   3907 KiB |   3907 KiB |   7814 KiB |   3906 KiB |
|       from large pool |   3906 KiB |   3906 KiB |   7813 KiB |   3906 KiB |
|       from small pool |      1 KiB |      1 KiB |      1 KiB |      0 KiB |
|---------------------------------------------------------------------------|
| Active memory         |   3907 KiB |   3907 KiB |   7814 KiB |   3906 KiB |
|       from large pool |   3906 KiB |   3906 KiB |   7813 KiB |   3906 KiB |
|       from small pool |      1 KiB |      1 KiB |      1 KiB |      0 KiB |
|---------------------------------------------------------------------------|
| Requested memory      |   3907 KiB |   3907 KiB |   7813 KiB |   3906 KiB |
|       from large pool |   3906 KiB |   3906 KiB |   7812 KiB |   3906 KiB |
|       from small pool |      0 KiB |      0 KiB |      0 KiB |      0 KiB |
|---------------------------------------------------------------------------|
| GPU reserved memory   |  22528 KiB |  22528 KiB |  22528 KiB |      0 B   |
|       from large pool |  20480 KiB |  20480 KiB |  20480 KiB |      0 B   |
|       from small pool |   2048 KiB |   2048 KiB |   2048 KiB |      0 B   |
|---------------------------------------------------------------------------|
| Non-releasable memory |  18620 KiB |  18620 KiB |  35194 KiB |  16573 KiB |
|       from large pool |  16573 KiB |  16573 KiB |  33147 KiB |  16573 KiB |
|       from small pool |   2047 KiB |   2047 KiB |   2047 KiB |      0 KiB |
|---------------------------------------------------------------------------|
| Allocations           |       2    |       2    |       3    |       1    |
|       from large pool |       1    |       1    |       2    |       1    |
|       from small pool |       1    |       1    |       1    |       0    |
|---------------------------------------------------------------------------|
| Active allocs         |       2    |       2    |       3    |       1    |
|       from large pool |       1    |       1    |       2    |       1    |
|       from small pool |       1    |       1    |       1    |       0    |
|---------------------------------------------------------------------------|
| GPU reserved segments |       2    |       2    |       2    |       0    |
|       from large pool |       1    |       1    |       1    |       0    |
|       from small pool |       1    |       1    |       1    |       0    |
|---------------------------------------------------------------------------|
| Non-releasable allocs |       2    |       2    |       3    |       1    |
|       from large pool |       1    |       1    |       2    |       1    |
|       from small pool |       1    |       1    |       1    |       0    |
|---------------------------------------------------------------------------|
| Oversize allocations  |       0    |       0    |       0    |       0    |
|---------------------------------------------------------------------------|
| Oversize GPU segments |       0    |       0    |       0    |       0    |
|===========================================================================|
)";
  EXPECT_EQ(memory_summary_of(memory_stats_table(stats), 0, false), expected);
  EXPECT_EQ(memory_summary_of(memory_stats_table(stats), 0, true).size(), std::size_t{78} * 29);
}

TEST(MemorySummary, LargeFiguresChangeTheirUnitWithTheTotalOfTheColumn) {
  MemoryStats stats;
  stats.allocated_bytes = {.current = static_cast<std::int64_t>(2048 * GiB), .peak = 786431, .allocated = 786432};
  stats.allocations = {.current = 750000, .peak = 749999, .allocated = 750'000'000'000};
  const std::string text = memory_summary_of(memory_stats_table(stats), 3, true);
  EXPECT_THAT(text, HasSubstr("device ID 3 "));
  EXPECT_THAT(text, HasSubstr("| Allocated memory      |   2048 GiB | 786431 B   |    768 KiB |"));
  EXPECT_THAT(text, HasSubstr("| Allocations           |     750 K  |  749999    |  750000 M  |"));
}

}  // namespace
}  // namespace tenon
