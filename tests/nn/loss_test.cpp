// Losses over sequences and many classes against figures of PyTorch 2.15, closed forms and exhaustive sums.
#include <tenon/nn/functional.h>
#include <tenon/nn/modules/adaptive_softmax.h>
#include <tenon/nn/modules/loss.h>
#include <tenon/ops/nn/ctc.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/generator.h>
#include <tenon/tensor/literal.h>

#include "ops/gradients/gradcheck.h"
#include "support/expect_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tenon::test {
namespace {

namespace F = nn::functional;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// (4, 2, 3)
Tensor logits() { return tenon::arange(24, TensorOptions(kFloat64)).mul(7).remainder(5).view({4, 2, 3}); }
const Tensor& labels() {
  static const Tensor all = tenon::tensor({{1, 2}, {2, 2}});
  return all;
}

TEST(Ctc, GivesPyTorchsLosses) {
  const Tensor log_probs = logits().log_softmax(2);
  const Tensor each = F::ctc_loss(log_probs, labels(), tenon::tensor({4, 4}), tenon::tensor({2, 2}),
                                  F::CTCLossFuncOptions().reduction(kNone));
  EXPECT_NEAR(each[0].item<double>(), 4.646947, 2e-6);
  EXPECT_NEAR(each[1].item<double>(), 5.506778, 2e-6);
  const Tensor mean = F::ctc_loss(log_probs, labels(), tenon::tensor({4, 3}), tenon::tensor({2, 1}));
  EXPECT_NEAR(mean.item<double>(), 2.28355, 2e-6);
}

TEST(Ctc, ThroughLogSoftmaxGivesPyTorchsGradient) {
  const Tensor x = logits().set_requires_grad(true);
  nn::CTCLoss loss(nn::CTCLossOptions().reduction(kSum));
  loss(x.log_softmax(2), labels(), tenon::tensor({4, 3}), tenon::tensor({2, 1})).backward();
  const std::vector<double> expected{-0.084473, -0.782341, 0.866813,  -0.790653, 0.843795, -0.053142,
                                     0.015907,  0.004303,  -0.02021,  0.042695,  0.035119, -0.077814,
                                     0.27537,   0.017552,  -0.292922, 0.005374,  0.11731,  -0.122684,
                                     -0.331046, 0.843795,  -0.512748, 0.0,       0.0,      0.0};
  const Tensor gradient = x.grad().view({-1});
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(gradient[static_cast<std::int64_t>(i)].item<double>(), expected[i], 2e-6) << "element " << i;
  }
}

TEST(Ctc, OfALeafOfLogProbabilitiesGivesPyTorchsGradientAndNoSecondOne) {
  // The probabilities less the posterior of each label, where the input has steps: what PyTorch 1.13.1 gives for these.
  const Tensor x = logits();
  const Tensor leaf = x.log_softmax(2).detach().set_requires_grad(true);
  const auto loss = [](const Tensor& log_probs) {
    return F::ctc_loss(log_probs, labels(), tenon::tensor({4, 3}), tenon::tensor({2, 1}),
                       F::CTCLossFuncOptions().reduction(kSum));
  };
  const Tensor first = autograd::grad({loss(leaf)}, {leaf}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0];
  const Tensor free = x.detach().set_requires_grad(true);
  loss(free.log_softmax(2)).backward();
  EXPECT_TRUE(first.detach().allclose(free.grad(), 1e-4, 1e-6));
  EXPECT_EQ(first.detach().select(1, 1)[3].abs().sum().item<double>(), 0);  // beyond the second input
  EXPECT_THROW(autograd::grad({first.sum()}, {leaf}), Error);
}

TEST(Ctc, IsTheSumOverAllAlignments) {
  const Tensor log_probs = logits().select(1, 0).log_softmax(1);  // (4, 3)
  double total = 0;
  for (int path = 0; path < 81; ++path) {
    int rest = path, last = 0;
    double log_probability = 0;
    std::vector<int> read;
    for (std::int64_t t = 0; t < 4; ++t, rest /= 3) {
      const int label = rest % 3;
      log_probability += log_probs.index({t, label}).item<double>();
      if (label != 0 && label != last) read.push_back(label);
      last = label;
    }
    if (read == std::vector<int>{1, 2}) total += std::exp(log_probability);
  }
  const Tensor loss = tenon::ctc_loss(log_probs, tenon::tensor({1, 2}), {4}, {2}, 0, Reduction::None);
  EXPECT_NEAR(loss.item<double>(), -std::log(total), 1e-12);
}

