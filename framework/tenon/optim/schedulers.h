// Learning-rate schedules: call step() after each epoch or step. Each group's rate starts from the one it has at
// construction. Steps are counted as in PyTorch's Python; StepLR of libtorch's front end decays one call later.
#pragma once

#include <tenon/core/owned.h>
#include <tenon/optim/optimizer.h>

#include <functional>
#include <limits>
#include <memory>
#include <vector>

namespace tenon::optim {

class TENON_EXPORT LRScheduler {
 public:
  TENON_API explicit LRScheduler(Optimizer& optimizer);
  TENON_API virtual ~LRScheduler();
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;
  /// One step further: sets the learning rate of every group. Throws Error when groups were added since.
  TENON_API void step();

 protected:
  /// The rates that step_count_ asks for.
  virtual std::vector<double> get_lrs() = 0;
  TENON_API std::vector<double> get_current_lrs() const;
  /// The rates of another schedule of the same optimiser after so many steps; for one whose rates follow from their
  /// number alone.
  TENON_API static std::vector<double> lrs_of(LRScheduler& other, std::int64_t steps);
  /// The rates that another schedule starts from.
  static const std::vector<double>& base_lrs_of(const LRScheduler& other) { return other.base_lrs_; }

  std::int64_t step_count_ = 0;
  std::vector<double> base_lrs_;

 private:
  Optimizer& optimizer_;
};

/// Times gamma every `step_size` steps. The constructor throws Error for a step_size of 0.
class TENON_EXPORT StepLR : public LRScheduler {
 public:
  TENON_API StepLR(Optimizer& optimizer, unsigned step_size, double gamma = 0.1);

 private:
  TENON_API std::vector<double> get_lrs() override;
  const unsigned step_size_;
  const double gamma_;
};

/// Times gamma at each milestone.
class TENON_EXPORT MultiStepLR : public LRScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<std::int64_t> milestones, double gamma = 0.1)
      : LRScheduler(optimizer), milestones_(std::move(milestones)), gamma_(gamma) {}

 private:
  TENON_API std::vector<double> get_lrs() override;
  std::vector<std::int64_t> milestones_;
  double gamma_;
};

/// Base rate times what the function says for the number of steps done; the constructor sets the first rate, that of 0.
class TENON_EXPORT LambdaLR : public LRScheduler {
 public:
  TENON_API LambdaLR(Optimizer& optimizer, std::function<double(std::int64_t)> factor);

 private:
  TENON_API std::vector<double> get_lrs() override;
  std::function<double(std::int64_t)> factor_;
};

/// Half a cosine from the base rate down to eta_min over t_max steps (Loshchilov and Hutter, 2016). The constructor
/// throws Error for t_max below 1.
class TENON_EXPORT CosineAnnealingLR : public LRScheduler {
 public:
  TENON_API CosineAnnealingLR(Optimizer& optimizer, std::int64_t t_max, double eta_min = 0);

 private:
  TENON_API std::vector<double> get_lrs() override;
  std::int64_t t_max_;
  double eta_min_;
};

/// A linear factor from start_factor to end_factor over total_iters steps: a warm-up. The constructor sets the first
/// rate; it throws Error for total_iters below 1.
class TENON_EXPORT LinearLR : public LRScheduler {
 public:
  TENON_API LinearLR(Optimizer& optimizer, double start_factor = 1.0 / 3, double end_factor = 1.0,
                     std::int64_t total_iters = 5);

 private:
  TENON_API std::vector<double> get_lrs() override;
  double start_factor_, end_factor_;
  std::int64_t total_iters_;
};

/// Up on a line from 1 / steps of the base rate, reached by the constructor, to all of it, then what another schedule
/// of the same optimiser says from its beginning on. That one has to give its rates by the number of steps alone, as
/// LambdaLR, CosineAnnealingLR, LinearLR and OneCycleLR do; it is made first. The constructor throws Error for steps
/// below 1.
class TENON_EXPORT WarmupLR : public LRScheduler {
 public:
  TENON_API WarmupLR(Optimizer& optimizer, std::int64_t steps, std::unique_ptr<LRScheduler> then);

 private:
  TENON_API std::vector<double> get_lrs() override;
  std::int64_t steps_;
  Owned<LRScheduler> then_;
};

/// From max_lr / div_factor up to max_lr over pct_start of total_steps, then down to max_lr / (div_factor *
/// final_div_factor), where it stays, on cosines; the constructor sets the first rate (Smith and Topin, 2017), and
/// throws Error for total_steps below 1 and a pct_start outside of [0, 1].
class TENON_EXPORT OneCycleLR : public LRScheduler {
 public:
  TENON_API OneCycleLR(Optimizer& optimizer, double max_lr, std::int64_t total_steps, double pct_start = 0.3,
                       double div_factor = 25, double final_div_factor = 1e4);

 private:
  TENON_API std::vector<double> get_lrs() override;
  double max_lr_;
  std::int64_t total_steps_;
  double pct_start_, div_factor_, final_div_factor_;
};

/// Times `factor`, down to min_lr, when a metric has not improved for more than `patience` steps; the `cooldown` steps
/// after that are not counted, and a change of at most `eps` is not made. An improvement is one by more than
/// `threshold`, as a share of the best value (rel: beyond best * (1 - threshold) for min, best * (1 + threshold) for
/// max) or by itself (abs); NaN is none. The constructor throws Error for a factor of 1
/// and more, and unless min_lr is empty (zeros) or has a rate for each group.
class TENON_EXPORT ReduceLROnPlateauScheduler {
 public:
  enum SchedulerMode { min, max };
  enum ThresholdMode { rel, abs };
  TENON_API ReduceLROnPlateauScheduler(Optimizer& optimizer, SchedulerMode mode = min, float factor = 0.1f,
                                       int patience = 10, double threshold = 1e-4, ThresholdMode threshold_mode = rel,
                                       int cooldown = 0, const std::vector<float>& min_lr = {}, double eps = 1e-8,
                                       bool verbose = false);
  /// Takes the newest value of what is watched; lowers the rates where more than `patience` steps have not improved it.
  /// Throws Error when groups were added since.
  TENON_API void step(float metrics);

 private:
  bool is_better(double value) const;
  void reduce();

  Optimizer& optimizer_;
  SchedulerMode mode_;
  double factor_;
  int patience_;
  double threshold_;
  ThresholdMode threshold_mode_;
  int cooldown_;
  std::vector<float> min_lr_;
  double eps_;
  bool verbose_;
  double best_;
  int bad_steps_ = 0;
  int cooling_ = 0;
};

}  // namespace tenon::optim
