// Rows of the gradient table: reductions, scans, sorting, softmax.
#include <limits>

#include "gradient_case.h"

namespace tenon::test {

std::vector<GradientCase> reduction_gradients() {
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {
      of_matrix("sum", [](const Tensor& x) { return x.sum(); }),
      of_matrix("sum dim", [](const Tensor& x) { return x.sum(0); }),
      of_matrix("sum keepdim", [](const Tensor& x) { return x.sum(1, true); }),
      of_matrix("mean", [](const Tensor& x) { return x.mean(); }),
      of_matrix("mean dim", [](const Tensor& x) { return x.mean(1); }),
      of_matrix("prod", [](const Tensor& x) { return x.prod(); }),
      of_matrix("prod dim", [](const Tensor& x) { return x.prod(1); }),
      of_matrix("amax", [](const Tensor& x) { return x.amax(1); }),
      of_matrix("amin",
                [](const Tensor& x) {
                  return x.amin({0, 1});
                })
          .refuses_empty("amin"),
      of_matrix("max", [](const Tensor& x) { return x.max(); }).refuses_empty("max"),
      of_matrix("min", [](const Tensor& x) { return x.min(); }).refuses_empty("min"),
      of_matrix("max dim", [](const Tensor& x) { return std::get<0>(x.max(1)); }),
      of_matrix("min dim", [](const Tensor& x) { return std::get<0>(x.min(0, true)); }).refuses_empty("min"),
      of_matrix("norm", [](const Tensor& x) { return x.norm(); }),
      of_matrix(
          "norm 1", [](const Tensor& x) { return x.norm(1, 1); }, 0.2, 2),
      of_matrix(
          "norm 3", [](const Tensor& x) { return x.norm(3, 0); }, 0.2, 2),
      of_matrix("norm inf", [](const Tensor& x) { return x.norm(kInfinity, 1); }),
      of_matrix("var", [](const Tensor& x) { return x.var(); }),
      of_matrix("var dim", [](const Tensor& x) { return x.var(1); }),
      of_matrix("std", [](const Tensor& x) { return x.std(false); }),
      // Along the dim whose elements are not one element seen three times: a deviation of 0 has no slope.
      of_matrix("std dim", [](const Tensor& x) { return x.std(OptionalIntArrayRef(1), true, true); }),
      of_matrix("var_mean", [](const Tensor& x) { return std::get<0>(var_mean(x, 1)) + std::get<1>(var_mean(x, 1)); }),
      of_matrix("cumsum", [](const Tensor& x) { return x.cumsum(1); }),
      of_matrix("cumprod", [](const Tensor& x) { return x.cumprod(1); }),
      of_matrix("sort", [](const Tensor& x) { return std::get<0>(x.sort(1)); }),
      of_matrix("topk", [](const Tensor& x) { return std::get<0>(x.topk(2, 1)); }),
      of_matrix("softmax", [](const Tensor& x) { return x.softmax(1); }),
      of_matrix("softmin", [](const Tensor& x) { return softmin(x, 1); }),
      of_matrix("log_softmax", [](const Tensor& x) { return x.log_softmax(0); }),
      of_matrix("logsumexp", [](const Tensor& x) { return x.logsumexp(1); }),
  };
}

}  // namespace tenon::test