TEST(Ctc, ATargetThatDoesNotFitIsInfiniteAndMayCountAsNothing) {
  const auto loss = [](const Tensor& x, bool zero_infinity) {
    return F::ctc_loss(x.log_softmax(2), labels(), tenon::tensor({4, 2}), tenon::tensor({2, 2}),
                       F::CTCLossFuncOptions().reduction(kNone).zero_infinity(zero_infinity));
  };
  EXPECT_TRUE(std::isinf(loss(logits(), false)[1].item<double>()));  // 2 2 needs a blank between
  const Tensor x = logits().set_requires_grad(true);
  const Tensor zeroed = loss(x, true);
  EXPECT_EQ(zeroed[1].item<double>(), 0);
  zeroed.sum().backward();
  EXPECT_EQ(x.grad().select(1, 1).abs().sum().item<double>(), 0);
  EXPECT_GT(x.grad().select(1, 0).abs().sum().item<double>(), 0);
  const Tensor leaf = logits().log_softmax(2).detach().set_requires_grad(true);
  F::ctc_loss(leaf, labels(), tenon::tensor({4, 2}), tenon::tensor({2, 2}), F::CTCLossFuncOptions().reduction(kSum))
      .backward();
  const Tensor hopeless = leaf.grad().select(1, 1);  // no number where there are steps, nothing beyond them
  EXPECT_TRUE(hopeless.narrow(0, 0, 2).isnan().all().item<bool>());
  EXPECT_EQ(hopeless.narrow(0, 2, 2).abs().sum().item<double>(), 0);
  EXPECT_TRUE(leaf.grad().select(1, 0).isfinite().all().item<bool>());
}

TEST(CrossEntropyOfChances, RefusesAWeightThatWantsAGradient) {
  const Tensor p = tenon::full({3}, 0.5), weight = tenon::ones({3}, requires_grad());
  const auto refused = ThrowsMessage<Error>(HasSubstr("is not differentiable with respect to argument 'weight'"));
  EXPECT_THAT([&] { tenon::binary_cross_entropy(p, p, weight); }, refused);
  EXPECT_THAT([&] { tenon::binary_cross_entropy_with_logits(p, p, weight); }, refused);
  NoGradGuard no_grad;
  EXPECT_TRUE(tenon::binary_cross_entropy(p, p, weight).isfinite().item<bool>());
}

TEST(Ctc, NamesWhatDoesNotFit) {
  const Tensor log_probs = logits().log_softmax(2);
  const auto call = [&](const Tensor& targets, const Tensor& inputs, const Tensor& lengths, std::int64_t blank = 0) {
    return [=] { tenon::ctc_loss(log_probs, targets, inputs, lengths, blank); };
  };
  const Tensor two = tenon::tensor({2, 2}), four = tenon::tensor({4, 4});
  expect_error(call(labels(), four.to(kFloat32), two), "input_lengths must be integral");
  expect_error(call(labels(), tenon::tensor({4, 5}), two), "at most 4, but got value 5");
  expect_error(call(labels(), four, tenon::tensor({2, 3})), "size at least 3 at dimension 1");
  expect_error(call(labels() + 1, four, two), "out of range for 3 classes");
  expect_error(call(labels(), four, two, 3), "blank must be in label range");
  expect_error(call(labels(), four, tenon::tensor({2})), "batch_size 2, got 1");
}

