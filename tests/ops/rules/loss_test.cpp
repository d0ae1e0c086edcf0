// Losses and normalisations: which targets, weights and sizes they take, how their terms are reduced, what they refuse.
#include "../../support/message_of.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/all_ops.h>
#include <tenon/tensor/literal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

enum Reduction : std::int64_t { kEach = 0, kAverage = 1, kTotal = 2 };

Tensor precise(const Tensor& x) { return x.to(kFloat64); }
Tensor scores(const std::vector<std::int64_t>& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return arange(count, TensorOptions(kFloat64)).sin().view(sizes);
}
bool agree(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && precise(a).allclose(precise(b), 1e-9, 1e-9);
}

TEST(NllRules, EachTargetPicksItsClassUnlessItIsIgnored) {
  const Tensor logp = scores({3, 4}).log_softmax(1), y = tensor({1, 3, 0}), w = precise(tensor({1., 2., 3., 4.}));
  const Tensor picked = logp.gather(1, y.unsqueeze(1)).squeeze(1).neg(), of = w.index_select(0, y);
  EXPECT_TRUE(agree(nll_loss_nd(logp, y, {}, kEach, -100), picked));
  EXPECT_TRUE(agree(nll_loss_nd(logp, y, w, kEach, -100), picked * of));
  EXPECT_TRUE(agree(nll_loss_nd(logp, y, w, kAverage, -100), (picked * of).sum() / of.sum()));
  EXPECT_TRUE(agree(nll_loss_nd(logp, y, w, kTotal, -100), (picked * of).sum()));
  EXPECT_TRUE(agree(nll_loss_nd(logp, y, {}, kAverage, 3), (picked[0] + picked[2]) / 2));
  EXPECT_TRUE(agree(nll_loss_nd(logp, y.to(kUInt8), {}, kTotal, -100), picked.sum()));
  EXPECT_TRUE(agree(nll_loss_nd(logp[0], y[0], {}, kEach, -100), picked[0]));
  EXPECT_TRUE(agree(nll_loss_nd(logp[0], y.slice(0, 0, 1), {}, kAverage, -100), picked[0]));
  const Tensor deep = scores({2, 4, 3, 2}).log_softmax(1),
               at = tensor({{{0, 1}, {2, 3}, {1, 1}}, {{3, 3}, {0, 2}, {1, 0}}});
  EXPECT_TRUE(agree(nll_loss_nd(deep, at, {}, kEach, -100), deep.gather(1, at.unsqueeze(1)).squeeze(1).neg()));
  EXPECT_TRUE(agree(nll_loss_nd(deep, at, {}, kAverage, -100), deep.gather(1, at.unsqueeze(1)).mean().neg()));
}

TEST(NllRules, WhatDoesNotFitIsSaid) {
  const Tensor logp = scores({3, 4}), y = tensor({1, 3, 0});
  const auto said = [](const Tensor& input, const Tensor& target, const Tensor& weight = {}, std::int64_t how = 1) {
    return message_of([&] { nll_loss_nd(input, target, weight, how, -100); });
  };
  EXPECT_EQ(said(scores({}), tensor(0)),
            "nll_loss: expected input of at least one dimension, (C) or (N, C, …), got a scalar");
  EXPECT_EQ(said(logp, y.to(kInt32)), "expected target dtype to be Long or Byte, but got Int");
  EXPECT_EQ(said(scores({3, 4, 1}), y.view({3, 1}).to(kUInt8)),
            "expected scalar type Long but found Byte (the target of nll_loss)");
  const std::string weights =
      "weight tensor should be defined either for all 4 classes or no classes but got weight tensor of shape: ";
  EXPECT_EQ(said(logp, y, scores({3})), weights + "[3]");
  EXPECT_EQ(said(logp, y, scores({4, 1})), weights + "[4, 1]");
  EXPECT_EQ(message_of<ValueError>([&] {
              nll_loss_nd(logp, tensor({1, 2}), {}, 1, -100);
            }),
            "Expected input batch_size (3) to match target batch_size (2).");
  const std::string sizes = ": nll_loss expects the target to have the input's sizes without the class dimension";
  EXPECT_EQ(said(logp, y.view({3, 1})), "size mismatch (got input: [3, 4], target: [3, 1])" + sizes);
  EXPECT_EQ(said(logp, tensor(1)), "size mismatch (got input: [3, 4], target: [])" + sizes);
  EXPECT_EQ(said(logp[0], tensor({1, 2})), "size mismatch (got input: [4], target: [2])" + sizes);
  EXPECT_EQ(said(scores({3, 4, 5}), zeros({3, 4}, kInt64)),
            "size mismatch (got input: [3, 4, 5], target: [3, 4])" + sizes);
  EXPECT_THROW(nll_loss_nd(logp, y, scores({4}).to(kFloat32), 1, -100), Error);
  EXPECT_THROW(nll_loss_nd(tensor({{1, 2}}), tensor({1}), {}, 1, -100), Error) << "of integers there are no logarithms";
  EXPECT_EQ(said(logp, y, {}, 3), "nll_loss: unknown reduction 3: expected 0 (none), 1 (mean) or 2 (sum)");
  EXPECT_EQ(said(logp, y, {}, -1), "nll_loss: unknown reduction -1: expected 0 (none), 1 (mean) or 2 (sum)");
}

