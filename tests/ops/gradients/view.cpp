// Rows of the gradient table: views, copies, what is joined and padded, and writing into a view.
#include <tenon/tensor/shape/indexing.h>

#include "gradient_case.h"

namespace tenon::test {
namespace {

using List = std::vector<Tensor>;

std::vector<GradientCase> views() {
  return {
      of_matrix("view",
                [](const Tensor& x) {
                  return (x * 1).contiguous().view({2, -1, 2});
                })
          .empty({{0, 4}},
                 [](const List& x) {
                   return (x[0] * 1).view({0, 2, 2});
                 }),
      of_matrix("reshape",
                [](const Tensor& x) {
                  return x.reshape({4, x.size(0)});
                }),
      of_matrix("reshape of a slice", [](const Tensor& x) { return x.narrow(1, 0, 2).reshape({-1}); }),
      of_matrix("reshape as a view",
                [](const Tensor& x) {
                  return x.contiguous().reshape({x.size(0), 2, 2});
                }),
      of_matrix("flatten", [](const Tensor& x) { return x.flatten(); }),
      of_matrix("t", [](const Tensor& x) { return x.t() * x.t(); }),
      of_matrix("transpose", [](const Tensor& x) { return x.transpose(0, 1); }),
      of_matrix("permute",
                [](const Tensor& x) {
                  return x.permute({1, 0});
                }),
      of_matrix("select", [](const Tensor& x) { return x.select(1, 2); }),
      of_matrix("slice", [](const Tensor& x) { return x.slice(1, 0, 4, 2); }),
      of_matrix("diagonal", [](const Tensor& x) { return x.diagonal(1); }),
      of_matrix("diag", [](const Tensor& x) { return x.select(1, 0).diag(1); }),
      of_matrix("unfold", [](const Tensor& x) { return x.unfold(1, 2, 1); }),
      of_matrix("unfold of repeated rows",
                [](const Tensor& x) {
                  return x.unsqueeze(0).expand({2, -1, -1}).unfold(2, 2, 1);
                }),
      of_matrix("as_strided",
                [](const Tensor& x) {
                  return (x * 1).contiguous().as_strided({2, 2}, {1, 1}, 1);
                })
          .empty({{0, 4}},
                 [](const List& x) {
                   return (x[0] * 1).as_strided({0, 2}, {1, 1}, 0);
                 }),
      of_matrix("expand",
                [](const Tensor& x) {
                  return x.unsqueeze(1).expand({-1, 2, 4});
                }),
      of_matrix("squeeze", [](const Tensor& x) { return x.unsqueeze(0).squeeze(); }),
      of_matrix("squeeze dim", [](const Tensor& x) { return x.unsqueeze(0).squeeze(0); }),
      of_matrix("split", [](const Tensor& x) { return x.split(2, 1)[1]; }),
      of_matrix("split with sizes",
                [](const Tensor& x) {
                  return x.split_with_sizes({1, 3}, 1)[1];
                }),
      of_matrix("chunk", [](const Tensor& x) { return x.chunk(2, 1)[0]; }),
      of_matrix("unbind", [](const Tensor& x) { return x.unbind(1)[2]; }),
      of_matrix("movedim", [](const Tensor& x) { return x.movedim(0, 1); }),
      of_matrix("alias", [](const Tensor& x) { return x.index({indexing::Ellipsis}) * 2; }),
  };
}

std::vector<GradientCase> copies() {
  return {
      of_matrix("cat",
                [](const Tensor& x) {
                  return cat({x, x * 2}, 1);
                }),
      of_matrix("stack",
                [](const Tensor& x) {
                  return stack({x, x * x});
                }),
      of_matrix("repeat",
                [](const Tensor& x) {
                  return x.repeat({2, 3});
                }),
      of_matrix("repeat_interleave", [](const Tensor& x) { return repeat_interleave(x, 2, 1); }),
      of_matrix("flip",
                [](const Tensor& x) {
                  return x.flip({0, 1});
                }),
      of_matrix("roll", [](const Tensor& x) { return x.roll(1, 1); }),
      of_matrix("tril", [](const Tensor& x) { return x.tril(); }),
      of_matrix("triu", [](const Tensor& x) { return x.triu(1); }),
      of_matrix("pad",
                [](const Tensor& x) {
                  return constant_pad_nd(x, {1, 2, 0, 1}, 3);
                })
          .empty({{0, 4}},
                 [](const List& x) {
                   return constant_pad_nd(x[0], {1, 2}, 0);
                 }),
      of_matrix("pad reflect",
                [](const Tensor& x) {
                  return pad(x, {1, 2}, "reflect");
                })
          .empty({{0, 4}}),
      of_matrix("clone", [](const Tensor& x) { return x.clone(); }),
      of_matrix("contiguous", [](const Tensor& x) { return x.t().contiguous(); }),
      of_matrix("pin_memory", [](const Tensor& x) { return x.pin_memory(Device(kSimulated, 0)); }),
      of_matrix("to", [](const Tensor& x) { return x.to(kFloat64, false, true); }),
      of_matrix("to float32 and back", [](const Tensor& x) { return x.to(kFloat32).to(kFloat64); })
          .step(1e-2)
          .tolerance(1e-4),
  };
}

std::vector<GradientCase> writes() {
  return {
      of_matrix("in place into a view",
                [](const Tensor& x) {
                  const Tensor y = x * 1;
                  y.select(1, 1).mul_(x.select(1, 0));
                  return y;
                }),
      of_matrix("copy_ into a view",
                [](const Tensor& x) {
                  const Tensor y = x * 2;
                  y.narrow(1, 0, 2).copy_(x.narrow(1, 2, 2) * 3);
                  return y;
                }),
      of_matrix("fill_ of a view",
                [](const Tensor& x) {
                  const Tensor y = x * 2;
                  y.select(1, 0).fill_(5);
                  return y;
                }),
      of_matrix("zero_ of a view",
                [](const Tensor& x) {
                  const Tensor y = x * 2;
                  y.select(1, 3).zero_();
                  return y;
                }),
      of_matrix("copy_",
                [](const Tensor& x) {
                  const Tensor y = x * 2;
                  y.copy_(x.select(1, 0).unsqueeze(1) * 3);
                  return y;
                }),
      of_matrix("fill_",
                [](const Tensor& x) {
                  const Tensor y = x * 2;
                  y.fill_(5);
                  return y + x;
                }),
      of_matrix("zero_",
                [](const Tensor& x) {
                  const Tensor y = x * 2;
                  y.zero_();
                  return y + x;
                }),
      of_matrix("uniform_",
                [](const Tensor& x) {
                  const Tensor y = x * 2;
                  y.uniform_();
                  return y * 0 + x;
                }),
      of_matrix("uniform_ of a view",
                [](const Tensor& x) {
                  const Tensor y = x * 2;
                  y.select(1, 3).uniform_();
                  return y.narrow(1, 0, 3);
                }),
  };
}

}  // namespace

std::vector<GradientCase> view_gradients() {
  std::vector<GradientCase> rows = views();
  for (auto family : {copies, writes}) {
    for (GradientCase& row : family()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace tenon::test
