// Whose the memory of a run is: what name_owners() gives to modules, and what is told when memory runs out.
#include <tenon/core/units.h>
#include <tenon/device/device_state.h>
#include <tenon/memory/purpose.h>
#include <tenon/memory/watch/attribution.h>
#include <tenon/nn/modules/batch_norm.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/adam.h>
#include <tenon/optim/master_weights.h>
#include <tenon/runtime/config/config.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/train/experiment_result.h>
#include <tenon/train/run_experiment.h>
#include <tenon/train/step/run_attribution.h>

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

using memory::Attribution;
using memory::AttributionReport;

struct OwnedNetImpl : nn::Module {
  OwnedNetImpl() {
    first = register_module("first", nn::Linear(8, 16));
    norm = register_module("norm", nn::BatchNorm1d(16));
    const PurposeGuard purpose(Purpose::kParameter);
    scale = register_parameter("scale", tenon::ones({32}));
  }
  Tensor forward(const Tensor& x) { return norm(first(x)) * scale.sum(); }
  nn::Linear first{nullptr};
  nn::BatchNorm1d norm{nullptr};
  Tensor scale;
};
TENON_MODULE(OwnedNet);

constexpr std::size_t kFirst = 4 * (8 * 16 + 16), kNorm = 4 * 2 * 16, kRunning = 4 * 2 * 16 + 8, kScale = 4 * 32;

std::size_t bytes_of(const AttributionReport& report, const std::string& module, Purpose purpose) {
  std::size_t bytes = 0;
  for (const memory::AttributedBytes& row : report.live)
    if (row.module == module && row.purpose == purpose) bytes += row.bytes;
  return bytes;
}

AllocatorStack& host() { return device_state(kCPU).allocator(); }

TEST(MemoryOwners, OfParametersBuffersAndGradientsAreTheModulesThatHaveThem) {
  OwnedNet net;
  Attribution attribution(host(), host().stats());
  net->forward(randn({4, 8})).sum().backward();
  train::name_owners(attribution, *net, nullptr);
  const AttributionReport report = attribution.report();
  EXPECT_EQ(bytes_of(report, "first", Purpose::kParameter), kFirst);
  EXPECT_EQ(bytes_of(report, "first", Purpose::kGradient), kFirst);
  EXPECT_EQ(bytes_of(report, "norm", Purpose::kParameter), kNorm + kRunning) << "buffers with them";
  EXPECT_EQ(bytes_of(report, "norm", Purpose::kGradient), kNorm);
  EXPECT_EQ(bytes_of(report, "OwnedNet", Purpose::kParameter), kScale) << "of the tree itself";
}

TEST(MemoryOwners, OfStatesAreThoseOfTheirParameters) {
  OwnedNet net;
  Attribution attribution(host(), host().stats());
  optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(1e-3));
  net->forward(randn({4, 8})).sum().backward();
  optimizer.step();
  train::name_owners(attribution, *net, nullptr);
  EXPECT_EQ(bytes_of(attribution.report(), "first", Purpose::kOptimizerState), 0U) << "without the optimiser";
  train::name_owners(attribution, *net, &optimizer);
  EXPECT_EQ(bytes_of(attribution.report(), "first", Purpose::kOptimizerState), 2 * kFirst);
  EXPECT_EQ(bytes_of(attribution.report(), "norm", Purpose::kOptimizerState), 2 * kNorm);
  EXPECT_EQ(bytes_of(attribution.report(), "OwnedNet", Purpose::kOptimizerState), 2 * kScale);
}

// Masters are of the parameters that learn, in their order: what is frozen has none.
TEST(MemoryOwners, OfMastersAreThoseOfTheParametersThatLearn) {
  OwnedNet net;
  net->first->weight.set_requires_grad(false);
  std::vector<Tensor> masters;
  Attribution attribution(host(), host().stats());
  for (const Tensor& parameter : net->parameters()) {
    if (!parameter.requires_grad()) continue;
    masters.push_back(parameter.detach().clone().requires_grad_());
    masters.back().mutable_grad() = tenon::zeros_like(masters.back());
  }
  optim::AdamW optimizer(masters, optim::AdamWOptions(1e-3));
  optimizer.step();
  train::name_owners(attribution, *net, &optimizer, masters);
  const AttributionReport report = attribution.report();
  const auto all = [&](const std::string& module) {
    std::size_t bytes = 0;
    for (const memory::AttributedBytes& row : report.live)
      if (row.module == module) bytes += row.bytes;
    return bytes;
  };
  const std::size_t bias = 4 * 16;
  EXPECT_EQ(all("first"), kFirst + bias + bias + 2 * bias) << "the parameter, its master, gradient and states";
  EXPECT_EQ(all("norm"), kNorm + kRunning + 4 * kNorm);
  EXPECT_EQ(all("OwnedNet"), kScale + 4 * kScale);
}

TEST(MemoryOwners, WithinALargerTreeAreNamedByItsPaths) {
  struct OuterImpl : nn::Module {
    OuterImpl() { net = register_module("inner", OwnedNet()); }
    OwnedNet net{nullptr};
  };
  const auto outer = std::make_shared<OuterImpl>();
  Attribution attribution(host(), host().stats());
  train::name_owners(attribution, *outer->net, nullptr);
  EXPECT_EQ(bytes_of(attribution.report(), "inner.first", Purpose::kParameter), kFirst);
}

