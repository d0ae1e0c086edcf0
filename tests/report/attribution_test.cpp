// Whose the memory is: modules, purposes, operators and phases add up to what the allocator says, in every experiment
// of the examples; and the tree of modules answers "which layer".
#include "train/experiment_fixture.h"

#include <tenon/core/units.h>
#include <tenon/memory/watch/attribution.h>
#include <tenon/report/run/attribution_report.h>
#include <tenon/tenon.h>
#include <tenon/train/estimate/saving_changes.h>
#include <tenon/train/step/run_attribution.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <latch>
#include <map>
#include <optional>
#include <thread>

namespace tenon::test {
namespace {

using memory::AttributedBytes;
using memory::Attribution;
using memory::AttributionReport;
using testing::HasSubstr;
using testing::StartsWith;

struct NetImpl : nn::Module {
  NetImpl() {
    first = register_module("first", nn::Linear(64, 128));
    second = register_module("second", nn::Linear(128, 8));
  }
  Tensor forward(const Tensor& x) {
    const nn::ModuleScope scope(*this);
    return second->forward(relu(first->forward(x)));
  }
  nn::Linear first{nullptr}, second{nullptr};
};
TENON_MODULE(Net);

std::size_t sum(const std::vector<AttributedBytes>& rows, auto is_one) {
  std::size_t bytes = 0;
  for (const AttributedBytes& row : rows)
    if (is_one(row)) bytes += row.bytes;
  return bytes;
}

TEST(Attribution, KnowsModulePurposeOperatorAndPhaseOfWhatLives) {
  Net net;
  AllocatorStack& stack = device_state(kCPU).allocator();
  const Attribution attribution(stack, stack.stats());
  const Tensor x = randn({32, 64});
  Tensor hidden;
  {
    const scopes::Scope forward(scopes::Phase::kForward);
    hidden = net->first->forward(x);
  }
  const AttributionReport report = attribution.report();
  const auto found = std::ranges::find(report.live, std::string("first"), &AttributedBytes::module);
  ASSERT_NE(found, report.live.end());
  EXPECT_EQ(found->bytes, 32U * 128 * 4);
  EXPECT_EQ(found->purpose, Purpose::kActivation);
  EXPECT_EQ(found->phase, "forward");
  EXPECT_FALSE(found->operator_name.empty());
}

TEST(Attribution, GradientsAndOptimizerStatesBelongToTheModuleOfTheirParameter) {
  AllocatorStack& stack = device_state(kCPU).allocator();
  Attribution attribution(stack, stack.stats());
  Net net;
  optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(1e-3));
  net->forward(randn({4, 64})).mean().backward();
  optimizer.step();
  train::name_owners(attribution, *net, &optimizer);
  attribution.check(stack.stats(), "after a step");
  const AttributionReport report = attribution.report();
  EXPECT_EQ(report.disagreement, "");
  const std::size_t of_first = (64 * 128 + 128) * 4;
  for (const auto& [purpose, times] : std::map<Purpose, std::size_t>{
           {Purpose::kParameter, 1}, {Purpose::kGradient, 1}, {Purpose::kOptimizerState, 2}}) {
    EXPECT_EQ(sum(report.live, [&](const auto& row) { return row.module == "first" && row.purpose == purpose; }),
              times * of_first)
        << name_of(purpose);
  }
  const std::vector<ModuleMemory> tree = module_tree(report.live);
  const auto first = std::ranges::find(tree, std::string("first"), &ModuleMemory::module);
  ASSERT_NE(first, tree.end());
  EXPECT_EQ(first->parameters, of_first);
  EXPECT_EQ(first->optimizer_states, 2 * of_first);
}

TEST(Attribution, ThePeakHasItsMomentItsCauseAndItsComposition) {
  AllocatorStack& stack = device_state(kCPU).allocator();
  Attribution attribution(stack, stack.stats());
  scopes::tell_marked("step 7");
  {
    const scopes::Scope forward(scopes::Phase::kForward);
    const scopes::Scope label(scopes::Kind::kLabel, "wide");
    const Tensor a = empty({1024}), b = empty({4096});
  }
  scopes::tell_marked("step 8");
  const Tensor later = empty({512});
  const AttributionReport report = attribution.report();
  EXPECT_EQ(report.peak_mark, "step 7");
  EXPECT_THAT(report.peak_at, StartsWith("forward > wide"));
  EXPECT_EQ(report.peak_request_bytes, 4U * 4096);
  EXPECT_EQ(sum(report.peak, [](const auto& row) { return row.phase == "forward"; }), 4U * (1024 + 4096));
  EXPECT_EQ(sum(report.peak, [](const auto&) { return true; }), report.peak_bytes);
  ASSERT_EQ(report.phases.size(), 1U);
  EXPECT_EQ(report.phases[0].phase, "forward");
  EXPECT_EQ(report.phases[0].before_bytes, report.phases[0].after_bytes);
  EXPECT_EQ(report.phases[0].peak_bytes - report.phases[0].before_bytes, 4U * (1024 + 4096));
  EXPECT_EQ(report.phases[0].mark, "step 7");
}

TEST(Attribution, OfEqualPeaksTheFirstIsToldOf) {
  AllocatorStack& stack = device_state(kCPU).allocator();
  Attribution attribution(stack, stack.stats());
  for (const char* const moment : {"first", "second"}) {
    scopes::tell_marked(moment);
    const scopes::Scope label(scopes::Kind::kLabel, moment);
    const Tensor a = empty({4096});
  }
  const AttributionReport report = attribution.report();
  EXPECT_EQ(report.peak_mark, "first");
  EXPECT_THAT(report.peak_at, StartsWith("first"));
}

TEST(Attribution, APhaseIsThatOfItsThread) {
  AllocatorStack& stack = device_state(kCPU).allocator();
  const Attribution attribution(stack, stack.stats());
  std::latch loading(1), forward_is_over(1);
  std::optional<scopes::Scope> forward(std::in_place, scopes::Phase::kForward);
  std::thread loader([&] {
    const scopes::Scope data(scopes::Phase::kData);
    loading.count_down();
    forward_is_over.wait();
    empty({1024});
  });
  loading.wait();
  forward.reset();
  forward_is_over.count_down();
  loader.join();
  const AttributionReport report = attribution.report();
  ASSERT_EQ(report.phases.size(), 2U);
  EXPECT_EQ(report.phases[0].phase, "data");
  EXPECT_EQ(report.phases[0].peak_bytes - report.phases[0].before_bytes, 4096U);
  EXPECT_EQ(report.phases[1].phase, "forward");
  EXPECT_EQ(report.phases[1].peak_bytes, report.phases[1].before_bytes);
}

TEST(Attribution, APhaseInsideOfItsOwnIsAPartOfThat) {
  AllocatorStack& stack = device_state(kCPU).allocator();
  const Attribution attribution(stack, stack.stats());
  {
    const scopes::Scope backward(scopes::Phase::kBackward);
    const Tensor outer = empty({1024});
    const scopes::Scope inner(scopes::Phase::kBackward);
    const Tensor both = empty({1024});
  }
  const AttributionReport report = attribution.report();
  ASSERT_EQ(report.phases.size(), 1U);
  EXPECT_EQ(report.phases[0].times, 1U);
  EXPECT_EQ(report.phases[0].peak_bytes - report.phases[0].before_bytes, 8192U);
}

TEST(Attribution, SaysWhichSumDiffersFromTheAllocators) {
  AllocatorStack& stack = device_state(kCPU).allocator();
  Attribution attribution(stack, stack.stats());
  const Tensor held = empty({256});
  attribution.check(stack.stats(), "a mark");
  EXPECT_EQ(attribution.report().disagreement, "");
  MemoryStats other = stack.stats();
  other.requested_bytes.current += 8;
  attribution.check(other, "step 3");
  EXPECT_EQ(attribution.report().disagreement,
            fmt::format("step 3: {} bytes are attributed, and the allocator has {}",
                        stack.stats().requested_bytes.current, other.requested_bytes.current));
  EXPECT_EQ(attribution.report().checks, 2U);
}

class ExampleExperiments : public Experiment {
 protected:
  void SetUp() override {
    Experiment::SetUp();
    std::ofstream text(folder / "text");
    for (int i = 0; i < 40000; ++i) text << static_cast<char>(' ' + (i * i / 3 + i / 7) % 95);
  }

