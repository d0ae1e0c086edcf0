// A gradient that nobody asks for is not computed: backward takes less memory for some operands than for all.
#include <tenon/autograd/autograd.h>
#include <tenon/device/memory_api.h>
#include <tenon/ops/all_ops.h>
#include <tenon/tensor/literal.h>

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

using Operands = std::vector<Tensor>;

struct Wanting {
  const char* name;
  Operands operands;
  std::function<Tensor(const Operands&)> made;
};

Tensor wavy(const std::vector<std::int64_t>& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return arange(1, static_cast<double>(count) + 1, TensorOptions(kFloat64)).sin().view(sizes);
}

/// How often memory was taken for the gradients of these operands of y.
std::int64_t taken_for(const Tensor& y, const Operands& operands, const Tensor& gradient) {
  const auto count = [] { return memory_stats(kCPU).at("allocation.all.allocated"); };
  const auto before = count();
  autograd::grad({y}, operands, {gradient}, true);
  return static_cast<std::int64_t>(count() - before);
}

// Long: a list.
std::vector<Wanting> wantings() {
  const Tensor m = wavy({4, 4}), v = wavy({4}), image = wavy({2, 3, 6, 6}), mask = wavy({4, 4}).gt(0);
  const Tensor chance = wavy({4, 4}).sigmoid(), index = tensor({0, 2});
  return {
      {"mul", {m, m}, [](const Operands& x) { return x[0] * x[1]; }},
      {"div", {m, m + 2}, [](const Operands& x) { return x[0] / x[1]; }},
      {"pow", {m.abs() + 1, m}, [](const Operands& x) { return pow(x[0], x[1]); }},
      {"atan2", {m, m + 2}, [](const Operands& x) { return x[0].atan2(x[1]); }},
      {"xlogy", {m, m + 2}, [](const Operands& x) { return x[0].xlogy(x[1]); }},
      {"xlog1py", {m, m + 2}, [](const Operands& x) { return special_xlog1py(x[0], x[1]); }},
      {"nextafter", {m, m + 2}, [](const Operands& x) { return x[0].nextafter(x[1]); }},
      {"where", {m, m}, [=](const Operands& x) { return where(mask, x[0], x[1]); }},
      {"lerp", {m, m + 1, chance}, [](const Operands& x) { return lerp(x[0], x[1], x[2]); }},
      {"clamp",
       {m, m - 1, m + 1},
       [](const Operands& x) { return clamp(x[0], std::optional(x[1]), std::optional(x[2])); }},
      {"mm", {m, m}, [](const Operands& x) { return x[0].mm(x[1]); }},
      {"addmm", {m, m, m}, [](const Operands& x) { return addmm(x[0], x[1], x[2], 2, 3); }},
      {"addr", {m, v, v}, [](const Operands& x) { return x[0].addr(x[1], x[2], 2, 3); }},
      {"conv2d", {image, wavy({2, 3, 2, 2}), wavy({2})}, [](const Operands& x) { return conv2d(x[0], x[1], x[2]); }},
      {"layer_norm", {m, v, v}, [](const Operands& x) { return layer_norm(x[0], {4}, x[1], x[2]); }},
      {"group_norm", {image, wavy({3}), wavy({3})}, [](const Operands& x) { return group_norm(x[0], 3, x[1], x[2]); }},
      {"batch_norm",
       {image, wavy({3}), wavy({3})},
       [](const Operands& x) { return batch_norm(x[0], x[1], x[2], {}, {}, true, 0.1, 1e-5); }},
      {"binary_cross_entropy",
       {chance, chance.t()},
       [](const Operands& x) { return binary_cross_entropy(x[0], x[1], {}, 0); }},
      {"soft_margin_loss", {m, m.t()}, [](const Operands& x) { return soft_margin_loss(x[0], x[1], 0); }},
      {"copy_", {m, m}, [](const Operands& x) { return (x[0] * 1).copy_(x[1].to(kFloat32)); }},
      {"index_put", {m, wavy({2, 4})}, [=](const Operands& x) { return x[0].index_put({index}, x[1]); }},
      {"index_fill", {m, wavy({})}, [=](const Operands& x) { return x[0].index_fill(0, index, x[1]); }},
      {"scatter",
       {m, m},
       [](const Operands& x) {
         return x[0].scatter(0, zeros({1, 4}, kInt64), x[1]);
       }},
      {"scatter_reduce",
       {m, m},
       [](const Operands& x) {
         return x[0].scatter_reduce(0, zeros({1, 4}, kInt64), x[1], "amax");
       }},
      {"select_scatter", {m, v}, [](const Operands& x) { return x[0].select_scatter(x[1].to(kFloat32), 0, 1); }},
      {"lstm_cell",
       {m, wavy({16, 4}), wavy({16, 4}), wavy({16}), wavy({16})},
       [=](const Operands& x) {
         return std::get<0>(lstm_cell(x[0], {m, m}, x[1], x[2], x[3], x[4]));
       }},
  };
}

