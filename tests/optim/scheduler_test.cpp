// Learning-rate schedules at the steps where they turn.
#include <tenon/ops/ops.h>
#include <tenon/optim/schedulers.h>
#include <tenon/optim/sgd.h>

#include <gtest/gtest.h>

#include <limits>

namespace tenon::test {
namespace {

struct Scheduled : ::testing::Test {
  Tensor x = tenon::ones({1}).requires_grad_();
  optim::SGD sgd{{x}, optim::SGDOptions(1.0)};
  double lr() const { return sgd.param_groups()[0].options().get_lr(); }
};

TEST_F(Scheduled, StepsDown) {
  optim::StepLR schedule(sgd, 2, 0.5);
  for (const double expected : {1.0, 0.5, 0.5, 0.25}) {
    schedule.step();
    EXPECT_DOUBLE_EQ(lr(), expected);
  }
}

TEST_F(Scheduled, AFunctionSetsTheFirstRateToo) {
  optim::LambdaLR schedule(sgd, [](std::int64_t step) { return 0.25 * static_cast<double>(step + 1); });
  for (const double expected : {0.25, 0.5, 0.75}) {
    EXPECT_DOUBLE_EQ(lr(), expected);
    schedule.step();
  }
}

TEST_F(Scheduled, LengthsOfNothingAreRefused) {
  EXPECT_THROW(optim::StepLR(sgd, 0), Error);
  EXPECT_THROW(optim::CosineAnnealingLR(sgd, 0), Error);
  EXPECT_THROW(optim::OneCycleLR(sgd, 1.0, 0), Error);
  for (const double share : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THROW(optim::OneCycleLR(sgd, 1.0, 10, share), Error) << share;
  EXPECT_DOUBLE_EQ(lr(), 1.0);
}

TEST_F(Scheduled, OneCycleWithoutARiseBeginsAtItsHighest) {
  optim::WarmupLR schedule(sgd, 1, std::make_unique<optim::OneCycleLR>(sgd, 0.5, 10, /*pct_start=*/0.1));
  schedule.step();
  EXPECT_DOUBLE_EQ(lr(), 0.5);
  optim::OneCycleLR one(sgd, 0.5, 1, /*pct_start=*/1.0);
  one.step();
  EXPECT_DOUBLE_EQ(lr(), 0.5);
}

TEST_F(Scheduled, OneCycleOfWhichNoStepRisesBeginsOnTheWayDownAsPyTorchs) {
  optim::OneCycleLR long_one(sgd, 0.5, 10, /*pct_start=*/0.0);
  EXPECT_NEAR(lr(), 0.4877641780172721, 1e-12);
  optim::OneCycleLR short_one(sgd, 0.5, 2, /*pct_start=*/0.0);
  EXPECT_NEAR(lr(), 0.250001, 1e-12);
  optim::OneCycleLR single(sgd, 0.5, 1);
  EXPECT_NEAR(lr(), 2e-6, 1e-12);
}

TEST_F(Scheduled, APlateauOfNansLowersTheRate) {
  optim::ReduceLROnPlateauScheduler schedule(sgd, optim::ReduceLROnPlateauScheduler::min, 0.5f, 1);
  for (int step = 0; step < 6; ++step) schedule.step(std::numeric_limits<float>::quiet_NaN());
  EXPECT_DOUBLE_EQ(lr(), 0.125) << "as PyTorch's after six";
}

TEST_F(Scheduled, ARelativeThresholdOfANegativeMetricIsPyTorchs) {
  optim::ReduceLROnPlateauScheduler schedule(sgd, optim::ReduceLROnPlateauScheduler::min, 0.5f, 1, 0.1);
  schedule.step(-10);
  for (int step = 0; step < 5; ++step) schedule.step(-9.5f);
  EXPECT_DOUBLE_EQ(lr(), 1.0) << "-9.5 is below -10 * (1 - 0.1)";
}

TEST_F(Scheduled, CosineEndsAtItsMinimum) {
  optim::CosineAnnealingLR schedule(sgd, 4, 0.1);
  for (int i = 0; i < 2; ++i) schedule.step();
  EXPECT_NEAR(lr(), 0.55, 1e-12);
  for (int i = 0; i < 2; ++i) schedule.step();
  EXPECT_NEAR(lr(), 0.1, 1e-12);
}

TEST_F(Scheduled, AWarmUpGivesOverToTheScheduleBehindIt) {
  optim::WarmupLR schedule(sgd, 4, std::make_unique<optim::LinearLR>(sgd, 0.5, 0.0, 2));
  for (const double expected : {0.25, 0.5, 0.75, 1.0, 0.5, 0.25, 0.0, 0.0}) {
    EXPECT_DOUBLE_EQ(lr(), expected);
    schedule.step();
  }
  EXPECT_THROW(optim::WarmupLR(sgd, 0, std::make_unique<optim::StepLR>(sgd, 1)), Error);
}

TEST_F(Scheduled, WarmUpRisesLinearly) {
  optim::LinearLR schedule(sgd, 0.5, 1.0, 2);
  EXPECT_DOUBLE_EQ(lr(), 0.5);
  schedule.step();
  EXPECT_DOUBLE_EQ(lr(), 0.75);
  for (int i = 0; i < 5; ++i) schedule.step();
  EXPECT_DOUBLE_EQ(lr(), 1.0);
}

TEST_F(Scheduled, RefusesAWarmUpWithoutSteps) {
  for (const int steps : {0, -3}) {
    try {
      optim::LinearLR(sgd, 0.5, 1.0, steps);
      FAIL() << steps << " steps were taken";
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()), "LinearLR: total_iters should be at least 1, got " + std::to_string(steps));
    }
    EXPECT_DOUBLE_EQ(lr(), 1.0) << "and the rate is as it was";
  }
}

TEST_F(Scheduled, OneCyclePeaksOnce) {
  optim::OneCycleLR schedule(sgd, 2.0, 10, 0.5);
  double highest = 0;
  for (int i = 0; i < 9; ++i) {
    schedule.step();
    highest = std::max(highest, lr());
  }
  EXPECT_DOUBLE_EQ(highest, 2.0);
  EXPECT_LT(lr(), 1e-4);
}

TEST_F(Scheduled, PlateausReduceTheRate) {
  optim::ReduceLROnPlateauScheduler schedule(sgd, optim::ReduceLROnPlateauScheduler::min, 0.1f, 1);
  for (const float metric : {1.0f, 1.0f, 1.0f}) schedule.step(metric);
  EXPECT_NEAR(lr(), 0.1, 1e-6);
}

// The rates that torch.optim.lr_scheduler gives from a rate of 0.8, step by step.
struct AgainstPyTorch : ::testing::Test {
  Tensor x = tenon::ones({1}).requires_grad_();
  optim::SGD sgd{{x}, optim::SGDOptions(0.8)};