  Config load(const std::filesystem::path& file, std::vector<std::string> more) const {
    std::string text;
    std::getline(std::ifstream(file), text, '\0');
    const bool reads_text = text.find("name = \"text\"") != std::string::npos;
    ConfigRequest request;
    request.file = file;
    request.overrides = {"device.name=\"simulated:0\"", "device.simulated.mode=\"address-only\"",
                         "report.attribution=true"};
    if (text.find("[serve]") != std::string::npos)
      request.overrides.emplace_back("serve.requests=12");  // each is attributed in every operator of every step
    else
      request.overrides.insert(
          request.overrides.end(),
          {"train.max_steps=2", "train.epochs=1", "train.warmup_steps=0", "train.test_batch_size=4",
           "data.path=\"" + (reads_text ? folder / "text" : folder).string() + "\""});
    if (text.find("batch_size = \"auto\"") != std::string::npos) request.overrides.push_back("train.batch_size=8");
    if (text.find("[distributed]") != std::string::npos) request.overrides.push_back("distributed.name=\"\"");
    request.overrides.insert(request.overrides.end(), more.begin(), more.end());
    request.use_environment = false;
    request.sections = training_sections();
    return Config::load(request);
  }

  void expect_sums(const std::string& name, const Config& config) {
    shutdown();
    const ExperimentConfig experiment = config.experiment();
    install(experiment);
    const ExperimentResult result = run_experiment(experiment, sink);
    ASSERT_TRUE(result.attribution) << name;
    const AttributionReport& report = *result.attribution;
    EXPECT_EQ(report.disagreement, "") << name;
    // Before each step, at the end of each phase of it, at its end, and around a test.
    const bool serves = result.epochs.empty();
    EXPECT_GE(report.checks, static_cast<std::uint64_t>(serves ? result.steps : 3 * result.steps + 2)) << name;
    for (const DeviceResult& device : result.devices) {
      if (&device == &result.devices.front()) continue;
      ASSERT_TRUE(device.attribution) << name << " " << device.device;
      EXPECT_EQ(device.attribution->disagreement, "") << name << " " << device.device;
      EXPECT_EQ(device.attribution->checks, report.checks) << name;
      EXPECT_EQ(static_cast<std::int64_t>(device.attribution->peak_bytes), device.peak_requested_bytes) << name;
    }
    EXPECT_EQ(static_cast<std::int64_t>(report.peak_bytes), result.memory.requested_bytes.peak) << name;
    const auto everything = [](const AttributedBytes&) { return true; };
    EXPECT_EQ(sum(report.peak, everything), report.peak_bytes) << name;
    std::size_t by_module = 0;
    for (const ModuleMemory& module : module_tree(report.peak))
      if (module.depth == 0) by_module += module.all();
    EXPECT_EQ(by_module, report.peak_bytes) << name;
    EXPECT_FALSE(report.peak_at.empty()) << name;
    const auto is_nobodys = [](const AttributedBytes& row) {
      return row.module.empty() && row.purpose != Purpose::kData && row.purpose != Purpose::kKvCache;
    };
    EXPECT_LT(sum(report.peak, is_nobodys), report.peak_bytes / 2)
        << name << ": a loss over many symbols is no module's";
  }
};

TEST_F(ExampleExperiments, SumsByPurposeModuleAndOperatorAreTheAllocatorsOwnAtEveryMark) {
  std::size_t files = 0, runs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TENON_SOURCE_DIR "/examples/experiments")) {
    if (entry.path().extension() != ".toml") continue;
    ++files;
    const std::string name = entry.path().filename().string();
    const Config config = load(entry.path(), {});
    const std::vector<SweepPoint> cells = config.sweep_cells();
    if (cells.size() <= 1) {
      expect_sums(name, config), ++runs;
      continue;
    }
    for (const SweepPoint& cell : cells)
      expect_sums(name + " " + cell.values.front(), load(entry.path(), cell.overrides)), ++runs;
  }
  EXPECT_GE(files, 9U);
  EXPECT_GE(runs, 30U);
}