TEST(BinaryCrossEntropy, OfAColumnMeetsLabelsInARow) {
  const Tensor p = tensor({0.2, 0.9, 0.5}).view({3, 1}).set_requires_grad(true);
  const Tensor labels = tensor({0., 1., 1.});
  const Tensor row = p.detach().view({3}).set_requires_grad(true);
  const Tensor loss = binary_cross_entropy(p, labels);
  EXPECT_TRUE(loss.equal(binary_cross_entropy(row, labels)));
  loss.backward();
  binary_cross_entropy(row, labels).backward();
  EXPECT_EQ(p.grad().sizes(), p.sizes());
  EXPECT_TRUE(p.grad().view({3}).equal(row.grad()));
  EXPECT_EQ(binary_cross_entropy(p, labels, {}, 0).sizes(), p.sizes());
  EXPECT_THAT(
      [&] {
        binary_cross_entropy(p, tensor({0., 1.}));
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("[2]"), HasSubstr("[3]"))));
}

TEST(BinaryCrossEntropy, OfCertainChancesIsFiniteAndSoAreItsSlopes) {
  // The figures are PyTorch's: logarithms above -100, slopes below 1e12.
  const Tensor p = tensor({0., 1., 0., 1.}).set_requires_grad(true);
  const Tensor loss = binary_cross_entropy(p, tensor({0., 1., 1., 0.}), {}, 0);
  EXPECT_TRUE(loss.equal(tensor({0., 0., 100., 100.})));
  EXPECT_EQ(loss._version(), 0);
  loss.sum().backward();
  EXPECT_TRUE(p.grad().allclose(tensor({0., 0., -1e12, 1e12})));
}

TEST(BinaryCrossEntropy, OfLogitsHasItsGradientAtZero) {
  const Tensor x = tenon::zeros({3}, TensorOptions(kFloat64)).set_requires_grad(true);
  F::binary_cross_entropy_with_logits(x, tenon::zeros_like(x),
                                      F::BinaryCrossEntropyWithLogitsFuncOptions().reduction(kSum))
      .backward();
  EXPECT_TRUE(x.grad().allclose(tenon::full({3}, 0.5, TensorOptions(kFloat64))));
}

TEST(PairDistances, ComeRowByRow) {
  const Tensor x = tenon::tensor({{0.0, 0.0}, {3.0, 4.0}, {6.0, 8.0}});
  EXPECT_TRUE(F::pdist(x).allclose(tenon::tensor({5.0, 10.0, 5.0})));
  EXPECT_TRUE(F::pdist(x, 1.0).allclose(tenon::tensor({7.0, 14.0, 7.0})));
  expect_error([&] { F::pdist(x[0]); }, "only supports 2D");
}

TEST(AdaptiveLogSoftmax, ForwardPicksFromTheFullDistribution) {
  manual_seed(5);
  nn::AdaptiveLogSoftmaxWithLoss layer(nn::AdaptiveLogSoftmaxWithLossOptions(8, 10, {4, 8}).div_value(2.0));
  const Tensor x = tenon::randn({5, 8}), target = tenon::tensor({0, 3, 4, 7, 9});
  const Tensor full = layer->log_prob(x);
  EXPECT_TRUE(full.exp().sum({1}).allclose(tenon::ones({5})));
  const auto result = layer->forward(x, target);
  EXPECT_TRUE(result.output.allclose(full.gather(1, target.unsqueeze(1)).squeeze(1)));
  EXPECT_NEAR(result.loss, -result.output.mean().item<double>(), 1e-6);
  EXPECT_TRUE(layer->predict(x).equal(full.argmax(1)));
  result.output.sum().backward();
  for (const auto& parameter : layer->parameters()) EXPECT_TRUE(parameter.grad().defined());
}

TEST(AdaptiveLogSoftmax, RefusesCutoffsAndTargetsOutOfRange) {
  using Options = nn::AdaptiveLogSoftmaxWithLossOptions;
  for (const std::vector<std::int64_t>& cutoffs : {std::vector<std::int64_t>{5, 5}, {0, 4}, {4, 10}, {}}) {
    expect_error([&] { nn::AdaptiveLogSoftmaxWithLoss(Options(8, 10, cutoffs)); }, "cutoffs should be a sequence");
  }
  nn::AdaptiveLogSoftmaxWithLoss layer(Options(8, 10, {4}));
  expect_error([&] { layer->forward(tenon::ones({1, 8}), tenon::tensor({10})); }, "Target values should be in [0, 9]");
}

