// Rows of the gradient table: libtorch's functions that are written with other operators.
#include <tenon/ops/all_ops.h>

#include "gradient_case.h"

namespace tenon::test {
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
                  return x.repeat_interleave(tensor({2, 0, 1, 3}).to(x.device()), 1, 6);
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

std::vector<GradientCase> placing() {
  const auto index = [](const Tensor& x) {
    return tensor({0, 2, 0, 1, 0, 2, 2, 0, 0, 2, 0, 1}).narrow(0, 0, x.numel()).view(x.sizes()).to(x.device());
  };
  std::vector<GradientCase> rows;
  rows.push_back(of_tensors("masked_scatter",
                            [](const List& x) {
                              return x[0].masked_scatter(tensor({true, false, true, true}), x[1]);
                            },
                            {{{3, 4}}, {{10}}})
                     .empty({{0, 4}, {2}}));
  rows.push_back(of_tensors("put",
                            [](const List& x) {
                              return x[0].put(tensor({1, -1, 1}).narrow(0, 0, x[1].numel()), x[1], true);
                            },
                            {{{3, 4}}, {{3}}})
                     .empty({{0, 4}, {0}}));
  rows.push_back(of_matrix("take_along_dim", [](const Tensor& x) {
    return x.take_along_dim(tensor({{3, 0}}).to(x.device()), 1);
  }));
  rows.push_back(of_tensors("index_copy",
                            [](const List& x) {
                              return x[0].index_copy(1, tensor({3, 0}).to(x[0].device()), x[1]);
                            },
                            {{{3, 4}}, {{3, 2}}})
                     .empty({{0, 4}, {0, 2}}));
  rows.push_back(of_tensors("index_fill by a tensor",
                            [](const List& x) {
                              return x[0].index_fill(1, tensor({3, 0}).to(x[0].device()), x[1]);
                            },
                            {{{3, 4}}, {{}}})
                     .empty({{0, 4}, {}}));
  for (const char* reduce : {"sum", "prod", "mean", "amax", "amin"}) {
    for (const bool include_self : {true, false}) {
      rows.push_back(
          of_tensors(std::string("scatter_reduce ") + reduce + (include_self ? " with self" : " without self"),
                     [=](const List& x) { return x[0].scatter_reduce(0, index(x[1]), x[1], reduce, include_self); },
                     {{{3, 4}}, {{3, 4}, -1.5, 2.5}})
              .empty({{0, 4}, {0, 4}})
              .step(1e-6)
              .tolerance(2e-4));
    }
  }
  rows.push_back(of_tensors("scatter multiply",
                            [=](const List& x) { return x[0].scatter(0, index(x[1]), x[1], "multiply"); },
                            {{{3, 4}}, {{2, 3}}})
                     .empty({{0, 4}, {0, 4}}));
  return rows;
}

std::vector<GradientCase> ordering() {
  return {
      of_matrix("median dim", [](const Tensor& x) { return std::get<0>(x.median(1)); }),
      of_matrix("median of all", [](const Tensor& x) { return x.median() * x; }),
      of_matrix("nanmedian of all", [](const Tensor& x) { return x.nanmedian() * x; }),
      of_matrix("nanmedian", [](const Tensor& x) { return std::get<0>(x.nanmedian(1, true)); }),
      of_matrix("kthvalue", [](const Tensor& x) { return std::get<0>(x.kthvalue(2, 1)); }),
      of_matrix("mode", [](const Tensor& x) { return std::get<0>((x * 1).mode(1)); }),
      of_matrix("quantile", [](const Tensor& x) { return x.quantile(0.4, 1); }).refuses_empty("must be non-empty"),
      of_matrix("nanquantile of a list",
                [](const Tensor& x) {
                  return x.nanquantile(tensor({0.1, 0.7}, kDouble).to(x.device()), 1, true, "midpoint");
                })
          .refuses_empty("must be non-empty"),
      of_tensors("quantile of shares", [](const List& x) { return arange(5., x[0].options()).square().quantile(x[0]); },
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

std::vector<GradientCase> numbers() {
  return {
      of_matrix(
          "logit", [](const Tensor& x) { return x.logit(); }, 0.1, 0.9),
      of_matrix(
          "logit with eps", [](const Tensor& x) { return x.logit(0.3); }, 0, 1)
          .step(1e-6),
      of_tensors("xlogy", [](const List& x) { return xlogy(x[0], x[1]); }, {{{3, 4}}, {{4}, 0.2, 2}})
          .empty({{0, 4}, {4}}),
      of_tensors("nextafter", [](const List& x) { return nextafter(x[0], x[1]) * x[0]; }, {{{3, 4}}, {{4}}})
          .empty({{0, 4}, {4}}),
      of_tensors("fmax", [](const List& x) { return fmax(x[0], x[1]); }, {{{3, 4}}, {{4}}})
          .empty({{0, 4}, {4}})
          .step(1e-6),
      of_tensors("clamp_ by tensors",
                 [](const List& x) {
                   Tensor y = x[0] * 1;
                   return y.clamp_(x[1], x[1] + 1);
                 },
                 {{{3, 4}}, {{4}}})
          .empty({{0, 4}, {4}})
          .step(1e-6),
      of_matrix("nan_to_num_", [](const Tensor& x) { return (x * 1).nan_to_num_(); }),
      of_matrix("aminmax", [](const Tensor& x) { return std::get<0>(x.aminmax(1)) * std::get<1>(x.aminmax(1)); }),
      of_matrix("nanmean", [](const Tensor& x) { return x.nanmean(1); }),
      of_matrix("trace", [](const Tensor& x) { return x.trace(); }),
      of_tensors("dist", [](const List& x) { return dist(x[0], x[1], 3); }, {{{3, 4}}, {{4}}}).empty({{0, 4}, {4}}),
      of_matrix("renorm", [](const Tensor& x) { return x.renorm(2, 0, 1.5); }),
      of_tensors("cdist by a product", [](const List& x) { return cdist(x[0], x[1], 2, 1); },
                 {{{3, 4}}, {{2, 4}, 3, 4}})
          .empty({{0, 4}, {2, 4}}),
      of_tensors("cdist", [](const List& x) { return cdist(x[0], x[1], 3); }, {{{3, 4}}, {{2, 4}}})
          .empty({{0, 4}, {2, 4}}),
  };
}

std::vector<GradientCase> multiplying() {
  return {
      of_tensors("addmv", [](const List& x) { return x[0].addmv(x[1], x[2], 0.5, 2); }, {{{3}}, {{3, 4}}, {{4}}})
          .empty({{0}, {0, 4}, {4}}),
      of_tensors("addr", [](const List& x) { return x[0].addr(x[1], x[2], 0.5, 2); }, {{{3, 4}}, {{3}}, {{4}}})
          .empty({{0, 4}, {0}, {4}}),
      of_tensors("addbmm", [](const List& x) { return x[0].addbmm(x[1], x[2], 0.5, 2); },
                 {{{3, 2}}, {{2, 3, 4}}, {{2, 4, 2}}})
          .empty({{3, 2}, {0, 3, 4}, {0, 4, 2}}, [](const List& x) { return x[0].addbmm(x[1], x[2], 0, 2); }),
      of_tensors("inner", [](const List& x) { return inner(x[0], x[1]); }, {{{3, 4}}, {{2, 4}}})
          .empty({{0, 4}, {2, 4}}),
      of_tensors("kron", [](const List& x) { return kron(x[0], x[1]); }, {{{3, 2}}, {{4}}}).empty({{0, 2}, {4}}),
      of_tensors("tensordot",
                 [](const List& x) {
                   return tensordot(x[0], x[1], {1, 2}, {2, 0});
                 },
                 {{{2, 3, 4}}, {{4, 2, 3}}})
          .empty({{0, 3, 4}, {4, 2, 3}}),
      of_tensors("einsum",
                 [](const List& x) {
                   return einsum("bij,bkj,ki->b", {x[0], x[1], x[2]});
                 },
                 {{{2, 3, 4}}, {{2, 2, 4}}, {{2, 3}}})
          .empty({{0, 3, 4}, {0, 2, 4}, {2, 3}}),
      of_tensors("einsum of a diagonal", [](const List& x) { return einsum("...ii->...i", {x[0]}); }, {{{2, 3, 3}}})
          .empty({{0, 3, 3}}),
      of_tensors("chain_matmul",
                 [](const List& x) {
                   return chain_matmul({x[0], x[1], x[0]});
                 },
                 {{{2, 3}}, {{3, 2}}})
          .empty({{0, 3}, {3, 0}}),
      of_tensors("matrix_power", [](const List& x) { return x[0].matrix_power(3); }, {{{3, 3}}}).empty({{0, 3, 3}}),
      of_matrix("matrix_norm",
                [](const Tensor& x) {
                  return linalg::matrix_norm(x, 1, {1, 0});
                })
          .empty({{0, 4}}, [](const List& x) { return linalg::matrix_norm(x[0]); }),
      of_matrix(
          "vector_norm", [](const Tensor& x) { return linalg::vector_norm(x, -2, 1); }, 0.5, 2)
          .empty({{0, 4}}, [](const List& x) { return linalg::vector_norm(x[0], 3, 1); }),
      of_tensors("multi_margin_loss",
                 [](const List& x) {
                   return multi_margin_loss(x[0], tensor({0, 2, 3}).narrow(0, 0, x[0].size(0)).to(x[0].device()), 2,
                                            0.5, {}, 2);
                 },
                 {{{3, 4}}})
          .empty({{0, 4}}),
      of_tensors("triplet_margin_loss",
                 [](const List& x) { return triplet_margin_loss(x[0], x[1], x[2], 3, 2, 1e-6, true, 2); },
                 {{{3, 4}}, {{3, 4}}, {{3, 4}}})
          .empty({{0, 4}, {0, 4}, {0, 4}}),
  };
}

}  // namespace

std::vector<GradientCase> front_end_gradients() {
  std::vector<GradientCase> rows;
  for (const auto& family : {arranging, placing, ordering, numbers, multiplying}) {
    for (GradientCase& row : family()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace tenon::test
