// A driver's pool between its device and whoever uses it: what it has is counted as if it had been taken from the
// device, and stays within the limit, against plain counters.
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/driver_pool.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/sources/observed_source.h>

#include <gtest/gtest.h>

#include <memory/test_policy.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace tenon {
namespace {

constexpr std::size_t kPoolStep = 2 * MiB;

/// Takes memory in whole steps, keeps what comes back until it is trimmed, and has so much at most.
class SteppedPool final : public DriverPool {
 public:
  void* acquire(std::size_t bytes, StreamRef stream) override {
    streams.push_back(stream.id);
    if (out_ + bytes > most) return nullptr;
    out_ += bytes;
    reserved_ = std::max(reserved_, (out_ + kPoolStep - 1) / kPoolStep * kPoolStep);
    live_[++last_] = bytes;
    return reinterpret_cast<void*>(last_ * 4096);
  }
  void release(void* address, std::size_t bytes, std::span<const StreamRef> used_on) noexcept override {
    EXPECT_EQ(live_[reinterpret_cast<std::uintptr_t>(address) / 4096], bytes);
    live_.erase(reinterpret_cast<std::uintptr_t>(address) / 4096);
    out_ -= bytes;
    for (const StreamRef stream : used_on) streams.push_back(100 + stream.id);
  }
  std::size_t reserved_bytes() const noexcept override { return reserved_; }
  void trim(std::size_t keep_bytes) noexcept override {
    trims.push_back(keep_bytes);
    const std::size_t needed = (out_ + kPoolStep - 1) / kPoolStep * kPoolStep;
    reserved_ = std::min(reserved_, std::max(needed, keep_bytes / kPoolStep * kPoolStep));
  }
  std::size_t most = 64 * MiB;
  std::vector<std::uint64_t> streams;
  std::vector<std::size_t> trims;

 private:
  std::size_t out_ = 0, reserved_ = 0;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::size_t> live_;
};

/// A device that has such a pool, or none.
class WithPool final : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;
  std::unique_ptr<DriverPool> make_driver_pool(const DriverPoolOptions& options) override {
    asked = options.release_threshold;
    if (has_none) return nullptr;
    auto pool = std::make_unique<SteppedPool>();
    made = pool.get();
    return pool;
  }
  bool has_none = false;
  std::size_t asked = 0;
  SteppedPool* made = nullptr;
};

TEST(DriverPools, OfADeviceWithoutOneAreNoneThroughWhateverStandsBefore) {
  AddressOnlySource addresses;
  WithPool device(addresses);
  device.has_none = true;
  ObservedSource observed(device);
  EXPECT_EQ(observed.make_driver_pool({.release_threshold = 7}), nullptr);
  EXPECT_EQ(device.asked, 7u) << "the options arrive";
  const LayerConfig config = test::layer({"inject", {{"call", "acquire"}, {"every", "2"}}});
  const auto failing = find_layer("inject").wrap_source(
      device, {.options = config.options, .traits = device.traits(), .source = device, .observed = observed});
  EXPECT_EQ(failing->make_driver_pool({}), nullptr);
  device.has_none = false;
  const auto pool = failing->make_driver_pool({});
  ASSERT_NE(pool, nullptr);
  void* const first = pool->acquire(100, {3});
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(pool->acquire(100, {3}), nullptr) << "every second call of the pool fails";
  EXPECT_NE(pool->acquire(100, {3}), nullptr);
  EXPECT_EQ(pool->reserved_bytes(), kPoolStep);
  pool->release(first, 100, std::array{StreamRef{4}, StreamRef{5}});
  pool->trim(9);
  EXPECT_EQ(device.made->streams, (std::vector<std::uint64_t>{3, 3, 104, 105}));
  EXPECT_EQ(device.made->trims, std::vector<std::size_t>{9});
}

