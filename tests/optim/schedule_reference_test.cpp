// Schedules with drawn options against plain loops that count the steps, for groups with rates of their own.
#include <tenon/ops/ops.h>
#include <tenon/optim/schedulers.h>
#include <tenon/optim/sgd.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <numbers>
#include <random>
#include <vector>

namespace tenon::test {
namespace {

constexpr int kMostSteps = 30;

class ScheduleReference : public ::testing::Test {
 protected:
  /// Two groups whose rates are drawn; `body` schedules them.
  template <class Body>
  void for_many_seeds(const Body& body) {
    for (std::uint64_t seed = 1; seed <= 40 && !HasFailure(); ++seed) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed);
      random_.seed(seed);
      rates_ = {real(0.1, 2), real(0.1, 2)};
      std::vector<optim::OptimizerParamGroup> groups;
      for (const double rate : rates_)
        groups.emplace_back(std::vector<Tensor>{tenon::ones({1}).requires_grad_()},
                            std::make_unique<optim::SGDOptions>(rate));
      sgd_ = std::make_unique<optim::SGD>(groups, optim::SGDOptions(1));
      body();
    }
  }
  /// After each number of steps every group has the rate that `want` says for it: want(rate at first, steps).
  template <class Want>
  void expect_rates(optim::LRScheduler& schedule, const Want& want) {
    for (int steps = 0; steps <= kMostSteps; ++steps) {
      if (steps > 0) schedule.step();
      for (std::size_t i = 0; i < rates_.size(); ++i)
        ASSERT_NEAR(rate(i), want(rates_[i], steps), 1e-12) << "group " << i << " after " << steps << " steps";
    }
  }
  double rate(std::size_t group) { return sgd_->param_groups()[group].options().get_lr(); }
  int whole(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  double real(double low, double high) { return std::uniform_real_distribution<double>(low, high)(random_); }

  std::mt19937_64 random_;
  std::vector<double> rates_;
  std::unique_ptr<optim::SGD> sgd_;
};

/// The value on half a cosine from `from` to `to`, of which a share is done.
double on_a_cosine(double from, double to, double done) {
  const double left = (1 + std::cos(std::numbers::pi * done)) / 2;
  return left * from + (1 - left) * to;
}

TEST_F(ScheduleReference, StepsMultiplyOncePerPeriodAndMilestonesOncePerTimeTheyAreNamed) {
  for_many_seeds([&] {
    const int period = whole(1, 8);
    const double gamma = real(0.3, 1.1);
    optim::StepLR schedule(*sgd_, static_cast<unsigned>(period), gamma);
    expect_rates(schedule, [&](double rate, int steps) {
      for (int step = period; step <= steps; step += period) rate *= gamma;
      return rate;
    });
  });
  for_many_seeds([&] {
    std::vector<std::int64_t> milestones(static_cast<std::size_t>(whole(0, 6)));
    for (std::int64_t& milestone : milestones) milestone = whole(1, 12);
    const double gamma = real(0.3, 1.1);
    optim::MultiStepLR schedule(*sgd_, milestones, gamma);
    expect_rates(schedule, [&](double rate, int steps) {
      for (const std::int64_t milestone : milestones)
        if (milestone <= steps) rate *= gamma;
      return rate;
    });
  });
}

TEST_F(ScheduleReference, LinesAndCosinesGoFromEachGroupsOwnRate) {
  for_many_seeds([&] {
    const double start = real(0.1, 1), end = real(0.1, 1);
    const int most = whole(1, 25);
    optim::LinearLR schedule(*sgd_, start, end, most);
    expect_rates(schedule, [&](double rate, int steps) {
      const double done = std::min(1.0, steps / static_cast<double>(most));
      return rate * ((1 - done) * start + done * end);
    });
  });
  for_many_seeds([&] {
    const int most = whole(1, 40);
    const double lowest = real(0, 0.1);
    optim::CosineAnnealingLR schedule(*sgd_, most, lowest);
    expect_rates(schedule,
                 [&](double rate, int steps) { return on_a_cosine(rate, lowest, steps / static_cast<double>(most)); });
  });
}

TEST_F(ScheduleReference, AFunctionIsAskedForTheNumberOfStepsAlsoBehindAWarmUp) {
  const auto factor = [](std::int64_t steps) { return 1 / (1 + 0.1 * static_cast<double>(steps * steps)); };
  for_many_seeds([&] {
    optim::LambdaLR schedule(*sgd_, factor);
    expect_rates(schedule, [&](double rate, int steps) { return rate * factor(steps); });
  });
  for_many_seeds([&] {
    const int rise = whole(1, 12);
    optim::WarmupLR schedule(*sgd_, rise, std::make_unique<optim::LambdaLR>(*sgd_, factor));
    expect_rates(schedule, [&](double rate, int steps) {
      return steps < rise ? rate * (steps + 1) / rise : rate * factor(steps - rise);
    });
  });
}

TEST_F(ScheduleReference, OneCycleRisesToItsHighestRateAndFallsToItsLastWhereItStays) {
  for_many_seeds([&] {
    const int total = whole(12, 28);
    const double highest = real(0.5, 2), share = real(0.2, 0.8), divisor = real(2, 30), last_divisor = real(5, 1e4);
    optim::OneCycleLR schedule(*sgd_, highest, total, share, divisor, last_divisor);
    const double first = highest / divisor, top = share * total - 1;  // where it is highest, counted from step 0
    expect_rates(schedule, [&](double, int steps) {
      const double at = std::min(steps, total - 1);
      if (at <= top) return on_a_cosine(first, highest, at / top);
      return on_a_cosine(highest, first / last_divisor, (at - top) / (total - 1 - top));
    });
  });
}

/// A plateau as its page has it, one group at a time.
struct PlainPlateau {
  bool falls, is_relative;
  int patience, cooldown;
  double factor, threshold, eps;
  double best = std::numeric_limits<double>::quiet_NaN();
  int bad = 0, cooling = 0;

