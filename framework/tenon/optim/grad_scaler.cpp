// The factor lives on the host: whether a step is taken has to be known there anyway.
#include <tenon/optim/grad_scaler.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/device/device_state.h>
#include <tenon/nn/serialize/archive.h>
#include <tenon/ops/ops.h>
#include <tenon/ops/support/values.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tenon::optim {
namespace {

std::vector<Tensor> gradients_of(const Optimizer& optimizer) {
  std::vector<Tensor> gradients;
  for (const OptimizerParamGroup& group : optimizer.param_groups()) {
    for (const Tensor& parameter : group.params()) {
      if (parameter.grad().defined()) gradients.push_back(parameter.grad());
    }
  }
  return gradients;
}

void check_interval(std::int64_t steps) {
  if (steps >= 1) return;
  throw Error(fmt::format(
      "The growth interval must be 1 step or more, not {}: a very large one lets the factor never grow.", steps));
}

/// Whether an element is infinite or NaN. Extremes of the parts are gathered on the device: no copy of a gradient, and
/// one wait for each device. Where there are no values to look at, none is.
bool is_any_infinite(const std::vector<Tensor>& gradients) {
  std::vector<std::pair<Device, std::vector<Tensor>>> by_device;
  for (const Tensor& gradient : gradients) {
    if (gradient.numel() == 0) continue;
    auto found = std::ranges::find(by_device, gradient.device(), [](const auto& entry) { return entry.first; });
    if (found == by_device.end()) found = by_device.insert(found, {gradient.device(), {}});
    for (const Tensor& extreme : {gradient.amax(), gradient.amin()}) {
      found->second.push_back(extreme.to(kFloat64).reshape({1}));
    }
  }
  return std::ranges::any_of(by_device, [](const auto& entry) {
    const Tensor all_finite = isfinite(tenon::cat(entry.second, 0)).all();
    if (!ops::has_values(all_finite) || all_finite.template item<bool>()) return false;
    // Behind addresses alone there are zeros to read.
    return device_state(entry.first).driver().properties().computes;
  });
}

}  // namespace

GradScaler::GradScaler(GradScalerOptions options) : options_(options), scale_(static_cast<float>(options.init_scale)) {
  if (!options_.enabled) return;
  if (!(scale_ > 0) || !std::isfinite(scale_)) {
    throw Error(fmt::format("The initial scale must be above 0 and finite in float32, not {}: 65536 is usual.",
                            options_.init_scale));
  }
  check_interval(options_.growth_interval);
  if (!(options_.growth_factor > 1)) {
    throw Error(fmt::format("The growth factor must be > 1.0, not {}.", options_.growth_factor));
  }
  if (!(options_.backoff_factor < 1)) {
    throw Error(fmt::format("The backoff factor must be < 1.0, not {}.", options_.backoff_factor));
  }
}

void GradScaler::set_growth_interval(std::int64_t steps) {
  check_interval(steps);
  options_.growth_interval = steps;
}

void GradScaler::check_scaled(const char* function) const {
  if (has_scaled_) return;
  throw Error(
      fmt::format("Attempted {} but _scale is None.  This may indicate your script did not use "
                  "scaler.scale(loss or outputs) earlier in the iteration.",
                  function));
}

Tensor GradScaler::scale(const Tensor& output) {
  if (!options_.enabled) return output;
  has_scaled_ = true;
  // As a tensor of float32, not as a number: a loss of 16 bits then becomes one of 32.
  return output * full({}, static_cast<double>(scale_), TensorOptions(kFloat32).device(output.device()));
}

std::vector<Tensor> GradScaler::scale(const std::vector<Tensor>& outputs) {
  std::vector<Tensor> scaled;
  for (const Tensor& output : outputs) scaled.push_back(scale(output));
  return scaled;
}

