// nn::functional calls the operators: the same values, dtypes and errors.
#include "../support/expect_error.h"

#include <tenon/autograd/autograd.h>
#include <tenon/nn/nn.h>
#include <tenon/ops/all_ops.h>
#include <tenon/tensor/libtorch/warning.h>

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace tenon {
namespace {

namespace F = nn::functional;
using test::expect_error;

/// A functional form, what it is an operator of, and its in-place form where it has one.
struct Pair {
  std::string name;
  std::function<Tensor(const Tensor&)> functional, op;
  std::function<Tensor(Tensor)> inplace;
};

const std::vector<Pair>& activations() {
  static const std::vector<Pair> pairs{
      {"elu", [](const Tensor& x) { return F::elu(x, F::ELUFuncOptions().alpha(0.4)); },
       [](const Tensor& x) { return elu(x, 0.4); },
       [](Tensor x) { return F::elu(x, F::ELUFuncOptions().alpha(0.4).inplace(true)); }},
      {"selu", [](const Tensor& x) { return F::selu(x); }, [](const Tensor& x) { return selu(x); },
       [](Tensor x) { return F::selu(x, F::SELUFuncOptions().inplace(true)); }},
      {"celu", [](const Tensor& x) { return F::celu(x, F::CELUFuncOptions().alpha(0.4)); },
       [](const Tensor& x) { return celu(x, 0.4); },
       [](Tensor x) { return F::celu(x, F::CELUFuncOptions().alpha(0.4).inplace(true)); }},
      {"relu", [](const Tensor& x) { return F::relu(x); }, [](const Tensor& x) { return relu(x); },
       [](Tensor x) { return F::relu(x, F::ReLUFuncOptions().inplace(true)); }},
      {"relu6", [](const Tensor& x) { return F::relu6(x); }, [](const Tensor& x) { return relu6(x); },
       [](Tensor x) { return F::relu6(x, F::ReLU6FuncOptions().inplace(true)); }},
      {"leaky_relu", [](const Tensor& x) { return F::leaky_relu(x, F::LeakyReLUFuncOptions().negative_slope(0.3)); },
       [](const Tensor& x) { return leaky_relu(x, 0.3); },
       [](Tensor x) { return F::leaky_relu(x, F::LeakyReLUFuncOptions().negative_slope(0.3).inplace(true)); }},
      {"rrelu", [](const Tensor& x) { return F::rrelu(x); }, [](const Tensor& x) { return rrelu(x); },
       [](Tensor x) { return F::rrelu(x, F::RReLUFuncOptions().inplace(true)); }},
      {"hardtanh", [](const Tensor& x) { return F::hardtanh(x); }, [](const Tensor& x) { return hardtanh(x); },
       [](Tensor x) { return F::hardtanh(x, F::HardtanhFuncOptions().inplace(true)); }},
      {"threshold", [](const Tensor& x) { return F::threshold(x, F::ThresholdFuncOptions(1, 5)); },
       [](const Tensor& x) { return threshold(x, 1, 5); },
       [](Tensor x) { return F::threshold(x, F::ThresholdFuncOptions(1, 5).inplace(true)); }},
      {"gelu", [](const Tensor& x) { return F::gelu(x); }, [](const Tensor& x) { return gelu(x); }, nullptr},
      {"glu", [](const Tensor& x) { return F::glu(x); }, [](const Tensor& x) { return glu(x); }, nullptr},
      {"hardshrink", [](const Tensor& x) { return F::hardshrink(x); }, [](const Tensor& x) { return hardshrink(x); },
       nullptr},
      {"softshrink", [](const Tensor& x) { return F::softshrink(x); }, [](const Tensor& x) { return softshrink(x); },
       nullptr},
      {"softplus", [](const Tensor& x) { return F::softplus(x); }, [](const Tensor& x) { return softplus(x); },
       nullptr},
      {"logsigmoid", [](const Tensor& x) { return F::logsigmoid(x); }, [](const Tensor& x) { return log_sigmoid(x); },
       nullptr},
      {"silu", [](const Tensor& x) { return F::silu(x); }, [](const Tensor& x) { return silu(x); }, nullptr},
      {"mish", [](const Tensor& x) { return F::mish(x); }, [](const Tensor& x) { return mish(x); }, nullptr},
      {"softsign", [](const Tensor& x) { return F::softsign(x); }, [](const Tensor& x) { return softsign(x); },
       nullptr},
      {"tanhshrink", [](const Tensor& x) { return F::tanhshrink(x); }, [](const Tensor& x) { return tanhshrink(x); },
       nullptr},
      {"softmin", [](const Tensor& x) { return F::softmin(x, 0); }, [](const Tensor& x) { return softmin(x, 0); },
       nullptr},
  };
  return pairs;
}

/// The dtype of a result, or the error.
std::string outcome(const std::function<Tensor(const Tensor&)>& function, const Tensor& x) {
  try {
    return toString(function(x).scalar_type());
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Functional, ActivationsAreTheOperators) {
  const Tensor x = tensor({-2.5f, -0.5f, -0.0f, 0.5f, 1.5f, 7.0f});
  for (const Pair& pair : activations()) {
    SCOPED_TRACE(pair.name);
    EXPECT_TRUE(pair.functional(x).equal(pair.op(x)));
    for (const Tensor& other : {tensor({-2, 0, 3, 7}), tensor({true, false}), tensor({1, 2}, kUInt8)}) {
      EXPECT_EQ(outcome(pair.functional, other), outcome(pair.op, other));
    }
    if (!pair.inplace) continue;
    const Tensor written = x.clone();
    EXPECT_TRUE(pair.inplace(written).is_same(written));
    EXPECT_TRUE(written.equal(pair.op(x))) << "in place";
  }
}

TEST(Functional, ActivationsKeepIntegersOrRefuseThemAsPyTorchDoes) {
  const Tensor whole = tensor({-2, 0, 3}), truth = tensor({true, false});
  EXPECT_TRUE(F::hardtanh(whole).equal(tensor({-1, 0, 1})));
  EXPECT_TRUE(F::relu(whole).equal(tensor({0, 0, 3})));
  EXPECT_TRUE(F::relu6(whole).equal(tensor({0, 0, 3})));
  EXPECT_TRUE(F::threshold(whole, F::ThresholdFuncOptions(1, 5)).equal(tensor({5, 5, 3})));
  EXPECT_EQ(F::softsign(whole).scalar_type(), kFloat32);
  expect_error([&] { F::relu(truth); }, "Boolean inputs not supported for relu");
  expect_error([&] { F::hardtanh(truth); }, "Bool inputs not supported for hardtanh");
  expect_error([&] { F::elu(whole); }, "\"elu_cpu\" not implemented for 'Long'");
  expect_error([&] { F::silu(whole); }, "\"silu_cpu\" not implemented for 'Long'");
  expect_error([&] { F::glu(tensor({1, 2})); }, "\"glu_cpu\" not implemented for 'Long'");
}

TEST(Functional, PreluHasTheWeightAsItsSlopeAtZero) {
  const Tensor x = tensor({-1.0f, 0.0f, 2.0f}).set_requires_grad(true);
  F::prelu(x, tensor({0.25f})).sum().backward();
  EXPECT_TRUE(x.grad().equal(tensor({0.25f, 0.25f, 1.0f})));
}

struct Warnings final : WarningHandler {
  Warnings() : before(Warning::get_warning_handler()) { Warning::set_warning_handler(this); }
  ~Warnings() override { Warning::set_warning_handler(before); }
  void process(const SourceLocation&, const std::string& message, const bool) override { said.push_back(message); }
  WarningHandler* before;
  std::vector<std::string> said;
};

TEST(Functional, LossesOfOtherSizesThanTheirTargetsWarnThatTheyAreBroadcast) {
  const Tensor row = ones({3}), column = ones({3, 1});
  for (const auto& loss : std::vector<std::function<Tensor(const Tensor&, const Tensor&)>>{
           [](const Tensor&x, const Tensor&y) { return F::l1_loss(x, y); },
           [](const Tensor&x, const Tensor&y) { return F::mse_loss(x, y); },
           [](const Tensor&x, const Tensor&y) { return F::smooth_l1_loss(x, y); },
           [](const Tensor&x, const Tensor&y) { return F::huber_loss(x, y); }}) {
    Warnings warnings;
    loss(row, row);
    EXPECT_TRUE(warnings.said.empty());
    loss(row, column);
    ASSERT_EQ(warnings.said.size(), 1u);
    EXPECT_EQ(warnings.said[0].find("Using a target size ([3, 1]) that is different to the input size ([3])"), 0u)
        << warnings.said[0];
  }
}

TEST(Functional, NllLossRefusesABatchOfAnotherSizeThanItsTargets) {
  const Tensor two = tensor({0, 1});
  EXPECT_EQ(F::nll_loss(full({2, 3}, -1.0), two).item<float>(), 1);
  EXPECT_EQ(F::nll_loss(full({3}, -1.0), tensor(std::int64_t{2})).item<float>(), 1) << "one sample has no batch";
  expect_error(
      [&] {
        F::nll_loss(ones({3, 3}), two);
      },
      "Expected input batch_size (3) to match target batch_size (2).");
  expect_error([] { F::nll_loss(ones({}), tensor(std::int64_t{0})); }, "Expected 1 or more dimensions (got 0)");
}

TEST(Functional, KlDivByBatchIsTheSumOverTheSamples) {
  const Tensor log_chances = tensor({{-1.0f, -2.0f}, {-3.0f, -1.0f}, {-0.5f, -1.5f}});
  const Tensor target = tensor({{0.25f, 0.75f}, {0.5f, 0.5f}, {1.0f, 0.0f}});
  const auto by = [&](const auto& reduction) {
    return F::kl_div(log_chances, target, F::KLDivFuncOptions().reduction(reduction));
  };
  EXPECT_TRUE(by(kBatchMean).allclose(by(kSum) / 3));
  EXPECT_TRUE(by(kMean).allclose(by(kSum) / 6));
  const auto of_one = [](const auto& reduction) {
    return F::kl_div(tensor(-1.0f), tensor(0.5f), F::KLDivFuncOptions().reduction(reduction));
  };
  EXPECT_TRUE(of_one(kBatchMean).equal(of_one(kSum))) << "a number has no batch";
}

TEST(Functional, MultilabelSoftMarginLossIsTheMeanCrossEntropyOfItsLabels) {
  const Tensor logits = tensor({{0.5f, -1.0f, 2.0f}, {-0.25f, 3.0f, 0.0f}});
  const Tensor labels = tensor({{1.0f, 0.0f, 0.25f}, {0.0f, 1.0f, 1.0f}});
  const Tensor chance = sigmoid(logits);
  const Tensor each = -(labels * log(chance) + (1 - labels) * log(1 - chance));
  EXPECT_TRUE(F::multilabel_soft_margin_loss(logits, labels).allclose(each.mean()));
  const Tensor weight = tensor({1.0f, 5.0f, 0.5f});
  EXPECT_TRUE(F::multilabel_soft_margin_loss(logits, labels,
                                             F::MultilabelSoftMarginLossFuncOptions().reduction(kNone).weight(weight))
                  .allclose((each * weight).mean({-1})));
}

TEST(Functional, KlDivIsNanWhereATargetIsNegative) {
  const Tensor loss =
      F::kl_div(tensor({-1.0f, -1.0f, -1.0f}), tensor({-0.5f, 0.0f, 0.5f}), F::KLDivFuncOptions().reduction(kNone));
  EXPECT_TRUE(loss.isnan().equal(tensor({true, false, false})));
  EXPECT_EQ(loss[1].item<float>(), 0);
}

TEST(Functional, DistancesPromoteTheirOperands) {
  const Tensor whole = ones({2, 3}, kInt64);
  EXPECT_TRUE(F::cosine_similarity(whole, ones({2, 3})).allclose(ones({2})));
  expect_error([&] { F::cosine_similarity(whole, whole); },
               "expected common dtype to be floating point, yet common dtype is Long");
  EXPECT_TRUE(F::pairwise_distance(ones({2, 3}), zeros({3})).allclose(full({2}, std::sqrt(3.0))));
}

TEST(Functional, OneHotRefusesClassesThatAreNone) {
  expect_error([] { F::one_hot(tensor({-1, 2})); }, "Class values must be non-negative.");
  expect_error([] { F::one_hot(tensor({1, 2}), 2); }, "Class values must be smaller than num_classes.");
}

TEST(Functional, DropoutOfChannelsNeedsChannels) {
  expect_error([] { F::dropout2d(ones({3})); }, "Feature dropout requires at least 2 dimensions in the input");
}

TEST(Functional, DropoutIsTheOperatorInPlaceToo) {
  manual_seed(7);
  const Tensor once = F::dropout(ones({64}));
  manual_seed(7);
  Tensor written = ones({64});
  F::dropout(written, F::DropoutFuncOptions().inplace(true));
  EXPECT_TRUE(written.equal(once));
  EXPECT_TRUE(once.eq(0).logical_or(once.eq(2)).all().item<bool>());
}

}  // namespace
}  // namespace tenon
