// What of a machine is said to spoil a measurement, and from where on.
#include <tenon/measure/bench/bench.h>
#include <tenon/measure/bench/host_noise.h>

#include <gmock/gmock.h>

namespace tenon::measure {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(HostNoiseLimits, HalfOfTheCoresMayBeBusy) {
  EXPECT_THAT((HostNoise{.cores = 4, .load = 2}).of_others(), IsEmpty());
  EXPECT_THAT((HostNoise{.cores = 4, .load = 2.1}).of_others(),
              ElementsAre("the load average was 2.1 on 4 cores: others are busy here"));
  EXPECT_THAT((HostNoise{.cores = 1, .load = 0.6}).of_others(), ElementsAre(HasSubstr("0.6 on 1 core:")));
}

TEST(HostNoiseLimits, AFiftiethOfTheTimeMayBeStolen) {
  EXPECT_THAT((HostNoise{.cores = 4, .stolen_share = 0.02}).of_others(), IsEmpty());
  EXPECT_THAT((HostNoise{.cores = 4, .stolen_share = 0.03}).of_others(),
              ElementsAre("the hypervisor took 3 % of the processor time"));
}

TEST(HostNoiseLimits, TheClockAndTheHarnessAreNoneOfTheOthersDoing) {
  const HostNoise own{.cores = 4, .harness_spread = 0.06, .governor = "powersave"};
  EXPECT_THAT(own.of_others(), IsEmpty());
  EXPECT_THAT(own.warnings(), ElementsAre(HasSubstr("governor is 'powersave'"), HasSubstr("varied by 6 %")));
  EXPECT_THAT((HostNoise{.cores = 4, .harness_spread = 0.05, .governor = "performance"}).warnings(), IsEmpty());
  EXPECT_THAT((HostNoise{.cores = 4}).warnings(), IsEmpty()) << "a machine that does not say its governor";
}

TEST(HostNoiseLimits, WhatWasStolenIsAShareOfTheTimeInBetween) {
  const HostState before{.load = 0.25, .stolen_s = 50, .all_s = 100, .governor = "g"};
  const HostState after{.load = 9, .stolen_s = 54, .all_s = 140, .governor = "h"};
  const HostNoise noise = host_noise(before, after);
  EXPECT_NEAR(noise.stolen_share, 0.1, 1e-12);
  EXPECT_EQ(noise.load, 0.25) << "before we made load ourselves";
  EXPECT_EQ(noise.governor, "g");
  EXPECT_GE(noise.cores, 1);
  EXPECT_EQ(host_noise(before, before).stolen_share, 0) << "no time has passed";
}

TEST(HostNoiseLimits, OfABenchIsThatOfItsHostBesidesTheSpread) {
  const HostState before{.load = 0.25, .stolen_s = 50, .all_s = 100, .governor = "g"};
  const HostState after{.load = 9, .stolen_s = 54, .all_s = 140, .governor = "h"};
  const HostNoise noise = host_noise(before, after, BenchResult());
  EXPECT_NEAR(noise.stolen_share, 0.1, 1e-12);
  EXPECT_EQ(noise.load, 0.25);
  EXPECT_EQ(noise.governor, "g");
  EXPECT_EQ(noise.harness_spread, 0);
}

TEST(HostState, KnowsTheTimeOfAllProcessorsAndWhatOfItWasStolen) {
  const HostState state = host_state();
  EXPECT_GT(state.all_s, 0);
  EXPECT_GE(state.stolen_s, 0);
  EXPECT_LT(state.stolen_s, state.all_s);
  EXPECT_GE(state.load, 0);
}

TEST(HostNoiseLimits, TheSpreadOfTheHarnessIsThatOfItsMiddleHalf) {
  BenchResult result;
  result.cells.resize(2);
  for (auto& cells : result.cells) cells.resize(2);
  // The harness is the last subject; 100 in the middle, from 90 to 120.
  result.cells[0].front().round_ns = {1, 1000, 1, 1000, 1, 1000};
  result.cells[0].back().round_ns = {120, 60, 90, 300, 100, 90, 110, 120};
  result.cells[1].back().round_ns = {100, 100, 500};  // too few to say
  const HostState state;
  EXPECT_NEAR(host_noise(state, state, result).harness_spread, (120. - 90) / 110, 1e-12);
}

}  // namespace
}  // namespace tenon::measure
