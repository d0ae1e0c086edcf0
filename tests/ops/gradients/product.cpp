// Rows of the gradient table: products of matrices and vectors.
#include <tenon/ops/quantized/products.h>

#include "gradient_case.h"

namespace tenon::test {

using List = std::vector<Tensor>;

std::vector<GradientCase> product_gradients() {
  const Function product = [](const List& x) { return matmul(x[0], x[1]); };
  const auto matmul_of = [&](std::string name, std::vector<std::int64_t> a, std::vector<std::int64_t> b,
                             std::vector<std::vector<std::int64_t>> empty) {
    return of_tensors("matmul " + name, product, {{a, -1, 1}, {b, -1, 1}}).empty(std::move(empty));
  };
  return {
      matmul_of("of matrices", {2, 3}, {3, 2}, {{0, 3}, {3, 2}}),
      matmul_of("over nothing", {2, 3}, {3, 2}, {{2, 0}, {0, 2}}),
      matmul_of("of batches", {2, 2, 3}, {2, 3, 2}, {{0, 2, 3}, {0, 3, 2}}),
      matmul_of("of batches that broadcast", {2, 1, 2, 3}, {2, 3, 2}, {{0, 1, 2, 3}, {2, 3, 2}}),
      matmul_of("of matrix and vector", {2, 3}, {3}, {{0, 3}, {3}}),
      matmul_of("of vector and matrix", {3}, {3, 2}, {{3}, {3, 0}}),
      matmul_of("of vectors", {3}, {3}, {{0}, {0}}),
      of_tensors("addmm", [](const List& x) { return addmm(x[0], x[1], x[2], 0.5, 2.0); },
                 {{{2}, -1, 1}, {{3, 2}, -1, 1}, {{2, 2}, -1, 1}})
          .empty({{2}, {0, 2}, {2, 2}}),
      of_tensors("baddbmm", [](const List& x) { return baddbmm(x[0], x[1], x[2], 0.5, 2.0); },
                 {{{2, 1, 2}, -1, 1}, {{2, 3, 2}, -1, 1}, {{2, 2, 2}, -1, 1}})
          .empty({{0, 1, 2}, {0, 3, 2}, {0, 2, 2}}),
      of_tensors("linear", [](const List& x) { return linear(x[0], x[1], x[2]); },
                 {{{2, 2, 3}, -1, 1}, {{2, 3}, -1, 1}, {{2}, -1, 1}})
          .empty({{0, 2, 3}, {2, 3}, {2}}),
      of_tensors("weight_only_linear",
                 [](const List& x) {
                   const Tensor weight = arange(-3, 3, TensorOptions(kFloat32)).view({2, 3}).mul(0.3);
                   return quantized::weight_only_linear(x[0], quantized::pack_weight(weight.to(x[0].device()), 4),
                                                        x[1].to(kFloat32));
                 },
                 {{{2, 2, 3}, -1, 1}, {{2}, -1, 1}})
          .step(0.05)  // it is linear, and computed in float32
          .tolerance(1e-3)
          .once()
          .empty({{0, 2, 3}, {2}}),
      of_tensors("bilinear", [](const List& x) { return bilinear(x[0], x[1], x[2], x[3]); },
                 {{{2, 3}, -1, 1}, {{2, 2}, -1, 1}, {{2, 3, 2}, -1, 1}, {{2}, -1, 1}})
          .empty({{0, 3}, {0, 2}, {2, 3, 2}, {2}}),
      of_tensors("outer", [](const List& x) { return outer(x[0], x[1]); }, {{{3}, -1, 1}, {{2}, -1, 1}})
          .empty({{0}, {2}}),
      of_tensors("cross", [](const List& x) { return cross(x[0], x[1]); }, {{{2, 3}, -1, 1}, {{2, 3}, -1, 1}})
          .empty({{0, 3}, {0, 3}}),
  };
}

}  // namespace tenon::test
