// Gradients kept within bounds.
#include <tenon/nn/clip_grad.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/ops/ops.h>
#include <tenon/ops/support/values.h>

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace tenon::nn::utils {

double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  NoGradGuard no_grad;
  std::vector<Tensor> gradients, norms;
  for (const Tensor& parameter : parameters) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  if (gradients.empty()) return 0;
  // Norms of the parts are gathered on the device, so that there is one wait for it and not one for each parameter.
  const bool infinite = norm_type == std::numeric_limits<double>::infinity();
  const Device first = gradients.front().device();  // the stages of a pipeline have theirs on several
  for (const Tensor& gradient : gradients) {
    const Tensor norm = infinite ? gradient.abs().max().reshape({1}) : gradient.norm(norm_type).reshape({1});
    norms.push_back(norm.to(first, norm.scalar_type()));
  }
  const Tensor all = tenon::cat(norms, 0);
  const Tensor norm = infinite ? all.max() : all.norm(norm_type);
  const bool known = ops::has_values(norm) || error_if_nonfinite;
  const double total = known ? norm.item<double>() : std::numeric_limits<double>::quiet_NaN();
  if (error_if_nonfinite && !std::isfinite(total)) {
    throw Error(fmt::format(
        "The total norm of order {} for gradients from `parameters` is non-finite, so it cannot be clipped. "
        "To disable this error and scale the gradients with the non-finite norm anyway, set "
        "`error_if_nonfinite=false`",
        norm_type));
  }
  const double scale = max_norm / (total + 1e-6);
  // A nan or infinite norm scales too, as in PyTorch: the gradients become nan or zero.
  if (!(scale >= 1)) {
    for (const Tensor& gradient : gradients) gradient.mul_(scale);
  }
  return total;
}

double clip_grad_norm_(const Tensor& parameter, double max_norm, double norm_type, bool error_if_nonfinite) {
  return clip_grad_norm_(std::vector<Tensor>{parameter}, max_norm, norm_type, error_if_nonfinite);
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  NoGradGuard no_grad;
  for (const Tensor& parameter : parameters) {
    if (parameter.grad().defined()) parameter.grad().clamp_(Scalar(-clip_value), Scalar(clip_value));
  }
}
void clip_grad_value_(const Tensor& parameter, double clip_value) {
  clip_grad_value_(std::vector<Tensor>{parameter}, clip_value);
}

}  // namespace tenon::nn::utils