TEST_F(Experiment, EachOfSeveralDevicesIsAttributedWithItsOwnPartOfTheModel) {
  for (const char* parallel : {"pipeline", "data"}) {
    const ExperimentResult result = run({"model.name=\"mlp\"", "device.names=[\"simulated:0\", \"simulated:1\"]",
                                         "device.simulated.count=2", "report.attribution=true", "train.max_steps=3",
                                         "train.epochs=1", std::string("train.parallel=\"") + parallel + "\""});
    ASSERT_TRUE(result.attribution) << parallel;
    ASSERT_EQ(result.devices.size(), 2U);
    ASSERT_TRUE(result.devices[1].attribution) << parallel;
    const AttributionReport& second = *result.devices[1].attribution;
    EXPECT_EQ(result.attribution->disagreement, "");
    EXPECT_EQ(second.disagreement, "");
    EXPECT_EQ(static_cast<std::int64_t>(second.peak_bytes), result.devices[1].peak_requested_bytes) << parallel;
    const auto is_owned = [](const AttributedBytes& row) {
      return row.purpose == Purpose::kParameter && !row.module.empty();
    };
    EXPECT_GT(sum(second.live, is_owned), 0U) << parallel;
    const auto is_forward = [](const memory::PhaseMemory& phase) { return phase.phase == "forward"; };
    EXPECT_TRUE(std::ranges::any_of(result.attribution->phases, is_forward)) << parallel;
    if (std::string_view(parallel) == "pipeline") {
      EXPECT_NE(sum(result.attribution->live, is_owned), sum(second.live, is_owned)) << "other layers";
    }
  }
}

