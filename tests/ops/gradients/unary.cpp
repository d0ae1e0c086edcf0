// Rows of the gradient table: unary operators. Those of kernel/rows/unary.inl come from there, with the range that each
// row names; what follows calls their functions in other ways.
#include "gradient_case.h"

namespace tenon::test {

std::vector<GradientCase> unary_gradients() {
  std::vector<GradientCase> rows{
#define TENON_UNARY(Row, name, saves, integers, out, value, slope, low, high, ...) \
  of_matrix(                                                                       \
      #name, [](const Tensor& x) { return tenon::name(x); }, low, high),
#define TENON_UNARY_WITH(Row, name, saves, integers, out, count, parameters, value, slope, low, high, ...) \
  of_matrix(                                                                                               \
      #name, [](const Tensor& x) { return tenon::name(x, TENON_CHECKED_##count parameters); }, low, high),
#include <tenon/kernel/rows/unary.inl>
      of_matrix("gelu", [](const Tensor& x) { return tenon::gelu(x); }),
      of_matrix("gelu_tanh", [](const Tensor& x) { return tenon::gelu(x, "tanh"); }),
      of_matrix(
          "pow_scalar", [](const Tensor& x) { return x.pow(2.5); }, 0.3, 2),
      of_matrix(
          "scalar_pow", [](const Tensor& x) { return tenon::pow(Scalar(1.7), x); }, -1, 1),
      of_matrix("threshold", [](const Tensor& x) { return tenon::threshold(x, 0.1, 5); }),
      of_matrix(
          "rsub", [](const Tensor& x) { return Scalar(2.0) - x; }, -1, 1),
      of_matrix(
          "rdiv", [](const Tensor& x) { return Scalar(2.0) / x; }, 0.5, 2),
      of_matrix(
          "polygamma", [](const Tensor& x) { return tenon::polygamma(1, x); }, 0.7, 3),
      of_matrix(
          "polygamma of order 2", [](const Tensor& x) { return tenon::polygamma(2, x); }, 0.9, 3),
      of_matrix("clamp", [](const Tensor& x) { return x.clamp(-0.5, 0.5); }),
      of_matrix("clamp_min", [](const Tensor& x) { return x.clamp_min(-0.5); }),
      of_matrix("clamp_max", [](const Tensor& x) { return x.clamp_max(0.5); }),
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

}  // namespace tenon::test
