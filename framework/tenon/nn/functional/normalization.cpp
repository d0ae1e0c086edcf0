// Functional normalisation.
#include <tenon/nn/functional/normalization.h>

#include <tenon/ops/ops.h>

#include <fmt/format.h>

namespace tenon::nn::functional {

namespace detail {

Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                  const Tensor& bias, bool training, double momentum, double eps) {
  if (training) {
    std::int64_t per_channel = input.dim() > 1 ? input.size(0) : 1;  // of an empty batch 0, which is not refused
    for (std::int64_t d = 2; d < input.dim(); ++d) per_channel *= input.size(d);
    if (per_channel == 1) {
      throw ValueError(fmt::format("Expected more than 1 value per channel when training, got input size {}",
                                   to_string(input.sizes())));
    }
  }
  return tenon::batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, true);
}

Tensor instance_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                     const Tensor& bias, bool use_input_stats, double momentum, double eps) {
  return tenon::instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps);
}

Tensor layer_norm(const Tensor& input, const std::vector<std::int64_t>& normalized_shape, const Tensor& weight,
                  const Tensor& bias, double eps) {
  return tenon::layer_norm(input, normalized_shape, weight, bias, eps);
}

Tensor group_norm(const Tensor& input, std::int64_t num_groups, const Tensor& weight, const Tensor& bias, double eps) {
  return tenon::group_norm(input, num_groups, weight, bias, eps);
}

Tensor local_response_norm(const Tensor& given, std::int64_t size, double alpha, double beta, double k) {
  if (given.dim() < 3)
    throw Error(fmt::format("Expected 3D or higher dimensionality input (got {} dimensions)", given.dim()));
  const Tensor input = given.is_floating_point() ? given : given.to(get_default_dtype());
  // Averages of squares over `size` neighbouring channels, with zeros outside.
  const Tensor squares = input.square().flatten(2).unsqueeze(1);  // (N, 1, C, S)
  const Tensor mean = tenon::avg_pool2d(
      tenon::cat({tenon::zeros({input.size(0), 1, size / 2, squares.size(3)}, input.options()), squares,
                  tenon::zeros({input.size(0), 1, (size - 1) / 2, squares.size(3)}, input.options())},
                 2),
      {size, 1}, {1, 1});
  return input / (mean.view(input.sizes()) * alpha + k).pow(beta);
}

}  // namespace detail

Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const BatchNormFuncOptions& o) {
  return detail::batch_norm(input, running_mean, running_var, o.weight(), o.bias(), o.training(),
                            o.momentum().value_or(0.0), o.eps());
}
Tensor instance_norm(const Tensor& input, const InstanceNormFuncOptions& o) {
  return detail::instance_norm(input, o.running_mean(), o.running_var(), o.weight(), o.bias(), o.use_input_stats(),
                               o.momentum(), o.eps());
}
Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& o) {
  return detail::layer_norm(input, o.normalized_shape(), o.weight(), o.bias(), o.eps());
}
Tensor group_norm(const Tensor& input, const GroupNormFuncOptions& o) {
  return detail::group_norm(input, o.num_groups(), o.weight(), o.bias(), o.eps());
}
Tensor local_response_norm(const Tensor& input, const LocalResponseNormFuncOptions& o) {
  return detail::local_response_norm(input, o.size(), o.alpha(), o.beta(), o.k());
}
Tensor normalize(const Tensor& input, NormalizeFuncOptions o) {
  const Tensor norm = input.norm(Scalar(o.p()), {o.dim()}, /*keepdim=*/true).clamp_min(o.eps()).expand_as(input);
  Tensor result = input / norm;
  if (!o.out()) return result;
  o.out()->copy_(result);
  return *o.out();
}

}  // namespace tenon::nn::functional
