// `device.names`: a run whose batches are divided among devices learns what one device learns, and says what each holds
// and, with a cost model, what it does in a step.
#include "support/expect_error.h"
#include "train/experiment_fixture.h"

#include <tenon/report/run/run_remarks.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kThree = R"(device.names=["simulated:0", "simulated:1", "simulated:2"])";

class DataParallelRun : public Experiment {
 protected:
  ExperimentResult run_on(std::vector<std::string> overrides) {
    std::vector<std::string> all = {"device.simulated.count=3", "train.max_steps=6", "train.batch_size=48",
                                    "model.hidden=32"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    return run(all);
  }
};

void expect_near(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-4) << "step " << i + 1;
}

TEST_F(DataParallelRun, HasTheLossesOfOneDevice) {
  const ExperimentResult one = run_on({"device.name=simulated:0"});
  EXPECT_TRUE(one.devices.empty());
  const ExperimentResult three = run_on({kThree});
  expect_near(three.losses, one.losses);
  EXPECT_LT(three.losses.back(), three.losses.front());
  EXPECT_NEAR(three.test_accuracy, one.test_accuracy, 0.02);
  expect_near(run_on({kThree, "train.parallel_loss=each"}).losses, one.losses);
  expect_near(run_on({kThree, "train.micro_batches=2"}).losses, one.losses);
}

TEST_F(DataParallelRun, IsTheSameToTheLastBitWhenRepeated) {
  EXPECT_TRUE(same_bits(run_on({kThree, "model.dropout=0.1"}).losses, run_on({kThree, "model.dropout=0.1"}).losses));
}

TEST_F(DataParallelRun, GoesOnFromWhereItWasInterrupted) {
  const ExperimentResult whole = run_on({kThree, "model.dropout=0.1"});
  int asked = 0;
  sink.stops = [&asked] { return ++asked == 3; };
  state.file = folder / "state";
  EXPECT_TRUE(run_on({kThree, "model.dropout=0.1"}).interrupted);
  sink.stops = {};
  state.go_on = true;
  const ExperimentResult resumed = run_on({kThree, "model.dropout=0.1"});
  EXPECT_TRUE(same_bits(resumed.losses, whole.losses));
  EXPECT_EQ(resumed.devices.size(), 3U);
}

// Out of memory when a gradient is made, or is on its way to the first device: those that the copies had by then are no
// part of the second try.
TEST_F(DataParallelRun, AStepThatIsTakenOnceMoreBeginsWithoutGradientsOnEveryDevice) {
  const std::vector<std::string> words = {R"(device.names=["simulated:0", "simulated:1"])",
                                          "model.name=\"lenet\"",
                                          "train.batch_size=65",
                                          "train.max_steps=3",
                                          "train.optimizer=\"sgd\"",
                                          "train.lr=0.1"};
  const ExperimentResult plain = run_on(words);
  for (const std::string weight : {"28800B", "307200B"}) {  // of the second convolution, of the first linear layer
    std::vector<std::string> more = words;
    more.insert(more.end(), {"allocator.layers=[\"inject\"]", "allocator.inject.purpose=\"gradient\"",
                             "allocator.inject.min_size=" + weight, "allocator.inject.max_size=" + weight,
                             "allocator.inject.nth=2"});
    const ExperimentResult survived = run_on(more);
    EXPECT_GT(survived.oom_recoveries, 0) << weight;
    EXPECT_TRUE(same_bits(plain.losses, survived.losses)) << weight;
  }
}

TEST_F(DataParallelRun, SaysWhatEachDeviceHoldsTheFirstTheMost) {
  const ExperimentResult result = run_on({kThree});
  ASSERT_EQ(result.devices.size(), 3U);
  EXPECT_EQ(result.devices[0].device, "simulated:0");
  EXPECT_EQ(result.devices[0].peak_allocated_bytes, result.memory.allocated_bytes.peak);
  for (std::size_t i = 1; i < 3; ++i) {
    EXPECT_GT(result.devices[i].peak_requested_bytes, result.parameters * 4) << "a copy of the parameters";
    EXPECT_LT(result.devices[i].peak_requested_bytes, result.devices[0].peak_requested_bytes)
        << "the optimiser's state, the data and all outputs lie on the first";
  }
  EXPECT_EQ(result.devices[1].peak_requested_bytes, result.devices[2].peak_requested_bytes);
  EXPECT_FALSE(result.estimated_step_ms.has_value()) << "no cost model";
  EXPECT_THAT(devices_remark(result), HasSubstr("simulated:2: peak allocated"));
}

TEST_F(DataParallelRun, LossesComputedWhereTheOutputsAreTakeMemoryOffTheFirstDevice) {
  const auto first = [this](const std::string& loss) {
    const ExperimentResult result = run_on({kThree, "train.parallel_loss=" + loss, "model.classes=20000",
                                            "train.test_batch_size=10", "train.optimizer=sgd", "train.momentum=0"});
    return result.devices.at(0).peak_requested_bytes;
  };
  EXPECT_LT(first("each"), 0.9 * static_cast<double>(first("first")));
}

