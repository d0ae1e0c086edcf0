// Checkpointing gives the same gradients as not checkpointing, keeps less, and draws the same random numbers again.
#include <tenon/autograd/autograd.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <any>
#include <cmath>

namespace tenon {
namespace {

class Checkpoint : public ::testing::TestWithParam<bool> {};

TEST_P(Checkpoint, GivesTheSameGradients) {
  const CheckpointOptions options{.use_reentrant = GetParam()};
  manual_seed(3);
  const Tensor x = randn({4, 4}, TensorOptions(kFloat64).requires_grad(true));
  const Tensor w = randn({4, 4}, TensorOptions(kFloat64).requires_grad(true));
  const auto part = [&](Tensor v) { return v.mm(w).tanh().mm(w).sigmoid(); };
  part(x).square().sum().backward();
  const Tensor dx = x.grad().clone();
  const Tensor dw = w.grad().clone();
  x.mutable_grad().reset();
  w.mutable_grad().reset();
  int runs = 0;
  const Tensor y = checkpoint(
      [&](Tensor v) {
        ++runs;
        return part(v);
      },
      x, options);
  y.square().sum().backward();
  EXPECT_EQ(runs, 2);
  EXPECT_TRUE(x.grad().equal(dx));
  EXPECT_TRUE(w.grad().equal(dw));
}

TEST_P(Checkpoint, DrawsTheSameRandomNumbers) {
  const CheckpointOptions options{.use_reentrant = GetParam()};
  const Tensor x = ones({1000}, requires_grad());
  manual_seed(5);
  const Tensor y = checkpoint([](Tensor v) { return v * bernoulli(full({1000}, 0.5)); }, x, options);
  const Tensor after = rand({3});
  y.sum().backward();
  EXPECT_TRUE(x.grad().equal(y.detach()));
  manual_seed(5);
  bernoulli(full({1000}, 0.5));
  EXPECT_TRUE(after.equal(rand({3})));
}

TEST_P(Checkpoint, LeavesRunningStatisticsAsOneRunDoes) {
  const CheckpointOptions options{.use_reentrant = GetParam()};
  manual_seed(7);
  const Tensor x = randn({16, 3}, requires_grad());
  const auto statistics = [&](bool checkpointed) {
    const Tensor mean = zeros({3}), variance = ones({3});
    const auto part = [&](Tensor v) {
      return batch_norm(v, Tensor(), Tensor(), mean, variance, /*training=*/true, 0.1, 1e-5).tanh();
    };
    x.mutable_grad().reset();
    (checkpointed ? checkpoint(part, x, options) : part(x)).sum().backward();
    EXPECT_FALSE(is_recomputing());
    return cat({mean, variance, x.grad().flatten()});
  };
  EXPECT_TRUE(statistics(true).equal(statistics(false)));
}

TEST_P(Checkpoint, NestsAndTakesSeveralTensors) {
  const CheckpointOptions options{.use_reentrant = GetParam()};
  const Tensor a = tensor({2.0}, requires_grad());
  const Tensor b = tensor({3.0}, requires_grad());
  const auto outer = [&](const autograd::variable_list& in) -> autograd::variable_list {
    const Tensor inner = checkpoint([](Tensor v) { return v * v; }, in[0] * in[1], options);
    return {inner + in[0], inner * in[1]};
  };
  const auto out = checkpoint(CheckpointFunction(outer), {a, b}, options);
  (out[0] + out[1]).backward();
  // f = a^2 b^2 + a + a^2 b^3
  EXPECT_EQ(a.grad().item<float>(), 2 * 2 * 9 + 1 + 2 * 2 * 27);
  EXPECT_EQ(b.grad().item<float>(), 2 * 4 * 3 + 3 * 4 * 9);
}

TEST_P(Checkpoint, HandsAFreshOutputOnAsTheTensorThatTheFunctionMade) {
  const CheckpointOptions options{.use_reentrant = GetParam()};
  const Tensor x = tensor({2.0}, TensorOptions(kFloat64).requires_grad(true));
  Tensor made;
  const Tensor y = checkpoint(
      [&](Tensor v) {
        const Tensor result = v * 3.;
        if (!made.defined()) made = result;
        return result;
      },
      x, options);
  EXPECT_TRUE(y.is_same(made));
  EXPECT_TRUE(made.requires_grad());
  made.backward();
  EXPECT_EQ(x.grad().item<double>(), 3);
}

TEST_P(Checkpoint, AnOutputMayBeUndefined) {
  const CheckpointOptions options{.use_reentrant = GetParam()};
  const Tensor x = tensor({2.0}, TensorOptions(kFloat64).requires_grad(true));
  const auto out = checkpoint(
      [](const autograd::variable_list& inputs) {
        return autograd::variable_list{Tensor(), inputs[0] * 3.};
      },
      {x}, options);
  ASSERT_EQ(out.size(), 2U);
  EXPECT_FALSE(out[0].defined());
  out[1].backward();
  EXPECT_EQ(x.grad().item<double>(), 3);
}

TEST_P(Checkpoint, AnInputThatIsWrittenToBeforeBackwardIsRefused) {
  const CheckpointOptions options{.use_reentrant = GetParam()};
  const Tensor x = ones({3}, requires_grad());
  const Tensor h = x * 2.0;
  const Tensor y = checkpoint([](Tensor v) { return v * v; }, h, options);
  {
    const NoGradGuard no_grad;
    h.mul_(10.0);
  }
  EXPECT_THAT([&] { y.sum().backward(); },
              ::testing::ThrowsMessage<Error>(::testing::AllOf(
                  ::testing::HasSubstr("one of the variables needed for gradient computation has been modified by an "
                                       "inplace operation: [CPUFloatType [3]]"),
                  ::testing::HasSubstr("is at version 1; expected version 0 instead."))));
  EXPECT_FALSE(x.grad().defined());
}

TEST_P(Checkpoint, AnInputThatAnotherPartOfTheMemoryIsWrittenBesideStaysGood) {
  const CheckpointOptions options{.use_reentrant = GetParam()};
  const Tensor x = ones({3}, requires_grad());
  const Tensor h = x * 2.0, other = x * 1.0;
  const Tensor y = checkpoint([](Tensor v) { return v * v; }, h, options);
  const NoGradGuard no_grad;
  other.mul_(10.0);
  x.mul_(5.0);  // the part has h alone
  {
    const AutoGradMode on(true);
    y.sum().backward();
  }
  EXPECT_TRUE(x.grad().equal(full({3}, 8.0)));
}

INSTANTIATE_TEST_SUITE_P(Kinds, Checkpoint, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Reentrant" : "ByHooks"; });

TEST(CheckpointSequential, GivesTheSameGradients) {
  std::vector<std::function<Tensor(Tensor)>> layers;
  for (int i = 0; i < 6; ++i) layers.push_back([](Tensor v) { return v.tanh(); });
  const Tensor x = tensor({0.5}, TensorOptions(kFloat64).requires_grad(true));
  checkpoint_sequential(layers, 3, x).backward();
  const Tensor y = tensor({0.5}, TensorOptions(kFloat64).requires_grad(true));
  Tensor value = y;
  for (const auto& layer : layers) value = layer(value);
  value.backward();
  EXPECT_TRUE(x.grad().equal(y.grad()));
}

TEST(SavedTensorHooks, PackAndUnpackEverythingSaved) {
  int packed = 0;
  int unpacked = 0;
  const Tensor x = tensor({2.0}, requires_grad());
  Tensor y;
  {
    autograd::SavedTensorHooksGuard guard({[&](const Tensor& tensor) -> std::any {
                                             ++packed;
                                             return tensor.to(kFloat64);
                                           },
                                           [&](const std::any& value) {
                                             ++unpacked;
                                             return std::any_cast<Tensor>(value).to(kFloat32);
                                           }});
    y = x.exp() * x;
  }
  y.backward();
  EXPECT_EQ(packed, 3);
  EXPECT_EQ(unpacked, 3);
  EXPECT_FLOAT_EQ(x.grad().item<float>(), std::exp(2.0f) * 3);
}

}  // namespace
}  // namespace tenon
