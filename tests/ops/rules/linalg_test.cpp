// Which sizes, ranks and dtypes products of matrices take, what they give for each, and what they say of the rest.
#include "../../support/message_of.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/all_ops.h>
#include <tenon/tensor/literal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tenon::test {
namespace {

using Extents = std::vector<std::int64_t>;

Tensor counted(const Extents& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return arange(1, static_cast<double>(count) + 1, TensorOptions(kFloat64)).view(sizes);
}
Extents extents(const Tensor& tensor) { return tensor.sizes().vec(); }

/// Sum over the last dimension of a and the second to last of b, of batched matrices of any leading dimensions.
Tensor by_broadcasting(const Tensor& a, const Tensor& b) { return a.unsqueeze(-1).mul(b.unsqueeze(-3)).sum(-2); }

TEST(MatmulRules, EveryPairOfRanksIsABatchOfProducts) {
  const std::vector<Extents> lefts{{3}, {2, 3}, {5, 2, 3}, {1, 2, 3}, {4, 5, 2, 3}, {4, 1, 2, 3}},
      rights{{3}, {3, 4}, {5, 3, 4}, {1, 3, 4}, {4, 5, 3, 4}, {4, 1, 3, 4}};
  for (const Extents& left : lefts) {
    for (const Extents& right : rights) {
      const Tensor a = counted(left), b = counted(right);
      Tensor want = by_broadcasting(a.dim() == 1 ? a.unsqueeze(0) : a, b.dim() == 1 ? b.unsqueeze(1) : b);
      if (b.dim() == 1) want = want.squeeze(-1);
      if (a.dim() == 1) want = want.squeeze(b.dim() == 1 ? -1 : -2);
      const Tensor got = matmul(a, b);
      EXPECT_EQ(extents(got), extents(want)) << to_string(a.sizes()) << " and " << to_string(b.sizes());
      EXPECT_TRUE(got.allclose(want));
      EXPECT_FALSE(got.is_view());
      const Tensor x = a.clone().requires_grad_(), y = b.clone().requires_grad_();
      matmul(x, y).sum().backward();
      const Tensor p = a.clone().requires_grad_(), q = b.clone().requires_grad_();
      by_broadcasting(p.dim() == 1 ? p.unsqueeze(0) : p, q.dim() == 1 ? q.unsqueeze(1) : q).sum().backward();
      EXPECT_TRUE(x.grad().allclose(p.grad()) && y.grad().allclose(q.grad()));
    }
  }
  EXPECT_EQ(extents(matmul(ones({2, 0, 3}), ones({3, 4}))), (Extents{2, 0, 4}));
  EXPECT_TRUE(matmul(ones({2, 3, 0}), ones({0, 4})).equal(zeros({2, 3, 4})));
  EXPECT_TRUE(matmul(ones({2, 0}), ones({0})).equal(zeros({2})));
}

TEST(MatmulRules, SizesThatDoNotFitAreSaid) {
  EXPECT_EQ(message_of([] { matmul(ones({}), ones({2})); }),
            "both arguments to matmul need to be at least 1D, but they are 0D and 1D");
  EXPECT_EQ(message_of([] {
              matmul(ones({2, 2}), ones({}));
            }),
            "both arguments to matmul need to be at least 1D, but they are 2D and 0D");
  EXPECT_EQ(message_of([] {
              mm(ones({2, 3}), ones({2, 4}));
            }),
            "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x4)");
  EXPECT_EQ(message_of([] {
              matmul(ones({5, 2, 3}), ones({2, 4}));
            }),
            "mat1 and mat2 shapes cannot be multiplied (10x3 and 2x4)");
  EXPECT_EQ(message_of([] {
              bmm(ones({5, 2, 3}), ones({5, 2, 4}));
            }),
            "Expected size for first two dimensions of batch2 tensor to be: [5, 3] but got: [5, 2].");
  EXPECT_EQ(message_of([] {
              bmm(ones({5, 2, 3}), ones({4, 3, 4}));
            }),
            "Expected size for first two dimensions of batch2 tensor to be: [5, 3] but got: [4, 3].");
  EXPECT_EQ(message_of([] { mm(ones({3}), ones({3, 4})); }), "self must be a matrix, got 1-D tensor (in operator mm)");
  EXPECT_EQ(message_of([] { mm(ones({3, 3}), ones({3})); }), "mat2 must be a matrix, got 1-D tensor (in operator mm)");
  EXPECT_EQ(message_of([] {
              bmm(ones({3, 3}), ones({3, 3, 3}));
            }),
            "batch1 must be a 3D tensor, got 2-D tensor (in operator bmm)");
  EXPECT_EQ(message_of([] {
              bmm(ones({3, 3, 3}), ones({3, 3}));
            }),
            "batch2 must be a 3D tensor, got 2-D tensor (in operator bmm)");
  EXPECT_EQ(message_of([] { mv(ones({3}), ones({3})); }), "input must be a matrix, got 1-D tensor (in operator mv)");
  EXPECT_EQ(message_of([] {
              mv(ones({3, 3}), ones({3, 1}));
            }),
            "vec must be a vector, got 2-D tensor (in operator mv)");
  EXPECT_EQ(message_of([] { mv(ones({2, 3}), ones({4})); }), "size mismatch, got input (2), mat (2x3), vec (4)");
  EXPECT_EQ(message_of([] { dot(ones({2, 2}), ones({2})); }), "1D tensors expected, but got 2D and 1D tensors");
  EXPECT_EQ(message_of([] { dot(ones({2}), ones({})); }), "1D tensors expected, but got 1D and 0D tensors");
  EXPECT_EQ(message_of([] { dot(ones({2}), ones({2}, kFloat64)); }),
            "dot : expected both vectors to have same dtype, but found Float and Double");
  EXPECT_EQ(message_of([] { dot(ones({2}), ones({3})); }),
            "inconsistent tensor size, expected tensor [2] and src [3] to have the same number of elements, but got 2 "
            "and 3 elements respectively");
  EXPECT_EQ(message_of([] { outer(ones({2, 1}), ones({3})); }), "outer: Expected 1-D argument self, but got 2-D");
  EXPECT_EQ(message_of([] { outer(ones({2}), ones({})); }), "outer: Expected 1-D argument vec2, but got 0-D");
  EXPECT_EQ(message_of([] {
              mm(ones({2, 2}), ones({2, 2}, kFloat64));
            }),
            "expected scalar type Float but found Double (in operator mm)");
  EXPECT_EQ(message_of([] {
              addmm(ones({2, 2}, kFloat64), ones({2, 2}), ones({2, 2}));
            }),
            "self and mat2 must have the same dtype, but got Double and Float (in operator addmm)");
}

TEST(AddmmRules, TheAddendBroadcastsAndBothFactorsCount) {
  const Tensor a = counted({2, 3}), b = counted({3, 4}), ab = a.mm(b);
  for (const Extents& sizes : {Extents{2, 4}, Extents{4}, Extents{2, 1}, Extents{}, Extents{1, 4}}) {
    const Tensor c = counted(sizes).clone().requires_grad_();
    const Tensor x = a.clone().requires_grad_(), y = b.clone().requires_grad_();
    const Tensor got = addmm(c, x, y, 2, 3);
    EXPECT_TRUE(got.allclose(c * 2 + ab * 3));
    got.sum().backward();
    EXPECT_TRUE(c.grad().allclose(ones({2, 4}, kFloat64).mul(2).sum_to_size(sizes)));
    EXPECT_TRUE(x.grad().allclose(ones({2, 4}, kFloat64).mm(b.t()) * 3));
    EXPECT_TRUE(y.grad().allclose(a.t().mm(ones({2, 4}, kFloat64)) * 3));
  }
  EXPECT_THROW(addmm(counted({3, 4}), a, b), Error);
  EXPECT_EQ(message_of([&] { addmm(counted({4}), a[0], b); }),
            "mat1 must be a matrix, got 1-D tensor (in operator addmm)");
  EXPECT_EQ(message_of([&] { addmm(counted({4}), a, b[0]); }),
            "mat2 must be a matrix, got 1-D tensor (in operator addmm)");
  Tensor c = counted({2, 4}).clone();
  EXPECT_TRUE(c.addmm_(a, b, 0.5, 2).allclose(counted({2, 4}) * 0.5 + ab * 2));
  EXPECT_THROW(counted({4}).clone().addmm_(a, b), Error);
  const Tensor p = counted({5, 2, 3}), q = counted({5, 3, 4});
  EXPECT_TRUE(baddbmm(counted({4}), p, q, 2, 3).allclose(counted({4}) * 2 + p.bmm(q) * 3));
  EXPECT_EQ(message_of([&] { baddbmm(counted({4}), a, q); }),
            "batch1 must be a 3D tensor, got 2-D tensor (in operator baddbmm)");
  EXPECT_EQ(message_of([&] { baddbmm(counted({4}), p, b); }),
            "batch2 must be a 3D tensor, got 2-D tensor (in operator baddbmm)");
  EXPECT_TRUE(counted({5, 2, 4}).clone().baddbmm_(p, q, 2, 3).allclose(counted({5, 2, 4}) * 2 + p.bmm(q) * 3));
  EXPECT_TRUE(counted({2, 4}).addbmm(p, q, 2, 3).allclose(counted({2, 4}) * 2 + p.bmm(q).sum(0) * 3));
  EXPECT_TRUE(counted({2, 4}).clone().addbmm_(p, q, 2, 3).allclose(counted({2, 4}) * 2 + p.bmm(q).sum(0) * 3));
  EXPECT_EQ(message_of([&] { counted({2, 4}).addbmm(a, q); }), "batch1 must be a 3D tensor");
  EXPECT_EQ(message_of([&] { counted({2, 4}).addbmm(p, b); }), "batch2 must be a 3D tensor");
  EXPECT_EQ(message_of([&] {
              counted({2, 4}).addbmm(p, counted({4, 3, 4}));
            }),
            "batch1 and batch2 must have same number of batches, got 5 and 4");
  EXPECT_EQ(message_of([&] {
              counted({2, 4}).addbmm(p, counted({5, 2, 4}));
            }),
            "Incompatible matrix sizes for bmm (2x3 and 2x4)");
}

TEST(AddmvRules, TheAddendIsAVectorOrANumber) {
  const Tensor m = counted({2, 3}), v = counted({3}), mv_ = m.mv(v);
  EXPECT_TRUE(counted({2}).addmv(m, v, 2, 3).allclose(counted({2}) * 2 + mv_ * 3));
  EXPECT_TRUE(counted({}).addmv(m, v, 2, 3).allclose(counted({}) * 2 + mv_ * 3));
  EXPECT_TRUE(counted({1}).addmv(m, v).allclose(mv_ + 1));
  EXPECT_TRUE(counted({2}).clone().addmv_(m, v, 2, 3).allclose(counted({2}) * 2 + mv_ * 3));
  EXPECT_EQ(message_of([&] { counted({2}).addmv(v, v); }), "vector + matrix @ vector expected, got 1, 1, 1");
  EXPECT_EQ(message_of([&] { counted({2}).addmv(m, m); }), "vector + matrix @ vector expected, got 1, 2, 2");
  EXPECT_EQ(message_of([&] { counted({2, 1}).addmv(m, v); }), "vector + matrix @ vector expected, got 2, 2, 1");
  EXPECT_EQ(message_of([&] { counted({3}).addmv(m, v); }), "size mismatch, got input (3), mat (2x3), vec (3)");
  EXPECT_EQ(message_of([&] { counted({}).addmv(m, counted({4})); }),
            "size mismatch, got input (1), mat (2x3), vec (4)");
}

TEST(AddrRules, WhatIsTimesZeroIsNotRead) {
  const Tensor x = counted({2, 3}), a = counted({2}), b = counted({3}), ab = a.unsqueeze(1) * b;
  const Tensor nan = full({2, 3}, std::numeric_limits<double>::quiet_NaN(), kFloat64);
  EXPECT_TRUE(nan.addr(a, b, 0, 2).allclose(ab * 2));
  EXPECT_TRUE(x.addr(a, b, 3, 2).allclose(x * 3 + ab * 2));
  EXPECT_TRUE(x.addr(a, b).allclose(x + ab));
  EXPECT_TRUE(counted({3}).addr(a, b).allclose(counted({3}) + ab));
  EXPECT_TRUE(x.clone().addr_(a, b, 3, 2).allclose(x * 3 + ab * 2));
  const Tensor p = x.clone().requires_grad_(), q = a.clone().requires_grad_(), r = b.clone().requires_grad_();
  p.addr(q, r, 3, 2).mul(counted({2, 3})).sum().backward();
  EXPECT_TRUE(p.grad().allclose(counted({2, 3}) * 3));
  EXPECT_TRUE(q.grad().allclose(counted({2, 3}).mv(b) * 2));
  EXPECT_TRUE(r.grad().allclose(counted({2, 3}).t().mv(a) * 2));
  const Tensor yes = tensor({true, false}), no = tensor({{false, false}, {false, true}});
  EXPECT_TRUE(no.addr(yes, yes).equal(tensor({{true, false}, {false, true}})));
  EXPECT_TRUE(no.addr(yes, yes, false).equal(tensor({{true, false}, {false, false}})));
  EXPECT_TRUE(no.addr(yes, yes, true, false).equal(no));
  EXPECT_TRUE(no.addr(yes, yes, false, false).equal(zeros({2, 2}, kBool)));
  EXPECT_EQ(message_of([&] { x.addr(x, b); }), "addr: Expected 1-D argument vec1, but got 2-D");
  EXPECT_EQ(message_of([&] { x.addr(a, x); }), "addr: Expected 1-D argument vec2, but got 2-D");
  EXPECT_EQ(message_of([&] { b.clone().addr_(a, b); }), "2D tensor expected, got 1D tensor for input");
  const Tensor whole = tensor({1, 2});
  EXPECT_EQ(message_of([&] {
              tensor({{1, 2}, {3, 4}}).addr(whole, whole, 0.5);
            }),
            "For integral input tensors, argument beta must not be a floating point number. (in operator addr)");
  EXPECT_EQ(message_of([&] {
              tensor({{1, 2}, {3, 4}}).addr(whole, whole, 1, 0.5);
            }),
            "For integral input tensors, argument alpha must not be a floating point number. (in operator addr)");
}

TEST(LinearRules, WeightAndBiasFitTheLastDimension) {
  const Tensor w = counted({4, 3}), bias = counted({4});
  for (const Extents& sizes : {Extents{3}, Extents{2, 3}, Extents{5, 2, 3}, Extents{0, 3}, Extents{2, 0, 3}}) {
    const Tensor x = counted(sizes);
    EXPECT_TRUE(linear(x, w, bias).allclose(matmul(x, w.t()) + bias)) << x.dim();
    EXPECT_TRUE(linear(x, w).allclose(matmul(x, w.t())));
    EXPECT_EQ(extents(linear(x, w)).back(), 4);
  }
  EXPECT_EQ(extents(linear(counted({2, 3}), counted({3}))), (Extents{2})) << "a weight of one row";
  EXPECT_EQ(extents(linear(counted({2, 3}), counted({3}), counted({}))), (Extents{2}));
  EXPECT_EQ(message_of([&] { linear(counted({}), w); }), "both arguments to linear need to be at least 1D");
  EXPECT_EQ(message_of([&] { linear(counted({3}), counted({})); }), "both arguments to linear need to be at least 1D");
  EXPECT_EQ(message_of([&] {
              linear(counted({5, 2, 4}), w);
            }),
            "mat1 and mat2 shapes cannot be multiplied (10x4 and 3x4)");
  Tensor out = empty({0}, kFloat64);
  EXPECT_TRUE(linear(counted({2, 3}), w, Tensor()).equal(linear(counted({2, 3}), w))) << "a bias that is not there";
  EXPECT_TRUE(linear_out(out, counted({2, 3}), w, Tensor()).equal(linear(counted({2, 3}), w)));
  EXPECT_TRUE(linear_out(out, counted({2, 3}), w, std::nullopt).equal(linear(counted({2, 3}), w)));
  EXPECT_TRUE(linear_out(out, counted({2, 3}), w, bias).equal(linear(counted({2, 3}), w, bias)));
  EXPECT_THROW(linear_out(out, counted({2, 3}), w, bias.clone().requires_grad_()), Error);
}

TEST(BilinearRules, EachOutputIsAFormOfBothInputs) {
  const Tensor w = counted({2, 3, 4}), bias = counted({2});
  for (const Extents& lead : {Extents{}, Extents{5}, Extents{2, 5}}) {
    Extents left = lead, right = lead;
    left.push_back(3);
    right.push_back(4);
    const Tensor a = counted(left), b = counted(right).sin();
    const Tensor want = (a.unsqueeze(-2).unsqueeze(-2).matmul(w).squeeze(-2) * b.unsqueeze(-2)).sum(-1);
    EXPECT_TRUE(bilinear(a, b, w, std::nullopt).allclose(want));
    EXPECT_TRUE(bilinear(a, b, w, bias).allclose(want + bias));
    EXPECT_TRUE(bilinear(a, b, w, Tensor()).allclose(want));
  }
  EXPECT_EQ(message_of([&] {
              bilinear(counted({3}), counted({1, 4}), w, std::nullopt);
            }),
            "bilinear(): input dimensions do not match: got 1 and 2");
  EXPECT_EQ(message_of([&] {
              bilinear(counted({2, 4}), counted({2, 4}), w, std::nullopt);
            }),
            "bilinear(): input1 size does not match weight size: got sizes [2, 4] and [2, 3, 4]");
  EXPECT_EQ(message_of([&] {
              bilinear(counted({2, 3}), counted({2, 3}), w, std::nullopt);
            }),
            "bilinear(): input2 size does not match weight size: got sizes [2, 3] and [2, 3, 4]");
  EXPECT_THROW(bilinear(counted({2, 3}), counted({2, 4}), w[0], std::nullopt), Error);
  EXPECT_THROW(bilinear(counted({}), counted({}), w, std::nullopt), Error);
}

TEST(CrossRules, TakesADimensionOfThreeTheFirstIfNoneIsNamed) {
  const Tensor x = tensor({1., 0., 0.}), y = tensor({0., 1., 0.});
  EXPECT_TRUE(cross(x, y, std::nullopt).equal(tensor({0., 0., 1.})));
  const Tensor a = counted({2, 3, 3}), b = counted({2, 3, 3}).sin();
  EXPECT_TRUE(cross(a, b, std::nullopt).equal(cross(a, b, 1)));
  EXPECT_TRUE(cross(a, b, -1).equal(cross(a, b, 2)));
  EXPECT_FALSE(cross(a, b, 1).equal(cross(a, b, 2)));
  EXPECT_TRUE(cross(a, b, 1).mul(a).sum(1).abs().max().item<double>() < 1e-9) << "at right angles to both";
  EXPECT_TRUE(cross(a, b, 1).mul(b).sum(1).abs().max().item<double>() < 1e-9);
  EXPECT_EQ(extents(cross(counted({1, 3}), counted({2, 3}), 1)), (Extents{2, 3}));
  EXPECT_EQ(message_of([] {
              cross(ones({3}), ones({1, 3}), std::nullopt);
            }),
            "linalg.cross: inputs must have the same number of dimensions, got sizes [3] and [1, 3]");
  EXPECT_EQ(message_of([] { cross(ones({2}), ones({2}), std::nullopt); }), "no dimension of size 3 in input");
  EXPECT_EQ(message_of([] {
              cross(ones({2, 3}), ones({2, 3}), 0);
            }),
            "linalg.cross: inputs dimension 0 must have length 3. Got 2 and 2");
  EXPECT_EQ(message_of([] { cross(ones({3}), ones({1}), 0); }),
            "linalg.cross: inputs dimension 0 must have length 3. Got 3 and 1");
}

TEST(MatrixPowers, AreProductsAndHaveNoInverse) {
  const Tensor m = tensor({{1., 2.}, {0.5, -1.}}, TensorOptions(kFloat64));
  Tensor want = eye(2, TensorOptions(kFloat64));
  for (int n = 0; n < 9; ++n, want = want.mm(m)) EXPECT_TRUE(m.matrix_power(n).allclose(want)) << n;
  EXPECT_FALSE(m.matrix_power(1).is_alias_of(m));
  EXPECT_EQ(extents(ones({3, 2, 2}).matrix_power(0)), (Extents{3, 2, 2}));
  EXPECT_EQ(message_of([&] { m.matrix_power(-1); }),
            "matrix_power: there is no inverse here for n = -1; n must be >= 0");
  const std::string text =
      "linalg.matrix_power: The input tensor must be at least 2-D and its last dims equal, got sizes ";
  EXPECT_EQ(message_of([&] { m[0].matrix_power(2); }), text + "[2]");
  EXPECT_EQ(message_of([] { ones({2, 3}).matrix_power(2); }), text + "[2, 3]");
}

TEST(ChainRules, TheCheapestOrderIsTaken) {
  // What is multiplied too early overflows: the result is finite in the cheapest order alone.
  const auto is_finite = [](const Tensor& x) { return x.isfinite().all().item<bool>(); };
  const auto of = [](std::int64_t rows, std::int64_t columns, double value) { return full({rows, columns}, value); };
  EXPECT_TRUE(is_finite(chain_matmul({of(2, 50, 1e-30), of(50, 1, 1e30), of(1, 50, 1e30)})));
  EXPECT_TRUE(is_finite(chain_matmul({of(50, 1, 1e30), of(1, 50, 1e30), of(50, 2, 1e-30)})));
  EXPECT_TRUE(is_finite(chain_matmul({of(50, 1, 1e30), of(1, 50, 1e-30), of(50, 1, 1e-5), of(1, 50, 1e30)})));
  EXPECT_TRUE(is_finite(chain_matmul({of(1, 50, 1e-30), of(50, 50, 1e30), of(50, 50, 1e25), of(50, 50, 1e5)})));
  EXPECT_TRUE(is_finite(chain_matmul({of(50, 50, 1e5), of(50, 50, 1e25), of(50, 50, 1e30), of(50, 1, 1e-30)})));
  EXPECT_TRUE(is_finite(chain_matmul({of(2, 2, 1e-30), of(2, 2, 1e30), of(2, 2, 1e30)})))
      << "of equal costs from the left";
}

TEST(ChainRules, TheCheapestOrderGivesTheProduct) {
  const Tensor a = counted({2, 3}), b = counted({3, 5}), c = counted({5, 1}), d = counted({1, 4});
  EXPECT_TRUE(chain_matmul({a}).equal(a));
  EXPECT_TRUE(chain_matmul({a, b}).allclose(a.mm(b)));
  EXPECT_TRUE(chain_matmul({a, b, c}).allclose(a.mm(b).mm(c)));
  EXPECT_TRUE(chain_matmul({a, b, c, d}).allclose(a.mm(b).mm(c).mm(d)));
  EXPECT_EQ(message_of([] { chain_matmul({}); }), "chain_matmul(): Expected one or more matrices");
  EXPECT_EQ(message_of([&] { chain_matmul({a, b[0]}); }), "chain_matmul(): Expected 2-D tensors, got a 1-D one");
}

TEST(TensordotRules, PairsOfDimensionsAreSummedAndOneOfOneBroadcasts) {
  const Tensor a = counted({2, 3, 4}), b = counted({4, 3, 5});
  EXPECT_TRUE(tensordot(a, b, {1, 2}, {1, 0})
                  .allclose(a.permute({0, 1, 2}).reshape({2, 12}).mm(b.permute({1, 0, 2}).reshape({12, 5}))));
  EXPECT_TRUE(tensordot(a, b, {-2, -1}, {-2, 0}).equal(tensordot(a, b, {1, 2}, {1, 0})));
  EXPECT_TRUE(tensordot(counted({2, 1}), b, {1}, {0}).allclose(counted({2}).view({2, 1, 1}) * b.sum(0)));
  EXPECT_TRUE(tensordot(a, counted({1, 5}), {2}, {0}).allclose(a.sum(2).unsqueeze(-1) * counted({5})));
  EXPECT_EQ(message_of([&] {
              tensordot(a, b, {1, 2}, {1});
            }),
            "both dimension lists should have same length, got [1, 2] and [1]");
  EXPECT_EQ(message_of([&] {
              tensordot(a, b, {1, 1}, {1, 0});
            }),
            "tensordot: a dim appears multiple times in the list of dims [1, 1] or [1, 0]");
  EXPECT_EQ(message_of([&] {
              tensordot(a, b, {1, 2}, {1, 1});
            }),
            "tensordot: a dim appears multiple times in the list of dims [1, 2] or [1, 1]");
  EXPECT_EQ(message_of([&] { tensordot(a, b, {1}, {2}); }),
            "contracted dimensions need to match, but first has size 3 in dim 1 and second has size 5 in dim 2");
  EXPECT_THROW(tensordot(a, b.to(kFloat32), {1}, {1}), Error);
  EXPECT_EQ(message_of([] {
              inner(ones({2, 3}), ones({2}));
            }),
            "inner() the last dimension must match on both input tensors but got shapes [2, 3] and [2]");
}

}  // namespace
}  // namespace tenon::test
