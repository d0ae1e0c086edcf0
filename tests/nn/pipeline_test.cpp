// Pipelined model parallelism on simulated devices: the gradients of one device, the order of passes, the memory of the
// stages, and how long they wait.
#include <tenon/device/devices.h>
#include <tenon/device/memory_api.h>
#include <tenon/device/order/virtual_time.h>
#include <tenon/nn/containers/functional_module.h>
#include <tenon/nn/containers/sequential.h>
#include <tenon/nn/functional.h>
#include <tenon/nn/modules/activation.h>
#include <tenon/nn/modules/embedding.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/nn/pipeline.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/sgd.h>
#include <tenon/tensor/generator.h>

#include "plugins/simulated/machine.h"
#include "support/expect_error.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

using nn::parallel::Pipeline;
using nn::parallel::pipeline_passes;
using nn::parallel::PipelineOptions;
using nn::parallel::PipelinePass;
using nn::parallel::PipelineSchedule;

constexpr PipelineSchedule kBoth[] = {PipelineSchedule::kGPipe, PipelineSchedule::k1F1B};

std::vector<Device> first_devices(int count) {
  std::vector<Device> devices;
  for (int i = 0; i < count; ++i) devices.emplace_back(kSimulated, static_cast<DeviceIndex>(i));
  return devices;
}

class Pipelines : public SimulatedMachine {
 protected:
  void SetUp() override { have({{"count", std::int64_t{4}}}); }
};

nn::Sequential layers(std::int64_t count, std::int64_t width) {
  nn::Sequential model;
  for (std::int64_t i = 0; i < count; ++i) {
    model->push_back(nn::Linear(width, width));
    model->push_back(nn::Tanh());
  }
  return model;
}

Tensor squared(const Tensor& output, const Tensor& target) { return mse_loss(output, target); }

/// "1 2 a b": forward of micro-batches 1, 2, backward of 1, 2.
std::string words_of_stage(const std::vector<PipelinePass>& passes, std::int64_t stage) {
  std::string words;
  for (const PipelinePass& pass : passes) {
    if (pass.stage != stage) continue;
    words += words.empty() ? "" : " ";
    words += static_cast<char>((pass.backward ? 'a' : '1') + pass.micro_batch);
  }
  return words;
}

TEST_F(Pipelines, GPipeGoesBackWhenAllHaveGoneForward) {
  const auto passes = pipeline_passes(PipelineSchedule::kGPipe, 2, 4);
  EXPECT_EQ(words_of_stage(passes, 0), "1 2 3 4 d c b a");
  EXPECT_EQ(words_of_stage(passes, 1), "1 2 3 4 d c b a");
}

TEST_F(Pipelines, OneForwardOneBackwardTakesTurnsOnceThePipelineIsFull) {
  const auto passes = pipeline_passes(PipelineSchedule::k1F1B, 3, 5);
  EXPECT_EQ(words_of_stage(passes, 0), "1 2 3 a 4 b 5 c d e");
  EXPECT_EQ(words_of_stage(passes, 1), "1 2 a 3 b 4 c 5 d e");
  EXPECT_EQ(words_of_stage(passes, 2), "1 a 2 b 3 c 4 d 5 e");
}

TEST_F(Pipelines, EveryPassComesAfterWhatItNeeds) {
  for (const PipelineSchedule schedule : kBoth) {
    for (const std::int64_t stages : {1, 2, 5}) {
      for (const std::int64_t parts : {1, 3, 8}) {
        const auto passes = pipeline_passes(schedule, stages, parts);
        ASSERT_EQ(passes.size(), static_cast<std::size_t>(2 * stages * parts));
        const auto at = [&](const PipelinePass& pass) { return std::ranges::find(passes, pass) - passes.begin(); };
        for (const PipelinePass& pass : passes) {
          const auto [stage, part, backward] = pass;
          if (backward) {
            EXPECT_LT(at({stage, part, false}), at(pass));
          }
          if (!backward && stage > 0) {
            EXPECT_LT(at({stage - 1, part, false}), at(pass));
          }
          if (backward && stage + 1 < stages) {
            EXPECT_LT(at({stage + 1, part, true}), at(pass));
          }
        }
      }
    }
  }
}

