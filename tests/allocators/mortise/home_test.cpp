// Where mortise's memory lies: how far address space is asked for, what a device that refuses leaves, and that what is
// broken is found.
#include <mortise/home.h>
#include <mortise/stream_cache.h>
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/forwarding.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tiled/addresses.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

namespace tenon::mortise {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::size_t kHomePage = 2 * MiB;

/// A device with little address space, or with little memory and no pages.
class NarrowSource final : public ForwardingSource {
 public:
  explicit NarrowSource(MemorySource& device) : ForwardingSource(device) {}
  SourceTraits traits() const override {
    SourceTraits traits = ForwardingSource::traits();
    traits.virtual_memory = has_pages;
    return traits;
  }
  void* reserve(std::size_t bytes) override {
    ++reservations;
    return bytes > longest ? nullptr : ForwardingSource::reserve(bytes);
  }
  void* acquire(std::size_t bytes) override { return bytes > longest ? nullptr : ForwardingSource::acquire(bytes); }

  std::size_t longest = 0;
  bool has_pages = true;
  int reservations = 0;
};

class MortiseHome : public testing::Test {
 protected:
  AddressOnlySource device_;
  NarrowSource source_{device_};
  TilePool pool_;
  std::vector<std::unique_ptr<StreamCache>> caches_;

  StreamCache& add_stream(std::uint64_t id) {
    caches_.push_back(std::make_unique<StreamCache>(StreamRef{.id = id}, 0, pool_, kHomePage));
    return *caches_.back();
  }
};

TEST_F(MortiseHome, ARangeThatTheAddressSpaceHasNotIsHalvedUntilItIsThere) {
  source_.longest = 5 * kHomePage;
  Home home(source_);
  ASSERT_TRUE(home.grow(add_stream(0), kLarge, {.pages = 3}, 0));
  EXPECT_EQ(home.ranges().front()->bytes, 4 * kHomePage) << "256 GiB halved again and again";
  EXPECT_EQ(device_.reserved_address_bytes(), 4 * kHomePage);
}

TEST_F(MortiseHome, AddressesThatAreJustEnoughAreTaken) {
  source_.longest = 3 * kHomePage;
  {
    tiled::Addresses addresses(source_, kHomePage);
    EXPECT_EQ(addresses.take(4 * kHomePage), 0U);
    EXPECT_NE(addresses.take(3 * kHomePage), 0U);
  }
  {
    tiled::Addresses addresses(source_, kHomePage);
    EXPECT_NE(addresses.take(3 * kHomePage), 0U);
  }
  Home home(source_);
  ASSERT_TRUE(home.grow(add_stream(0), kLarge, {.pages = 3}, 0));
  EXPECT_EQ(home.ranges().front()->bytes, 3 * kHomePage);
}

TEST_F(MortiseHome, ARangeIsReservedOnceWhereThereIsRoomForIt) {
  source_.longest = 512 * GiB;
  Home home(source_);
  ASSERT_TRUE(home.grow(add_stream(0), kLarge, {.pages = 3}, 0));
  EXPECT_EQ(source_.reservations, 1);
  EXPECT_EQ(home.ranges().front()->bytes, 256 * GiB);
}

TEST_F(MortiseHome, WithoutAddressSpaceForARequestThereIsNoRange) {
  Home home(source_);
  StreamCache& cache = add_stream(0);
  source_.longest = 2 * kHomePage;
  EXPECT_FALSE(home.grow(cache, kLarge, {.pages = 3}, 0));
  source_.longest = 0;
  for (const std::size_t pages : {1, 2, 3}) EXPECT_FALSE(home.grow(cache, kLarge, {.pages = pages}, 0)) << pages;
  EXPECT_TRUE(home.ranges().empty());
  EXPECT_EQ(home.reserved_bytes(), 0U);
}

TEST_F(MortiseHome, WithoutPagesTheSparedOnesAreLeftOutWhereTheDeviceHasNoMore) {
  source_.has_pages = false;
  source_.longest = 3 * kHomePage;
  Home home(source_);
  StreamCache& cache = add_stream(0);
  EXPECT_FALSE(home.grow(cache, kLarge, {.pages = 4}, 1)) << "it has not even those";
  EXPECT_EQ(home.reserved_bytes(), 0U);
  EXPECT_TRUE(home.ranges().empty());
  ASSERT_TRUE(home.grow(cache, kLarge, {.pages = 3}, 1));
  EXPECT_EQ(home.reserved_bytes(), 3 * kHomePage);
  ASSERT_TRUE(home.grow(cache, kLarge, {.pages = 2}, 1));
  EXPECT_EQ(home.reserved_bytes(), 6 * kHomePage) << "one page more than it needs";
}

TEST_F(MortiseHome, AStreamWithNothingInARangeNeedsAllOfItsPagesThere) {
  source_.longest = 512 * GiB;
  Home home(source_);
  StreamCache& first = add_stream(0);
  ASSERT_TRUE(home.grow(first, kLarge, {.pages = 1}, 0));
  EXPECT_EQ(home.growth(first, kLarge, kHomePage + kGrain).pages, 1U) << "behind the page that is free";
  EXPECT_EQ(home.growth(add_stream(1), kLarge, kHomePage + 1).pages, 2U);
}

TEST_F(MortiseHome, ATileThatIsNotWhereItsStreamSaysIsFound) {
  source_.longest = 512 * GiB;
  Home home(source_);
  StreamCache& cache = add_stream(0);
  ASSERT_TRUE(home.grow(cache, kLarge, {.pages = 4}, 0));
  Tile* const tile = cache.take(kLarge, kHomePage);
  ASSERT_NE(tile, nullptr);
  tile->state = TileState::kActive;
  home.check(caches_);
  StreamCache& other = add_stream(1);
  const std::vector<std::function<void(Tile&)>> faults{
      [&](Tile& broken) { broken.cache = &other; }, [](Tile& broken) { ++broken.range; },
      [](Tile& broken) { broken.region = kSmall; }, [](Tile& broken) { broken.left = &broken; },
      [](Tile& broken) { broken.address -= kGrain; }};
  for (std::size_t i = 0; i < faults.size(); ++i) {
    Tile& last = *cache.chains[0].last();
    const Tile right = last;
    faults[i](last);
    EXPECT_THAT([&] { home.check(caches_); }, ThrowsMessage<Error>(HasSubstr("not in order"))) << i;
    last = right;
    home.check(caches_);
  }
}

TEST_F(MortiseHome, AnAddressIsOnlyInATileThatReachesIt) {
  StreamCache& cache = add_stream(0);
  const std::uintptr_t at = std::uintptr_t{1} << 40;
  cache.provide_chain(0, at, at + 8 * kHomePage);
  cache.add(0, kLarge, at + kHomePage, kHomePage);
  cache.add(0, kLarge, at + 4 * kHomePage, kHomePage);
  EXPECT_EQ(cache.containing(at), nullptr) << "before the first";
  const Tile* const first = cache.containing(at + kHomePage);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->address, at + kHomePage);
  EXPECT_EQ(cache.containing(at + 2 * kHomePage - 1), first);
  EXPECT_EQ(cache.containing(at + 2 * kHomePage), nullptr) << "behind it";
  EXPECT_EQ(cache.containing(at + 3 * kHomePage), nullptr) << "between two";
}

}  // namespace
}  // namespace tenon::mortise