TEST(CrossEntropyRules, SmoothingSharesTheTargetAmongAllClasses) {
  const Tensor x = scores({3, 4}), y = tensor({1, 3, 0}), w = precise(tensor({1., 2., 3., 4.}));
  const Tensor logp = x.log_softmax(1), hot = one_hot(y, 4).to(kFloat64), soft = hot * 0.9 + 0.1 / 4;
  EXPECT_TRUE(agree(cross_entropy_loss(x, y, {}, kEach, -100, 0), (logp * hot).sum(1).neg()));
  EXPECT_TRUE(agree(cross_entropy_loss(x, y, {}, kEach, -100, 0.1), (logp * soft).sum(1).neg()));
  EXPECT_TRUE(agree(cross_entropy_loss(x, y, {}, kTotal, -100, 0.1), (logp * soft).sum().neg()));
  EXPECT_TRUE(agree(cross_entropy_loss(x, y, {}, kAverage, -100, 0.1), (logp * soft).sum().neg() / 3));
  EXPECT_TRUE(agree(cross_entropy_loss(x, y, w, kAverage, -100, 0.1),
                    (logp * w * soft).sum().neg() / w.index_select(0, y).sum()));
  EXPECT_TRUE(agree(cross_entropy_loss(x, y, {}, kAverage, 3, 0.1),
                    (logp * soft).sum(1).neg().index_select(0, tensor({0, 2})).mean()));
  EXPECT_TRUE(
      agree(cross_entropy_loss(x, y, {}, kEach, 3, 1), (logp / 4).sum(1).neg() * precise(tensor({1., 0., 1.}))));
  EXPECT_TRUE(agree(cross_entropy_loss(x[0], y[0], w, kTotal, -100, 0.1), (logp[0] * w * soft[0]).sum().neg()));
  EXPECT_TRUE(agree(cross_entropy_loss(x.t().unsqueeze(0), y.unsqueeze(0), w, kEach, -100, 0.1)[0],
                    (logp * w * soft).sum(1).neg()))
      << "the classes are the second dimension";
  EXPECT_TRUE(agree(cross_entropy_loss(x, soft, {}, kAverage, -100, 0), (logp * soft).sum().neg() / 3));
  EXPECT_TRUE(agree(cross_entropy_loss(x, soft, w, kTotal, -100, 0.2), (logp * w * (soft * 0.8 + 0.05)).sum().neg()));
  EXPECT_TRUE(agree(cross_entropy_loss(x[0], soft[0], w, kTotal, -100, 0), (logp[0] * w * soft[0]).sum().neg()));
  for (const double smoothing : {-0.1, 1.1})
    EXPECT_THAT(message_of([&] { cross_entropy_loss(x, y, {}, 1, -100, smoothing); }),
                testing::StartsWith("label_smoothing must be between 0.0 and 1.0. Got: "));
  EXPECT_EQ(message_of([] { cross_entropy_loss(scores({}), tensor(0), {}, 1, -100, 0); }),
            "cross_entropy_loss: expected logits of at least one dimension, (C) or (N, C, …)");
  EXPECT_EQ(message_of([&] {
              cross_entropy_loss(x, zeros({3, 4}, kInt64), {}, 1, -100, 0);
            }),
            "Expected floating point type for target with class probabilities, got Long");
  EXPECT_EQ(message_of([&] { cross_entropy_loss(x, soft, {}, 1, 0, 0); }),
            "ignore_index is not supported for floating point target");
  EXPECT_NO_THROW(cross_entropy_loss(x, soft, {}, 1, -1, 0));
}

