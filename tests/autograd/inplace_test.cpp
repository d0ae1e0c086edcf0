// In-place writes: version counters, what they forbid, and histories of views.
#include "support/expect_error.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <vector>

namespace tenon {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Version, CountsWritesThroughAnyAlias) {
  Tensor x = ones({2, 2});
  EXPECT_EQ(x._version(), 0);
  const Tensor view = x[0];
  const Tensor alias = x.detach();
  view.add_(1);
  EXPECT_EQ(x._version(), 1);
  EXPECT_EQ(alias._version(), 1);
  alias.mul_(2);
  x.zero_();
  EXPECT_EQ(view._version(), 3);
  EXPECT_EQ(x.clone()._version(), 0);
  EXPECT_EQ((x + 1)._version(), 0);
  const Tensor data = x.data();
  data.add_(1);
  EXPECT_EQ(x._version(), 3);
  EXPECT_EQ(randn({2})._version(), 0);
}

TEST(Version, WhoeverModifiedASavedTensorIsToldHowToFindOutWhere) {
  const Tensor y = ones({2}, requires_grad()).exp();
  y.add_(1);
  test::expect_error([&] { y.sum().backward(); }, "Hint: enable anomaly detection");
}

TEST(Version, ModifiedSavedTensorIsReportedWithBothVersions) {
  const Tensor x = ones({2}, requires_grad());
  const Tensor y = x.exp();
  y.add_(1);
  EXPECT_THAT([&] { y.sum().backward(); },
              ThrowsMessage<Error>(AllOf(HasSubstr("modified by an inplace operation"), HasSubstr("[CPUFloatType [2]]"),
                                         HasSubstr("ExpBackward0"), HasSubstr("is at version 1; expected version 0"))));
}

TEST(Version, AnomalyModeTellsWhereTheForwardRan) {
  autograd::DetectAnomalyGuard anomaly;
  const Tensor x = ones({2}, requires_grad());
  const Tensor y = x.exp();
  y.add_(1);
  test::expect_error([&] { y.sum().backward(); }, "Forward call:");
}

TEST(InPlace, LeavesAreProtected) {
  Tensor x = ones({2}, requires_grad());
  test::expect_error([&] { x.add_(1); }, "a leaf Variable that requires grad is being used in an in-place operation");
  test::expect_error([&] { x[0].add_(1); }, "a view of a leaf Variable that requires grad");
  NoGradGuard no_grad;
  x.add_(1);
  EXPECT_EQ(x._version(), 1);
}

TEST(InPlace, HistoryIsKept) {
  const Tensor x = tensor({2.0}, requires_grad());
  const Tensor y = x * 1;
  y.mul_(x);
  y.pow_(2);
  y.backward();  // (x^2)^2
  EXPECT_EQ(x.grad().item<float>(), 32);
}

TEST(InPlace, ProductWithItselfIsRefusedBecauseItOverwritesItsFactor) {
  const Tensor x = tensor({3.0}, requires_grad());
  const Tensor y = x * 1;
  y.mul_(y);
  test::expect_error([&] { y.backward(); }, "is at version 1; expected version 0");
}

TEST(InPlace, ProductSavesItsOwnValuesBeforeTheWrite) {
  const Tensor x = tensor({3.0}, requires_grad());
  const Tensor w = tensor({5.0}, requires_grad());
  const Tensor y = x * 1;
  y.mul_(w);
  y.backward();
  EXPECT_EQ(x.grad().item<float>(), 5);
  EXPECT_EQ(w.grad().item<float>(), 3);
}

TEST(InPlace, InterpolationSavesItsOwnValuesBeforeTheWrite) {
  const Tensor x = tensor({2.0, 4.0}, requires_grad());
  const Tensor end = tensor({10.0, 20.0}, requires_grad());
  const Tensor weight = tensor({0.25, 0.5}, requires_grad());
  const Tensor y = x * 1;
  y.lerp_(end, weight);
  y.sum().backward();
  EXPECT_TRUE(x.grad().equal(tensor({0.75, 0.5})));
  EXPECT_TRUE(end.grad().equal(tensor({0.25, 0.5})));
  EXPECT_TRUE(weight.grad().equal(tensor({8.0, 16.0})));
}

