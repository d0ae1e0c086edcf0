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

}  // namespace

std::vector<GradientCase> front_end_gradients() {
  std::vector<GradientCase> rows;
  for (const auto& family : {arranging}) {
    for (GradientCase& row : family()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace tenon::testing
