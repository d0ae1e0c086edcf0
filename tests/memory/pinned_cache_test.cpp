// The cache of page-locked host memory: size classes, which block comes back first, and when.
#include <tenon/memory/pinned_cache.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/stack/allocator_stack.h>

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace tenon {
namespace {

std::shared_ptr<AllocatorStack> pinned(MemorySource& source,
                                       const std::vector<std::pair<std::string, std::string>>& options = {}) {
  StackConfig config{.policy = pinned_cache(), .options = Options(pinned_cache().options), .layers = {}};
  for (const auto& [name, value] : options) config.options.set_text(name, value);
  return AllocatorStack::make(source, config);
}

TEST(WorkedExamples, W32PinnedHostMemory) {
  AddressOnlySource source;
  const auto current = pinned(source);
  const auto rounded = [&](std::size_t bytes) {
    const Block block = current->allocate({.bytes = bytes});
    current->deallocate(block);
    return block.bytes;
  };
  EXPECT_EQ(rounded(100), 128u);
  EXPECT_EQ(rounded(1000000), 1048576u);
  EXPECT_EQ(rounded(3 * MiB), 4194304u);
  EXPECT_EQ(rounded(1), 1u);
  const Block first = current->allocate({.bytes = 3 * MiB}), second = current->allocate({.bytes = 4 * MiB});
  current->deallocate(first);
  current->deallocate(second);
  EXPECT_EQ(current->allocate({.bytes = 3 * MiB + 1}).data, second.data) << "the last one freed";
  EXPECT_EQ(current->allocate({.bytes = 3 * MiB}).data, first.data);

  const auto old = pinned(source, {{"compat", "1.13"}});
  const Block large = old->allocate({.bytes = 64 * MiB});
  old->deallocate(large);
  const Block tiny = old->allocate({.bytes = 1 * KiB});
  EXPECT_EQ(tiny.data, large.data);
  EXPECT_EQ(tiny.bytes, 64 * MiB);
}

TEST(PinnedCache, ABlockUsedOnStreamsWaitsForAllOfThem) {
  AddressOnlySource source({.manual_completion = true});
  const auto cache = pinned(source);
  const Block block = cache->allocate({.bytes = 1000});
  cache->record_use(block, {1});
  cache->record_use(block, {2});
  cache->deallocate(block);
  source.complete(StreamRef{1});
  EXPECT_NE(cache->allocate({.bytes = 1000}).data, block.data);
  source.complete(StreamRef{2});
  EXPECT_EQ(cache->allocate({.bytes = 1000}).data, block.data);
}

TEST(PinnedCache, OneSlowStreamHoldsUpWhatWasFreedAfterIt) {
  AddressOnlySource source({.manual_completion = true});
  const auto cache = pinned(source);
  const Block slow = cache->allocate({.bytes = 1000}), quick = cache->allocate({.bytes = 1000});
  cache->record_use(slow, {1});
  cache->record_use(quick, {2});
  cache->deallocate(slow);
  cache->deallocate(quick);
  source.complete(StreamRef{2});
  EXPECT_NE(cache->allocate({.bytes = 1000}).data, quick.data);
  source.complete(StreamRef{1});
  EXPECT_EQ(cache->allocate({.bytes = 1000}).data, quick.data);
}

TEST(PinnedCache, SizesAboveTheThresholdAreTakenAsTheyAreAndLargeBlocksAreNotCached) {
  AddressOnlySource source;
  const auto cache = pinned(source, {{"max_round_threshold", "1MiB"}, {"max_cached_size", "8MiB"}});
  const Block exact = cache->allocate({.bytes = 3 * MiB});
  EXPECT_EQ(exact.bytes, 3 * MiB);
  cache->deallocate(exact);
  const Block larger = cache->allocate({.bytes = 4 * MiB});
  EXPECT_NE(larger.data, exact.data) << "of the same class, and too small";
  EXPECT_EQ(source.used_bytes(), 7 * MiB);
  const Block large = cache->allocate({.bytes = 9 * MiB});
  cache->deallocate(large);
  EXPECT_EQ(source.used_bytes(), 7 * MiB);
  EXPECT_EQ(cache->trim(), 3 * MiB);
  cache->deallocate(larger);
}

}  // namespace
}  // namespace tenon