TEST(InPlace, NothingIsSavedThatNoGradientReads) {
  Tensor inference;
  {
    const InferenceMode mode;
    inference = ones({2});  // cannot be saved
  }
  const Tensor x = ones({2}, requires_grad()), plain = ones({2});
  (x.addcmul(inference, plain) + x.addcdiv(plain, inference) + x.lerp(inference, plain)).sum().backward();
  EXPECT_TRUE(x.grad().equal(full({2}, 2.)));
  test::expect_error([&] { plain.addcmul(inference, x); }, "cannot be saved");
  test::expect_error([&] { plain.addcdiv(inference, x); }, "cannot be saved");
  test::expect_error([&] { plain.lerp(inference, x); }, "cannot be saved");
  test::expect_error([&] { x.lerp(plain, inference); }, "cannot be saved");
}

TEST(InPlace, WritingAViewRewritesTheBase) {
  const Tensor x = ones({2, 2}, requires_grad());
  const Tensor y = x * 2;
  const Tensor row = y[0];
  row.mul_(10);
  EXPECT_EQ(y.grad_fn()->name(), "torch::autograd::CopySlices");
  y.sum().backward();
  EXPECT_TRUE(x.grad().equal(tensor({{20.0, 20.0}, {2.0, 2.0}})));
}

TEST(InPlace, WritingTheBaseReachesItsViews) {
  const Tensor x = ones({2, 2}, requires_grad());
  const Tensor y = x * 2;
  const Tensor row = y[1];
  y.mul_(5);
  EXPECT_EQ(row.grad_fn()->name(), "AsStridedBackward0");
  row.sum().backward();
  EXPECT_TRUE(x.grad().equal(tensor({{0.0, 0.0}, {10.0, 10.0}})));
}

TEST(InPlace, ConstantBaseTakesOnHistoryThroughAView) {
  const Tensor w = tensor({3.0}, requires_grad());
  const Tensor y = zeros({2});
  y.slice(0, 0, 1).copy_(w);
  EXPECT_TRUE(y.requires_grad());
  (y * tensor({5.0, 7.0})).sum().backward();
  EXPECT_EQ(w.grad().item<float>(), 5);
}

TEST(InPlace, ViewsMadeWithoutGradAreRefused) {
  const Tensor x = ones({2}, requires_grad());
  const Tensor y = x * 2;
  Tensor view;
  {
    NoGradGuard no_grad;
    view = y[0];
  }
  test::expect_error([&] { view.add_(1); }, "A view was created in no_grad mode and is being modified inplace");
  test::expect_error([&] { y.unbind()[0].add_(1); }, "function that returns multiple views");
}

TEST(InPlace, WhatIsRefusedWritesNothing) {
  const Tensor w = ones({4}, requires_grad());
  const Tensor index = tensor({0, 2});
  const auto refuse = [&](const Tensor& target, const std::vector<std::function<void(const Tensor&)>>& writes) {
    const Tensor before = target.detach().clone();
    for (std::size_t i = 0; i < writes.size(); ++i) {
      EXPECT_THROW(writes[i](target), Error) << "write " << i;
      EXPECT_TRUE(target.detach().equal(before)) << "write " << i;
      EXPECT_EQ(target._version(), 0) << "write " << i;
    }
  };
  const std::vector<std::function<void(const Tensor&)>> writes = {
      [&](const Tensor& x) { x.addcmul_(w, w); },
      [&](const Tensor& x) { x.addcdiv_(w, w + 1); },
      [&](const Tensor& x) { x.lerp_(w * 3, 0.5); },
      [&](const Tensor& x) { x.lerp_(ones({4}), w * 0.5); },
      [&](const Tensor& x) { x.index_put_(std::vector<std::optional<Tensor>>{index}, w.slice(0, 0, 2)); },
      [&](const Tensor& x) { x.index_add_(0, index, w.slice(0, 0, 2)); },
      [&](const Tensor& x) { x.index_copy_(0, index, w.slice(0, 0, 2)); },
      [&](const Tensor& x) { x.scatter_(0, index, w.slice(0, 0, 2)); },
      [&](const Tensor& x) { x.scatter_add_(0, index, w.slice(0, 0, 2)); },
      [&](const Tensor& x) { x.masked_fill_(x.gt(-1), w[0]); },
      [&](const Tensor& x) { x.copy_(w); },
      [&](const Tensor& x) { x.add_(w); },
  };
  refuse(zeros({4}, requires_grad()), writes);
  const Tensor base = zeros({4});
  Tensor view;
  {
    NoGradGuard no_grad;
    view = base.view({4});
  }
  refuse(view, writes);
}

