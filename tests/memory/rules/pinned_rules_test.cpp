// The cache of page-locked memory at its edges: sizes at which something changes, devices that fail, and what is too
// large for any.
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/forwarding.h>
#include <tenon/memory/pinned_cache.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/stack/allocator_stack.h>

#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon {
namespace {

using PinnedOptions = std::vector<std::pair<std::string, std::string>>;

/// Fails where it is told to, and remembers what it was asked for.
struct FailingHost final : ForwardingSource {
  using ForwardingSource::ForwardingSource;
  void* acquire(std::size_t bytes) override {
    asked.push_back(bytes);
    return upstream_.acquire(bytes);
  }
  Ticket mark(StreamRef stream) override {
    if (fails_to_mark) throw Error("no marks");
    return upstream_.mark(stream);
  }
  void wait(Ticket ticket) override {
    ++waits;
    if (fails_to_wait) throw Error("no waiting");
    upstream_.wait(ticket);
  }
  void synchronize() override {
    ++synchronizations;
    if (is_lost) throw Error("the device is lost");
    upstream_.synchronize();
  }
  std::vector<std::size_t> asked;
  int waits = 0, synchronizations = 0;
  bool fails_to_mark = false, fails_to_wait = false, is_lost = false;
};

struct PinnedOver {
  explicit PinnedOver(const PinnedOptions& options = {}) {
    Options its(pinned_cache().options);
    for (const auto& [name, value] : options) its.set_text(name, value);
    cache = pinned_cache().create({.source = host, .options = its});
  }
  AddressOnlySource device{{.manual_completion = true}};
  FailingHost host{device};
  std::unique_ptr<Allocator> cache;
};

/// The size of the block for a request; none where it is refused.
std::optional<std::size_t> taken_for(std::size_t bytes, const PinnedOptions& options) {
  PinnedOver over(options);
  try {
    const Block block = over.cache->allocate({.bytes = bytes});
    EXPECT_EQ(block.bytes, over.host.asked.back());
    EXPECT_EQ(block.request.bytes, bytes);
    return block.bytes;
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.info().requested_bytes, bytes);
    return std::nullopt;
  }
}

TEST(PinnedSizes, AreThePowerOfTwoThatIsNotBelowUpToTheThreshold) {
  for (std::size_t bytes = 1; bytes < 300; ++bytes) EXPECT_EQ(taken_for(bytes, {}), std::bit_ceil(bytes));
  for (const auto& [rounds, caches] :
       {std::pair(3000, 0), std::pair(0, 3000), std::pair(3000, 5000), std::pair(5000, 3000)}) {
    const PinnedOptions options = {{"max_round_threshold", std::to_string(rounds)},
                                   {"max_cached_size", std::to_string(caches)}};
    EXPECT_EQ(taken_for(2999, options), 4096u);
    EXPECT_EQ(taken_for(3000, options), 4096u);
    EXPECT_EQ(taken_for(3001, options), 3001u);
    EXPECT_EQ(taken_for(5000, options), 5000u);
  }
}

TEST(PinnedSizes, BeyondTheLargestPowerOfTwoAreRefusedUnlessTheyAreTakenAsTheyAre) {
  constexpr std::size_t kLargest = std::size_t{1} << 63;
  for (const std::size_t bytes : {kLargest - 1, kLargest, kLargest + 1, ~std::size_t{0}}) {
    PinnedOver over;
    EXPECT_THROW(over.cache->allocate({.bytes = bytes}), OutOfMemory);
    if (bytes <= kLargest) {
      ASSERT_EQ(over.host.asked.size(), 1u);
      EXPECT_EQ(over.host.asked[0], kLargest);
    } else {
      EXPECT_TRUE(over.host.asked.empty()) << "nobody is asked for what no power of two holds";
    }
    PinnedOver exact(PinnedOptions{{"max_round_threshold", "1MiB"}});
    EXPECT_THROW(exact.cache->allocate({.bytes = bytes}), OutOfMemory);
    ASSERT_EQ(exact.host.asked.size(), 1u);
    EXPECT_EQ(exact.host.asked[0], bytes);
  }
}

