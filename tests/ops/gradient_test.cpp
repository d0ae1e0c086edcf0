// Reductions, products, convolutions, normalisations, losses, views and indexing against differences.
#include <tenon/tensor/indexing.h>

#include "gradcheck.h"

namespace tenon::testing {
namespace {

using List = std::vector<Tensor>;

void check1(const std::string& name, const std::function<Tensor(const Tensor&)>& function, double low = -2,
            double high = 2) {
  const Function list = [&](const List& x) { return function(x[0]); };
  check_gradients(name + " contiguous", list, {leaf({3, 4}, low, high)});
  check_gradients(name + " strided", list, {strided_leaf(3, 4, low, high)});
}

TEST(Gradient, Reductions) {
  manual_seed(21);
  check1("sum", [](const Tensor& x) { return x.sum(); });
  check1("sum dim", [](const Tensor& x) { return x.sum(0); });
  check1("sum keepdim", [](const Tensor& x) { return x.sum(1, true); });
  check1("mean", [](const Tensor& x) { return x.mean(); });
  check1("mean dim", [](const Tensor& x) { return x.mean(1); });
  check1("prod", [](const Tensor& x) { return x.prod(); });
  check1("prod dim", [](const Tensor& x) { return x.prod(1); });
  check1("amax", [](const Tensor& x) { return x.amax(1); });
  check1("amin", [](const Tensor& x) { return x.amin({0, 1}); });
  check1("max dim", [](const Tensor& x) { return std::get<0>(x.max(1)); });
  check1("min dim", [](const Tensor& x) { return std::get<0>(x.min(0, true)); });
  check1("norm", [](const Tensor& x) { return x.norm(); });
  check1(
      "norm 1", [](const Tensor& x) { return x.norm(1, 1); }, 0.2, 2);
  check1(
      "norm 3", [](const Tensor& x) { return x.norm(3, 0); }, 0.2, 2);
  check1("norm inf", [](const Tensor& x) { return x.norm(std::numeric_limits<double>::infinity(), 1); });
  check1("var", [](const Tensor& x) { return x.var(); });
  check1("var dim", [](const Tensor& x) { return x.var(1); });
  check1("std", [](const Tensor& x) { return x.std(false); });
  check1("std dim", [](const Tensor& x) { return x.std(OptionalIntArrayRef(0), true, true); });
  check1("cumsum", [](const Tensor& x) { return x.cumsum(1); });
  check1("cumprod", [](const Tensor& x) { return x.cumprod(1); });
  check1("sort", [](const Tensor& x) { return std::get<0>(x.sort(1)); });
  check1("topk", [](const Tensor& x) { return std::get<0>(x.topk(2, 1)); });
  check1("softmax", [](const Tensor& x) { return x.softmax(1); });
  check1("log_softmax", [](const Tensor& x) { return x.log_softmax(0); });
  check1("logsumexp", [](const Tensor& x) { return x.logsumexp(1); });
}

TEST(Gradient, Views) {
  manual_seed(22);
  check1("view", [](const Tensor& x) { return x.reshape({2, 6}); });
  check1("t", [](const Tensor& x) { return x.t() * x.t(); });
  check1("permute", [](const Tensor& x) { return x.permute({1, 0}); });
  check1("select", [](const Tensor& x) { return x.select(1, 2); });
  check1("slice", [](const Tensor& x) { return x.slice(1, 0, 4, 2); });
  check1("diagonal", [](const Tensor& x) { return x.diagonal(1); });
  check1("unfold", [](const Tensor& x) { return x.unfold(1, 2, 1); });
  check1("as_strided", [](const Tensor& x) { return x.contiguous().as_strided({2, 2}, {1, 1}, 1); });
  check1("expand", [](const Tensor& x) { return x.unsqueeze(1).expand({3, 2, 4}); });
  check1("squeeze", [](const Tensor& x) { return x.unsqueeze(0).squeeze(0); });
  check1("split", [](const Tensor& x) { return x.split(2, 1)[1]; });
  check1("unbind", [](const Tensor& x) { return x.unbind(0)[2]; });
  check1("cat", [](const Tensor& x) { return cat({x, x * 2}, 1); });
  check1("stack", [](const Tensor& x) { return stack({x, x * x}); });
  check1("repeat", [](const Tensor& x) { return x.repeat({2, 3}); });
  check1("flip", [](const Tensor& x) { return x.flip({0, 1}); });
  check1("roll", [](const Tensor& x) { return x.roll(1, 1); });
  check1("tril", [](const Tensor& x) { return x.tril(); });
  check1("triu", [](const Tensor& x) { return x.triu(1); });
  check1("pad", [](const Tensor& x) { return constant_pad_nd(x, {1, 2, 0, 1}, 3); });
  check1("pad reflect", [](const Tensor& x) { return pad(x, {1, 2}, "reflect"); });
  check1("clone", [](const Tensor& x) { return x.clone(); });
  check1("to", [](const Tensor& x) { return x.to(kFloat64, false, true); });
}

TEST(Gradient, Indexing) {
  manual_seed(23);
  using namespace indexing;
  check1("index", [](const Tensor& x) { return x.index({tensor({2, 0, 2}), tensor({1, 1, 3})}); });
  check1("index slice", [](const Tensor& x) { return x.index({Slice(1, None), tensor({0, 0})}); });
  check1("mask", [](const Tensor& x) { return x.index({tensor({true, false, true})}); });
  check1("index_select", [](const Tensor& x) { return x.index_select(1, tensor({1, 1, 0})); });
  check1("gather", [](const Tensor& x) { return x.gather(1, tensor({{0, 0}, {1, 2}, {3, 3}})); });
  check1("scatter_add", [](const Tensor& x) {
    return x.scatter_add(1, tensor({{0, 0}, {1, 2}, {3, 3}}), x.narrow(1, 0, 2) * 2);
  });
  check1("scatter", [](const Tensor& x) { return (x * 1).scatter(1, tensor({{0}, {1}, {3}}), x.narrow(1, 2, 1) * 2); });
  check1("index_add", [](const Tensor& x) { return x.index_add(0, tensor({1, 1}), x.narrow(0, 0, 2)); });
  check1("index_put", [](const Tensor& x) {
    return (x * 1).index_put(std::vector<std::optional<Tensor>>{tensor({0, 1})}, x.narrow(0, 1, 2) * 3);
  });
  check1("masked_fill", [](const Tensor& x) { return x.masked_fill(tensor({true, false, true, false}), 2); });
  check1("masked_select", [](const Tensor& x) { return x.masked_select(tensor({true, false, true, false})); });
  check1("view then in place", [](const Tensor& x) {
    const Tensor y = x * 1;
    y.select(0, 1).mul_(x.select(0, 0));
    return y;
  });
  check_gradients("embedding",
                  [](const List& x) {
                    return embedding(x[0], tensor({{1, 0}, {2, 1}}));
                  },
                  {leaf({3, 2}, -1, 1)});
}

TEST(Gradient, Products) {
  manual_seed(24);
  const Function product = [](const List& x) { return matmul(x[0], x[1]); };
  check_gradients("mm", product, {leaf({2, 3}, -1, 1), leaf({3, 2}, -1, 1)});
  check_gradients("mm strided", product, {strided_leaf(2, 3, -1, 1), strided_leaf(3, 2, -1, 1)});
  check_gradients("bmm", product, {leaf({2, 2, 3}, -1, 1), leaf({2, 3, 2}, -1, 1)});
  check_gradients("broadcast", product, {leaf({2, 1, 2, 3}, -1, 1), leaf({2, 3, 2}, -1, 1)});
  check_gradients("mv", product, {leaf({2, 3}, -1, 1), leaf({3}, -1, 1)});
  check_gradients("vm", product, {leaf({3}, -1, 1), leaf({3, 2}, -1, 1)});
  check_gradients("dot", product, {leaf({3}, -1, 1), leaf({3}, -1, 1)});
  check_gradients("addmm", [](const List& x) { return addmm(x[0], x[1], x[2], 0.5, 2.0); },
                  {leaf({2}, -1, 1), leaf({3, 2}, -1, 1), leaf({2, 2}, -1, 1)});
  check_gradients("linear", [](const List& x) { return linear(x[0], x[1], x[2]); },
                  {leaf({2, 2, 3}, -1, 1), leaf({2, 3}, -1, 1), leaf({2}, -1, 1)});
  check_gradients("cross", [](const List& x) { return cross(x[0], x[1]); }, {leaf({2, 3}, -1, 1), leaf({2, 3}, -1, 1)});
  const Tensor none = leaf({0, 3}, -1, 1);
  const Tensor matrix = leaf({3, 2}, -1, 1);
  mm(none, matrix).sum().backward();
  EXPECT_TRUE(matrix.grad().equal(zeros({3, 2}, kFloat64)));
}

TEST(Gradient, Convolutions) {
  manual_seed(25);
  check_gradients("conv1d", [](const List& x) { return conv1d(x[0], x[1], x[2], 2, 1); },
                  {leaf({1, 2, 5}, -1, 1), leaf({2, 2, 3}, -1, 1), leaf({2}, -1, 1)});
  check_gradients("conv2d",
                  [](const List& x) {
                    return conv2d(x[0], x[1], x[2], {1, 2}, 1, 1);
                  },
                  {leaf({1, 2, 3, 4}, -1, 1), leaf({2, 2, 2, 3}, -1, 1), leaf({2}, -1, 1)});
  check_gradients("conv2d groups", [](const List& x) { return conv2d(x[0], x[1], Tensor(), 1, IntArrayRef({0}), 2, 2); },
                  {leaf({1, 2, 4, 4}, -1, 1), leaf({2, 1, 2, 2}, -1, 1)});
  check_gradients("conv3d", [](const List& x) { return conv3d(x[0], x[1]); },
                  {leaf({1, 1, 2, 3, 3}, -1, 1), leaf({1, 1, 2, 2, 2}, -1, 1)});
  check_gradients("conv_transpose2d", [](const List& x) { return conv_transpose2d(x[0], x[1], x[2], 2, 1, 1); },
                  {leaf({1, 2, 2, 2}, -1, 1), leaf({2, 1, 3, 3}, -1, 1), leaf({1}, -1, 1)});
  const auto pool = [](const std::string& name, const std::function<Tensor(const Tensor&)>& function) {
    check_gradients(name, [&](const List& x) { return function(x[0]); }, {leaf({1, 2, 4, 4}, -1, 1)});
  };
  pool("max_pool2d", [](const Tensor& x) { return max_pool2d(x, 2, 2); });
  pool("max_pool2d padded", [](const Tensor& x) { return max_pool2d(x, 3, 2, 1); });
  pool("avg_pool2d", [](const Tensor& x) { return avg_pool2d(x, 3, 2, 1); });
  pool("adaptive_avg_pool2d", [](const Tensor& x) { return adaptive_avg_pool2d(x, 3); });
  pool("adaptive_max_pool2d", [](const Tensor& x) { return std::get<0>(adaptive_max_pool2d(x, 2)); });
  pool("im2col", [](const Tensor& x) { return im2col(x, 2, 1, 0, 1); });
}

TEST(Gradient, NormalisationsAndLosses) {
  manual_seed(26);
  check_gradients("layer_norm", [](const List& x) { return layer_norm(x[0], {4}, x[1], x[2]); },
                  {leaf({3, 4}, -1, 1), leaf({4}, 0.5, 1), leaf({4}, -1, 1)}, {.tolerance = 1e-4});
  check_gradients("group_norm", [](const List& x) { return group_norm(x[0], 2, x[1], x[2]); },
                  {leaf({2, 4, 2}, -1, 1), leaf({4}, 0.5, 1), leaf({4}, -1, 1)}, {.tolerance = 1e-4});
  check_gradients("batch_norm", [](const List& x) { return batch_norm(x[0], x[1], x[2], {}, {}, true, 0.1, 1e-5); },
                  {leaf({3, 2, 2}, -1, 1), leaf({2}, 0.5, 1), leaf({2}, -1, 1)}, {.tolerance = 1e-4});
  const Tensor mean = zeros({2}, kFloat64);
  const Tensor variance = ones({2}, kFloat64);
  check_gradients("batch_norm eval",
                  [&](const List& x) { return batch_norm(x[0], x[1], x[2], mean, variance, false, 0.1, 1e-5); },
                  {leaf({3, 2}, -1, 1), leaf({2}, 0.5, 1), leaf({2}, -1, 1)});
  const Tensor target = tensor({1, 0, 3});
  for (const std::int64_t reduction : {0, 1, 2}) {
    check1("nll_loss", [&](const Tensor& x) { return nll_loss(x, target, {}, reduction); });
    check1("cross_entropy", [&](const Tensor& x) { return cross_entropy_loss(x, target, {}, reduction); });
    const Tensor other = rand({3, 4}, TensorOptions(kFloat64));
    check1("mse_loss", [&](const Tensor& x) { return mse_loss(x, other, reduction); });
    check1("l1_loss", [&](const Tensor& x) { return l1_loss(x, other - 5, reduction); });
    check1("smooth_l1_loss", [&](const Tensor& x) { return smooth_l1_loss(x, other, reduction); });
    check1(
        "binary_cross_entropy", [&](const Tensor& x) { return binary_cross_entropy(x, other, {}, reduction); }, 0.2,
        0.8);
    check1("with logits",
           [&](const Tensor& x) { return binary_cross_entropy_with_logits(x, other, {}, {}, reduction); });
  }
}

}  // namespace
}  // namespace tenon::testing
