// Numeric gradient check: central differences in float64 against what backward gives, for the first and second
// derivative.
#pragma once

#include <tenon/autograd/autograd.h>
#include <tenon/ops/ops.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace tenon::test {

using Function = std::function<Tensor(const std::vector<Tensor>&)>;

struct GradCheck {
  double step = 1e-5;
  double tolerance = 1e-5;
  bool twice = true;  ///< also the gradient of the gradient
};

/// Weighted sum, so that every output element counts differently.
inline Tensor weighted(const Tensor& output) {
  const Tensor weights = arange(1, output.numel() + 1, TensorOptions(kFloat64)).mul(0.37).cos().view(output.sizes());
  return output.mul(weights).sum();
}

inline void compare_gradients(const std::string& name, const Function& function, const std::vector<Tensor>& inputs,
                              const GradCheck& check) {
  std::vector<Tensor> wanted;
  for (const Tensor& input : inputs) {
    if (input.requires_grad()) wanted.push_back(input);
  }
  const Tensor loss = weighted(function(inputs));
  const auto gradients = autograd::grad({loss}, wanted, {}, std::nullopt, false, true);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Tensor analytic = gradients[i].defined() ? gradients[i].contiguous() : zeros_like(wanted[i]).contiguous();
    ASSERT_EQ(analytic.sizes().vec(), wanted[i].sizes().vec()) << name << ", input " << i;
    // Element by element through the input's own strides.
    NoGradGuard no_grad;
    const Tensor flat_analytic = analytic.reshape({-1});
    std::vector<std::int64_t> at(static_cast<std::size_t>(wanted[i].dim()), 0);
    for (std::int64_t element = 0; element < wanted[i].numel(); ++element) {
      std::int64_t rest = element;
      Tensor place = wanted[i].detach();
      for (std::int64_t dim = wanted[i].dim() - 1; dim >= 0; --dim) {
        at[static_cast<std::size_t>(dim)] = rest % wanted[i].size(dim);
        rest /= wanted[i].size(dim);
      }
      for (const std::int64_t index : at) place = place.select(0, index);
      const double value = place.item<double>();
      place.fill_(value + check.step);
      const double above = weighted(function(inputs)).item<double>();
      place.fill_(value - check.step);
      const double below = weighted(function(inputs)).item<double>();
      place.fill_(value);
      const double numeric = (above - below) / (2 * check.step);
      const double seen = flat_analytic.select(0, element).item<double>();
      ASSERT_NEAR(seen, numeric, check.tolerance * std::max(1.0, std::abs(numeric)))
          << name << ", input " << i << " of sizes " << to_string(wanted[i].sizes()) << ", element " << element;
    }
  }
}

/// First derivatives, and the derivative of the gradient where asked.
inline void check_gradients(const std::string& name, const Function& function, const std::vector<Tensor>& inputs,
                            GradCheck check = {}) {
  compare_gradients(name, function, inputs, check);
  if (!check.twice || ::testing::Test::HasFatalFailure()) return;
  const Function gradient = [&](const std::vector<Tensor>& at) {
    AutoGradMode grad(true);
    std::vector<Tensor> wanted;
    for (const Tensor& input : at) {
      if (input.requires_grad()) wanted.push_back(input);
    }
    // The square makes the gradient that arrives depend on the inputs too.
    const Tensor output = function(at);
    const Tensor loss = weighted(output * output);
    const auto gradients = autograd::grad({loss}, wanted, {}, std::nullopt, true, true);
    Tensor total = loss.mul(0);
    for (const Tensor& one : gradients) {
      if (one.defined()) total = total + weighted(one);
    }
    return total;
  };
  GradCheck second = check;
  second.tolerance = 20 * check.tolerance;
  compare_gradients(name + " (second derivative)", gradient, inputs, second);
}

}  // namespace tenon::test