class RunOwners : public ::testing::Test {
 protected:
  void SetUp() override {
    ConfigRequest request;
    request.overrides = {"device.names=[\"simulated:0\", \"simulated:1\"]", "device.simulated.count=2",
                         "device.simulated.capacity=\"16MiB\"", "allocator.name=\"direct\""};
    request.use_environment = false;
    request.sections = training_sections();
    install(Config::load(request).experiment());
  }
  void TearDown() override { shutdown(); }

  class Told final : public ProgressSink {
   public:
    void progress(const Progress&) override {}
    void note(std::string_view) override {}
    void attributed(const AttributionReport& report) override { reports.push_back(report); }
    std::vector<AttributionReport> reports;
  };
  static void ask_for_too_much(const char* device) {
    EXPECT_THROW(empty({40 << 20}, TensorOptions(kUInt8).device(Device(device))), OutOfMemory);
  }
  DeviceState& first() { return device_state(Device("simulated:0")); }
  Told told;
};

TEST_F(RunOwners, AreAskedForAndToldWhenMemoryOfTheirDeviceRunsOut) {
  int asked = 0;
  std::optional<train::RunAttribution> attribution;
  attribution.emplace(
      first(), told, [&](Attribution&) { ++asked; }, train::AttributionWants{});
  const Tensor live = empty({1 << 20}, TensorOptions(kUInt8).device(Device("simulated:0")));
  ask_for_too_much("simulated:1");
  EXPECT_TRUE(told.reports.empty()) << "of another device";
  ask_for_too_much("simulated:0");
  ASSERT_EQ(told.reports.size(), 1U);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(told.reports[0].failed_bytes, std::size_t{40} << 20);
  EXPECT_EQ(told.reports[0].live_bytes, std::size_t{1} << 20);
  EXPECT_FALSE(told.reports[0].are_uses_told);
  ASSERT_EQ(told.reports[0].live.size(), 1U);
  EXPECT_EQ(told.reports[0].live[0].site, "");
  EXPECT_EQ(told.reports[0].checks, 0U);
  attribution->check("now");
  ask_for_too_much("simulated:0");
  ASSERT_EQ(told.reports.size(), 2U);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(told.reports[1].checks, 1U);
  EXPECT_EQ(told.reports[1].disagreement, "");
  attribution.reset();
  ask_for_too_much("simulated:0");
  EXPECT_EQ(told.reports.size(), 2U) << "nobody listens any more";
}

TEST_F(RunOwners, HaveCallSitesAndUsesIfTheyAreWanted) {
  const auto report_with = [&](const train::AttributionWants& wants) {
    const train::RunAttribution attribution(
        first(), told, [](Attribution&) {}, wants);
    const Tensor live = empty({1 << 20}, TensorOptions(kUInt8).device(Device("simulated:0")));
    ask_for_too_much("simulated:0");
    return told.reports.back();
  };
  const AttributionReport sites = report_with({.call_sites = true, .last_uses = false});
  EXPECT_NE(sites.live.at(0).site, "");
  EXPECT_FALSE(sites.are_uses_told);
  const AttributionReport uses = report_with({.call_sites = false, .last_uses = true});
  EXPECT_EQ(uses.live.at(0).site, "");
  EXPECT_TRUE(uses.are_uses_told);
}

/// What somebody is told, by name.
class ToldOf final : public ProgressSink {
 public:
  void progress(const Progress& now) override { calls.push_back("progress " + now.phase); }
  void note(std::string_view line) override { calls.push_back("note " + std::string(line)); }
  void entering(std::string_view what) override { calls.push_back("entering " + std::string(what)); }
  void step_begins() override { calls.emplace_back("step"); }
  void beginning() override { calls.emplace_back("beginning"); }
  void figures(const ExperimentResult& part) override { calls.push_back("figures " + std::to_string(part.steps)); }
  void broken_off(const ExperimentResult& part) override { calls.push_back("broken " + std::to_string(part.steps)); }
  void attributed(const AttributionReport& at) override {
    calls.push_back("attributed " + std::to_string(at.live_bytes));
  }
  void earlier_figures(const ExperimentResult& part) override {
    calls.push_back("earlier " + std::to_string(part.steps));
  }
  bool is_stopping() const override { return stops; }
  std::vector<std::string> calls;
  bool stops = false;
};

TEST(ForwardedTelling, PassesEverythingOn) {
  ToldOf told;
  ForwardedProgress forwarded(told);
  ProgressSink& sink = forwarded;
  ExperimentResult three;
  three.steps = 3;
  AttributionReport report;
  report.live_bytes = 4;
  Progress now;
  now.phase = "train";
  sink.progress(now);
  sink.note("a line");
  sink.entering("something");
  sink.step_begins();
  sink.beginning();
  sink.figures(three);
  sink.broken_off(three);
  sink.attributed(report);
  sink.earlier_figures(three);
  EXPECT_EQ(told.calls, (std::vector<std::string>{"progress train", "note a line", "entering something", "step",
                                                  "beginning", "figures 3", "broken 3", "attributed 4", "earlier 3"}));
  for (const bool stops : {true, false}) {
    told.stops = stops;
    EXPECT_EQ(sink.is_stopping(), stops);
  }
}

}  // namespace
}  // namespace tenon::test