TEST(BinaryCrossEntropyRules, ChancesLieBetweenZeroAndOneAndTargetsFitThem) {
  const Tensor p = precise(tensor({0.5, 0.25})), t = precise(tensor({1., 0.})), w = precise(tensor({2., 3.}));
  const Tensor each = precise(tensor({std::log(2.), 0.}))
                          .index_fill(0, tensor({0}), std::log(2.))
                          .index_fill(0, tensor({1}), -std::log(0.75));
  EXPECT_TRUE(agree(binary_cross_entropy(p, t, {}, kEach), each));
  EXPECT_TRUE(agree(binary_cross_entropy(p, t, w, kTotal), (each * w).sum()));
  EXPECT_TRUE(agree(binary_cross_entropy(p, t, w, kAverage), (each * w).mean()));
  EXPECT_TRUE(agree(binary_cross_entropy(p.view({2, 1}), t, w.view({2, 1}), kEach), (each * w).view({2, 1})));
  EXPECT_TRUE(agree(binary_cross_entropy(precise(tensor({0., 1.})), precise(tensor({1., 0.})), {}, kEach),
                    full({2}, 100., kFloat64)))
      << "logarithms are kept above -100";
  EXPECT_EQ(message_of([&] { binary_cross_entropy(p * 3, t, {}, 1); }),
            "binary_cross_entropy: all elements of input should be between 0 and 1, but they lie between 0.75 and 1.5");
  EXPECT_THROW(binary_cross_entropy(p - 0.5, t, {}, 1), Error);
  EXPECT_THROW(binary_cross_entropy(p * std::nan(""), t, {}, 1), Error);
  EXPECT_EQ(message_of([&] { binary_cross_entropy(p, scores({3}).abs(), {}, 1); }),
            "binary_cross_entropy: targets of size [3] do not fit chances of size [2]");
  EXPECT_EQ(message_of([&] { binary_cross_entropy(p, t, scores({3}), 1); }),
            "binary_cross_entropy: weights of size [3] do not fit chances of size [2]");
  const std::string constant =
      "The function 'binary_cross_entropy' is not differentiable with respect to argument "
      "'weight'. This input cannot have requires_grad True.";
  EXPECT_EQ(message_of([&] { binary_cross_entropy(p, t, w.clone().requires_grad_(), 1); }), constant);
  {
    NoGradGuard no_grad;
    EXPECT_NO_THROW(binary_cross_entropy(p, t, w.clone().requires_grad_(), 1));
  }
  const Tensor a = p.clone().requires_grad_(), b = t.clone().requires_grad_();
  binary_cross_entropy(a, b, w, kTotal).backward();
  EXPECT_TRUE(agree(a.grad(), precise(tensor({-4., 4.}))));
  EXPECT_TRUE(agree(b.grad(), w * ((1 - p).log() - p.log())));
}

