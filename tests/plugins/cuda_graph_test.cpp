// Captured steps on an emulated CUDA device: what a graph runs again equals what the program would have run, random
// numbers and the optimiser's count of steps included.
#include "support/emulated_cuda/emulated_cuda.h"
#include "support/expect_error.h"

#include <tenon/tenon.h>

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

const Device kCuda("cuda:0");

/// Under an allocator that has private pools.
class CudaGraph : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    shutdown();
    emulated_cuda::start({});
    set_allocator("cuda", allocator_from_spec(GetParam()));
    stream_ = device_state(kCuda).driver().create_stream(0);
    guard_.emplace(kCuda, stream_);
  }
  void TearDown() override {
    device_state(kCuda).driver().synchronize();
    guard_.reset();
    device_state(kCuda).driver().destroy_stream(stream_);
    shutdown();
    set_allocator("cuda", allocator_from_spec(kDefaultAllocator));
  }

  StreamRef stream_;
  std::optional<StreamGuard> guard_;
};

/// Calls that take memory of the device or give it back.
std::int64_t memory_calls() {
  std::int64_t all = 0;
  for (const char* name : {"cudaMalloc", "cudaFree", "cuMemCreate", "cuMemMap"}) all += emulated_cuda::calls(name);
  return all;
}

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
    optimizer->zero_grad();
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

TEST_P(CudaGraph, AFirstStepThatMakesTheOptimisersStateCannotBeCaptured) {
  const Tensor p = ones({4}, kCuda).set_requires_grad(true);
  p.mutable_grad() = ones({4}, kCuda);
  optim::SGD sgd({p}, optim::SGDOptions(0.1).momentum(0.9));
  CapturedGraph graph(kCuda);
  graph.capture_begin();
  expect_error([&] { sgd.step(); }, "take one step before capture_begin()");
  graph.capture_end();
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

INSTANTIATE_TEST_SUITE_P(Allocators, CudaGraph, testing::Values("caching", "expandable"),
                         [](const auto& one) { return std::string(one.param); });

TEST(CudaGraphs, NeedPrivatePools) {
  shutdown();
  set_allocator("cuda", allocator_from_spec("direct"));
  expect_error([] { CapturedGraph graph(kCuda); }, "private pools");
  shutdown();
  set_allocator("cuda", allocator_from_spec(kDefaultAllocator));
}

}  // namespace
}  // namespace tenon::test