TEST(InPlace, ExpandedTensorsAreRefusedByEveryWriteOfManyValues) {
  const Tensor wide = zeros({1}).expand({3});
  const Tensor index = tensor({0, 1, 2});
  const auto refused = ThrowsMessage<Error>(HasSubstr("more than one element of the written-to tensor"));
  EXPECT_THAT([&] { wide.add_(ones({3})); }, refused);
  EXPECT_THAT([&] { wide.exp_(); }, refused);
  EXPECT_THAT([&] { wide.copy_(ones({3})); }, refused);
  EXPECT_THAT([&] { wide.addcmul_(ones({3}), ones({3})); }, refused);
  EXPECT_THAT([&] { wide.lerp_(ones({3}), 0.5); }, refused);
  EXPECT_THAT([&] { wide.index_put_(std::vector<std::optional<Tensor>>{index}, ones({3})); }, refused);
  EXPECT_THAT([&] { wide.index_add_(0, index, ones({3})); }, refused);
  EXPECT_THAT([&] { wide.scatter_(0, index, ones({3})); }, refused);
}

TEST(InPlace, OperandsInTheSameStorageAreReadBeforeTheyAreWritten) {
  const auto fresh = [] { return tensor({{1.0, 2.0}, {3.0, 4.0}}); };
  const Tensor one = ones({2, 2});
  Tensor x = fresh();
  EXPECT_TRUE(x.addcmul_(x.t(), one).equal(tensor({{2.0, 5.0}, {5.0, 8.0}})));
  x = fresh();
  EXPECT_TRUE(x.addcdiv_(one, x.t(), 6).equal(tensor({{7.0, 4.0}, {6.0, 5.5}})));
  x = fresh();
  EXPECT_TRUE(x.lerp_(x.t(), 0.5).equal(tensor({{1.0, 2.5}, {2.5, 4.0}})));
  x = fresh();
  EXPECT_TRUE(x.index_add_(0, tensor({1, 0}), x).equal(tensor({{4.0, 6.0}, {4.0, 6.0}})));
  x = fresh();
  EXPECT_TRUE(x.scatter_(1, tensor({{1, 0}, {1, 0}}), x).equal(tensor({{2.0, 1.0}, {4.0, 3.0}})));
  const Tensor mask = tensor({{0, 1}, {1, 0}}).to(kBool);
  EXPECT_FALSE(mask.masked_fill_(mask.t(), false).any().item<bool>());
}

TEST(InPlace, TernaryResultsAreOfTheTensorsOwnDtypeAndSize) {
  const Tensor half = ones({2}, kFloat16);
  half.addcmul_(tensor({1.0, 2.0}), tensor({3.0, 4.0}));
  EXPECT_TRUE(half.equal(tensor({4.0, 9.0}, kFloat16)));
  test::expect_error(
      [] {
        ones({2}, kInt64).addcmul_(tensor({1.5, 2.5}), tensor({3.0, 4.0}));
      },
      "can't be cast to the desired output type Long");
  test::expect_error([] { ones({2}).lerp_(ones({3, 2}), 0.5); }, "[3, 2]");
  Tensor x = zeros({2});
  EXPECT_TRUE(x.lerp_(tensor({4.0, 4.0}), tensor({0.25, 0.5})).equal(tensor({1.0, 2.0})));
}

TEST(InPlace, IndexAssignmentIsDifferentiable) {
  const Tensor x = ones({3}, requires_grad());
  const Tensor v = tensor({4.0}, requires_grad());
  Tensor y = x * 2;
  y.index_put_({tensor({1})}, v);
  (y * y).sum().backward();
  EXPECT_TRUE(x.grad().equal(tensor({8.0, 0.0, 8.0})));
  EXPECT_EQ(v.grad().item<float>(), 8);
}

TEST(InPlace, ALinearResultOfManyDimensionsIsNoView) {
  // A view would make every change in place copy the gradient of its base.
  manual_seed(2);
  const Tensor x = randn({2, 3, 4}, requires_grad());
  const Tensor w = randn({5, 4}, requires_grad());
  const Tensor b = randn({5}, requires_grad());
  const Tensor expected = relu(x.matmul(w.t()) + b);
  Tensor y = linear(x, w, b);
  EXPECT_FALSE(y.is_view());
  EXPECT_FALSE(x.matmul(w.t()).is_view());
  y.relu_();
  EXPECT_TRUE(y.allclose(expected));
  y.square().sum().backward();
  const Tensor dx = x.grad().clone(), dw = w.grad().clone(), db = b.grad().clone();
  for (const Tensor& leaf : {x, w, b}) leaf.mutable_grad().reset();
  expected.square().sum().backward();
  EXPECT_TRUE(x.grad().allclose(dx, 1e-4, 1e-5));
  EXPECT_TRUE(w.grad().allclose(dw, 1e-4, 1e-5));
  EXPECT_TRUE(b.grad().allclose(db, 1e-4, 1e-5));
}