TEST(BinaryCrossEntropyRules, OfLogitsPositivesMayWeighMore) {
  const Tensor x = scores({2, 3}), t = scores({2, 3}).abs(), w = precise(tensor({1., 2., 3.})),
               pos = precise(tensor({4., 5., 6.}));
  const Tensor p = x.sigmoid(), each = (t * p.log() + (1 - t) * (1 - p).log()).neg();
  EXPECT_TRUE(agree(binary_cross_entropy_with_logits(x, t, {}, {}, kEach), each));
  EXPECT_TRUE(agree(binary_cross_entropy_with_logits(x, t, w, {}, kAverage), (each * w).mean()));
  EXPECT_TRUE(agree(binary_cross_entropy_with_logits(x, t, {}, pos, kTotal),
                    (pos * t * p.log() + (1 - t) * (1 - p).log()).neg().sum()));
  EXPECT_TRUE(agree(binary_cross_entropy_with_logits(x[0], t, {}, {}, kEach),
                    binary_cross_entropy_with_logits(x[0].expand({2, 3}), t, {}, {}, kEach)));
  EXPECT_EQ(message_of([&] { binary_cross_entropy_with_logits(x, t[0], {}, {}, 1); }),
            "output with shape [3] doesn't match the broadcast shape [2, 3]: binary_cross_entropy_with_logits needs "
            "targets of the input's sizes");
  const auto wants = [](const char* name) {
    return std::string(
               "The function 'binary_cross_entropy_with_logits' is not differentiable with respect to argument "
               "'") +
           name + "'. This input cannot have requires_grad True.";
  };
  EXPECT_EQ(message_of([&] { binary_cross_entropy_with_logits(x, t, w.clone().requires_grad_(), {}, 1); }),
            wants("weight"));
  EXPECT_EQ(message_of([&] { binary_cross_entropy_with_logits(x, t, {}, pos.clone().requires_grad_(), 1); }),
            wants("pos_weight"));
}

TEST(DistanceLossRules, WhereTheSquareMeetsTheLine) {
  const Tensor x = precise(tensor({0., 1., 2., 4.})), y = precise(tensor({0.5, 1., 4., 2.}));
  EXPECT_TRUE(agree(mse_loss(x, y, kEach), precise(tensor({0.25, 0., 4., 4.}))));
  EXPECT_TRUE(agree(l1_loss(x, y, kTotal), precise(tensor(4.5))));
  EXPECT_TRUE(agree(smooth_l1_loss(x, y, kEach, 2), precise(tensor({0.0625, 0., 1., 1.}))));
  EXPECT_TRUE(agree(smooth_l1_loss(x, y, kEach, 1), precise(tensor({0.125, 0., 1.5, 1.5}))));
  EXPECT_TRUE(agree(smooth_l1_loss(x, y, kEach, 0), l1_loss(x, y, kEach)));
  EXPECT_TRUE(agree(huber_loss(x, y, kEach, 1), precise(tensor({0.125, 0., 1.5, 1.5}))));
  EXPECT_TRUE(agree(huber_loss(x, y, kEach, 0.25), precise(tensor({0.09375, 0., 0.46875, 0.46875}))));
  EXPECT_EQ(message_of([&] { smooth_l1_loss(x, y, 1, -1); }),
            "smooth_l1_loss does not support negative values for beta.");
  EXPECT_EQ(message_of([&] { huber_loss(x, y, 1, 0); }), "huber_loss does not support non-positive values for delta.");
  EXPECT_THROW(huber_loss(x, y, 1, -1), Error);
  const Tensor truth = tensor({true, false, true, true});
  EXPECT_TRUE(agree(mse_loss(truth, y, kEach), mse_loss(truth.to(kFloat64), y, kEach)));
  EXPECT_TRUE(agree(l1_loss(x, truth, kEach), l1_loss(x, truth.to(kFloat64), kEach)));
  EXPECT_THROW(mse_loss(truth, truth, kEach), Error);
  EXPECT_EQ(message_of([&] { mse_loss(x, y, 4); }),
            "mse_loss: unknown reduction 4: expected 0 (none), 1 (mean) or 2 (sum)");
}

TEST(MarginRules, WhatDoesNotFitIsSaid) {
  const Tensor x = scores({2, 3});
  EXPECT_EQ(message_of([&] { multi_margin_loss(x, tensor({0, 1}), 3, 1, {}, 1); }), "only p == 1 and p == 2 supported");
  EXPECT_EQ(
      message_of([&] { multi_margin_loss(x, tensor({0}), 1, 1, {}, 1); }),
      "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). "
      "Expected target size [2], but got [1]. Input has shape [2, 3].");
  EXPECT_THROW(multi_margin_loss(x, tensor({{0, 1}}), 1, 1, {}, 1), Error);
  EXPECT_EQ(message_of([&] {
              multilabel_margin_loss(x, tensor({{0, 1}}), 1);
            }),
            "inconsistent target size: [1, 2] for input of size: [2, 3]");
  const std::string range = "multilabel_margin_loss: argument #2 'target' is out of range [-1, 2]";
  EXPECT_EQ(message_of([&] { multilabel_margin_loss(x, tensor({{0, 1, 3}, {0, -1, -1}}), 1); }), range);
  EXPECT_EQ(message_of([&] { multilabel_margin_loss(x, tensor({{0, 1, -2}, {0, -1, -1}}), 1); }), range);
  EXPECT_NO_THROW(multilabel_margin_loss(x, tensor({{0, 1, 2}, {0, -1, -1}}), 1));
}

