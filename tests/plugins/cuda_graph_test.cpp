// Captured steps on a CUDA device: what a graph runs again equals what the program would have run, random
// numbers and the optimiser's count of steps included.
#include "support/every_device.h"
#include "support/expect_error.h"

#include <tenon/runtime/config/config.h>
#include <tenon/tenon.h>
#include <tenon/train/model.h>
#include <tenon/train/run_experiment.h>

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace tenon::test {
namespace {

const Device kCuda("cuda:0");

/// A new device, with an allocator that has private pools and a stream of its own in use.
class OpenDevice {
 public:
  explicit OpenDevice(std::string_view allocator) {
    shutdown();
    set_allocator("cuda", allocator_from_spec(allocator));
    stream_ = device_state(kCuda).driver().create_stream(0);
    guard_.emplace(kCuda, stream_);
  }
  ~OpenDevice() {
    device_state(kCuda).driver().synchronize();
    guard_.reset();
    device_state(kCuda).driver().destroy_stream(stream_);
    shutdown();
    set_allocator("cuda", allocator_from_spec(kDefaultAllocator));
  }
  OpenDevice(const OpenDevice&) = delete;
  OpenDevice& operator=(const OpenDevice&) = delete;

 private:
  StreamRef stream_;
  std::optional<StreamGuard> guard_;
};

class CudaGraph : public testing::TestWithParam<const char*> {
 protected:
  OpenDevice device_{GetParam()};
};

/// Calls that take memory of the device or give it back.
std::int64_t memory_calls() { return device_state(kCuda).allocator().stats().device_calls(); }

struct Trained {
  std::vector<Tensor> parameters;
  std::int64_t steps_counted = 0;
};

/// Five steps of a network with dropout; from the third on by a graph, where `captured`.
template <class Optim, class State>
Trained trained(std::unique_ptr<Optim> (*make)(std::vector<Tensor>), std::int64_t (*count)(const State&),
                bool captured) {
  manual_seed(17);
  nn::Sequential model(nn::Linear(12, 20), nn::Tanh(), nn::Dropout(0.4), nn::Linear(20, 3));
  const Tensor x = randn({8, 12}).to(kCuda), target = randint(0, 3, {8}, kInt64).to(kCuda);
  model->to(kCuda);
  const std::unique_ptr<Optim> optimizer = make(model->parameters());
  const auto step = [&] {
    optimizer->zero_grad(/*set_to_none=*/false);
    nn::functional::cross_entropy(model->forward(x), target).backward();
    optimizer->step();
  };
  step();
  step();
  CapturedGraph graph(kCuda);
  if (captured) {
    graph.capture_begin();
    step();
    graph.capture_end();
  }
  const std::int64_t before = memory_calls();
  for (int i = 2; i < 5; ++i) captured ? graph.replay() : step();
  if (captured) {
    EXPECT_EQ(memory_calls(), before);
  }
  Trained result;
  for (const Tensor& parameter : model->parameters()) result.parameters.push_back(parameter.detach().to(kCPU));
  result.steps_counted =
      count(static_cast<const State&>(*optimizer->state().at(optim::state_key(model->parameters()[0]))));
  return result;
}

std::unique_ptr<optim::AdamW> adamw(std::vector<Tensor> parameters) {
  return std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions(1e-2));
}

TEST_P(CudaGraph, OfAStepWithDropoutAndAdamEqualsTheSteps) {
  const auto count = +[](const optim::AdamWParamState& state) { return state.step(); };
  const Trained eager = trained<optim::AdamW, optim::AdamWParamState>(adamw, count, false);
  const Trained graph = trained<optim::AdamW, optim::AdamWParamState>(adamw, count, true);
  for (std::size_t i = 0; i < eager.parameters.size(); ++i)
    EXPECT_TRUE(equal(eager.parameters[i], graph.parameters[i]))
        << "parameter " << i << ": " << (eager.parameters[i] - graph.parameters[i]).abs().max().item<double>();
  EXPECT_EQ(graph.steps_counted, 5);
  EXPECT_EQ(eager.steps_counted, 5);
}

TEST_P(CudaGraph, DrawsNewNumbersInEachRunAndLeavesTheGeneratorBehindThem) {
  const auto draws = [] { return rand({6}, kCuda); };
  manual_seed(3);
  std::vector<Tensor> want;
  for (int i = 0; i < 5; ++i) want.push_back(draws().to(kCPU));

  manual_seed(3);
  CapturedGraph graph(kCuda);
  graph.capture_begin();
  const Tensor drawn = draws();
  graph.capture_end();
  for (int i = 0; i < 4; ++i) {
    graph.replay();
    EXPECT_TRUE(equal(drawn.to(kCPU), want[static_cast<std::size_t>(i)])) << "run " << i;
  }
  EXPECT_TRUE(equal(draws().to(kCPU), want[4]));
}

TEST_P(CudaGraph, FollowsASeedThatIsSetAfterTheCapture) {
  CapturedGraph graph(kCuda);
  graph.capture_begin();
  const Tensor drawn = randn({6}, kCuda);
  graph.capture_end();
  graph.replay();
  manual_seed(5);
  const Tensor want = randn({6}, kCuda).to(kCPU);
  manual_seed(5);
  graph.replay();
  EXPECT_TRUE(equal(drawn.to(kCPU), want));
}

TEST_P(CudaGraph, OfAttentionWithDropoutDrawsNewOnesForwardAndBackward) {
  const Tensor q = rand({1, 2, 9, 8}, kCuda).set_requires_grad(true);
  const auto gradient = [&] {
    q.mutable_grad() = Tensor();
    scaled_dot_product_attention(q, q, q, std::nullopt, 0.5).sum().backward();
    return q.grad();
  };
  gradient();
  manual_seed(3);
  std::vector<Tensor> want;
  for (int i = 0; i < 3; ++i) want.push_back(gradient().to(kCPU));
  manual_seed(3);
  CapturedGraph graph(kCuda);
  graph.capture_begin();
  const Tensor got = gradient();
  graph.capture_end();
  for (int i = 0; i < 3; ++i) {
    graph.replay();
    EXPECT_TRUE(equal(got.to(kCPU), want[static_cast<std::size_t>(i)])) << "run " << i;
  }
  EXPECT_FALSE(equal(want[0], want[1]));
}

/// Attention of 16 bits, which runs on tensor cores, once with each of its kinds of kernels; each run of the graph
/// reads what is in its operand by then.
TEST_P(CudaGraph, OfAttentionInSixteenBitsEqualsTheSteps) {
  for (const auto& [dtype, dropout, causal] :
       {std::tuple{kFloat16, 0.0, true}, {kBFloat16, 0.0, false}, {kBFloat16, 0.25, true}}) {
    SCOPED_TRACE(testing::Message() << name_of(dtype) << ", dropout " << dropout);
    manual_seed(11);
    std::vector<Tensor> operands;
    for (int i = 0; i < 3; ++i) operands.push_back((rand({1, 2, 70, 64}) - 0.5).to(kCuda).to(dtype));
    const Tensor q = operands[0].clone().set_requires_grad(true);
    const auto load = [&](int i) {
      const NoGradGuard guard;
      Tensor(q).copy_(operands[static_cast<std::size_t>(i)]);
    };
    Tensor out;
    const auto gradient = [&] {
      q.mutable_grad() = Tensor();
      out = scaled_dot_product_attention(q, q, q, std::nullopt, dropout, causal);
      out.square().sum().backward();
      return q.grad();
    };
    gradient();
    manual_seed(3);
    std::vector<Tensor> want_out, want;
    for (int i = 0; i < 3; ++i) {
      load(i);
      want.push_back(gradient().to(kCPU));
      want_out.push_back(out.detach().to(kCPU));
    }
    manual_seed(3);
    CapturedGraph graph(kCuda);
    graph.capture_begin();
    const Tensor got = gradient();
    graph.capture_end();
    const std::int64_t before = memory_calls();
    for (int i = 0; i < 3; ++i) {
      load(i);
      graph.replay();
      EXPECT_TRUE(equal(got.to(kCPU), want[static_cast<std::size_t>(i)])) << "run " << i;
      EXPECT_TRUE(equal(out.detach().to(kCPU), want_out[static_cast<std::size_t>(i)])) << "run " << i;
    }
    EXPECT_EQ(memory_calls(), before);
    EXPECT_FALSE(equal(want[0], want[1]));
  }
}

TEST_P(CudaGraph, AFirstStepThatMakesTheOptimisersStateCannotBeCaptured) {
  const Tensor p = ones({4}, kCuda).set_requires_grad(true);
  p.mutable_grad() = ones({4}, kCuda);
  optim::SGD sgd({p}, optim::SGDOptions(0.1).momentum(0.9));
  CapturedGraph graph(kCuda);
  graph.capture_begin();
  expect_error([&] { sgd.step(); }, "take one step before capture_begin()");
  graph.capture_end();
}

TEST_P(CudaGraph, StepsOfAdagradWhoseRateDecaysCannotBeCaptured) {
  for (const double decay : {0.0, 0.5}) {
    const Tensor p = ones({4}, kCuda).set_requires_grad(true);
    p.mutable_grad() = ones({4}, kCuda);
    optim::Adagrad adagrad({p}, optim::AdagradOptions(0.1).lr_decay(decay));
    adagrad.step();
    CapturedGraph graph(kCuda);
    graph.capture_begin();
    if (decay == 0) {
      adagrad.step();
    } else {
      expect_error([&] { adagrad.step(); }, "Adagrad with lr_decay cannot be captured");
    }
    graph.capture_end();
  }
}

TEST_P(CudaGraph, AnOrderThatTheHostDrawsCannotBeCaptured) {
  CapturedGraph graph(kCuda);
  graph.capture_begin();
  expect_error([&] { randperm(5, kCuda); }, "draw it before the capture begins");
  graph.capture_end();
}

TEST_P(CudaGraph, WantsAStreamOfItsOwnAndOneCapture) {
  CapturedGraph graph(kCuda);
  expect_error([&] { graph.replay(); }, "captured before it is replayed");
  expect_error([&] { graph.capture_end(); }, "capture_begin() comes first");
  {
    const StreamGuard none(kCuda, {});
    expect_error([&] { graph.capture_begin(); }, "stream 0 of cuda:0 cannot be captured");
  }
  graph.capture_begin();
  graph.capture_end();
  expect_error([&] { graph.capture_begin(); }, "make another one");
}

INSTANTIATE_TEST_SUITE_P(Allocators, CudaGraph, testing::Values("caching", "expandable", "driver_async"),
                         [](const auto& one) { return std::string(one.param); });

// ---- whole steps of the models that experiments train
// ----------------------------------------------------------------

/// Small ones; with dropout, where the model has some.
train::Model small_model(const std::string& name) {
  ConfigRequest request;
  request.overrides = {"model.name=\"" + name + "\"", "model.hidden=8", "model.layers=2", "model.heads=2"};
  if (name != "resnet8") request.overrides.emplace_back("model.dropout=0.3");
  request.use_environment = false;
  request.sections = training_sections();
  const ExperimentConfig config = Config::load(request).experiment();
  const train::DataShape pictures{.height = 9, .width = 9}, text{.vocabulary = 11, .context = 6};
  return train::make_model({.options = config.section("model"), .data = name == "gpt" ? text : pictures});
}

/// What a model has after five steps on batches that differ, the last three by a graph where `captured`.
std::vector<Tensor> after_training(const std::string& name, bool captured) {
  manual_seed(23);
  const bool language = name == "gpt";
  train::Model model = small_model(name);
  std::vector<Tensor> batches;
  for (int i = 0; i < 5; ++i)
    batches.push_back((language ? randint(0, 11, {3, 6}, kInt64) : randn({2, 1, 9, 9})).to(kCuda));
  const Tensor target = randint(0, 10, language ? IntArrayRef({18}) : IntArrayRef({2}), kInt64).to(kCuda);
  const Tensor x = zeros_like(batches[0]);
  model.module->to(kCuda);
  model.module->train();
  optim::AdamW adamw(model.module->parameters(), optim::AdamWOptions(1e-2));
  const auto step = [&] {
    adamw.zero_grad(/*set_to_none=*/false);
    const Tensor logits = model.forward(x);
    nn::functional::cross_entropy(language ? logits.flatten(0, 1) : logits, target).backward();
    adamw.step();
  };
  for (int i = 0; i < 2; ++i) {
    x.copy_(batches[i]);
    step();
  }
  CapturedGraph graph(kCuda);
  if (captured) {
    graph.capture_begin();
    step();
    graph.capture_end();
  }
  const std::int64_t before = memory_calls();
  for (std::size_t i = 2; i < 5; ++i) {
    x.copy_(batches[i]);
    captured ? graph.replay() : step();
  }
  if (captured) {
    EXPECT_EQ(memory_calls(), before) << "a run asks the device for nothing";
  }
  std::vector<Tensor> all;
  for (const Tensor& one : model.module->parameters()) all.push_back(one.detach().to(kCPU));
  for (const Tensor& one : model.module->buffers()) all.push_back(one.to(kCPU));
  return all;
}

class CudaGraphOfModel : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  OpenDevice device_{std::get<1>(GetParam())};
};

