// Learning-rate schedules.
#include <tenon/optim/schedulers.h>

#include <tenon/tensor/libtorch/warning.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace tenon::optim {

namespace {

void expect_groups(std::size_t groups, std::size_t scheduled) {
  if (groups == scheduled) return;
  throw Error(fmt::format(
      "the optimizer has {} parameter groups, its learning rates are scheduled for {}: add all groups before the "
      "scheduler is made",
      groups, scheduled));
}

void expect_at_least_1(const char* schedule, const char* what, std::int64_t value) {
  if (value < 1) throw Error(fmt::format("{}: {} should be at least 1, got {}", schedule, what, value));
}

}  // namespace

LRScheduler::LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) { base_lrs_ = get_current_lrs(); }
LRScheduler::~LRScheduler() = default;

void LRScheduler::step() {
  auto& groups = optimizer_.param_groups();
  expect_groups(groups.size(), base_lrs_.size());
  ++step_count_;
  const std::vector<double> rates = get_lrs();
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i].options().set_lr(rates.at(i));
}

std::vector<double> LRScheduler::lrs_of(LRScheduler& other, std::int64_t steps) {
  other.step_count_ = steps;
  return other.get_lrs();
}

std::vector<double> LRScheduler::get_current_lrs() const {
  std::vector<double> rates;
  for (const auto& group : optimizer_.param_groups()) rates.push_back(group.options().get_lr());
  return rates;
}

StepLR::StepLR(Optimizer& optimizer, unsigned step_size, double gamma)
    : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  expect_at_least_1("StepLR", "step_size", step_size);
}
std::vector<double> StepLR::get_lrs() {
  std::vector<double> rates = get_current_lrs();
  if (step_count_ % step_size_ == 0) {
    for (double& rate : rates) rate *= gamma_;
  }
  return rates;
}

std::vector<double> MultiStepLR::get_lrs() {
  std::vector<double> rates = get_current_lrs();
  const auto times = std::count(milestones_.begin(), milestones_.end(), step_count_);
  for (double& rate : rates) rate *= std::pow(gamma_, static_cast<double>(times));
  return rates;
}

LambdaLR::LambdaLR(Optimizer& optimizer, std::function<double(std::int64_t)> factor)
    : LRScheduler(optimizer), factor_(std::move(factor)) {
  const double first = factor_(0);
  for (auto& group : optimizer.param_groups()) group.options().set_lr(group.options().get_lr() * first);
}
std::vector<double> LambdaLR::get_lrs() {
  std::vector<double> rates = base_lrs_;
  for (double& rate : rates) rate *= factor_(step_count_);
  return rates;
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, std::int64_t t_max, double eta_min)
    : LRScheduler(optimizer), t_max_(t_max), eta_min_(eta_min) {
  expect_at_least_1("CosineAnnealingLR", "t_max", t_max);
}
std::vector<double> CosineAnnealingLR::get_lrs() {
  std::vector<double> rates = base_lrs_;
  const double angle = std::numbers::pi * static_cast<double>(step_count_) / static_cast<double>(t_max_);
  for (double& rate : rates) rate = eta_min_ + (rate - eta_min_) * (1 + std::cos(angle)) / 2;
  return rates;
}

LinearLR::LinearLR(Optimizer& optimizer, double start_factor, double end_factor, std::int64_t total_iters)
    : LRScheduler(optimizer), start_factor_(start_factor), end_factor_(end_factor), total_iters_(total_iters) {
  expect_at_least_1("LinearLR", "total_iters", total_iters);
  for (auto& group : optimizer.param_groups()) group.options().set_lr(group.options().get_lr() * start_factor);
}
std::vector<double> LinearLR::get_lrs() {
  std::vector<double> rates = base_lrs_;
  const double done = static_cast<double>(std::min(step_count_, total_iters_)) / static_cast<double>(total_iters_);
  for (double& rate : rates) rate *= start_factor_ + (end_factor_ - start_factor_) * done;
  return rates;
}

