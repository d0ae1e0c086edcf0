// Rows of the gradient table: unary operators, each where it is smooth.
#include "gradient_case.h"

namespace tenon::testing {

#define ROW(name, low, high) \
  of_matrix(                 \
      #name, [](const Tensor& x) { return tenon::name(x); }, low, high)

std::vector<GradientCase> unary_gradients() {
  std::vector<GradientCase> rows{
      ROW(neg, -2, 2),
      ROW(abs, 0.1, 2),
      ROW(sign, 0.1, 2),
      ROW(square, -2, 2),
      ROW(exp, -1, 1),
      ROW(exp2, -1, 1),
      ROW(expm1, -1, 1),
      ROW(log, 0.2, 3),
      ROW(log2, 0.2, 3),
      ROW(log10, 0.2, 3),
      ROW(log1p, -0.5, 2),
      ROW(sqrt, 0.2, 3),
      ROW(rsqrt, 0.3, 3),
      ROW(reciprocal, 0.3, 3),
      ROW(sin, -2, 2),
      ROW(cos, -2, 2),
      ROW(tan, -1, 1),
      ROW(asin, -0.8, 0.8),
      ROW(acos, -0.8, 0.8),
      ROW(atan, -2, 2),
      ROW(sinh, -1, 1),
      ROW(cosh, -1, 1),
      ROW(tanh, -2, 2),
      ROW(asinh, -2, 2),
      ROW(acosh, 1.3, 3),
      ROW(atanh, -0.7, 0.7),
      ROW(erf, -1, 1),
      ROW(erfc, -1, 1),
      ROW(erfinv, -0.7, 0.7),
      ROW(sigmoid, -3, 3),
      ROW(relu, 0.1, 2),
      ROW(relu6, 0.5, 5),
      ROW(silu, -2, 2),
      ROW(mish, -2, 2),
      ROW(gelu, -2, 2),
      ROW(selu, 0.1, 2),
      ROW(selu, -2, -0.1),
      ROW(celu, -2, -0.1),
      ROW(elu, -2, -0.1),
      ROW(leaky_relu, -2, -0.1),
      ROW(hardtanh, -0.9, 0.9),
      ROW(hardsigmoid, -2, 2),
      ROW(hardswish, -2, 2),
      ROW(softplus, -2, 2),
      ROW(softsign, 0.1, 2),
      ROW(tanhshrink, -2, 2),
      ROW(log_sigmoid, -2, 2),
      ROW(deg2rad, -2, 2),
      ROW(rad2deg, -2, 2),
      ROW(sinc, 0.3, 1.5),
      ROW(frac, 0.1, 0.9),
      of_matrix(
          "gelu_tanh", [](const Tensor& x) { return tenon::gelu(x, "tanh"); }, -2, 2),
      of_matrix(
          "pow_scalar", [](const Tensor& x) { return x.pow(2.5); }, 0.3, 2),
      of_matrix(
          "scalar_pow", [](const Tensor& x) { return tenon::pow(Scalar(1.7), x); }, -1, 1),
      of_matrix(
          "clamp", [](const Tensor& x) { return x.clamp(-0.5, 0.5); }, -0.4, 0.4),
      of_matrix(
          "hardshrink", [](const Tensor& x) { return tenon::hardshrink(x); }, 0.6, 2),
      of_matrix(
          "softshrink", [](const Tensor& x) { return tenon::softshrink(x); }, 0.6, 2),
      of_matrix(
          "threshold", [](const Tensor& x) { return tenon::threshold(x, 0.1, 5); }, 0.2, 2),
      of_matrix(
          "rsub", [](const Tensor& x) { return Scalar(2.0) - x; }, -1, 1),
      of_matrix(
          "rdiv", [](const Tensor& x) { return Scalar(2.0) / x; }, 0.5, 2),
      ROW(ceil, 0.1, 0.9),
      ROW(floor, 0.1, 0.9),
      ROW(round, 0.6, 0.9),
      ROW(trunc, 0.1, 0.9),
      ROW(lgamma, 0.5, 3),
      ROW(digamma, 0.5, 3),
      of_matrix(
          "polygamma", [](const Tensor& x) { return tenon::polygamma(1, x); }, 0.7, 3),
      of_matrix(
          "polygamma of order 2", [](const Tensor& x) { return tenon::polygamma(2, x); }, 0.9, 3),
      of_matrix(
          "clamp_min", [](const Tensor& x) { return x.clamp_min(-0.5); }, -0.4, 0.4),
      of_matrix(
          "clamp_max", [](const Tensor& x) { return x.clamp_max(0.5); }, -0.4, 0.4),
      of_matrix("nan_to_num", [](const Tensor& x) { return tenon::nan_to_num(x); }),
  };
  // A number is a tensor of no dims.
  for (const GradientCase& row : std::vector<GradientCase>(rows)) {
    rows.push_back(row);
    rows.back().name += " of a number";
    rows.back().inputs[0].sizes = {};
  }
  return rows;
}

}  // namespace tenon::testing
