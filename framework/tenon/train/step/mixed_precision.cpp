// Precisions by name, and the steps of a run in mixed precision.
#include <tenon/train/step/mixed_precision.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/ops/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tenon::train {
namespace {

const std::vector<std::pair<std::string, Precision>>& precisions() {
  static const std::vector<std::pair<std::string, Precision>> all = {
      {"float32", {}},
      {"float64", {.parameters = Dtype::kFloat64, .autocast = {}}},
      {"bfloat16", {.parameters = Dtype::kBFloat16, .autocast = {}}},
      {"bfloat16-mixed", {.parameters = Dtype::kFloat32, .autocast = Dtype::kBFloat16}},
      {"float16-mixed", {.parameters = Dtype::kFloat32, .autocast = Dtype::kFloat16}},
  };
  return all;
}

}  // namespace

std::vector<std::string> precision_names() {
  std::vector<std::string> names;
  for (const auto& [name, precision] : precisions()) names.push_back(name);
  return names;
}

Precision precision_named(std::string_view name) {
  const auto found =
      std::ranges::find(precisions(), name, [](const auto& entry) { return std::string_view(entry.first); });
  if (found == precisions().end()) throw Error(fmt::format("no precision is called '{}'", name));
  return found->second;
}

MixedPrecision::MixedPrecision(const Precision& precision, Device device)
    : device_(device), autocast_(precision.autocast), scaler_({.enabled = precision.autocast == Dtype::kFloat16}) {
  if (!autocast_) return;
  const NoGradGuard no_grad;
  try {
    const Tensor one = ones({1, 1}, TensorOptions(*autocast_).device(device));
    mm(one, one);
  } catch (const OutOfMemory&) {  // which says nothing of its products
    throw;
  } catch (const Error& error) {
    throw Error(fmt::format("{} has no products in {}: {}", device.str(), name_of(*autocast_), error.what()));
  }
}

void MixedPrecision::begin_step() {
  is_unscaled_ = false;
  if (!scaler_.is_enabled()) return;
  const std::optional<optim::GradScalerState> state = scaler_.state_dict();
  scaler_ = optim::GradScaler();
  scaler_.set_agreement(agreement_);
  scaler_.load_state_dict(state);
}

void MixedPrecision::backward(const Tensor& loss) { scaler_.scale(loss).backward(); }

void MixedPrecision::unscale(optim::Optimizer& optimizer) {
  scaler_.unscale_(optimizer);
  is_unscaled_ = true;
}

void MixedPrecision::step(optim::Optimizer& optimizer) {
  step_by(optimizer, [&] { optimizer.step(); });
}

void MixedPrecision::step_by(optim::Optimizer& optimizer, const std::function<void()>& update) {
  if (skips_) {
    scaler_.step_by(optimizer, update);
  } else {
    if (!is_unscaled_) unscale(optimizer);
    update();
  }
  is_unscaled_ = false;
  scaler_.update();
}

}  // namespace tenon::train
