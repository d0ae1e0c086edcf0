// What operators give is a tensor of its own: no view, not written yet, free to be written in place, whatever it was
// made of; and operators that write in place, or give a view, say so by versions and memory.
#include "../../support/message_of.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/all_ops.h>
#include <tenon/ops/nn/resample.h>
#include <tenon/tensor/literal.h>

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

using Making = std::pair<const char*, std::function<Tensor(const Tensor&)>>;

// Long: a list.
/// Of a tensor (2, 3, 4, 4) of float64.
std::vector<Making> makings() {
  const Tensor w = ones({2, 3, 2, 2}, kFloat64), index = tensor({0, 1});
  const auto row = [](const Tensor& x) { return x.select(0, 0).select(0, 0).select(0, 0); };
  const auto matrix = [](const Tensor& x) { return x.select(0, 0).select(0, 0); };
  return {
      {"mv", [=](const Tensor& x) { return mv(matrix(x), row(x)); }},
      {"dot", [=](const Tensor& x) { return dot(row(x), row(x)); }},
      {"vector times matrix", [=](const Tensor& x) { return matmul(row(x), matrix(x)); }},
      {"matmul of batches", [](const Tensor& x) { return matmul(x, x); }},
      {"matmul of a batch with a matrix", [=](const Tensor& x) { return matmul(x, matrix(x)); }},
      {"linear", [=](const Tensor& x) { return linear(x, matrix(x), row(x)); }},
      {"bilinear",
       [](const Tensor& x) {
         return bilinear(x, x, ones({2, 4, 4}, kFloat64), std::nullopt);
       }},
      {"addmv", [=](const Tensor& x) { return row(x).addmv(matrix(x), row(x)); }},
      {"kron", [=](const Tensor& x) { return row(x).kron(row(x)); }},
      {"conv2d", [=](const Tensor& x) { return conv2d(x, w); }},
      {"max_pool2d", [](const Tensor& x) { return max_pool2d(x, 2); }},
      {"avg_pool2d without a batch", [](const Tensor& x) { return avg_pool2d(x.select(0, 0), 2); }},
      {"adaptive_avg_pool2d without a batch", [](const Tensor& x) { return adaptive_avg_pool2d(x.select(0, 0), 2); }},
      {"im2col without a batch", [](const Tensor& x) { return im2col(x.select(0, 0), 2, 1, 0, 1); }},
      {"pixel_unshuffle", [](const Tensor& x) { return pixel_unshuffle(x, 2); }},
      {"grid_sampler",
       [](const Tensor& x) {
         return grid_sampler(x, zeros({2, 1, 1, 2}, kFloat64), 0, 0, false);
       }},
      {"resample", [](const Tensor& x) { return resample(x, 3, 7); }},
      {"batch_norm", [](const Tensor& x) { return batch_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5); }},
      {"instance_norm", [](const Tensor& x) { return instance_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5); }},
      {"layer_norm", [](const Tensor& x) { return layer_norm(x, {4}); }},
      {"attention", [](const Tensor& x) { return scaled_dot_product_attention(x, x, x); }},
      {"attention of matrices",
       [=](const Tensor& x) { return scaled_dot_product_attention(matrix(x), matrix(x), matrix(x)); }},
      {"cat",
       [](const Tensor& x) {
         return cat({x, x}, 1);
       }},
      {"stack",
       [](const Tensor& x) {
         return stack({x, x}, 1);
       }},
      {"roll", [](const Tensor& x) { return x.roll(1, 1); }},
      {"roll of all", [](const Tensor& x) { return x.roll(1, std::vector<std::int64_t>{}); }},
      {"flip", [](const Tensor& x) { return x.flip(1); }},
      {"repeat",
       [](const Tensor& x) {
         return x.repeat({1, 1, 1, 2});
       }},
      {"repeat_interleave", [](const Tensor& x) { return x.repeat_interleave(2, 1); }},
      {"constant_pad_nd",
       [](const Tensor& x) {
         return constant_pad_nd(x, {1, 1}, 0);
       }},
      {"pad",
       [](const Tensor& x) {
         return pad(x, {1, 1}, "reflect", std::nullopt);
       }},
      {"diag", [=](const Tensor& x) { return row(x).diag(); }},
      {"diag_embed", [](const Tensor& x) { return x.select(0, 0).diag_embed(); }},
      {"slice_scatter", [](const Tensor& x) { return x.slice_scatter(x.slice(1, 0, 1), 1, 0, 1); }},
      {"block_diag",
       [=](const Tensor& x) {
         return block_diag({matrix(x), matrix(x)});
       }},
      {"index_select", [=](const Tensor& x) { return x.index_select(1, index); }},
      {"index", [=](const Tensor& x) { return x.index({index}); }},
      {"index_add", [=](const Tensor& x) { return x.index_add(0, index, x); }},
      {"index_fill", [=](const Tensor& x) { return x.index_fill(0, tensor({1}), 0); }},
      {"gather",
       [](const Tensor& x) {
         return x.gather(0, zeros({1, 3, 4, 4}, kInt64));
       }},
      {"scatter_reduce",
       [](const Tensor& x) {
         return x.scatter_reduce(0, zeros({1, 3, 4, 4}, kInt64), x, "amax");
       }},
      {"masked_fill", [](const Tensor& x) { return x.masked_fill(x.detach().gt(0), 1); }},
      {"where", [](const Tensor& x) { return where(x.detach().gt(0), x, x); }},
      {"sum", [](const Tensor& x) { return x.sum(1); }},
      {"amax", [](const Tensor& x) { return x.amax(1); }},
      {"max along a dimension", [](const Tensor& x) { return std::get<0>(x.max(1)); }},
      {"median", [](const Tensor& x) { return std::get<0>(x.median(1)); }},
      {"kthvalue", [](const Tensor& x) { return std::get<0>(x.kthvalue(1, 1)); }},
      {"quantile", [](const Tensor& x) { return x.quantile(0.3, 1); }},
      {"logsumexp", [](const Tensor& x) { return x.logsumexp(1); }},
      {"cumsum", [](const Tensor& x) { return x.cumsum(1); }},
      {"nll_loss",
       [](const Tensor& x) {
         return nll_loss_nd(x, zeros({2, 4, 4}, kInt64), {}, 0, -100);
       }},
      {"multi_margin_loss", [=](const Tensor& x) { return multi_margin_loss(row(x), tensor(1), 1, 1, {}, 0); }},
      {"binary_cross_entropy",
       [](const Tensor& x) { return binary_cross_entropy(x.sigmoid(), x.detach().sigmoid(), {}, 0); }},
      {"dropout", [](const Tensor& x) { return dropout(x, 0.5, true); }},
      {"embedding", [=](const Tensor& x) { return embedding(matrix(x), index, -1, false, false); }},
      {"matrix_norm",
       [=](const Tensor& x) {
         return linalg::matrix_norm(matrix(x), 1, {0, 1});
       }},
      {"affine_grid",
       [=](const Tensor& x) {
         return affine_grid_generator(x.select(0, 0).slice(1, 0, 2).slice(2, 0, 3), {3, 1, 2, 2}, false);
       }},
  };
}