/// Means, samples and variances of (2, 3); the figures below are PyTorch 2.15's.
Tensor means() { return tenon::tensor({{0.5, -1.0, 2.0}, {3.0, 0.25, -0.5}}, TensorOptions(kFloat64)); }
Tensor samples() { return tenon::tensor({{0.0, -1.5, 2.5}, {1.0, 1.0, -2.0}}, TensorOptions(kFloat64)); }
Tensor variances() { return tenon::tensor({{0.5, 1.0, 2.0}, {4.0, 0.0, 1e-9}}, TensorOptions(kFloat64)); }

TEST(GaussianNll, GivesPyTorchsLosses) {
  EXPECT_NEAR(nn::GaussianNLLLoss()(means(), samples(), variances()).item<double>(), 234372.9691894371, 1e-6);
  EXPECT_NEAR(
      F::gaussian_nll_loss(means(), samples(), variances(), F::GaussianNLLLossFuncOptions().full(true)).item<double>(),
      234373.88812797028, 1e-6);
  const Tensor each =
      F::gaussian_nll_loss(means(), samples(), 0.5, F::GaussianNLLLossFuncOptions().reduction(kNone)).view({-1});
  const std::vector<double> expected{-0.09657359027997264, -0.09657359027997264, -0.09657359027997264,
                                     3.6534264097200273,   0.21592640972002736,  1.9034264097200273};
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(each[static_cast<std::int64_t>(i)].item<double>(), expected[i], 1e-12) << "element " << i;
}

TEST(GaussianNll, TakesOneVarianceForALine) {
  const Tensor line = tenon::tensor({0.5, 2.0}, TensorOptions(kFloat64));
  for (const Tensor& var : {line, line.unsqueeze(1)})
    EXPECT_NEAR(F::gaussian_nll_loss(means(), samples(), var).item<double>(), 0.4088541666666667, 1e-12);
}

TEST(GaussianNll, LetsTheGradientThroughAVarianceThatIsTooSmall) {
  const Tensor x = means().set_requires_grad(true), var = variances().set_requires_grad(true);
  nn::GaussianNLLLoss loss(nn::GaussianNLLLossOptions().eps(0.75).reduction(kSum));
  const Tensor sum = loss(x, samples(), var);
  EXPECT_NEAR(sum.item<double>(), 3.3373643288289134, 1e-12);
  sum.backward();
  const std::vector<double> of_x{2.0 / 3, 0.5, -0.25, 0.5, -1.0, 2.0};
  const std::vector<double> of_var{0.4444444444444444, 0.375, 0.21875, 0.0, 0.16666666666666663, -1.3333333333333335};
  for (std::size_t i = 0; i < of_x.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    EXPECT_NEAR(x.grad().view({-1})[at].item<double>(), of_x[i], 1e-12) << "element " << i;
    EXPECT_NEAR(var.grad().view({-1})[at].item<double>(), of_var[i], 1e-12) << "element " << i;
  }
}

TEST(GaussianNll, HasTheGradientsOfDifferences) {
  for (const auto reduction : {0, 1, 2}) {
    const auto of = [&](const std::vector<Tensor>& x) {
      F::GaussianNLLLossFuncOptions options = F::GaussianNLLLossFuncOptions().full(true).reduction(kMean);
      if (reduction == 0) options.reduction(kNone);
      if (reduction == 2) options.reduction(kSum);
      return F::gaussian_nll_loss(x[0], x[1], x[2], options);
    };
    const Tensor var = means().square().add(0.5);
    test::check_gradients(
        "gaussian_nll_loss of reduction " + std::to_string(reduction), of,
        {means().set_requires_grad(true), samples().set_requires_grad(true), var.clone().set_requires_grad(true)});
  }
}

TEST(GaussianNll, RefusesAVarianceThatIsNone) {
  expect_error([] { F::gaussian_nll_loss(means(), samples(), -variances()); }, "negative entry");
  for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{2, 2}, {3, 3}, {1, 1}, {3}})
    expect_error([&] { F::gaussian_nll_loss(means(), samples(), tenon::ones(sizes, TensorOptions(kFloat64))); },
                 "var is of incorrect size");
}

}  // namespace
}  // namespace tenon::test
