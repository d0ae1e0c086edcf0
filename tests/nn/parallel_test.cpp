// Data parallelism over the host and a simulated device: the same outputs and gradients as on one.
#include "support/expect_error.h"

#include <tenon/nn/modules/linear.h>
#include <tenon/nn/parallel.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/generator.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <tuple>
#include <vector>

namespace tenon::test {
namespace {

namespace parallel = nn::parallel;

const Device kHost("cpu");
const Device kOther("simulated:0");
Tensor at_home(const Tensor& tensor) { return tensor.to(kHost, tensor.scalar_type()); }

struct PairImpl : nn::Cloneable<PairImpl> {
  PairImpl() { reset(); }
  void reset() override {
    first = register_module("first", nn::Linear(3, 5));
    second = register_module("second", nn::Linear(5, 2));
  }
  Tensor forward(const Tensor& x) { return second(tenon::tanh(first(x))); }
  nn::Linear first{nullptr}, second{nullptr};
};
TENON_MODULE(Pair);

TEST(DataParallel, GivesTheGradientsOfOneDevice) {
  manual_seed(11);
  Pair model;
  Pair alone(std::dynamic_pointer_cast<PairImpl>(model->clone()));
  const Tensor x = randn({7, 3});
  const Tensor y = alone(x);
  y.square().sum().backward();
  const Tensor shared = parallel::data_parallel(model, x, std::vector<Device>{kHost, kOther});
  EXPECT_EQ(shared.device(), kHost);
  EXPECT_TRUE(shared.allclose(y));
  shared.square().sum().backward();
  const auto parameters = model->named_parameters();
  for (const auto& expected : alone->named_parameters()) {
    const Tensor gradient = parameters[expected.key()].grad();
    ASSERT_TRUE(gradient.defined()) << expected.key();
    EXPECT_EQ(gradient.device(), kHost);
    EXPECT_TRUE(gradient.allclose(expected.value().grad(), 1e-5, 1e-6)) << expected.key();
  }
}

TEST(DataParallel, LeavesFrozenParametersAlone) {
  Pair model;
  model->first->weight.set_requires_grad(false);
  parallel::data_parallel(model, ones({4, 3}), std::vector<Device>{kHost, kOther}, kOther).sum().backward();
  EXPECT_FALSE(model->first->weight.grad().defined());
  EXPECT_TRUE(model->first->bias.grad().defined());
}

TEST(DataParallel, OnOneDeviceMovesTheModuleThere) {
  Pair model;
  const Tensor y = parallel::data_parallel(model, ones({4, 3}), std::vector<Device>{kOther}, kHost);
  EXPECT_EQ(y.device(), kHost);
  EXPECT_EQ(model->first->weight.device(), kOther);
}

TEST(DataParallel, UsesNoMoreDevicesThanThereAreRows) {
  Pair model;
  EXPECT_EQ(parallel::data_parallel(model, ones({1, 3}), std::vector<Device>{kHost, kOther}).size(0), 1);
}

TEST(DataParallel, RethrowsWhatAReplicaThrew) {
  struct Bad : nn::Cloneable<Bad> {
    void reset() override {}
    Tensor forward(const Tensor& x) {
      if (x.device() == kOther) throw std::runtime_error("Badness!");
      return x;
    }
  };
  expect_error<std::runtime_error>(
      [] {
        parallel::data_parallel(std::make_shared<Bad>(), ones({4, 3}), std::vector<Device>{kHost, kOther});
      },
      "Badness!");
  expect_error(
      [] {
        parallel::data_parallel(std::make_shared<Bad>(), ones({4, 3}), std::vector<Device>{});
      },
      "no device is named");
}

/// Gives each row's loss, where the row is.
struct PairWithLossImpl : nn::Cloneable<PairWithLossImpl> {
  PairWithLossImpl() { reset(); }
  void reset() override { pair = register_module("pair", Pair()); }
  Tensor forward(const Tensor& x, const Tensor& target) { return (pair(x) - target).square().mean(1); }
  Pair pair{nullptr};
};
TENON_MODULE(PairWithLoss);

TEST(DataParallel, TakesSeveralInputsSoThatLossesAreComputedWhereTheOutputsAre) {
  manual_seed(13);
  PairWithLoss model;
  PairWithLoss alone(std::dynamic_pointer_cast<PairWithLossImpl>(model->clone()));
  const Tensor x = randn({7, 3}), y = randn({7, 2});
  const Tensor expected = alone(x, y).mean();
  expected.backward();
  const Tensor loss = parallel::data_parallel(model, std::tuple(x, y), std::vector<Device>{kHost, kOther}).mean();
  EXPECT_TRUE(loss.allclose(expected));
  loss.backward();
  for (std::size_t i = 0; i < model->parameters().size(); ++i)
    EXPECT_TRUE(model->parameters()[i].grad().allclose(alone->parameters()[i].grad(), 1e-5, 1e-6)) << i;
  EXPECT_EQ(parallel::data_parallel(model, std::tuple(x, y), std::vector<Device>{kOther}, kHost).device(), kHost);
}

TEST(ParallelApply, RunsEveryModuleOnItsInputAndRecordsAsTheCallerDoes) {
  manual_seed(12);
  nn::Linear here(3, 4);
  nn::Linear there(std::dynamic_pointer_cast<nn::LinearImpl>(here->clone(kOther)));
  std::vector<nn::Linear> modules = {here, there};
  const std::vector<Tensor> inputs = {ones({2, 3}), ones({2, 3}, TensorOptions(kOther))};
  const std::vector<Tensor> outputs = parallel::parallel_apply(modules, inputs);
  EXPECT_EQ(outputs[1].device(), kOther);
  EXPECT_TRUE(at_home(outputs[1]).allclose(outputs[0]));
  EXPECT_TRUE(outputs[1].requires_grad());
  NoGradGuard no_grad;
  EXPECT_FALSE(parallel::parallel_apply(modules, inputs)[1].requires_grad());
}

TEST(ScatterAndGather, AreEachOthersGradients) {
  const Tensor x = arange(10, kFloat32).set_requires_grad(true);
  const auto parts = autograd::Scatter({kHost, kOther}).apply({x});
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[1].device(), kOther);
  const Tensor joined = autograd::Gather(kOther).apply({parts[1], parts[0]}).front();
  EXPECT_EQ(joined.device(), kOther);
  joined.backward(arange(10, TensorOptions(kOther).dtype(kFloat32)));
  EXPECT_TRUE(x.grad().equal(tensor({5., 6., 7., 8., 9., 0., 1., 2., 3., 4.})));
  const std::vector<std::int64_t> sizes = {3, 7};
  EXPECT_EQ(autograd::Scatter({kHost, kOther}, sizes).apply({x})[1].size(0), 7);
}

}  // namespace
}  // namespace tenon::test