TEST(FreshRules, WhatIsMadeIsATensorOfItsOwn) {
  for (const bool with_gradient : {true, false}) {
    for (const auto& [name, make] : makings()) {
      const Tensor x =
          arange(96, TensorOptions(kFloat64)).sin().view({2, 3, 4, 4}).clone().set_requires_grad(with_gradient);
      SCOPED_TRACE(name);
      Tensor y;
      {
        // A view made without grad mode may not be written in it.
        std::optional<NoGradGuard> no_grad;
        if (!with_gradient) no_grad.emplace();
        y = make(x);
      }
      EXPECT_EQ(y.requires_grad(), with_gradient);
      EXPECT_FALSE(y.is_view());
      EXPECT_EQ(y._version(), 0);
      EXPECT_FALSE(y.is_alias_of(x));
      const Tensor grows = ones({}, kFloat64).requires_grad_();
      Tensor written = y;
      EXPECT_NO_THROW(written.mul_(grows));
      if (!with_gradient) {  // else the node may have saved it
        EXPECT_NO_THROW(written.add_(1).sum().backward());
      }
    }
  }
}

TEST(FreshRules, RandomTensorsAreNotWrittenYet) {
  for (const Tensor& one :
       {rand({2}), randn({2}), normal(0, 1, {2}, std::nullopt, {}), randint(0, 5, {2}, {}), randperm(3),
        rand_like(ones({3}).expand({2, 3})), randn_like(ones({3, 2}).t()), randint_like(ones({2}), 5),
        bernoulli(full({2}, 0.5)), ones({2}).bernoulli(), hann_window(1)})
    EXPECT_EQ(one._version(), 0);
}

