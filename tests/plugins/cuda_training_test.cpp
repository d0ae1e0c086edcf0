// Training on an emulated CUDA device: steps of small models equal the cpu's to rounding.
#include <tenon/runtime/plugins/plugins.h>
#include <tenon/tenon.h>

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

namespace tenon::test {
namespace {

using Optimizer = std::function<std::unique_ptr<optim::Optimizer>(std::vector<Tensor>)>;

nn::Sequential mlp() {
  return nn::Sequential(nn::Linear(20, 33), nn::ReLU(), nn::LayerNorm(nn::LayerNormOptions({33})), nn::Linear(33, 5));
}

/// The parameters after a few steps on one batch, on the host.
std::vector<Tensor> trained(const Device& device, const Optimizer& make, int steps) {
  manual_seed(11);
  nn::Sequential model = mlp();
  const Tensor x = randn({16, 20}), target = randint(0, 5, {16}, kInt64);
  model->to(device);
  const Tensor inputs = x.to(device), targets = target.to(device);
  const std::unique_ptr<optim::Optimizer> optimizer = make(model->parameters());
  for (int step = 0; step < steps; ++step) {
    optimizer->zero_grad();
    nn::functional::cross_entropy(model->forward(inputs), targets).backward();
    optimizer->step();
  }
  std::vector<Tensor> parameters;
  for (const Tensor& parameter : model->parameters()) {
    EXPECT_EQ(parameter.device(), device);
    parameters.push_back(parameter.detach().to(kCPU));
  }
  return parameters;
}

void expect_equal_training(const Optimizer& make) {
  const std::vector<Tensor> here = trained(kCPU, make, 4);
  const std::vector<Tensor> there = trained(Device("cuda:0"), make, 4);
  ASSERT_EQ(here.size(), there.size());
  for (std::size_t i = 0; i < here.size(); ++i)
    EXPECT_LT((here[i] - there[i]).abs().max().item<double>(), 2e-6) << "parameter " << i;
}

TEST(CudaTraining, OfAnMlpBySgdEqualsTheCpus) {
  expect_equal_training([](std::vector<Tensor> parameters) {
    return std::make_unique<optim::SGD>(parameters, optim::SGDOptions(0.1).momentum(0.9));
  });
}

TEST(CudaTraining, OfAnMlpByAdamEqualsTheCpus) {
  expect_equal_training([](std::vector<Tensor> parameters) {
    return std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions(1e-3));
  });
}

}  // namespace
}  // namespace tenon::test
