// The output layer and its loss by chunks: the values and gradients of the two operators that it stands for.
#include <tenon/autograd/autograd.h>
#include <tenon/nn/nn.h>
#include <tenon/ops/ops.h>

#include <gtest/gtest.h>

namespace tenon::test {
namespace {

namespace F = nn::functional;
using Options = F::LinearCrossEntropyFuncOptions;

struct Operands {
  Tensor x, weight, bias, target;
};
Operands operands() {
  manual_seed(3);
  const TensorOptions real = TensorOptions(kFloat64).requires_grad(true);
  Operands made{randn({2, 5, 4}, real), randn({7, 4}, real), randn({7}, real), randint(0, 7, {2, 5}, kInt64)};
  made.target.select(0, 1).select(0, 2).fill_(-100);
  return made;
}

TEST(LinearCrossEntropy, EqualsCrossEntropyOfTheLinearMap) {
  for (const bool mean : {true, false}) {
    for (const std::int64_t chunks : {1, 3, 10, 99}) {
      const Operands a = operands(), b = operands();
      F::CrossEntropyFuncOptions whole;
      whole.label_smoothing(0.1);
      if (!mean) whole.reduction(kSum);
      const Tensor expected =
          F::cross_entropy(F::linear(a.x, a.weight, a.bias).flatten(0, 1), a.target.flatten(), whole);
      const Tensor loss = F::linear_cross_entropy(
          b.x, b.weight, b.target, Options().bias(b.bias).chunks(chunks).mean(mean).label_smoothing(0.1));
      EXPECT_TRUE(loss.allclose(expected, 1e-12, 1e-12)) << chunks;
      (expected * 3).backward();
      (loss * 3).backward();
      EXPECT_TRUE(b.x.grad().allclose(a.x.grad(), 1e-12, 1e-12)) << chunks;
      EXPECT_TRUE(b.weight.grad().allclose(a.weight.grad(), 1e-12, 1e-12)) << chunks;
      EXPECT_TRUE(b.bias.grad().allclose(a.bias.grad(), 1e-12, 1e-12)) << chunks;
    }
  }
}

TEST(LinearCrossEntropy, EqualsTheTwoOperatorsUnderAutocast) {
  const auto leaf = [](const Tensor& tensor) { return tensor.detach().to(kFloat32).requires_grad_(); };
  for (const Dtype dtype : {Dtype::kBFloat16, Dtype::kFloat16}) {
    const Operands o = operands();
    const Tensor x = leaf(o.x), weight = leaf(o.weight), bias = leaf(o.bias), x2 = leaf(o.x), weight2 = leaf(o.weight),
                 bias2 = leaf(o.bias);
    Tensor expected, loss;
    {
      const AutocastGuard guard(Device(kCPU), dtype);
      expected = F::cross_entropy(F::linear(x, weight, bias).flatten(0, 1), o.target.flatten());
      loss = F::linear_cross_entropy(x2, weight2, o.target, Options().bias(bias2).chunks(3));
    }
    EXPECT_EQ(loss.scalar_type(), kFloat32);
    EXPECT_TRUE(loss.allclose(expected, 1e-5, 1e-5));
    expected.backward();
    loss.backward();
    for (const auto& [a, b] : {std::pair(x, x2), std::pair(weight, weight2), std::pair(bias, bias2)}) {
      EXPECT_EQ(b.grad().scalar_type(), kFloat32);
      EXPECT_TRUE(b.grad().allclose(a.grad(), 0.02, 1e-3)) << "sums of chunks are rounded to 16 bits";
    }
  }
}

TEST(LinearCrossEntropy, GivesOnlyTheGradientsThatAreWanted) {
  const Operands o = operands();
  F::linear_cross_entropy(o.x.detach(), o.weight, o.target).backward();
  EXPECT_TRUE(o.weight.grad().defined());
  EXPECT_FALSE(o.x.grad().defined());
  const NoGradGuard no_grad;
  EXPECT_FALSE(F::linear_cross_entropy(o.x, o.weight, o.target).requires_grad());
}

TEST(LinearCrossEntropy, RefusesWhatItCannotDo) {
  const Operands o = operands();
  EXPECT_THROW(F::linear_cross_entropy(o.x, o.weight, o.target, Options().chunks(0)), Error);
  EXPECT_THROW(F::linear_cross_entropy(o.x, o.weight, o.target.select(0, 0)), Error);
  const Tensor loss = F::linear_cross_entropy(o.x, o.weight, o.target);
  EXPECT_THROW(loss.backward({}, true, /*create_graph=*/true), Error);
}

}  // namespace
}  // namespace tenon::test