TEST_F(DataParallelRun, WithACostModelSaysWhatAStepTakesAndWhoWaits) {
  const std::vector<std::string> machine = {"device.simulated.preset=v100", "device.simulated.mode=address-only",
                                            "model.hidden=4096", "train.batch_size=600"};
  const auto on = [&](const char* devices) {
    std::vector<std::string> overrides = machine;
    overrides.emplace_back(devices);
    return run_on(overrides);
  };
  const ExperimentResult one = on("device.name=simulated:0"), three = on(kThree);
  ASSERT_TRUE(one.estimated_step_ms && three.estimated_step_ms);
  ASSERT_EQ(one.devices.size(), 1U);
  const auto figure = [&](const char* name) {
    return std::ranges::find(three.figures, name, &std::pair<std::string, double>::first)->second;
  };
  EXPECT_EQ(figure("estimated_step_ms"), *three.estimated_step_ms) << "a column of the table";
  EXPECT_GT(figure("estimated_idle"), 0);
  const EstimatedUse whole = one.devices[0].estimated.value(), part = three.devices[1].estimated.value();
  EXPECT_NEAR(whole.idle, 1 - whole.kernel_ms / *one.estimated_step_ms, 1e-9);
  EXPECT_LT(part.kernel_ms, whole.kernel_ms / 2) << "a third of the batch, and no update";
  EXPECT_GT(three.devices[0].estimated->copy_ms, part.copy_ms) << "the first one sends the parameters to all";
  EXPECT_GT(part.copy_ms, 0) << "gradients go back";
  EXPECT_GT(part.idle, whole.idle);
  EXPECT_THAT(devices_remark(three), AllOf(HasSubstr("cost model: a step takes"), HasSubstr("hidden), idle")));
}

TEST_F(DataParallelRun, IsConfiguredByFileEnvironmentAndCommandLineAlike) {
  const auto devices = [](std::vector<std::string> overrides, bool use_environment = false) {
    return Config::load({.file = {},
                         .overrides = std::move(overrides),
                         .use_environment = use_environment,
                         .sections = training_sections()})
        .experiment()
        .devices;
  };
  const std::vector<Device> two = {Device("simulated:0"), Device("simulated:1")};
  EXPECT_EQ(devices({R"(device.names=["simulated:0","simulated:1"])"}), two);
  EXPECT_EQ(devices({"device.names=simulated:0,simulated:1"}), two);
  EXPECT_EQ(devices({R"(device=["simulated:0","simulated:1"])"}), two);
  EXPECT_EQ(devices({"device=simulated:1"}), (std::vector<Device>{Device("simulated:1")}));
  ASSERT_EQ(setenv("TENON_DEVICE__NAMES", "simulated:0,simulated:1", 1), 0);
  EXPECT_EQ(devices({}, true), two);
  EXPECT_EQ(devices({"device.name=cpu"}, true), (std::vector<Device>{Device("cpu:0")})) << "stands somewhere stronger";
  unsetenv("TENON_DEVICE__NAMES");
  const auto resolved = [](std::vector<std::string> overrides) {
    return Config::load({.file = {},
                         .overrides = std::move(overrides),
                         .use_environment = false,
                         .sections = training_sections()})
        .resolved_toml();
  };
  EXPECT_THAT(resolved({"device.names=simulated:1,simulated:0"}),
              AllOf(HasSubstr("name = \"simulated:1\"\nnames = [\"simulated:1\", \"simulated:0\"]")));
  EXPECT_THAT(resolved({"device.name=simulated:1"}), HasSubstr("name = \"simulated:1\"\nnames = []"));
  const std::filesystem::path file = folder / "devices.toml";
  std::ofstream(file) << "device = [\"simulated:0\", \"simulated:1\"]\n";
  EXPECT_EQ(Config::load({.file = file, .sections = training_sections()}).experiment().device_names(),
            "simulated:0, simulated:1");
}

TEST_F(DataParallelRun, DevicesThatMakeNoSenseTogetherAreRefused) {
  expect_error<ConfigError>([this] { run_on({R"(device.names=["simulated:0", "simulated:0"])"}); },
                            "has simulated:0 twice");
  expect_error<ConfigError>([this] { run_on({R"(device.names=["simulated:0", "cpu"])"}); }, "must be of one kind");
  expect_error([this] { run_on({R"(device.names=["simulated:0", "simulated:9"])"}); }, "no device simulated:9");
  expect_error<ConfigError>(
      [this] {
        run_on({kThree, "train.optimizer_in_backward=true"});
      },
      "before the gradients of the other devices");
  expect_error<ConfigError>([this] { run_on({kThree, "train.batch_size=2"}); }, "3 devices, but 2 examples");
}

}  // namespace
}  // namespace tenon::test
