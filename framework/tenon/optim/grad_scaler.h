// GradScaler: losses times a factor, so that gradients in float16 do not vanish, and the factor found as training goes.
// Names, semantics and errors are those of torch.amp.GradScaler.
//
//   optim::GradScaler scaler;
//   {
//     AutocastGuard autocast(kCUDA);
//     loss = loss_of(model->forward(x), y);
//   }
//   scaler.scale(loss).backward();
//   scaler.step(optimizer);    // divides the gradients; skips the step where one is not finite
//   scaler.update();           // the factor: less after an overflow, more after growth_interval steps without
//   optimizer.zero_grad();
#pragma once

#include <tenon/core/export.h>
#include <tenon/optim/optimizer.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace tenon::optim {

struct GradScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;             ///< above 1
  double backoff_factor = 0.5;          ///< below 1
  std::int64_t growth_interval = 2000;  ///< steps in a row without an overflow after which the factor grows
  bool enabled = true;                  ///< false: scale() returns what it is given, step() only steps
};

/// What a scaler remembers between iterations.
struct GradScalerState {
  double scale = 0, growth_factor = 0, backoff_factor = 0;
  std::int64_t growth_interval = 0, growth_tracker = 0;
  bool operator==(const GradScalerState&) const = default;
};

class TENON_API GradScaler {
 public:
  /// Throws Error for a growth factor of at most 1, a backoff factor of at least 1, an initial scale that is not above
  /// 0 and finite, and a growth interval below 1.
  explicit GradScaler(GradScalerOptions options = {});

  /// The output times the factor, in float32 where it is a scalar of 16 bits.
  Tensor scale(const Tensor& output);
  std::vector<Tensor> scale(const std::vector<Tensor>& outputs);
  /// Divides the gradients of the optimiser's parameters by the factor, and notes whether one was not finite. step()
  /// does it where it was not done before: call it yourself to clip gradients. Throws Error without a scale() before,
  /// twice for one optimiser, and after its step(); ValueError for gradients in float16, which lose what is divided.
  void unscale_(Optimizer& optimizer);
  /// The optimiser's step, unless a gradient was not finite; what the step returned, undefined where it was skipped.
  /// Throws Error without a scale() before, twice for one optimiser, without any gradient, and with a closure.
  Tensor step(Optimizer& optimizer, const Optimizer::LossClosure& closure = nullptr);
  /// The same with `update` in place of the optimiser's step, as of one that is divided over ranks. Throws Error as
  /// step().
  void step_by(Optimizer& optimizer, const std::function<void()>& update);
  /// From now on whether a gradient was not finite is what this says of what this rank found: where each rank has a
  /// part of the gradients, all of them leave a step out, or none does. torch's ShardedGradScaler.
  void set_agreement(std::function<bool(bool)> agreement) { agreement_ = std::move(agreement); }
  /// The factor for the next iteration; `new_scale` sets it. Throws Error without a scale() and a step() before.
  void update(std::optional<double> new_scale = {});

  /// The factor; 1 where the scaler is not enabled.
  double get_scale() const { return options_.enabled ? scale_ : 1; }
  /// What the factor is multiplied by after growth_interval steps without an overflow.
  double get_growth_factor() const { return options_.growth_factor; }
  /// Sets it, unchecked.
  void set_growth_factor(double factor) { options_.growth_factor = factor; }
  /// What the factor is multiplied by after an overflow.
  double get_backoff_factor() const { return options_.backoff_factor; }
  /// Sets it, unchecked.
  void set_backoff_factor(double factor) { options_.backoff_factor = factor; }
  /// Steps in a row without an overflow after which the factor grows.
  std::int64_t get_growth_interval() const { return options_.growth_interval; }
  /// Sets it. Throws Error below 1.
  void set_growth_interval(std::int64_t steps);
  /// Whether losses are scaled at all.
  bool is_enabled() const { return options_.enabled; }

  /// After update(): what load_state_dict() takes; nothing where the scaler is not enabled.
  std::optional<GradScalerState> state_dict() const;
  /// Throws Error for nothing, where the scaler is enabled.
  void load_state_dict(const std::optional<GradScalerState>& state);
  /// Writes the state into an archive; nothing where the scaler is not enabled.
  void save(OutputArchive& archive) const;
  /// Reads what save() wrote. Throws Error where the archive lacks it.
  void load(InputArchive& archive);

 private:
  enum class Stage { kReady, kUnscaled, kStepped };
  struct PerOptimizer {
    Stage stage = Stage::kReady;
    bool was_checked = false;  ///< whether there was a gradient
    bool found_inf = false;
  };
  void check_scaled(const char* function) const;

  GradScalerOptions options_;
  std::function<bool(bool)> agreement_;
  float scale_;
  std::int64_t growth_tracker_ = 0;  ///< steps in a row without an overflow
  bool has_scaled_ = false;
  std::map<const Optimizer*, PerOptimizer> optimizers_;  ///< of this iteration
};

}  // namespace tenon::optim