  template <class Schedule>
  void expect(Schedule&& schedule, const std::vector<double>& rates) {
    for (std::size_t i = 0; i < rates.size(); ++i) {
      if (i > 0) schedule.step();
      EXPECT_NEAR(sgd.param_groups()[0].options().get_lr(), rates[i], 1e-9) << "after " << i << " steps";
    }
  }
};

TEST_F(AgainstPyTorch, Step) { expect(optim::StepLR(sgd, 3, 0.5), {0.8, 0.8, 0.8, 0.4, 0.4, 0.4, 0.2, 0.2}); }
TEST_F(AgainstPyTorch, MultiStep) {
  expect(optim::MultiStepLR(sgd, {2, 5}, 0.1), {0.8, 0.8, 0.08, 0.08, 0.08, 0.008, 0.008});
}
TEST_F(AgainstPyTorch, CosineTurnsAroundAfterItsPeriod) {
  expect(optim::CosineAnnealingLR(sgd, 5, 0.1),
         {0.8, 0.733155948031, 0.558155948031, 0.341844051969, 0.166844051969, 0.1, 0.166844051969, 0.341844051969});
}
TEST_F(AgainstPyTorch, LinearWarmUp) {
  expect(optim::LinearLR(sgd, 0.25, 1.0, 4), {0.2, 0.35, 0.5, 0.65, 0.8, 0.8, 0.8});
}
TEST_F(AgainstPyTorch, OneCycle) {
  expect(optim::OneCycleLR(sgd, 1.0, 10), {0.04, 0.52, 1, 0.950484632013, 0.81174565395, 0.611262021936, 0.388741978064,
                                           0.18825834605, 0.0495193679865, 4e-06});
}
TEST_F(AgainstPyTorch, PlateauWithCooldownAndLeastRate) {
  optim::ReduceLROnPlateauScheduler schedule(sgd, optim::ReduceLROnPlateauScheduler::min, 0.5f, 1, 1e-4,
                                             optim::ReduceLROnPlateauScheduler::rel, 1, {0.15f});
  const std::vector<float> metrics{3, 2, 2, 2, 2, 2, 2, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5};
  const std::vector<double> rates{0.8, 0.8, 0.8, 0.4, 0.4, 0.4, 0.2, 0.2, 0.2, 0.15, 0.15, 0.15, 0.15};
  for (std::size_t i = 0; i < rates.size(); ++i) {
    schedule.step(metrics[i]);
    EXPECT_NEAR(sgd.param_groups()[0].options().get_lr(), rates[i], 1e-7) << "after metric " << i;
  }
}

TEST_F(Scheduled, RefusesAStepOnceAGroupWasAdded) {
  optim::LambdaLR schedule(sgd, [](std::int64_t) { return 0.5; });
  sgd.add_param_group(optim::OptimizerParamGroup({tenon::ones({1}).requires_grad_()}));
  try {
    schedule.step();
    FAIL() << "a rate was read that is not there";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "the optimizer has 2 parameter groups, its learning rates are scheduled for 1: add all groups before "
                 "the scheduler is made");
  }
  EXPECT_DOUBLE_EQ(lr(), 0.5);
}

TEST_F(Scheduled, RefusesAMetricOnceAGroupWasAdded) {
  optim::ReduceLROnPlateauScheduler schedule(sgd, optim::ReduceLROnPlateauScheduler::min, 0.5, 0);
  sgd.add_param_group(optim::OptimizerParamGroup({tenon::ones({1}).requires_grad_()}));
  EXPECT_THROW(schedule.step(1), Error);
}

}  // namespace
}  // namespace tenon::test
