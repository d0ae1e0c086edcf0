// What the host counts between policy and device.
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/sources/observed_source.h>

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace tenon {
namespace {

// These two are inside libtenon; the tests reach them through the stack's own sources, compiled into this program.

TEST(ObservedSource, CountsPhysicalMemoryOnceHoweverOftenItIsMapped) {
  AddressOnlySource device;
  ObservedSource source(device);
  const std::size_t page = device.traits().page_bytes;
  const auto bytes = static_cast<std::int64_t>(2 * page);
  auto* space = static_cast<char*>(source.reserve(8 * page));
  const Physical physical = source.create(2 * page);
  source.map(space, 2 * page, physical, 0);
  source.map(space + 4 * page, 2 * page, physical, 0);
  EXPECT_EQ(source.counters().reserved_bytes.current, bytes);
  source.unmap(space, 2 * page);
  source.unmap(space + 4 * page, page);
  EXPECT_EQ(source.counters().reserved_bytes.current, bytes);
  source.unmap(space + 5 * page, page);
  EXPECT_EQ(source.counters().maps, 2);
  EXPECT_EQ(source.counters().unmaps, 3);
  source.destroy(physical, 2 * page);
  EXPECT_EQ(source.counters().reserved_bytes.current, 0);
  EXPECT_EQ(source.counters().reserved_bytes.peak, bytes);
  EXPECT_EQ(source.counters().reserved_bytes.allocated, bytes);
  EXPECT_EQ(source.counters().reserved_bytes.freed, bytes);
  source.unreserve(space, 8 * page);
  EXPECT_EQ(source.counters().allocations, 1);
  EXPECT_EQ(source.counters().frees, 1);
}

TEST(ObservedSource, CountsARetryWhereMemoryIsGivenBackAfterARefusalAndAskedForAgain) {
  AddressOnlySource device({.capacity_bytes = 4 * MiB});
  ObservedSource source(device);
  begin_operation();
  void* const cached = source.acquire(3 * MiB);
  begin_operation();
  EXPECT_EQ(source.acquire(2 * MiB), nullptr);
  source.release(cached, 3 * MiB);
  void* const served = source.acquire(2 * MiB);
  EXPECT_EQ(source.counters().retries, 1);
  EXPECT_EQ(source.acquire(3 * MiB), nullptr);
  begin_operation();
  source.release(served, 2 * MiB);
  begin_operation();
  void* const another = source.acquire(3 * MiB);
  EXPECT_EQ(source.counters().retries, 1) << "a free of the user's, and another request";
  source.release(another, 3 * MiB);
}

TEST(ObservedSource, KnowsWhatWasRefusedLastOfWhatIsAskedForNow) {
  AddressOnlySource device({.capacity_bytes = 4 * MiB});
  ObservedSource source(device);
  begin_operation();
  EXPECT_EQ(source.refused_bytes(), 0U);
  EXPECT_EQ(source.acquire(20 * MiB), nullptr);
  EXPECT_EQ(source.acquire(6 * MiB), nullptr);
  EXPECT_EQ(source.refused_bytes(), 6 * MiB);
  begin_operation();
  EXPECT_EQ(source.refused_bytes(), 0U) << "that was for another request";
}

TEST(ObservedSource, ARequestOfAnotherThreadIsNoRetryOfTheOneThatWasRefused) {
  AddressOnlySource device({.capacity_bytes = 4 * MiB});
  ObservedSource source(device);
  begin_operation();
  const std::uint64_t operation = detail::operation_of_thread;
  void* const cached = source.acquire(3 * MiB);
  EXPECT_EQ(source.acquire(2 * MiB), nullptr);
  source.release(cached, 3 * MiB);
  std::jthread([&] {
    while (detail::operation_of_thread != operation) begin_operation();  // the same number, by chance
    source.release(source.acquire(2 * MiB), 2 * MiB);
  });
  EXPECT_EQ(source.counters().retries, 0);
}

TEST(ObservedSource, MemoryThatIsMappedNowhereIsReservedAndPeaksWhereSomeIsMapped) {
  AddressOnlySource device;
  ObservedSource source(device);
  const std::size_t page = device.traits().page_bytes;
  auto* space = static_cast<char*>(source.reserve(8 * page));
  const Physical kept = source.create(page);
  EXPECT_EQ(source.reserved_bytes(), page);
  EXPECT_EQ(source.peak_reserved_bytes(), 0u) << "an attempt that is not over";
  const Physical tried = source.create(page);
  source.destroy(tried, page);
  source.map(space, page, kept, 0);
  EXPECT_EQ(source.peak_reserved_bytes(), page);
  EXPECT_EQ(source.counters().reserved_bytes.allocated, static_cast<std::int64_t>(page)) << "without the attempt";
  EXPECT_EQ(source.counters().reserved_bytes.freed, 0);
  source.unmap(space, page);
  EXPECT_EQ(source.reserved_bytes(), page) << "nobody else can have it";
  source.destroy(kept, page);
  EXPECT_EQ(source.reserved_bytes(), 0u);
  source.unreserve(space, 8 * page);
}

TEST(ObservedSource, TakesAdjacentMapsOfOneOperationForOneGrowth) {
  AddressOnlySource device;
  ObservedSource source(device);
  const std::size_t page = device.traits().page_bytes;
  auto* space = static_cast<char*>(source.reserve(8 * page));
  std::vector<Physical> pages;
  for (int i = 0; i < 5; ++i) pages.push_back(source.create(page));
  begin_operation();
  for (std::size_t i = 0; i < 3; ++i) source.map(space + i * page, page, pages[i], 0);
  EXPECT_EQ(source.counters().growths, 1);
  begin_operation();
  source.map(space + 3 * page, page, pages[3], 0);
  EXPECT_EQ(source.counters().growths, 2) << "adjacent, but another request";
  source.map(space + 6 * page, page, pages[4], 0);
  EXPECT_EQ(source.counters().growths, 3) << "the same request, but not adjacent";
  begin_operation();
  for (std::size_t i = 0; i < 4; ++i) source.unmap(space + i * page, page);
  EXPECT_EQ(source.counters().shrinks, 1);
  source.unmap(space + 6 * page, page);
  EXPECT_EQ(source.counters().shrinks, 2);
  for (const Physical physical : pages) source.destroy(physical, page);
  source.unreserve(space, 8 * page);
}

TEST(ObservedSource, KeepsTheLowestOfItsLimitsAndCountsNoCallForARefusal) {
  AddressOnlySource device;
  ObservedSource source(device);
  source.add_layer_limit(4 * MiB);
  source.set_user_limit(8 * MiB);
  EXPECT_EQ(source.limit(), 4 * MiB);
  source.set_user_limit(3 * MiB);
  EXPECT_EQ(source.limit(), 3 * MiB);
  void* first = source.acquire(3 * MiB);
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(source.acquire(1), nullptr);
  EXPECT_FALSE(source.create(2 * MiB));
  EXPECT_EQ(source.counters().allocations, 1);
  EXPECT_EQ(device.used_bytes(), 3 * MiB);
  source.release(first, 3 * MiB);
}

TEST(ObservedSource, CountsMemoryThatIsCreatedAndNotMappedUnderTheLimit) {
  AddressOnlySource device;
  ObservedSource source(device);
  source.set_user_limit(4 * MiB);
  const Physical first = source.create(2 * MiB);
  const Physical second = source.create(2 * MiB);
  EXPECT_TRUE(first);
  EXPECT_TRUE(second);
  EXPECT_FALSE(source.create(2 * MiB));
  source.destroy(first, 2 * MiB);
  const Physical third = source.create(2 * MiB);
  EXPECT_TRUE(third);
  source.destroy(second, 2 * MiB);
  source.destroy(third, 2 * MiB);
}

TEST(ObservedSource, CountsNothingForACallThatTheDeviceRefuses) {
  AddressOnlySource device({.capacity_bytes = 1 * MiB});
  ObservedSource source(device);
  EXPECT_EQ(source.acquire(2 * MiB), nullptr);
  EXPECT_EQ(source.counters().allocations, 0);
  EXPECT_EQ(source.counters().reserved_bytes.peak, 0);
}

}  // namespace
}  // namespace tenon
