// The device refuses in the middle of a request that needs several pages: what was begun is undone, and nothing is
// mapped, kept or counted that was not there before.
#include <caching/caching_allocator.h>
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/forwarding.h>
#include <tenon/memory/sources/address_only_source.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>

namespace tenon {
namespace {

using caching::CachingAllocator;

/// Knows every mapping and all memory; the n-th call of a kind from now on fails, as the device would.
class FailingSource final : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;

  Physical create(std::size_t bytes) override {
    if (fails(failing_create)) return {};
    const Physical physical = upstream_.create(bytes);
    if (physical) created.insert(physical.value);
    return physical;
  }
  void destroy(Physical physical, std::size_t bytes) noexcept override {
    EXPECT_EQ(created.erase(physical.value), 1u) << "destroyed twice";
    for (const auto& [address, mapping] : mapped)
      EXPECT_NE(mapping.physical, physical.value) << "destroyed while it is mapped";
    upstream_.destroy(physical, bytes);
  }
  void map(void* address, std::size_t bytes, Physical physical, std::size_t offset) override {
    if (fails(failing_map)) throw Error("the device refused to map");
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    EXPECT_TRUE(created.contains(physical.value));
    EXPECT_TRUE(mapped.emplace(begin, Mapping{bytes, physical.value}).second) << "mapped twice";
    upstream_.map(address, bytes, physical, offset);
  }
  void unmap(void* address, std::size_t bytes) noexcept override {
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    std::size_t found = 0;
    for (auto it = mapped.lower_bound(begin); it != mapped.end() && it->first < begin + bytes;) {
      found += it->second.bytes;
      it = mapped.erase(it);
    }
    EXPECT_EQ(found, bytes) << "unmapped what was not mapped";
    upstream_.unmap(address, bytes);
  }

  struct Mapping {
    std::size_t bytes;
    std::uint64_t physical;
  };
  std::map<std::uintptr_t, Mapping> mapped;
  std::set<std::uint64_t> created;
  int failing_create = 0, failing_map = 0;  ///< which from now on; 0: none

 private:
  static bool fails(int& countdown) { return countdown > 0 && --countdown == 0; }
};

std::int64_t reserved(const CachingAllocator& policy) {
  PolicyStats stats;
  policy.report(stats);
  return stats.reserved_bytes[0].current;
}

TEST(FailedMapping, OfOnePageUndoesThoseBeforeItAndIsTheErrorOfTheDevice) {
  for (int page = 1; page <= 3; ++page) {
    SCOPED_TRACE(testing::Message() << "page " << page << " of 3");
    AddressOnlySource device;
    FailingSource source(device);
    CachingAllocator policy(source, {.expandable = true});
    const Block kept = policy.allocate({.bytes = 20 * MiB});
    source.failing_map = page;
    EXPECT_THROW(policy.allocate({.bytes = 60 * MiB}), Error);
    policy.check_invariants();
    EXPECT_EQ(source.mapped.size(), 1u) << "the page of the block that is kept";
    EXPECT_EQ(source.created.size(), 1u);
    EXPECT_EQ(device.used_bytes(), 20 * MiB);
    EXPECT_EQ(reserved(policy), static_cast<std::int64_t>(20 * MiB));
    const Block again = policy.allocate({.bytes = 60 * MiB});
    EXPECT_EQ(static_cast<char*>(again.data), static_cast<char*>(kept.data) + 20 * MiB);
    EXPECT_EQ(source.mapped.size(), 4u);
    policy.deallocate(again, {});
    policy.deallocate(kept, {});
    EXPECT_EQ(policy.trim(0), 80 * MiB);
    EXPECT_TRUE(source.mapped.empty());
    EXPECT_TRUE(source.created.empty());
    EXPECT_EQ(device.reserved_address_bytes(), 0u);
  }
}

TEST(FailedMapping, MemoryThatIsRefusedForOnePageIsGivenBackForTheOthers) {
  for (int page = 1; page <= 3; ++page) {
    SCOPED_TRACE(testing::Message() << "page " << page << " of 3");
    AddressOnlySource device;
    FailingSource source(device);
    CachingAllocator policy(source, {.expandable = true});
    const Block kept = policy.allocate({.bytes = 20 * MiB});
    source.failing_create = page;
    // The cache is given back and the request is made once more, which the device then serves.
    const Block served = policy.allocate({.bytes = 60 * MiB});
    policy.check_invariants();
    EXPECT_EQ(source.mapped.size(), 4u);
    EXPECT_EQ(source.created.size(), 4u);
    EXPECT_EQ(reserved(policy), static_cast<std::int64_t>(80 * MiB));
    policy.deallocate(served, {});
    policy.deallocate(kept, {});
  }
}

TEST(FailedMapping, WhatWasMappedBeforeAStretchThatFailsStaysCached) {
  AddressOnlySource device;
  FailingSource source(device);
  CachingAllocator policy(source, {.expandable = true});
  const Block first = policy.allocate({.bytes = 20 * MiB});
  const Block second = policy.allocate({.bytes = 20 * MiB});
  const Block third = policy.allocate({.bytes = 20 * MiB});
  policy.deallocate(first, {});
  policy.trim(0);  // a hole of one page in front
  policy.deallocate(second, {});
  ASSERT_EQ(source.mapped.size(), 2u);
  source.failing_map = 1;
  EXPECT_THROW(policy.allocate({.bytes = 40 * MiB}), Error) << "the hole and the free page behind it";
  policy.check_invariants();
  EXPECT_EQ(source.mapped.size(), 2u);
  EXPECT_EQ(source.created.size(), 2u);
  const Block both = policy.allocate({.bytes = 40 * MiB});
  EXPECT_EQ(both.data, first.data);
  EXPECT_EQ(source.mapped.size(), 3u);
  policy.deallocate(both, {});
  policy.deallocate(third, {});
}

TEST(FailedMapping, NothingIsLeftWhenThePolicyGoes) {
  AddressOnlySource device;
  FailingSource source(device);
  {
    CachingAllocator policy(source, {.expandable = true});
    policy.allocate({.bytes = 50 * MiB});  // still out
    policy.deallocate(policy.allocate({.bytes = 30 * MiB, .stream = {3}}), {3});
  }
  EXPECT_TRUE(source.mapped.empty());
  EXPECT_TRUE(source.created.empty());
  EXPECT_EQ(device.reserved_address_bytes(), 0u);
  EXPECT_EQ(device.used_bytes(), 0u);
}

/// Notes what was waited for last.
class WaitingSource final : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;
  Ticket mark(StreamRef stream) override { return marked = upstream_.mark(stream); }
  void wait(Ticket ticket) override {
    waited_for = ticket;
    upstream_.wait(ticket);
  }
  void unmap(void* address, std::size_t bytes) noexcept override {
    ++unmaps;
    EXPECT_EQ(marked.stream, 7U);
    EXPECT_EQ(waited_for.stream, marked.stream);
    EXPECT_EQ(waited_for.value, marked.value);
    upstream_.unmap(address, bytes);
  }
  Ticket marked, waited_for;
  int unmaps = 0;
};

TEST(UnmappedPages, AreWaitedForOnTheStreamThatUsedThem) {
  AddressOnlySource device({.manual_completion = true});
  WaitingSource source(device);
  CachingAllocator policy(source, {.expandable = true});
  policy.deallocate(policy.allocate({.bytes = 50 * MiB, .stream = {7}}), {7});
  policy.trim(0);
  EXPECT_GT(source.unmaps, 0);
}

}  // namespace
}  // namespace tenon