TEST_F(Experiment, ParametersAndOptimizerStatesHaveTheirModulesOnTheHostToo) {
  const ExperimentResult result = run({"model.name=\"mlp\"", "device.name=\"cpu\"", "report.attribution=true",
                                       "train.max_steps=3", "train.epochs=1", "train.optimizer=\"adam\""});
  ASSERT_TRUE(result.attribution);
  for (const Purpose purpose : {Purpose::kParameter, Purpose::kOptimizerState}) {
    const auto is_owned = [&](const AttributedBytes& row) { return row.purpose == purpose && !row.module.empty(); };
    const auto is_nobodys = [&](const AttributedBytes& row) { return row.purpose == purpose && row.module.empty(); };
    EXPECT_GT(sum(result.attribution->live, is_owned), 0U) << name_of(purpose);
    EXPECT_EQ(sum(result.attribution->live, is_nobodys), 0U) << name_of(purpose);
  }
}

TEST_F(Experiment, ARunThatIsResumedSaysFromWhichStepOnItsMemoryIsAttributed) {
  const std::string file = (folder / "kept.tenon").string();
  run({"model.name=\"mlp\"", "train.max_steps=4", "train.epochs=1", "train.save=\"" + file + "\""});
  const ExperimentResult result = run({"model.name=\"mlp\"", "train.max_steps=8", "train.epochs=1",
                                       "report.attribution=true", "train.resume=\"" + file + "\""});
  ASSERT_TRUE(result.attribution);
  EXPECT_EQ(result.attribution->after_step, 4);
  EXPECT_THAT(attribution_remark(*result.attribution), HasSubstr("(since step 5, where this part of the run began)"));
  EXPECT_THAT(attribution_html(attribution_json(*result.attribution)), HasSubstr("since step 5"));
}

TEST_F(Experiment, APeakInATestIsAttributedToThatTest) {
  const ExperimentResult result =
      run({"model.name=\"mlp\"", "train.max_steps=2", "train.epochs=1", "train.batch_size=2",
           "train.test_batch_size=100", "model.hidden=16", "report.attribution=true"});
  ASSERT_TRUE(result.attribution);
  EXPECT_EQ(result.attribution->peak_mark, "test 1");
  EXPECT_THAT(attribution_remark(*result.attribution), HasSubstr(" in test 1, by a request of "));
}

