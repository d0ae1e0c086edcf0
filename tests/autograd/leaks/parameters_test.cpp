// Parameters that are older than the watch, as they are in most programs: what they keep has an owner all the same.
#include <tenon/autograd/leaks/leak_watch.h>
#include <tenon/autograd/leaks/live_memory.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace parameters_program {

using tenon::Tensor;

int line_of_new_hook = 0;
tenon::memory::LeakReport a_hook_more_in_each_step(tenon::nn::Linear layer) {
  tenon::memory::LeakWatch watch;
  for (int step = 0; step < 12; ++step) {
    const Tensor x = tenon::rand({8, 32});
    line_of_new_hook = __LINE__ + 1;
    layer->weight.register_hook([x](const Tensor& gradient) { return gradient; });
    layer->forward(x).mean().backward();
    watch.step();
  }
  return watch.report();
}

tenon::memory::LeakReport layers_unfrozen_one_after_another(std::vector<tenon::nn::Linear>& layers) {
  tenon::memory::LeakWatch watch;
  for (int step = 0; step < 60; ++step) {
    for (std::size_t i = 0; i < layers.size(); ++i)
      layers[i]->weight.set_requires_grad(static_cast<int>(i) * 15 <= step);
    Tensor y = tenon::rand({4, 32});
    for (auto& layer : layers) y = layer->forward(y);
    y.mean().backward();
    watch.step();
  }
  return watch.report();
}

/// As where a list of modules grows: of each parameter there is a gradient too.
tenon::memory::LeakReport a_parameter_more_in_each_step(std::vector<Tensor>& parameters, bool each_of_another_size) {
  tenon::memory::LeakWatch watch;
  for (int step = 0; step < 20; ++step) {
    parameters.push_back(tenon::rand({256 + (each_of_another_size ? step : 0)}).set_requires_grad(true));
    parameters.back().square().sum().backward();
    watch.step();
  }
  return watch.report();
}

/// The last result keeps its history, that the parameter, and that its gradient.
tenon::memory::LeakReport a_result_of_a_new_parameter_in_each_step(std::vector<Tensor>& results) {
  tenon::memory::LeakWatch watch;
  for (int step = 0; step < 20; ++step) {
    const Tensor parameter = tenon::rand({256}).set_requires_grad(true);
    results.push_back((parameter * 2).sum());
    results.back().backward();
    watch.step();
  }
  return watch.report();
}

}  // namespace parameters_program

namespace tenon::test {
namespace {

TEST(LeaksOfParameters, HooksThatAreRegisteredInEachStepAreNamedByTheirLine) {
  nn::Linear layer(32, 32);
  const memory::LeakReport report = parameters_program::a_hook_more_in_each_step(layer);
  ASSERT_EQ(report.leaks.size(), 1U) << report.text();
  const memory::Leak& leak = report.leaks.front();
  EXPECT_EQ(leak.kind, memory::LeakKind::kHook) << report.text();
  EXPECT_THAT(leak.site,
              testing::HasSubstr("(parameters_test.cpp:" + std::to_string(parameters_program::line_of_new_hook) + ")"));
  EXPECT_THAT(leak.sentence, testing::HasSubstr("registered anew in every step"));
}

TEST(LeaksOfParameters, GradientsOfLayersThatAreUnfrozenOneAfterAnotherAreNone) {
  std::vector<nn::Linear> layers;
  for (int i = 0; i < 4; ++i) layers.emplace_back(nn::LinearOptions(32, 32).bias(false));
  const memory::LeakReport report = parameters_program::layers_unfrozen_one_after_another(layers);
  EXPECT_TRUE(report.leaks.empty()) << report.text();
}

TEST(LeaksOfParameters, ThatGrowHaveTheirGradientsWithThem) {
  for (const bool each_of_another_size : {false, true}) {
    std::vector<Tensor> parameters;
    const memory::LeakReport report =
        parameters_program::a_parameter_more_in_each_step(parameters, each_of_another_size);
    ASSERT_EQ(report.leaks.size(), 1U) << report.text();
    const memory::Leak& leak = report.leaks.front();
    EXPECT_EQ(leak.kind, memory::LeakKind::kHeld) << report.text();
    EXPECT_NEAR(leak.bytes_per_step, 2 * 256 * 4, each_of_another_size ? 150 : 1) << report.text();
    EXPECT_EQ(leak.blocks, 2U * 18);
    EXPECT_THAT(leak.sentence, testing::HasSubstr("holds 18 tensors"));
    EXPECT_THAT(leak.sentence, testing::HasSubstr(" of it are their gradients"));
  }
}

TEST(LeaksOfParameters, ThatOnlyAHistoryHoldsHaveTheirGradientsWithThem) {
  std::vector<Tensor> results;
  const memory::LeakReport report = parameters_program::a_result_of_a_new_parameter_in_each_step(results);
  double bytes_per_step = 0;
  for (const memory::Leak& leak : report.leaks) bytes_per_step += leak.bytes_per_step;
  EXPECT_NEAR(bytes_per_step, 2 * 256 * 4 + 4, 1) << report.text();
}

TEST(LeaksOfParameters, AreNotAmongWhatWasMadeWhileTheWatchLived) {
  nn::Linear layer(3, 5);
  const memory::LiveRecording recording;
  layer->forward(ones({2, 3})).sum().backward();
  for (const memory::LiveTensor& tensor : memory::live_tensors())
    EXPECT_EQ(tensor.made_at.find("[no stack]"), std::string::npos);
}

}  // namespace
}  // namespace tenon::test