TEST(PinnedFailures, ABlockWhoseStreamsCannotBeMarkedStaysOutUntilTheEnd) {
  PinnedOver over;
  const Block lost = over.cache->allocate({.bytes = 1000});
  over.cache->record_use(lost, {1});
  over.host.fails_to_mark = true;
  over.cache->deallocate(lost, {});
  over.host.fails_to_mark = false;
  for (int i = 0; i < 3; ++i) {
    over.device.synchronize();
    EXPECT_NE(over.cache->allocate({.bytes = 1000}).data, lost.data);
    over.cache->trim(0);
  }
  EXPECT_EQ(over.device.used_bytes(), 4 * 1024u);
  over.cache.reset();
  EXPECT_EQ(over.device.used_bytes(), 0u);
}

TEST(PinnedFailures, OfTwoStreamsOfWhichOneWasMarkedTheBlockStaysOutAsWell) {
  struct Second final : ForwardingSource {
    using ForwardingSource::ForwardingSource;
    Ticket mark(StreamRef stream) override {
      if (++marks == 2) throw Error("no more marks");
      return upstream_.mark(stream);
    }
    int marks = 0;
  };
  AddressOnlySource device({.manual_completion = true});
  Second host(device);
  const Options options(pinned_cache().options);
  auto cache = pinned_cache().create({.source = host, .options = options});
  const Block lost = cache->allocate({.bytes = 1000});
  cache->record_use(lost, {1});
  cache->record_use(lost, {2});
  cache->deallocate(lost, {});
  device.synchronize();
  for (int i = 0; i < 2; ++i) EXPECT_NE(cache->allocate({.bytes = 1000}).data, lost.data);
  cache.reset();
  EXPECT_EQ(device.used_bytes(), 0u);
}

TEST(PinnedFailures, ALargeBlockThatCannotBeWaitedForStaysOutUntilTheEnd) {
  for (const bool fails : {false, true}) {
    PinnedOver over(PinnedOptions{{"max_cached_size", "2000"}});
    const Block small = over.cache->allocate({.bytes = 2000, .stream = {3}});
    const Block large = over.cache->allocate({.bytes = 5000, .stream = {3}});
    over.host.fails_to_wait = fails;
    over.cache->deallocate(small, {3});
    EXPECT_EQ(over.host.waits, 1) << "2048 bytes are more than what is cached";
    over.cache->deallocate(large, {3});
    EXPECT_EQ(over.host.waits, 2);
    EXPECT_EQ(over.device.used_bytes(), fails ? 2048u + 5120 : 0u);
    over.cache.reset();
    EXPECT_EQ(over.device.used_bytes(), 0u);
  }
}

TEST(PinnedFailures, TheMemoryOfALostDeviceGoesBackAllTheSame) {
  PinnedOver over;
  const Block live = over.cache->allocate({.bytes = 1000});
  static_cast<void>(live);
  over.cache->deallocate(over.cache->allocate({.bytes = 3000}), {});
  over.host.is_lost = true;
  over.cache.reset();
  EXPECT_EQ(over.host.synchronizations, 1);
  EXPECT_EQ(over.device.used_bytes(), 0u);
}

TEST(PinnedTrims, WaitForTheDeviceOnlyWhereSomethingIsToGoBack) {
  PinnedOver over;
  over.cache->deallocate(over.cache->allocate({.bytes = 1000}), {});
  EXPECT_EQ(over.cache->trim(1024), 0u);
  EXPECT_EQ(over.host.synchronizations, 0);
  EXPECT_EQ(over.cache->trim(1023), 1024u);
  EXPECT_EQ(over.host.synchronizations, 1);
  EXPECT_EQ(over.cache->trim(0), 0u);
  EXPECT_EQ(over.host.synchronizations, 1);
}

}  // namespace
}  // namespace tenon
