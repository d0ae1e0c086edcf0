// The model that the profiler's tests train: two layers with names, a loss, an optimiser.
#pragma once

#include <tenon/nn/modules/linear.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/sgd.h>
#include <tenon/profiler/profiler.h>
#include <tenon/tensor/generator.h>

namespace tenon::test {

struct SmallNetImpl : nn::Module {
  SmallNetImpl() {
    encoder = register_module("encoder", nn::Linear(8, 16));
    head = register_module("head", nn::Linear(16, 4));
  }
  Tensor forward(const Tensor& x) { return head(encoder(x).relu()); }
  nn::Linear encoder{nullptr}, head{nullptr};
};
TENON_MODULE(SmallNet);

/// What is trained, and a step of it.
struct SmallTraining {
  SmallNet model;
  optim::SGD optimizer{model->parameters(), optim::SGDOptions(0.1)};
  Tensor x = randn({5, 8}), y = randn({5, 4});

  void step() {
    optimizer.zero_grad(true);
    Tensor loss = mse_loss(model(x), y);
    loss.backward();
    optimizer.step();
  }
};

}  // namespace tenon::test