// Long: one step for each call of a pool.
TEST(DriverPoolModel, WhatAPoolHasIsCountedAsTakenFromItsDeviceAndWithinTheLimit) {
  for (std::uint64_t seed = 1; seed <= 20 && !testing::Test::HasFailure(); ++seed) {
    std::mt19937_64 random(seed);
    AddressOnlySource addresses;
    WithPool device(addresses);
    ObservedSource source(device);
    auto pool = source.make_driver_pool({});
    SourceCounters plain;
    bool has_refused = false, has_given_back = false;
    int operation = 0, refused_in = 0;
    std::size_t limit = 0, had = 0;
    std::vector<std::pair<void*, std::size_t>> live;
    std::size_t out = 0;
    const auto has_now = [&](std::size_t now) {
      const auto change = static_cast<std::int64_t>(now) - static_cast<std::int64_t>(had);
      had = now;
      if (change == 0) return;
      if (change > 0) {
        ++plain.allocations, ++plain.growths;
        plain.reserved_bytes.increase(change);
      } else {
        ++plain.frees, ++plain.shrinks;
        plain.reserved_bytes.decrease(-change);
        if (has_refused) has_given_back = true;
      }
    };
    for (int step = 0; step < 200 && !testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", step " << step);
      const std::uint64_t choice = random() % 12;
      if (choice < 6) {
        const std::size_t bytes = 64 * KiB * (1 + random() % 90);
        if (has_refused && has_given_back) {
          if (refused_in == operation) ++plain.retries;
          has_refused = has_given_back = false;
        }
        // Beyond the limit the pool first gives back what it caches.
        const auto steps_for = [&](std::size_t sum) { return (sum + kPoolStep - 1) / kPoolStep * kPoolStep; };
        const std::size_t now = std::max(had, steps_for(out + bytes)), least = steps_for(out + bytes);
        const bool is_there = out + bytes <= 64 * MiB;
        const auto fits = [&](std::size_t wanted) { return wanted <= had || limit == 0 || wanted <= limit; };
        void* const address = pool->acquire(bytes, {1});
        const bool is_served = is_there && (fits(now) || fits(least));
        ASSERT_EQ(address != nullptr, is_served);
        if (is_served) {
          has_now(fits(now) ? now : least);
          live.emplace_back(address, bytes);
          out += bytes;
        } else {
          has_refused = true, has_given_back = false, refused_in = operation;
          EXPECT_EQ(source.refused_bytes(), 0u) << "what the pool wanted of the device it does not say";
        }
      } else if (choice < 9 && !live.empty()) {
        std::swap(live[random() % live.size()], live.back());
        pool->release(live.back().first, live.back().second, std::array{StreamRef{2}});
        out -= live.back().second;
        live.pop_back();
      } else if (choice == 9) {
        limit = random() % 3 == 0 ? 0 : (1 + random() % 40) * kPoolStep;
        source.set_user_limit(limit);
      } else if (choice == 10) {
        pool->trim(random() % 2 == 0 ? 0 : random() % (40 * MiB));
        has_now(device.made->reserved_bytes());
      } else {
        begin_operation();
        ++operation;
      }
      EXPECT_EQ(pool->reserved_bytes(), had);
      const SourceCounters is = source.counters();
      EXPECT_EQ(is.reserved_bytes.current, plain.reserved_bytes.current);
      EXPECT_EQ(is.reserved_bytes.peak, plain.reserved_bytes.peak);
      EXPECT_EQ(is.reserved_bytes.allocated, plain.reserved_bytes.allocated);
      EXPECT_EQ(is.reserved_bytes.freed, plain.reserved_bytes.freed);
      EXPECT_EQ(is.allocations, plain.allocations);
      EXPECT_EQ(is.frees, plain.frees);
      EXPECT_EQ(is.growths, plain.growths);
      EXPECT_EQ(is.shrinks, plain.shrinks);
      EXPECT_EQ(is.retries, plain.retries);
      EXPECT_EQ(source.reserved_bytes(), had);
    }
    for (const auto& [address, bytes] : live) pool->release(address, bytes, std::array{StreamRef{}});
    pool.reset();
    EXPECT_EQ(source.reserved_bytes(), 0u);
    EXPECT_EQ(source.counters().frees, plain.frees + (had != 0 ? 1 : 0));
  }
}

}  // namespace
}  // namespace tenon