TEST_P(CudaGraphOfModel, EqualsTheStepsBitByBit) {
  const std::string& name = std::get<0>(GetParam());
  const std::vector<Tensor> eager = after_training(name, false), graph = after_training(name, true);
  ASSERT_EQ(eager.size(), graph.size());
  for (std::size_t i = 0; i < eager.size(); ++i)
    EXPECT_TRUE(equal(eager[i], graph[i])) << i << ": " << (eager[i] - graph[i]).abs().max().item<double>();
}

/// As of CudaExperiments, with other allocators: all pairs where every device is asked for.
std::vector<std::tuple<std::string, std::string>> models() {
  std::vector<std::tuple<std::string, std::string>> some{{"mlp", "caching"}, {"mlp", "expandable"}};
  some.insert(some.end(), {{"mlp", "driver_async"}, {"resnet8", "caching"}, {"gpt", "expandable"}});
  if (wants_every_device()) {
    some.insert(some.end(), {{"resnet8", "expandable"}, {"resnet8", "driver_async"}});
    some.insert(some.end(), {{"gpt", "caching"}, {"gpt", "driver_async"}});
  }
  return some;
}

INSTANTIATE_TEST_SUITE_P(All, CudaGraphOfModel, testing::ValuesIn(models()),
                         [](const auto& one) { return std::get<0>(one.param) + "_" + std::get<1>(one.param); });

TEST(CudaGraphs, NeedPrivatePools) {
  shutdown();
  set_allocator("cuda", allocator_from_spec("direct"));
  expect_error([] { CapturedGraph graph(kCuda); }, "private pools");
  shutdown();
  set_allocator("cuda", allocator_from_spec(kDefaultAllocator));
}

}  // namespace
}  // namespace tenon::test