WarmupLR::WarmupLR(Optimizer& optimizer, std::int64_t steps, std::unique_ptr<LRScheduler> then)
    : LRScheduler(optimizer), steps_(steps), then_(std::move(then)) {
  expect_at_least_1("WarmupLR", "steps", steps);
  base_lrs_ = base_lrs_of(*then_);
  for (std::size_t i = 0; i < base_lrs_.size(); ++i)
    optimizer.param_groups()[i].options().set_lr(base_lrs_[i] / static_cast<double>(steps));
}
std::vector<double> WarmupLR::get_lrs() {
  if (step_count_ >= steps_) return lrs_of(*then_, step_count_ - steps_);
  std::vector<double> rates = base_lrs_;
  for (double& rate : rates) rate = rate * static_cast<double>(step_count_ + 1) / static_cast<double>(steps_);
  return rates;
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, double max_lr, std::int64_t total_steps, double pct_start,
                       double div_factor, double final_div_factor)
    : LRScheduler(optimizer),
      max_lr_(max_lr),
      total_steps_(total_steps),
      pct_start_(pct_start),
      div_factor_(div_factor),
      final_div_factor_(final_div_factor) {
  expect_at_least_1("OneCycleLR", "total_steps", total_steps);
  if (!(pct_start >= 0 && pct_start <= 1))
    throw Error(fmt::format("OneCycleLR: pct_start should be between 0 and 1, got {}", pct_start));
  const std::vector<double> rates = OneCycleLR::get_lrs();  // the lowest, unless no step rises
  for (std::size_t i = 0; i < rates.size(); ++i) optimizer.param_groups()[i].options().set_lr(rates[i]);
}
std::vector<double> OneCycleLR::get_lrs() {
  const double lowest = max_lr_ / div_factor_, last = lowest / final_div_factor_;
  const double rise = pct_start_ * static_cast<double>(total_steps_) - 1;
  const double step = static_cast<double>(std::min(step_count_, total_steps_ - 1));
  const auto blend = [](double from, double to, double done) {
    return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * done));
  };
  const double rate = step <= rise
                          ? blend(lowest, max_lr_, rise > 0 ? step / rise : 1)
                          : blend(max_lr_, last, (step - rise) / (static_cast<double>(total_steps_ - 1) - rise));
  return std::vector<double>(base_lrs_.size(), rate);
}

ReduceLROnPlateauScheduler::ReduceLROnPlateauScheduler(Optimizer& optimizer, SchedulerMode mode, float factor,
                                                       int patience, double threshold, ThresholdMode threshold_mode,
                                                       int cooldown, const std::vector<float>& min_lr, double eps,
                                                       bool verbose)
    : optimizer_(optimizer),
      mode_(mode),
      factor_(factor),
      patience_(patience),
      threshold_(threshold),
      threshold_mode_(threshold_mode),
      cooldown_(cooldown),
      min_lr_(min_lr),
      eps_(eps),
      verbose_(verbose),
      best_(mode == min ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity()) {
  if (factor >= 1.0f) throw Error("Factor should be < 1.0");
  if (min_lr_.empty()) min_lr_.assign(optimizer.param_groups().size(), 0.0f);
  if (min_lr_.size() != optimizer.param_groups().size()) {
    throw Error("Number of learning rates not equal to the number of param groups: expected " +
                std::to_string(optimizer.param_groups().size()) + ", got " + std::to_string(min_lr_.size()));
  }
}

void ReduceLROnPlateauScheduler::step(float metrics) {
  expect_groups(optimizer_.param_groups().size(), min_lr_.size());
  if (is_better(metrics)) {
    best_ = metrics;
    bad_steps_ = 0;
  } else {
    ++bad_steps_;
  }
  if (cooling_ > 0) {
    --cooling_;
    bad_steps_ = 0;
  }
  if (bad_steps_ > patience_) {
    reduce();
    cooling_ = cooldown_;
    bad_steps_ = 0;
  }
}

bool ReduceLROnPlateauScheduler::is_better(double value) const {
  const double sign = mode_ == min ? -1 : 1;
  const double bound = threshold_mode_ == rel ? best_ * (1 + sign * threshold_) : best_ + sign * threshold_;
  return mode_ == min ? value < bound : value > bound;
}

void ReduceLROnPlateauScheduler::reduce() {
  auto& groups = optimizer_.param_groups();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const double old_rate = groups[i].options().get_lr();
    const double rate = std::max(old_rate * factor_, static_cast<double>(min_lr_[i]));
    if (old_rate - rate <= eps_) continue;
    groups[i].options().set_lr(rate);
    if (verbose_) TENON_WARN("reducing the learning rate of group ", i, " to ", rate);
  }
}

}  // namespace tenon::optim