TEST(WantedRules, AGradientThatNobodyAsksForTakesNoMemory) {
  for (const Wanting& one : wantings()) {
    Operands all = one.operands;
    for (Tensor& operand : all) operand = operand.detach().clone().requires_grad_();
    const Tensor y = one.made(all), gradient = ones(y.sizes(), y.options().requires_grad(false));
    taken_for(y, all, gradient);  // what is made once is made now
    const std::int64_t of_all = taken_for(y, all, gradient);
    for (std::size_t i = 0; i < all.size(); ++i) {
      Operands others = all;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_LT(taken_for(y, others, gradient), of_all) << one.name << " without operand " << i;
    }
  }
}

/// Whether the node of made(x, y) keeps x, or y, when nobody else does; either may want a gradient.
std::vector<bool> keeps(const std::function<Tensor(const Tensor&, const Tensor&)>& made, bool left, bool right) {
  Operands given;
  for (const bool wants : {left, right})
    given.push_back(wants ? wavy({32, 32}).clone().requires_grad_().add(2) : wavy({32, 32}).add(2));
  const Tensor result = made(given[0], given[1]);
  std::vector<bool> kept;
  for (Tensor& one : given) {
    const std::size_t before = memory_allocated();
    one = Tensor();
    kept.push_back(memory_allocated() == before);
  }
  return kept;
}

TEST(WantedRules, OnlyWhatAWantedSlopeReadsIsKept) {
  using Kept = std::vector<bool>;
  const auto mul = [](const Tensor& x, const Tensor& y) { return x * y; };
  EXPECT_EQ(keeps(mul, true, true), (Kept{true, true}));
  EXPECT_EQ(keeps(mul, true, false), (Kept{false, true}));
  EXPECT_EQ(keeps(mul, false, true), (Kept{true, false}));
  EXPECT_EQ(keeps(mul, false, false), (Kept{false, false}));
  const auto div = [](const Tensor& x, const Tensor& y) { return x / y; };
  EXPECT_EQ(keeps(div, true, true), (Kept{true, true}));
  EXPECT_EQ(keeps(div, true, false), (Kept{false, true}));
  EXPECT_EQ(keeps(div, false, true), (Kept{true, true}));
  const auto mm = [](const Tensor& x, const Tensor& y) { return x.mm(y); };
  EXPECT_EQ(keeps(mm, true, true), (Kept{true, true}));
  EXPECT_EQ(keeps(mm, true, false), (Kept{false, true}));
  EXPECT_EQ(keeps(mm, false, true), (Kept{true, false}));
  const auto of_one = [](Tensor (*function)(const Tensor&)) -> bool {
    return keeps([function](const Tensor& x, const Tensor&) { return function(x); }, true, false)[0];
  };
  EXPECT_EQ(keeps([](const Tensor& x, const Tensor& y) { return x + y; }, true, true), (Kept{false, false}));
  EXPECT_EQ(keeps([](const Tensor& x, const Tensor& y) { return x - y; }, true, true), (Kept{false, false}));
  EXPECT_FALSE(of_one([](const Tensor& x) { return x * 3; }));
  EXPECT_FALSE(of_one([](const Tensor& x) { return x / 3; }));
  EXPECT_TRUE(of_one([](const Tensor& x) { return 3 / x; }));
  EXPECT_FALSE(of_one([](const Tensor& x) { return x.exp(); })) << "its result is";
  EXPECT_TRUE(of_one([](const Tensor& x) { return x.sin(); }));
  EXPECT_FALSE(of_one([](const Tensor& x) { return x.floor(); }));
  EXPECT_FALSE(of_one([](const Tensor& x) { return x.sum(); }));
  EXPECT_FALSE(of_one([](const Tensor& x) { return x.softmax(1); }));
  EXPECT_FALSE(of_one([](const Tensor& x) { return x.to(kFloat32); }));
  EXPECT_FALSE(of_one([](const Tensor& x) { return x.cumsum(1); }));
  EXPECT_EQ(keeps([](const Tensor& x, const Tensor& y) { return cat({x, y}); }, true, true), (Kept{false, false}));
  EXPECT_EQ(keeps([](const Tensor& x, const Tensor& y) { return where(y.gt(0), x, y); }, true, true),
            (Kept{false, false}));
}

}  // namespace
}  // namespace tenon::test