TEST_F(Pipelines, GiveTheGradientsOfOneDevice) {
  manual_seed(5);
  nn::Sequential alone = layers(4, 6);
  const Tensor x = randn({10, 6}).set_requires_grad(true), y = randn({10, 6});
  const Tensor expected = squared(alone->forward(x), y);
  expected.backward();
  const Tensor of_input = x.grad().clone();
  for (const PipelineSchedule schedule : kBoth) {
    nn::Sequential model(std::dynamic_pointer_cast<nn::SequentialImpl>(alone->clone()));
    Pipeline pipeline(model, first_devices(3), PipelineOptions().micro_batches(4).schedule(schedule));
    x.mutable_grad() = Tensor();
    const Tensor loss = pipeline.step(x, y, squared);
    EXPECT_TRUE(x.grad().allclose(of_input, 1e-4, 1e-6));
    EXPECT_EQ(loss.device(), Device("simulated:2"));
    EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 1e-6) << "10 examples in 4 parts, not all of one size";
    const auto parameters = model->parameters(), wanted = alone->parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      EXPECT_EQ(parameters[i].grad().device(), parameters[i].device());
      EXPECT_TRUE(parameters[i].grad().cpu().allclose(wanted[i].grad(), 1e-4, 1e-6)) << i;
    }
    EXPECT_TRUE(pipeline.forward(x).cpu().allclose(alone->forward(x), 1e-5, 1e-6));
  }
}

TEST_F(Pipelines, HaveTheLossesOfOneDeviceWhileTheyLearn) {
  manual_seed(6);
  nn::Sequential alone = layers(3, 8);
  nn::Sequential model(std::dynamic_pointer_cast<nn::SequentialImpl>(alone->clone()));
  Pipeline pipeline(model, first_devices(3), PipelineOptions().micro_batches(5));
  optim::SGD of_alone(alone->parameters(), optim::SGDOptions(0.5).momentum(0.9));
  optim::SGD of_model(model->parameters(), optim::SGDOptions(0.5).momentum(0.9));
  const Tensor x = randn({20, 8}), y = randn({20, 8}).tanh();
  double first = 0, last = 0;
  for (int step = 0; step < 20; ++step) {
    of_alone.zero_grad();
    of_model.zero_grad();
    const Tensor expected = squared(alone->forward(x), y);
    expected.backward();
    last = pipeline.step(x, y, squared).item<double>();
    if (step == 0) first = last;
    ASSERT_NEAR(last, expected.item<double>(), 1e-5) << "step " << step;
    of_alone.step();
    of_model.step();
  }
  EXPECT_LT(last, 0.7 * first);
}

TEST_F(Pipelines, TakeIntegersAndFrozenStages) {
  manual_seed(7);
  nn::Sequential model;
  model->push_back(nn::Embedding(10, 4));
  model->push_back(nn::Linear(4, 4));
  for (const Tensor& parameter : model->ptr(0)->parameters()) parameter.set_requires_grad(false);
  Pipeline pipeline(model, first_devices(2), PipelineOptions().micro_batches(2));
  pipeline.step(arange(6, kLong), zeros({6, 4}), squared);
  EXPECT_FALSE(model->parameters()[0].grad().defined());
  EXPECT_TRUE(model->parameters()[1].grad().defined());
}

TEST_F(Pipelines, AStageWhoseOutputDoesNotDependOnItsInputSendsZeros) {
  nn::Sequential model(nn::Linear(2, 2), nn::Functional([](const Tensor& x) { return tenon::ones_like(x); }),
                       nn::Linear(2, 2));
  Pipeline pipeline(model, first_devices(2), PipelineOptions().balance({1, 2}).micro_batches(1));
  pipeline.step(ones({2, 2}), ones({2, 2}), squared);
  const Tensor first = model->parameters()[0];
  EXPECT_TRUE(first.grad().equal(tenon::zeros_like(first)));
}

TEST_F(Pipelines, AreCutWhereTheParametersAre) {
  nn::Sequential model(nn::Linear(4, 100), nn::ReLU(), nn::Linear(100, 4), nn::ReLU(), nn::Linear(4, 4));
  Pipeline pipeline(model, first_devices(2));
  EXPECT_THAT(pipeline.stages()[0].modules, testing::ElementsAre("0", "1"));
  EXPECT_EQ(pipeline.stages()[0].parameters, 500);
  EXPECT_EQ(pipeline.stages()[1].parameters, 404 + 20);
  EXPECT_EQ(model->parameters()[0].device(), Device("simulated:0"));
  EXPECT_EQ(model->parameters()[2].device(), Device("simulated:1"));
  Pipeline other(model, first_devices(2), PipelineOptions().balance({4, 1}));
  EXPECT_EQ(other.stages()[1].parameters, 20);
}