void GradScaler::unscale_(Optimizer& optimizer) {
  if (!options_.enabled) return;
  check_scaled("unscale_");
  PerOptimizer& state = optimizers_[&optimizer];
  if (state.stage == Stage::kUnscaled) {
    throw Error("unscale_() has already been called on this optimizer since the last update().");
  }
  if (state.stage == Stage::kStepped) throw Error("unscale_() is being called after step().");
  const NoGradGuard no_grad;
  const std::vector<Tensor> gradients = gradients_of(optimizer);
  for (const Tensor& gradient : gradients) {
    if (gradient.scalar_type() == kFloat16) throw ValueError("Attempting to unscale FP16 gradients.");
  }
  state.was_checked = !gradients.empty();
  state.found_inf = is_any_infinite(gradients);
  if (agreement_) {
    state.was_checked = true;  // by some rank
    state.found_inf = agreement_(state.found_inf);
  }
  const auto inverse = static_cast<float>(1 / static_cast<double>(scale_));
  for (const Tensor& gradient : gradients) gradient.mul_(static_cast<double>(inverse));
  state.stage = Stage::kUnscaled;
}

Tensor GradScaler::step(Optimizer& optimizer, const Optimizer::LossClosure& closure) {
  if (!options_.enabled) return optimizer.step(closure);
  if (closure) throw Error("Closure use is not currently supported if GradScaler is enabled.");
  Tensor result;
  step_by(optimizer, [&] { result = optimizer.step(); });
  return result;
}

void GradScaler::step_by(Optimizer& optimizer, const std::function<void()>& update) {
  if (!options_.enabled) return update();
  check_scaled("step");
  PerOptimizer& state = optimizers_[&optimizer];
  if (state.stage == Stage::kStepped) throw Error("step() has already been called since the last update().");
  if (state.stage == Stage::kReady) unscale_(optimizer);
  if (!state.was_checked) throw Error("No inf checks were recorded for this optimizer.");
  if (!state.found_inf) update();
  state.stage = Stage::kStepped;
}

void GradScaler::update(std::optional<double> new_scale) {
  if (!options_.enabled) return;
  check_scaled("update");
  if (new_scale) {
    scale_ = static_cast<float>(*new_scale);
  } else {
    const auto was_checked = [](const auto& entry) { return entry.second.was_checked; };
    const auto found_inf = [](const auto& entry) { return entry.second.found_inf; };
    if (std::ranges::none_of(optimizers_, was_checked)) throw Error("No inf checks were recorded prior to update.");
    if (std::ranges::any_of(optimizers_, found_inf)) {
      scale_ = static_cast<float>(scale_ * options_.backoff_factor);
      growth_tracker_ = 0;
    } else if (++growth_tracker_ == options_.growth_interval) {
      const auto grown = static_cast<float>(scale_ * options_.growth_factor);
      if (std::isfinite(grown)) scale_ = grown;
      growth_tracker_ = 0;
    }
  }
  optimizers_.clear();
}

std::optional<GradScalerState> GradScaler::state_dict() const {
  if (!options_.enabled) return std::nullopt;
  return GradScalerState{.scale = scale_,
                         .growth_factor = options_.growth_factor,
                         .backoff_factor = options_.backoff_factor,
                         .growth_interval = options_.growth_interval,
                         .growth_tracker = growth_tracker_};
}

void GradScaler::load_state_dict(const std::optional<GradScalerState>& state) {
  if (!options_.enabled) return;
  if (!state) {
    throw Error(
        "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler.");
  }
  scale_ = static_cast<float>(state->scale);
  options_.growth_factor = state->growth_factor;
  options_.backoff_factor = state->backoff_factor;
  options_.growth_interval = state->growth_interval;
  growth_tracker_ = state->growth_tracker;
}

void GradScaler::save(OutputArchive& archive) const {
  const std::optional<GradScalerState> state = state_dict();
  if (!state) return;
  archive.write("scale", state->scale);
  archive.write("growth_factor", state->growth_factor);
  archive.write("backoff_factor", state->backoff_factor);
  archive.write("growth_interval", state->growth_interval);
  archive.write("growth_tracker", state->growth_tracker);
}

void GradScaler::load(InputArchive& archive) {
  if (!options_.enabled) return;
  load_state_dict(GradScalerState{.scale = archive.read_real("scale"),
                                  .growth_factor = archive.read_real("growth_factor"),
                                  .backoff_factor = archive.read_real("backoff_factor"),
                                  .growth_interval = archive.read_integer("growth_interval"),
                                  .growth_tracker = archive.read_integer("growth_tracker")});
}

}  // namespace tenon::optim
