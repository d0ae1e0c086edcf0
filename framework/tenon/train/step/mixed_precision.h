// What train.precision means: the dtype of parameters, autocast around forward passes, and the factor of the loss that
// keeps gradients in float16 from vanishing.
#pragma once

#include <tenon/autograd/autocast.h>
#include <tenon/core/device.h>
#include <tenon/core/dtype.h>
#include <tenon/optim/grad_scaler.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::train {

/// A precision that a run may have.
struct Precision {
  Dtype parameters = Dtype::kFloat32;  ///< and of all else where there is no autocast
  std::optional<Dtype> autocast;       ///< of products and convolutions, beside parameters in float32
};

/// "float32", "float64", "bfloat16": all of it; "bfloat16-mixed", "float16-mixed": autocast.
std::vector<std::string> precision_names();
/// One of them.
Precision precision_named(std::string_view name);

/// Mixed precision of one run.
class MixedPrecision {
 public:
  /// Throws Error where the device has no products in autocast's dtype.
  MixedPrecision(const Precision& precision, Device device);

  /// Autocast while it lives, where the run has it: around the forward pass and the loss, not around backward.
  class ForwardPass {
   public:
    explicit ForwardPass(const MixedPrecision& precision) {
      if (precision.autocast_) guard_.emplace(precision.device_, *precision.autocast_);
    }

   private:
    std::optional<AutocastGuard> guard_;
  };
  ForwardPass forward_pass() const { return ForwardPass(*this); }

  /// Before a step: forgets what one that did not come to its end left of itself.
  void begin_step();
  /// Backward from the loss, times the factor.
  void backward(const Tensor& loss);
  /// Before gradients are looked at or changed: divides them by the factor.
  void unscale(optim::Optimizer& optimizer);
  /// The optimiser's step, left out where a gradient is not finite, and the factor for the next one.
  void step(optim::Optimizer& optimizer);
  /// The same with `update` in place of the optimiser's step.
  void step_by(optim::Optimizer& optimizer, const std::function<void()>& update);
  /// Each rank has a part of the gradients: whether a step is left out is what this says of what one of them found.
  void agree_by(std::function<bool(bool)> agreement) { agreement_ = std::move(agreement); }

  /// From now on no step is left out: for runs whose memory is what is asked for, and not their values.
  void never_skip() { skips_ = false; }

  /// Enabled for float16 only.
  const optim::GradScaler& scaler() const { return scaler_; }
  optim::GradScaler& scaler() { return scaler_; }

 private:
  Device device_;
  std::optional<Dtype> autocast_;
  optim::GradScaler scaler_;
  bool skips_ = true, is_unscaled_ = false;
  std::function<bool(bool)> agreement_;
};

}  // namespace tenon::train