TEST(FreshRules, WhatIsMadeOfSeveralLiesAsTheFirstOfAllSizesDoes) {
  using Of = std::function<Tensor(const Tensor&, const Tensor&)>;
  const std::vector<std::pair<const char*, Of>> makings{
      {"add", [](const Tensor& x, const Tensor& y) { return x + y; }},
      {"eq", [](const Tensor& x, const Tensor& y) { return x.eq(y); }},
      {"atan2", [](const Tensor& x, const Tensor& y) { return x.atan2(y); }},
      {"xlogy", [](const Tensor& x, const Tensor& y) { return x.xlogy(y); }},
      {"xlog1py", [](const Tensor& x, const Tensor& y) { return special_xlog1py(x, y); }},
      {"heaviside", [](const Tensor& x, const Tensor& y) { return x.heaviside(y); }},
      {"fmax", [](const Tensor& x, const Tensor& y) { return x.fmax(y); }},
      {"fmin", [](const Tensor& x, const Tensor& y) { return x.fmin(y); }},
      {"nextafter", [](const Tensor& x, const Tensor& y) { return x.nextafter(y); }},
      {"gcd", [](const Tensor& x, const Tensor& y) { return x.to(kInt64).gcd(y.to(kInt64)); }},
      {"lcm", [](const Tensor& x, const Tensor& y) { return x.to(kInt64).lcm(y.to(kInt64)); }},
      {"shift", [](const Tensor& x, const Tensor& y) { return x.to(kInt64).bitwise_left_shift(y.to(kInt64)); }},
      {"where", [](const Tensor& x, const Tensor& y) { return where(x.gt(0), y, y); }},
      {"lerp", [](const Tensor& x, const Tensor& y) { return x.lerp(y, 0.5); }},
      {"addcmul", [](const Tensor& x, const Tensor& y) { return x.addcmul(y, y); }},
      {"addcdiv", [](const Tensor& x, const Tensor& y) { return x.addcdiv(y, y); }},
      {"huber_loss", [](const Tensor& x, const Tensor& y) { return huber_loss(x, y, 0, 1); }},
  };
  const Tensor plain = ones({2, 3, 4}), turned = ones({4, 3, 2}).permute({2, 1, 0}),
               cut = ones({2, 3, 8}).slice(2, 0, 8, 2);
  for (const auto& [name, make] : makings) {
    SCOPED_TRACE(name);
    EXPECT_EQ(make(turned, plain).strides().vec(), turned.strides().vec());
    EXPECT_EQ(make(plain, turned).strides().vec(), plain.strides().vec());
    EXPECT_EQ(make(turned, turned).strides().vec(), turned.strides().vec());
    EXPECT_EQ(make(cut, turned).strides().vec(), plain.strides().vec()) << "its order, without holes";
  }
}

}  // namespace
}  // namespace tenon::test