  /// Whether the rates are lowered.
  bool takes(double metric) {
    const double needed = is_relative ? best * threshold : threshold;
    const double gained = falls ? best - metric : metric - best;
    const bool is_better = std::isnan(best) || gained > needed;
    if (is_better) best = metric;
    bad = is_better || cooling > 0 ? 0 : bad + 1;
    cooling = std::max(0, cooling - 1);
    if (bad <= patience) return false;
    bad = 0;
    cooling = cooldown;
    return true;
  }
  double lowered(double rate, double least) const {
    const double lower = std::max(rate * factor, least);
    return rate - lower > eps ? lower : rate;
  }
};

TEST_F(ScheduleReference, PlateausLowerTheRatesOfGroupsDownToTheirOwnLeast) {
  using Plateau = optim::ReduceLROnPlateauScheduler;
  int lowered = 0;
  for_many_seeds([&] {
    PlainPlateau plain{.falls = whole(0, 1) == 0,
                       .is_relative = whole(0, 1) == 0,
                       .patience = whole(0, 3),
                       .cooldown = whole(0, 3),
                       .factor = static_cast<float>(real(0.2, 0.9)),
                       .threshold = whole(0, 1) == 0 ? 1e-4 : 0.125,
                       .eps = whole(0, 1) == 0 ? 1e-8 : 0.05};
    const std::vector<float> least{static_cast<float>(real(0, 0.3)), static_cast<float>(real(0, 0.3))};
    Plateau schedule(*sgd_, plain.falls ? Plateau::min : Plateau::max, static_cast<float>(plain.factor), plain.patience,
                     plain.threshold, plain.is_relative ? Plateau::rel : Plateau::abs, plain.cooldown, least,
                     plain.eps);
    std::vector<double> want = rates_;
    for (int step = 0; step < kMostSteps; ++step) {
      const float metric = static_cast<float>(whole(-16, 16)) / 16;
      schedule.step(metric);
      const bool lowers = plain.takes(metric);
      lowered += lowers;
      for (std::size_t i = 0; i < want.size(); ++i) {
        if (lowers) want[i] = plain.lowered(want[i], least[i]);
        ASSERT_NEAR(rate(i), want[i], 1e-12) << "group " << i << " after metric " << step;
      }
    }
  });
  EXPECT_GT(lowered, 100);
}

}  // namespace
}  // namespace tenon::test