TEST_F(Pipelines, WhatCannotBeCutIsRefused) {
  const nn::Sequential model = layers(1, 4);
  expect_error([&] { Pipeline(model, {}); }, "no device");
  expect_error([&] { Pipeline(model, first_devices(3)); }, "3 devices for 2 modules");
  expect_error(
      [&] {
        Pipeline(model, first_devices(2), PipelineOptions().balance({2, 1}));
      },
      "the model has 2 modules");
  expect_error([&] { Pipeline(model, first_devices(2), PipelineOptions().micro_batches(0)); }, "one at least");
  Pipeline pipeline(model, first_devices(2), PipelineOptions().micro_batches(4));
  expect_error([&] { pipeline.step(ones({3, 4}), ones({3, 4}), squared); }, "4 micro-batches of a batch of 3 examples");
}

/// Stages of equal work: wide layers, next to which losses and activations take no time; an input that wants its
/// gradient, so that the first stage has as much to do in backward as the others.
struct PipelineRun {
  double idle = 0;  ///< mean over the stages
  std::vector<nn::parallel::PipelineStage> stages;
};

class PipelinesWithCosts : public SimulatedMachine {
 protected:
  void SetUp() override { have({{"count", std::int64_t{4}}, {"mode", std::string("address-only")}, {"tflops", 10.}}); }
  static PipelineRun run(PipelineSchedule schedule, int stages, std::int64_t micro_batches,
                         bool input_gradient = true) {
    constexpr std::int64_t kWidth = 1024;
    const std::vector<Device> devices = first_devices(stages);
    nn::Sequential model;
    for (int i = 0; i < stages; ++i) model->push_back(nn::Linear(nn::LinearOptions(kWidth, kWidth).bias(false)));
    Pipeline pipeline(model, devices, PipelineOptions().micro_batches(micro_batches).schedule(schedule));
    const Tensor x =
        empty({512 * micro_batches, kWidth}, TensorOptions(devices.front())).set_requires_grad(input_gradient);
    const Tensor y = empty({512 * micro_batches, kWidth}, TensorOptions(devices.back()));
    const auto step = [&] {
      pipeline.step(x, y, squared);
      for (const Device& device : devices) synchronize(device);
    };
    step();
    for (const Device& device : devices) reset_device_activity(device);
    const double begin = virtual_time_us();
    step();
    PipelineRun result{.stages = pipeline.stages()};
    for (const Device& device : devices)
      result.idle += (1 - device_activity(device)->kernel_us / (virtual_time_us() - begin)) / stages;
    return result;
  }
};

TEST_F(PipelinesWithCosts, AreIdleForTheBubbleThatTheorySays) {
  for (const PipelineSchedule schedule : kBoth) {
    for (const int stages : {2, 4}) {
      for (const std::int64_t micro_batches : {1, 4, 8}) {
        const double theory = (stages - 1.) / static_cast<double>(micro_batches + stages - 1);
        EXPECT_NEAR(run(schedule, stages, micro_batches).idle, theory, 0.01)
            << stages << " stages, " << micro_batches << " micro-batches, schedule " << static_cast<int>(schedule);
      }
    }
  }
}

TEST_F(PipelinesWithCosts, OneForwardOneBackwardKeepsFewerMicroBatches) {
  const PipelineRun gpipe = run(PipelineSchedule::kGPipe, 4, 8, false), one = run(PipelineSchedule::k1F1B, 4, 8, false);
  for (std::size_t stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(gpipe.stages[stage].peak_micro_batches, 8);
    EXPECT_EQ(one.stages[stage].peak_micro_batches, static_cast<std::int64_t>(4 - stage));
    EXPECT_LT(one.stages[stage].peak_allocated_bytes, gpipe.stages[stage].peak_allocated_bytes);
  }
}

// Once all of it was one kernel of the first device, which read and wrote the memory of the others.
TEST_F(PipelinesWithCosts, AnUpdateOfParametersOnSeveralDevicesRunsOnEach) {
  const std::vector<Device> devices = first_devices(2);
  std::vector<Tensor> parameters;
  for (const Device& device : devices) {
    parameters.push_back(empty({1024, 1024}, TensorOptions(device)).set_requires_grad(true));
    parameters.back().mutable_grad() = empty({1024, 1024}, TensorOptions(device));
  }
  optim::SGD optimizer(parameters, optim::SGDOptions(0.5).momentum(0.9));
  optimizer.step();
  for (const Device& device : devices) synchronize(device);
  for (const Device& device : devices) reset_device_activity(device);
  optimizer.step();
  for (const Device& device : devices) synchronize(device);
  EXPECT_GT(device_activity(devices[1])->kernel_us, 0);
  EXPECT_NEAR(device_activity(devices[0])->kernel_us, device_activity(devices[1])->kernel_us, 1e-6);
}

}  // namespace
}  // namespace tenon::test
