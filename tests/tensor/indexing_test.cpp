// Indexing: views by numbers and slices, gathers by tensors, writes through both.
#include "support/expect_error.h"

#include <tenon/ops/ops.h>
#include <tenon/tensor/shape/indexing.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon {
namespace {

using namespace indexing;

Tensor grid() { return arange(24).view({2, 3, 4}); }

TEST(Indexing, BasicIndicesAreViews) {
  Tensor x = grid();
  EXPECT_TRUE(x.index({0, Slice(1, None), Slice(None, None, 2)}).equal(tensor({{4, 6}, {8, 10}})));
  EXPECT_TRUE(x.index({Ellipsis, 1}).equal(x.select(2, 1)));
  EXPECT_EQ(x.index({None, "...", None}).sizes().vec(), (std::vector<std::int64_t>{1, 2, 3, 4, 1}));
  EXPECT_TRUE(x.index({1}).is_alias_of(x));
  EXPECT_TRUE(x.index({-1, -1, -1}).equal(tensor(23)));
}

TEST(Indexing, TensorsGather) {
  const Tensor x = grid();
  const Tensor rows = tensor({1, 0});
  EXPECT_TRUE(x.index({rows}).equal(stack({x[1], x[0]})));
  EXPECT_TRUE(x.index({Slice(), rows, tensor({2, 3})})
                  .equal(stack({x.select(1, 1).select(1, 2), x.select(1, 0).select(1, 3)}, 1)));
  // Tensors apart: their dimension comes first.
  EXPECT_EQ(x.index({rows, Slice(), tensor({2, 3})}).sizes().vec(), (std::vector<std::int64_t>{2, 3}));
  EXPECT_TRUE(x.index({x > 20}).equal(tensor({21, 22, 23})));
  EXPECT_EQ(x.index({tensor({true, false})}).sizes().vec(), (std::vector<std::int64_t>{1, 3, 4}));
  EXPECT_TRUE(x.index({tensor({-1})}).equal(x.slice(0, 1)));
}

TEST(Indexing, AMaskOfNoDimensionTakesAllOrNothing) {
  const Tensor yes = tensor(true), no = tensor(false);
  EXPECT_TRUE(tensor(5.0f).masked_select(yes).equal(tensor({5.0f})));
  EXPECT_TRUE(tensor(5.0f).masked_select(no).equal(zeros({0})));
  EXPECT_TRUE(arange(3).masked_select(yes).equal(arange(3)));
  EXPECT_EQ(arange(3).masked_select(no).numel(), 0);
  const Tensor loss = tensor(2.0f).set_requires_grad(true);
  (3 * loss.masked_select(loss.isfinite())).sum().backward();
  EXPECT_EQ(loss.grad().item<float>(), 3);

  // Among indices it stands for a dimension of size 1 that it keeps or empties, as in NumPy.
  using Indices = std::vector<std::optional<Tensor>>;
  const Tensor x = arange(6).view({2, 3});
  EXPECT_TRUE(index(x, Indices{yes}).equal(x.unsqueeze(0)));
  EXPECT_EQ(index(x, Indices{std::nullopt, no}).sizes().vec(), (std::vector<std::int64_t>{2, 0, 3}));
  EXPECT_TRUE(index(x, Indices{yes, tensor({1, 0})}).equal(x.flip(0)));
  EXPECT_TRUE(index(x, Indices{tensor({1, 0}), tensor(1, kUInt8)}).equal(x.flip(0)));
  EXPECT_TRUE(x.index_put(Indices{yes}, tensor(7)).equal(full({2, 3}, 7, kInt64)));
  EXPECT_TRUE(x.index_put(Indices{no}, tensor(7)).equal(x));
  EXPECT_TRUE(x.index_put(Indices{yes}, x, true).equal(x * 2));
  test::expect_error<IndexError>([&] { index(tensor(5.0f), Indices{yes}); },
                                 "too many indices for tensor of dimension 0 (got 1)");

  EXPECT_TRUE(x.index_put(Indices{std::nullopt}, tensor(7)).equal(full({2, 3}, 7, kInt64))) << "no index: everything";

  Tensor leaf = ones({2}).set_requires_grad(true);
  (index(leaf, Indices{yes}) * tensor({2.0, 3.0})).sum().backward();
  EXPECT_TRUE(leaf.grad().equal(tensor({2.0, 3.0})));
}

TEST(Indexing, WritesGoThrough) {
  Tensor x = zeros({3, 3}, kInt64);
  x.index_put_({1, Slice(0, 2)}, 5);
  x.index_put_({x == 0}, -1);
  EXPECT_TRUE(x.equal(tensor({{-1, -1, -1}, {5, 5, -1}, {-1, -1, -1}})));
  x.index_put_({tensor({0, 2}), tensor({0, 2})}, tensor({7, 8}));
  EXPECT_EQ(x[2][2].item<int>(), 8);
  x[0] = 9;
  x[1] = tensor({1, 2, 3});
  EXPECT_TRUE(x.equal(tensor({{9, 9, 9}, {1, 2, 3}, {-1, -1, 8}})));
  Tensor sum = zeros({2});
  sum.index_put_(std::vector<std::optional<Tensor>>{tensor({0, 0, 1})}, ones({3}), true);
  EXPECT_TRUE(sum.equal(tensor({2.0, 1.0})));
}

TEST(Indexing, ErrorsNameIndexDimensionAndSize) {
  Tensor x = grid();
  test::expect_error<IndexError>([&] { x.index({0, 3}); }, "index 3 is out of bounds for dimension 1 with size 3");
  test::expect_error<IndexError>([&] { x.index({tensor({5})}); },
                                 "index 5 is out of bounds for dimension 0 with size 2");
  test::expect_error<IndexError>([&] { x.index({0, 0, 0, 0}); }, "too many indices for tensor of dimension 3");
  test::expect_error<IndexError>([&] { x.index({tensor({true, false, true})}); }, "The shape of the mask [3]");
  test::expect_error<IndexError>([&] { x.index({tensor({0, 1}), tensor({0, 1, 2})}); }, "shape mismatch");
  test::expect_error([&] { x.index({".."}); }, "Expected \"...\"");
}

TEST(Indexing, AlongOneDimension) {
  const Tensor x = tensor({{1, 2}, {3, 4}});
  EXPECT_TRUE(x.gather(1, tensor({{0, 0}, {1, 0}})).equal(tensor({{1, 1}, {4, 3}})));
  EXPECT_TRUE(
      zeros({2, 2}, kInt64).scatter_(1, tensor({{1}, {0}}), tensor({{5}, {6}})).equal(tensor({{0, 5}, {6, 0}})));
  EXPECT_TRUE(x.index_select(1, tensor({1, 1})).equal(tensor({{2, 2}, {4, 4}})));
  EXPECT_TRUE(zeros({2}).index_add(0, tensor({1, 1, 0}), tensor({1.0, 2.0, 3.0})).equal(tensor({3.0, 3.0})));
  EXPECT_TRUE(x.masked_select(x > 2).equal(tensor({3, 4})));
  EXPECT_TRUE(tensor({0, 3, 0, 4}).nonzero().equal(tensor({{1}, {3}})));
  EXPECT_TRUE(one_hot(tensor({2, 0})).equal(tensor({{0, 0, 1}, {1, 0, 0}})));
}

}  // namespace
}  // namespace tenon