TEST(NormRules, WhatDoesNotFitIsSaid) {
  const Tensor x = scores({2, 3, 4});
  const auto layer = [&](const std::vector<std::int64_t>& shape, const Tensor& w = {}, const Tensor& b = {}) {
    return message_of([&] { layer_norm(x, shape, w, b); });
  };
  EXPECT_EQ(
      layer({}),
      "layer_norm: Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, "
      "but got normalized_shape = []");
  const std::string shape = "layer_norm: Given normalized_shape=";
  EXPECT_EQ(layer({3}), shape + "[3], expected input with shape [*, 3], but got input of size[2, 3, 4]");
  EXPECT_EQ(layer({2, 4}), shape + "[2, 4], expected input with shape [*, 2, 4], but got input of size[2, 3, 4]");
  EXPECT_EQ(layer({1, 2, 3, 4}),
            shape + "[1, 2, 3, 4], expected input with shape [*, 1, 2, 3, 4], but got input of size[2, 3, 4]");
  EXPECT_EQ(layer({4}, scores({3})),
            "layer_norm: expected weight of size [4], but got weight of size [3] and input of size [2, 3, 4]");
  EXPECT_EQ(layer({4}, {}, scores({1, 4})),
            "layer_norm: expected bias of size [4], but got bias of size [1, 4] and input of size [2, 3, 4]");
  EXPECT_NO_THROW(layer_norm(x, {2, 3, 4}));
  EXPECT_THROW(layer_norm(x, {4}, scores({4}).to(kFloat32)), Error);
  EXPECT_THROW(rms_norm(x, {3}), Error);
  EXPECT_THROW(rms_norm(x, {4}, scores({3})), Error);
  EXPECT_EQ(message_of([] { group_norm(scores({3}), 1); }),
            "group_norm: Expected at least 2 dimensions for input tensor but received 1");
  const std::string groups =
      "Expected number of channels in input to be divisible by num_groups, but got input of shape [2, 3, 4] and "
      "num_groups=";
  EXPECT_EQ(message_of([&] { group_norm(x, 2); }), groups + "2");
  EXPECT_EQ(message_of([&] { group_norm(x, 0); }), groups + "0");
  EXPECT_THROW(group_norm(x, 3, scores({4})), Error);
  EXPECT_THROW(group_norm(x, 3, scores({3}), scores({4})), Error);
  const auto batch = [&](const Tensor& w, const Tensor& b, const Tensor& mean, const Tensor& var, bool training) {
    return message_of([&] { batch_norm(x, w, b, mean, var, training, 0.1, 1e-5); });
  };
  const Tensor three = scores({3}).abs(), four = scores({4});
  EXPECT_EQ(message_of([&] { batch_norm(three, {}, {}, {}, {}, true, 0.1, 1e-5); }),
            "batch_norm: expected input of at least 2 dimensions (N, C, …), got size [3]");
  EXPECT_EQ(batch({}, {}, {}, three, false), "batch_norm: running_mean must be defined in evaluation mode");
  EXPECT_EQ(batch({}, {}, three, {}, false), "batch_norm: running_var must be defined in evaluation mode");
  EXPECT_EQ(batch(four, {}, {}, {}, true), "batch_norm: weight should contain 3 elements not 4");
  EXPECT_EQ(batch({}, four, {}, {}, true), "batch_norm: bias should contain 3 elements not 4");
  EXPECT_EQ(batch({}, {}, four, three, true), "batch_norm: running_mean should contain 3 elements not 4");
  EXPECT_EQ(batch({}, {}, three, four, true), "batch_norm: running_var should contain 3 elements not 4");
  EXPECT_EQ(batch(three.view({3, 1}), {}, {}, {}, true),
            "batch_norm: expected weight of size [3], but got weight of size [3, 1] and input of size [2, 3, 4]");
  EXPECT_THROW(batch_norm(x.to(kInt64), {}, {}, {}, {}, true, 0.1, 1e-5), Error);
}

