// Rows of the gradient table: libtorch's functions that are written with other operators.
#include <tenon/ops/front_end.h>

#include "gradient_case.h"

namespace tenon::testing {
namespace {

using List = std::vector<Tensor>;

std::vector<GradientCase> arranging() {
  return {
      of_matrix("tensor_split", [](const Tensor& x) { return x.tensor_split(3, 1)[0]; }),
      of_matrix("movedim of lists",
                [](const Tensor& x) {
                  return x.movedim({0, 1}, {1, 0}) * 2;
                }),
      of_matrix("rot90", [](const Tensor& x) { return x.rot90(); }),
      of_matrix("diag_embed", [](const Tensor& x) { return x.diag_embed(1, 0, 2); }),
      of_matrix("tile",
                [](const Tensor& x) {
                  return x.tile({2, 1, 2});
                }),
      of_matrix("repeat_interleave by a tensor",
                [](const Tensor& x) {
                  return x.repeat_interleave(tensor({2, 0, 1, 3}), 1);
                }),
      of_matrix("tril_", [](const Tensor& x) { return (x * 1).tril_(1); }),
      of_matrix("fill_diagonal_",
                [](const Tensor& x) {
                  Tensor y = x * 1;
                  return y.fill_diagonal_(2) * x;
                }),
      of_tensors("column_stack",
                 [](const List& x) {
                   return column_stack({x[0], x[1]});
                 },
                 {{{3}}, {{3, 2}}})
          .empty({{0}, {0, 2}}),
  };
}

std::vector<GradientCase> ordering() {
  return {
      of_matrix("median dim", [](const Tensor& x) { return std::get<0>(x.median(1)); }),
      of_matrix("nanmedian", [](const Tensor& x) { return std::get<0>(x.nanmedian(1, true)); }),
      of_matrix("kthvalue", [](const Tensor& x) { return std::get<0>(x.kthvalue(2, 1)); }),
      of_matrix("mode", [](const Tensor& x) { return std::get<0>((x * 1).mode(1)); }),
      of_matrix("quantile", [](const Tensor& x) { return x.quantile(0.4, 1); }).refuses_empty("must be non-empty"),
      of_matrix("nanquantile of a list",
                [](const Tensor& x) {
                  return x.nanquantile(tensor({0.1, 0.7}, kDouble), 1, true, "midpoint");
                })
          .refuses_empty("must be non-empty"),
      of_tensors("quantile of shares", [](const List& x) { return arange(5., kDouble).square().quantile(x[0]); },
                 {{{3}, 0.3, 0.45}})
          .empty({{0}}),
      of_matrix("cummax", [](const Tensor& x) { return std::get<0>(x.cummax(1)); }),
      of_matrix("cummin", [](const Tensor& x) { return std::get<0>(x.cummin(0)); }),
      of_matrix("logcumsumexp", [](const Tensor& x) { return x.logcumsumexp(1); }),
      of_matrix("cumprod_", [](const Tensor& x) { return (x * 1).cumprod_(1); }),
      of_tensors("diff", [](const List& x) { return x[0].diff(2, 1, x[1]); }, {{{3, 4}}, {{3, 2}}})
          .empty({{0, 4}, {0, 2}}),
      of_tensors("trapezoid", [](const List& x) { return trapezoid(x[0], x[1], 1); }, {{{3, 4}}, {{4}}})
          .empty({{0, 4}, {4}}),
  };
}

}  // namespace

std::vector<GradientCase> front_end_gradients() {
  std::vector<GradientCase> rows;
  for (const auto& family : {arranging, ordering}) {
    for (GradientCase& row : family()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace tenon::testing
