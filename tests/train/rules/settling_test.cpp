// When the memory of a run has settled: after how many steps of which kind.
#include <tenon/core/units.h>
#include <tenon/device/device_state.h>
#include <tenon/runtime/config/config.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/train/run_experiment.h>
#include <tenon/train/step/settling.h>

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace tenon::train {
namespace {

class SettlingTest : public ::testing::Test {
 protected:
  void TearDown() override { shutdown(); }
  void use(const std::string& allocator) {
    shutdown();
    ConfigRequest request;
    request.overrides = {"device.names=[\"simulated:0\", \"simulated:1\"]", "device.simulated.mode=\"address-only\"",
                         "device.simulated.count=2", "allocator.name=\"" + allocator + "\""};
    request.use_environment = false;
    request.sections = training_sections();
    install(Config::load(request).experiment());
  }
  AllocatorStack& of(const char* device) { return device_state(Device(device)).allocator(); }
  Block take(std::size_t bytes, const char* device = "simulated:0") { return of(device).allocate({.bytes = bytes}); }
  void give(const Block& block, const char* device = "simulated:0") { of(device).deallocate(block); }

  /// In which step the run has settled, or is given up; 0: in none of 100.
  static int settles(Settling& settling, const std::function<void(int step)>& work) {
    settling.epoch_begins();
    for (int step = 1; step <= 100; ++step) {
      work(step);
      if (settling.has_settled_after_step()) return step;
    }
    return 0;
  }
  const std::vector<Device> one_ = {Device("simulated:0")}, both_ = {Device("simulated:0"), Device("simulated:1")};
};

TEST_F(SettlingTest, FourStepsThatLeaveWhatAnEarlierOneLeftAreEnough) {
  for (const bool are_dear : {false, true}) {
    use("caching");
    Settling settling(one_, are_dear);
    EXPECT_EQ(settles(settling, [&](int) { give(take(3 * MiB)); }), 5) << "behind the first, which is new";
    EXPECT_FALSE(settling.has_given_up());
    EXPECT_FALSE(settling.knows_epochs()) << "there was one alone";
  }
}

TEST_F(SettlingTest, WhatTakesTurnsHasSettledToo) {
  use("caching");
  const Block kept[] = {take(3 * MiB), take(5 * MiB), take(7 * MiB)};
  give(kept[0]), give(kept[1]), give(kept[2]);
  Settling settling(one_, false);
  Block held;
  EXPECT_EQ(settles(settling,
                    [&](int step) {
                      give(held);
                      held = take((step % 3 + 2) * MiB);
                    }),
            7)
      << "three layouts, and four times one of them";
  give(held);
}

TEST_F(SettlingTest, ANewLayoutBeginsTheCountAgain) {
  use("caching");
  give(take(3 * MiB));
  Settling settling(one_, false);
  Block held;
  EXPECT_EQ(settles(settling,
                    [&](int step) {
                      if (step == 5) held = take(MiB);
                    }),
            9)
      << "after four steps, the last of them another";
  give(held);
}

TEST_F(SettlingTest, CallsOfTheDeviceDoNotSettleWhereSomethingIsCached) {
  use("caching");
  Settling with_cache(one_, false);
  const Block fixed = take(3 * MiB);
  EXPECT_EQ(settles(with_cache,
                    [&](int) {
                      give(take(30 * MiB));
                      of("simulated:0").trim(0);
                    }),
            64)
      << "given up: the first block leaves a part of its segment in the cache";
  EXPECT_TRUE(with_cache.has_given_up());
  give(fixed);
  use("direct");
  const Block kept = take(3 * MiB);
  Settling without(one_, false);
  EXPECT_EQ(settles(without, [&](int) { give(take(30 * MiB)); }), 5) << "which always calls, and always the same";
  give(kept);
}

TEST_F(SettlingTest, WhereStepsAreDearReservedBytesThatStayTheSameAreEnough) {
  for (const bool are_dear : {false, true}) {
    use("caching");
    give(take(90 * MiB));
    Settling settling(one_, are_dear);
    Block held;
    const int step = settles(settling, [&](int step) {
      give(held);
      held = take(static_cast<std::size_t>(step) * MiB + 20 * MiB);
      of("simulated:0").reset_peak_stats();
    });
    EXPECT_EQ(step, are_dear ? 9 : 64) << "a layout that is new in each step";
    EXPECT_EQ(settling.has_given_up(), !are_dear);
    give(held);
  }
}

TEST_F(SettlingTest, MoreReservedBytesBeginTheCountAgain) {
  use("caching");
  give(take(90 * MiB));
  Settling settling(one_, true);
  Block held, more;
  EXPECT_EQ(settles(settling,
                    [&](int step) {
                      give(held);
                      held = take(static_cast<std::size_t>(step) * MiB + 20 * MiB);
                      if (step == 4) more = take(100 * MiB);
                    }),
            12)
      << "eight steps behind the fourth";
  give(held), give(more);
}

TEST_F(SettlingTest, AllDevicesCount) {
  for (const char* changing : {"simulated:0", "simulated:1"}) {
    use("caching");
    give(take(90 * MiB, changing), changing);
    Settling settling(both_, false);
    Block held;
    EXPECT_EQ(settles(settling,
                      [&](int step) {
                        give(held, changing);
                        held = take(static_cast<std::size_t>(step) * MiB + 20 * MiB, changing);
                      }),
              64)
        << changing;
    give(held, changing);
  }
  use("direct");
  const Block kept = take(3 * MiB, "simulated:0");
  Settling settling(both_, true);
  EXPECT_EQ(
      settles(settling, [&](int step) { give(take(step == 3 ? 50 * MiB : 30 * MiB, "simulated:1"), "simulated:1"); }),
      5)
      << "nothing is cached there";
  give(kept, "simulated:0");
}

TEST_F(SettlingTest, AnEpochBehindTheFirstThatSettlesAtOnceIsKnown) {
  use("caching");
  const auto work = [&](int) { give(take(3 * MiB)); };
  Settling settling(one_, false);
  EXPECT_EQ(settles(settling, work), 5);
  EXPECT_FALSE(settling.knows_epochs());
  EXPECT_EQ(settles(settling, work), 1);
  EXPECT_TRUE(settling.knows_epochs());
  Block held;
  EXPECT_EQ(settles(settling,
                    [&](int step) {
                      if (step == 1) held = take(MiB);
                    }),
            5);
  EXPECT_FALSE(settling.knows_epochs()) << "its test left something else behind";
  give(held);
}

TEST_F(SettlingTest, ARunIsWatchedFor64StepsUnlessItIsKnownByThen) {
  use("caching");
  give(take(90 * MiB));
  Settling restless(one_, false);
  Block held;
  restless.epoch_begins();
  for (int step = 1; step <= 64; ++step) {
    give(held);
    held = take(static_cast<std::size_t>(step) * MiB / 2 + 20 * MiB);
    EXPECT_EQ(restless.has_settled_after_step(), step == 64) << step;
    EXPECT_EQ(restless.has_given_up(), step == 64) << step;
  }
  give(held);
  use("caching");
  Settling steady(one_, false);
  steady.epoch_begins();
  for (int step = 1; step <= 63; ++step) {
    give(take(3 * MiB));
    EXPECT_EQ(steady.has_settled_after_step(), step >= 5) << step;
  }
  steady.epoch_begins();
  give(take(3 * MiB));
  EXPECT_TRUE(steady.has_settled_after_step());
  EXPECT_TRUE(steady.knows_epochs());
  EXPECT_FALSE(steady.has_given_up()) << "in its last step";
}

}  // namespace
}  // namespace tenon::train