TEST(NormRules, RunningStatisticsFollowOnlyInTrainingWhereBothAreThere) {
  const Tensor x = scores({2, 3, 4});
  const Tensor mean = zeros({3}, kFloat64), var = ones({3}, kFloat64);
  batch_norm(x, {}, {}, mean, var, false, 0.5, 1e-5);
  EXPECT_TRUE(mean.equal(zeros({3}, kFloat64)));
  EXPECT_EQ(mean._version(), 0);
  batch_norm(x, {}, {}, mean, {}, true, 0.5, 1e-5);
  EXPECT_TRUE(mean.equal(zeros({3}, kFloat64)));
  batch_norm(x, {}, {}, mean, var, true, 0.5, 1e-5);
  EXPECT_TRUE(agree(mean, x.mean({0, 2}) * 0.5));
  EXPECT_TRUE(agree(var, x.transpose(1, 2).reshape({8, 3}).var(0) * 0.5 + 0.5));
  EXPECT_EQ(mean._version(), 1);
  EXPECT_EQ(var._version(), 1);
  const Tensor m = zeros({3}, kFloat64), v = ones({3}, kFloat64);
  const Tensor y = instance_norm(x, {}, {}, m, v, true, 0.5, 1e-5);
  EXPECT_TRUE(agree(m, x.mean(2).mean(0) * 0.5));
  EXPECT_TRUE(agree(v, x.var(2).mean(0) * 0.5 + 0.5));
  EXPECT_TRUE(y.allclose((x - x.mean(2, true)) / (x.var(2, false, true) + 1e-5).sqrt()));
  EXPECT_TRUE(
      instance_norm(x, {}, {}, m, v, false, 0.5, 1e-5).allclose((x - m.view({3, 1})) / (v.view({3, 1}) + 1e-5).sqrt()));
  EXPECT_TRUE(agree(m, x.mean(2).mean(0) * 0.5)) << "read, not written";
}

TEST(NormRules, TheSlopeThatCanBeDifferentiatedIsThatOfTheKernel) {
  const Tensor x = scores({2, 4, 3}), three = scores({3}) + 2, four = scores({4}) + 2, mean = scores({4}),
               var = four.abs();
  const std::vector<std::function<Tensor(const Tensor&, const Tensor&, const Tensor&)>> norms{
      [](const Tensor& t, const Tensor& w, const Tensor& b) { return layer_norm(t, {3}, w, b); },
      [](const Tensor& t, const Tensor& w, const Tensor& b) { return group_norm(t, 2, w, b); },
      [](const Tensor& t, const Tensor& w, const Tensor& b) { return batch_norm(t, w, b, {}, {}, true, 0.1, 1e-5); },
      [&](const Tensor& t, const Tensor& w, const Tensor& b) {
        return batch_norm(t, w, b, mean, var, false, 0.1, 1e-5);
      }};
  for (std::size_t i = 0; i < norms.size(); ++i) {
    for (const bool has_weight : {true, false}) {
      for (const bool has_bias : {true, false}) {
        const auto leaf = [](const Tensor& t) { return t.clone().requires_grad_(); };
        std::vector<Tensor> inputs{leaf(x)};
        const Tensor w = has_weight ? leaf(i == 0 ? three : four) : Tensor(),
                     b = has_bias ? leaf(i == 0 ? three : four) : Tensor();
        if (has_weight) inputs.push_back(w);
        if (has_bias) inputs.push_back(b);
        const Tensor y = (norms[i](inputs[0], w, b) * scores({2, 4, 3}).cos()).sum();
        const auto plain = autograd::grad({y}, inputs, {}, true), again = autograd::grad({y}, inputs, {}, true, true);
        for (std::size_t k = 0; k < inputs.size(); ++k)
          EXPECT_TRUE(plain[k].allclose(again[k].detach(), 1e-7, 1e-9)) << i << has_weight << has_bias << k;
      }
    }
  }
}

}  // namespace
}  // namespace tenon::test
