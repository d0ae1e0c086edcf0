// Schedules of learning rates: groups, milestones, plateaus.
#include "support.h"

#include "../support/message_of.h"

#include <tenon/ops/ops.h>
#include <tenon/optim/schedulers.h>
#include <tenon/optim/sgd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

using ::testing::HasSubstr;

struct ScheduleRules : ::testing::Test {
  using Plateau = optim::ReduceLROnPlateauScheduler;
  Tensor x = parameter(), y = parameter();
  optim::SGD sgd{
      {optim::OptimizerParamGroup({x}), optim::OptimizerParamGroup({y}, std::make_unique<optim::SGDOptions>(0.4))},
      optim::SGDOptions(0.8)};
  std::pair<double, double> rates() const {
    return {sgd.param_groups()[0].options().get_lr(), sgd.param_groups()[1].options().get_lr()};
  }
};

TEST_F(ScheduleRules, EveryGroupGoesFromItsOwnRate) {
  optim::LambdaLR by_function(sgd, [](std::int64_t step) { return 1. / static_cast<double>(step + 1); });
  by_function.step();
  EXPECT_EQ(rates(), std::pair(0.4, 0.2));
  by_function.step();
  EXPECT_DOUBLE_EQ(rates().second, 0.4 / 3);
}

TEST_F(ScheduleRules, AMilestoneNamedTwiceCountsTwice) {
  optim::MultiStepLR schedule(sgd, {1, 1, 3}, 0.5);
  schedule.step();
  EXPECT_EQ(rates(), std::pair(0.2, 0.1));
  schedule.step();
  EXPECT_EQ(rates(), std::pair(0.2, 0.1));
  schedule.step();
  EXPECT_EQ(rates(), std::pair(0.1, 0.05));
}

TEST_F(ScheduleRules, APlateauChangesNoRateByEpsOrLess) {
  Plateau exact(sgd, Plateau::min, 0.5f, 0, 1e-4, Plateau::rel, 0, {}, /*eps=*/0.2);
  exact.step(1);
  exact.step(1);
  EXPECT_EQ(rates(), std::pair(0.4, 0.4)) << "half of 0.4 would be a change of eps";
  exact.step(1);
  EXPECT_EQ(rates(), std::pair(0.4, 0.4));
}

TEST_F(ScheduleRules, APlateauHasALeastRateForEachGroup) {
  Plateau schedule(sgd, Plateau::min, 0.5f, 0, 1e-4, Plateau::rel, 0, {0.3f, 0.1f});
  schedule.step(1);
  for (int i = 0; i < 5; ++i) schedule.step(1);
  EXPECT_NEAR(rates().first, 0.3, 1e-7);
  EXPECT_NEAR(rates().second, 0.1, 1e-7);
  EXPECT_THAT(message_of([&] { Plateau(sgd, Plateau::min, 0.5f, 0, 1e-4, Plateau::rel, 0, {0.3f}); }),
              HasSubstr("expected 2, got 1"));
  EXPECT_THAT(message_of([&] { Plateau(sgd, Plateau::min, 1.0f); }), HasSubstr("Factor should be < 1.0"));
  EXPECT_NO_THROW(Plateau(sgd, Plateau::min, 0.999f));
}

TEST_F(ScheduleRules, AnImprovementIsOneByMoreThanTheThreshold) {
  struct Case {
    Plateau::SchedulerMode mode;
    Plateau::ThresholdMode threshold;
    float first, as_good, better;
  };
  // By a quarter of the best, with its sign as PyTorch has it, or by 0.25.
  for (const Case& c :
       {Case{Plateau::min, Plateau::rel, 2, 1.5f, 1.25f}, Case{Plateau::max, Plateau::rel, 2, 2.5f, 2.75f},
        Case{Plateau::min, Plateau::abs, 2, 1.75f, 1.5f}, Case{Plateau::max, Plateau::abs, 2, 2.25f, 2.5f},
        Case{Plateau::min, Plateau::rel, -2, -1.5f, -1.75f}, Case{Plateau::max, Plateau::rel, -2, -2.5f, -2.25f}}) {
    for (const bool is_better : {false, true}) {
      optim::SGD own({parameter()}, optim::SGDOptions(0.8));
      Plateau schedule(own, c.mode, 0.5f, 0, 0.25, c.threshold);
      schedule.step(c.first);
      schedule.step(is_better ? c.better : c.as_good);
      EXPECT_EQ(own.param_groups()[0].options().get_lr(), is_better ? 0.8 : 0.4)
          << "mode " << c.mode << ", threshold " << c.threshold << ", from " << c.first;
    }
  }
}

TEST_F(ScheduleRules, StepsOfACooldownAreNotCounted) {
  Plateau schedule(sgd, Plateau::min, 0.5f, /*patience=*/1, 1e-4, Plateau::rel, /*cooldown=*/2);
  std::vector<double> seen;
  for (int i = 0; i < 10; ++i) {
    schedule.step(1);
    seen.push_back(rates().first);
  }
  // The first is the best; two bad ones lower the rate; two cool; two bad ones …
  EXPECT_THAT(seen, testing::ElementsAre(0.8, 0.8, 0.4, 0.4, 0.4, 0.4, 0.2, 0.2, 0.2, 0.2));
}

}  // namespace
}  // namespace tenon::test
