// Learning-rate schedules at the steps where they turn.
#include <tenon/ops/ops.h>
#include <tenon/optim/schedulers.h>
#include <tenon/optim/sgd.h>

#include <gtest/gtest.h>

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

TEST_F(Scheduled, CosineEndsAtItsMinimum) {
  optim::CosineAnnealingLR schedule(sgd, 4, 0.1);
  for (int i = 0; i < 2; ++i) schedule.step();
  EXPECT_NEAR(lr(), 0.55, 1e-12);
  for (int i = 0; i < 2; ++i) schedule.step();
  EXPECT_NEAR(lr(), 0.1, 1e-12);
}

TEST_F(Scheduled, WarmUpRisesLinearly) {
  optim::LinearLR schedule(sgd, 0.5, 1.0, 2);
  EXPECT_DOUBLE_EQ(lr(), 0.5);
  schedule.step();
  EXPECT_DOUBLE_EQ(lr(), 0.75);
  for (int i = 0; i < 5; ++i) schedule.step();
  EXPECT_DOUBLE_EQ(lr(), 1.0);
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

}  // namespace
}  // namespace tenon::test