TEST_F(Experiment, APageOfARunShowsItsModulesAtThePeak) {
  const ExperimentResult result = run({"model.name=\"mlp\"", "data.name=\"fashion-mnist\"", "report.attribution=true"});
  ASSERT_TRUE(result.attribution);
  const std::string page = attribution_html(attribution_json(*result.attribution));
  EXPECT_THAT(page, HasSubstr("<h2>Whose it was at the peak</h2>"));
  EXPECT_THAT(page, HasSubstr("<svg"));
  EXPECT_THAT(page, HasSubstr("Memory of the phases"));
  EXPECT_THAT(attribution_remark(*result.attribution), StartsWith("whose: "));
}

/// Keeps what it is told of a failure.
class FailureSink final : public ProgressSink {
 public:
  void progress(const Progress&) override {}
  void note(std::string_view) override {}
  void attributed(const AttributionReport& at_failure) override { report = at_failure; }
  std::optional<AttributionReport> report;
};

TEST_F(ExampleExperiments, AFailureNamesItsHoldersAndTheSettingsThatWouldSaveMost) {
  const Config config = load(TENON_SOURCE_DIR "/examples/experiments/gpt_text.toml",
                             {"device.simulated.capacity=\"60MiB\"", "data.limit=64", "data.test_limit=4"});
  const ExperimentConfig experiment = config.experiment();
  install(experiment);
  FailureSink told;
  EXPECT_THROW(run_experiment(experiment, told), OutOfMemory);
  ASSERT_TRUE(told.report);
  EXPECT_GT(told.report->failed_bytes, 0U);
  const std::string text = failure_text(*told.report);
  EXPECT_THAT(text, StartsWith("Who held the "));
  EXPECT_THAT(text, HasSubstr("block0"));
  EXPECT_THAT(text, HasSubstr("activation of "));

  shutdown();
  const SavingChanges savings = changes_that_save(experiment);
  ASSERT_GE(savings.changes.size(), 3U);
  EXPECT_TRUE(std::ranges::is_sorted(savings.changes, {}, &SavingChange::peak_requested_bytes));
  EXPECT_LT(savings.changes.back().peak_requested_bytes, savings.peak_requested_bytes);
  const auto checkpointed = std::ranges::find(savings.changes, "train.checkpoint=true", &SavingChange::setting);
  ASSERT_NE(checkpointed, savings.changes.end());
  const ExperimentConfig changed = load(TENON_SOURCE_DIR "/examples/experiments/gpt_text.toml",
                                        {"data.limit=64", "data.test_limit=4", "train.checkpoint=true"})
                                       .experiment();
  shutdown();
  install(changed);
  EXPECT_EQ(run_experiment(changed, told).memory.requested_bytes.peak, checkpointed->peak_requested_bytes)
      << "the effect that is told is that of the run";
  EXPECT_THAT(savings.text(), StartsWith("What would save most"));
}

TEST(FailureText, NamesWhatPinsTheHoleAndWhatFormerStepsLeft) {
  AttributionReport report;
  report.live = {{"block1", "linear", "forward", Purpose::kActivation, 3 * MiB, 2}};
  report.live_bytes = 4 * MiB;
  report.failed_bytes = 2 * MiB;
  report.hole_bytes = 3 * MiB;
  report.hole_free_bytes = 2 * MiB;
  report.pins = {{MiB, {"block0", "relu", "forward", Purpose::kActivation, MiB, 1}}};
  report.held_over = {{"head", "AddmmBackward0", "backward", Purpose::kGradient, MiB, 1}};
  EXPECT_EQ(
      failure_text(report),
      "Who held the 4.00 MiB that lived when the request failed:\n"
      "    3.00 MiB   75.0 %  block1, activation of linear, forward\n"
      "What pins the largest hole: 1.00 MiB in 1 block lie in a stretch of 3.00 MiB, where the request of 2.00 MiB "
      "would have had its place:\n"
      "    1.00 MiB  block0, activation of relu, forward\n"
      "What was given back too late, if it is not meant to live on: 1.00 MiB of former steps:\n"
      "    1.00 MiB   25.0 %  head, gradient of AddmmBackward0, backward\n");
}

}  // namespace
}  // namespace tenon::test