TEST(Linear, TheGradientOfAWeightLiesInMemoryAsTheWeightDoes) {
  const Tensor x = ones({6, 4}, requires_grad());
  const Tensor w = ones({5, 4}, requires_grad());
  linear(x, w).sum().backward();
  EXPECT_EQ(w.grad().strides(), w.strides());
  EXPECT_EQ(x.grad().strides(), x.strides());
  const Tensor q = ones({2, 3, 4}, requires_grad()), k = ones({2, 3, 4}, requires_grad());
  q.bmm(k.transpose(1, 2)).sum().backward();
  EXPECT_EQ(k.grad().strides(), k.strides());
}

TEST(Version, OfResultsBuiltByWritesIsZero) {
  const Tensor x = ones({2, 3});
  const Tensor index = tensor({{0, 1, 0}});
  EXPECT_EQ(x.scatter(0, index, x)._version(), 0);
  EXPECT_EQ(x.scatter(0, index, 2)._version(), 0);
  EXPECT_EQ(x.scatter_add(0, index, x)._version(), 0);
  EXPECT_EQ(x.index_add(0, tensor({1}), ones({1, 3}))._version(), 0);
  EXPECT_EQ(constant_pad_nd(x, {1, 1}, 3)._version(), 0);
  EXPECT_EQ(ones({3}).diag()._version(), 0);
  EXPECT_EQ((x / 2).bernoulli()._version(), 0);
}

TEST(Version, CountsACopyOntoItself) {
  const Tensor x = ones({2});
  x.copy_(x);
  EXPECT_EQ(x._version(), 1);
}

TEST(InPlace, EveryWriteToALeafThatRequiresGradIsRefused) {
  const Tensor a = ones({2}, requires_grad());
  const Tensor view = a.view({2, 1});
  test::expect_error([&] { a.copy_(a); }, "a leaf Variable that requires grad");
  test::expect_error([&] { a.set_(ones({2})); }, "a leaf Variable that requires grad");
  test::expect_error([&] { view.copy_(view); }, "a view of a leaf Variable that requires grad");
  EXPECT_EQ(a._version(), 0);
}

TEST(InPlace, ZeroingIsNamedWhereItSpoiltASavedTensor) {
  const Tensor x = ones({2, 3}, requires_grad());
  const Tensor y = x * 2;
  const Tensor z = y.square();
  y.zero_();
  test::expect_error([&] { z.sum().backward(); },
                     "[CPUFloatType [2, 3]], which is output 0 of ZeroBackward0, is at version 1; "
                     "expected version 0 instead.");
}

/// Passes no gradient on.
struct Stopping : autograd::Function<Stopping> {
  static Tensor forward(autograd::AutogradContext*, Tensor x) { return x * 1.; }
  static autograd::variable_list backward(autograd::AutogradContext*, autograd::variable_list) { return {Tensor()}; }
};

TEST(View, WhoseBaseWasModifiedPassesAnUndefinedGradientOn) {
  const Tensor x = ones({2, 2}, requires_grad());
  const Tensor base = x * 1.;
  const Tensor view = base.view({4});
  base.mul_(3);
  ASSERT_EQ(view.grad_fn()->name(), "AsStridedBackward0");
  Stopping::apply(view).sum().backward();
  EXPECT_FALSE(x.grad().defined());
  (view * 2.).sum().backward();
  EXPECT_TRUE(x.grad().equal(full({2, 2}, 6.)));
}

TEST(View, AReshapeThatCopiesIsNone) {
  const Tensor x = ones({2, 3}, requires_grad());
  const Tensor copy = x.t().reshape({6});
  EXPECT_FALSE(copy.is_view());
  EXPECT_FALSE(copy.is_alias_of(x));
  EXPECT_TRUE(x.reshape({6}).is_view());
  Tensor written = x.t().reshape({6});
  written.mul_(arange(6.0));
  written.sum().backward();
  EXPECT_TRUE(x.grad().equal(arange(6.0).view({3, 2}).t()));
}

TEST(Pad, AndDiagGiveBackWhatTheyPlaced) {
  const Tensor x = tensor({1.0, 2.0, 3.0}, requires_grad());
  constant_pad_nd(x, {2, -1}, 7).mul(arange(4.0)).sum().backward();
  EXPECT_TRUE(x.grad().equal(tensor({2.0, 3.0, 0.0})));
  x.mutable_grad().reset();
  x.diag(1).mul(arange(16.0).view({4, 4})).sum().backward();
  EXPECT_TRUE(x.grad().equal(tensor({1.0, 6.0, 11.0})));
}

}  // namespace
}  // namespace tenon
